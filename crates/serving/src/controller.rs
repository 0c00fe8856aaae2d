//! Controller of one inference. Owns: updating the endpoint from the state, scaling by the rule,
//! draining replicas before they stop, and giving up a revision that never becomes ready. Does not
//! know about: how orders are carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use orchestrator::Readiness;
use spec::Serving;
use tokio::time::Instant;
use uuid::Uuid;
use view::codes::NOT_READY;
use view::{Phase, PodState, PodView, View, WorkloadView};

use crate::endpoint::{Endpoint, ReplicaAddress};
use crate::probe::{Unready, Watch, Watched};
use crate::proxy::{ProbeFault, Proxy};
use crate::rollout::{Replica, RevisionPlan, roll};
use crate::{ReplicaCounts, Sample, Scaler};

/// Run time after which a process that does not answer is shown as not ready.
const UNREADY_AFTER: Duration = Duration::from_secs(3);

/// Wait of the newest revision after which it is assumed to find no room beside the older ones.
const LACKING_FOR: Duration = Duration::from_secs(2);

/// A request to the dispatcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Exactly these replicas of a revision should run.
    Scale { revision: Uuid, wanted: BTreeSet<u32>, why: String },
    /// A revision was replaced.
    Retire { revision: Uuid },
    /// A revision never became ready.
    GiveUp { revision: Uuid, why: String },
}

/// The revision that is scaled: the newest live one.
struct Active {
    revision: Uuid,
    scaler: Scaler,
    /// Number of replicas that should run, and its reason.
    replicas: u32,
    why: String,
    /// Number of the revision, counted in the inference.
    number: u32,
    /// Start of the time in which it has had a place.
    starting_since: Option<Instant>,
    /// Start of the time in which it finds no room beside the older ones, while none of theirs
    /// stops.
    lacking_since: Option<Instant>,
    /// Time from which an older one makes room for it.
    room_since: Option<Instant>,
    was_ready: bool,
}

/// State of one inference between two rounds.
pub(crate) struct Controller {
    endpoint: Arc<Endpoint>,
    began: Instant,
    watches: BTreeMap<(Uuid, u32), Watch>,
    /// Start times of the processes of runs.
    running: BTreeMap<(Uuid, u32), Instant>,
    /// Replicas that get no more requests, and the time from which.
    leaving: BTreeMap<Uuid, Instant>,
    active: Option<Active>,
    seen: Sample,
}

impl Controller {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            endpoint,
            began: Instant::now(),
            watches: BTreeMap::new(),
            running: BTreeMap::new(),
            leaving: BTreeMap::new(),
            active: None,
            seen: Sample::default(),
        }
    }

    /// Examines the published inference. Returns the orders, and the replicas whose readiness is
    /// not published. `measure`: a period has passed, so the number of replicas is decided again.
    /// `host`: address of a run of a pod.
    pub(crate) fn look(
        &mut self,
        head: &WorkloadView,
        view: &View,
        proxy: &Proxy,
        host: &dyn Fn(Uuid, u32) -> Option<IpAddr>,
        measure: bool,
    ) -> (Vec<Order>, Vec<Readiness>) {
        let revisions = head.revisions.iter().rev().filter_map(|id| view.revisions.get(id));
        let live: Vec<_> = revisions.filter(|revision| lives(revision.phase)).collect();
        let Some((newest, serving)) =
            live.first().and_then(|first| Some((*first, first.spec.serving.as_ref()?)))
        else {
            self.stand_down(head);
            return (Vec::new(), Vec::new());
        };
        // All replicas that can answer are registered before decisions about them.
        self.show(&live, serving, proxy, host);
        let mut orders: Vec<_> = self.check_start(newest, serving).into_iter().collect();
        let seen = self.check_ready(live.iter().flat_map(|one| &one.pods), serving.container_port);
        let replicas: Vec<_> = live.iter().map(|revision| self.replicas(revision)).collect();
        self.decide(newest, serving, &replicas[0], measure);
        let Some(active) = &mut self.active else { return (orders, seen) };
        let now = Instant::now();
        let ahead = active.makes_room(&live, &replicas, now);
        let fates = roll(&replicas, active.replicas, ahead);
        self.leaving.retain(|pod, _| fates.iter().any(|f| f.leave.iter().any(|r| r.pod == *pod)));
        for replica in fates.iter().flat_map(|fate| &fate.leave) {
            self.leaving.entry(replica.pod).or_insert(now);
        }
        // From here on leaving replicas get no new requests, so their number of requests only
        // falls.
        self.show(&live, serving, proxy, host);
        for (age, (revision, fate)) in live.iter().zip(fates).enumerate() {
            orders.extend(self.order(revision, fate, age > 0, serving));
        }
        (orders, seen)
    }

    /// The order for one revision, if any.
    fn order(
        &self,
        revision: &WorkloadView,
        fate: RevisionPlan,
        is_old: bool,
        serving: &Serving,
    ) -> Option<Order> {
        let most = Duration::from_millis(serving.request_ms_max);
        let done = |replica: &&Replica| {
            let since = self.leaving.get(&replica.pod);
            let waited = since.is_none_or(|since| since.elapsed() >= most);
            waited || self.endpoint.busy(replica.pod) == 0
        };
        let stay_to_finish = fate.leave.iter().filter(|replica| !done(replica));
        let mut wanted = fate.stay;
        wanted.extend(stay_to_finish.map(|replica| replica.number));
        if is_old && wanted.is_empty() && !self.may_return(serving) {
            return Some(Order::Retire { revision: revision.id });
        }
        let now: BTreeSet<u32> =
            revision.pods.iter().filter(|pod| pod.wanted).map(|pod| pod.index).collect();
        let why = match &self.active {
            _ if is_old => "a newer revision takes over".to_owned(),
            Some(active) => active.why.clone(),
            None => String::new(),
        };
        (now != wanted).then_some(Order::Scale { revision: revision.id, wanted, why })
    }

    /// True if an old revision that gave its room away serves again if the newest is not ready in
    /// time.
    fn may_return(&self, newest: &Serving) -> bool {
        newest.recreate && self.active.as_ref().is_some_and(|it| !it.was_ready && it.replicas > 0)
    }

    /// Closes the endpoint of an inference without live revisions: requests get an error with the
    /// cause.
    fn stand_down(&mut self, head: &WorkloadView) {
        self.watches.clear();
        self.leaving.clear();
        self.active = None;
        let name = &head.spec.name;
        self.endpoint.close(&match head.phase {
            Phase::Deleting => format!("inference `{name}` is being deleted"),
            Phase::Failed => {
                format!(
                    "inference `{name}` has failed; its events say why, and a change starts it again"
                )
            }
            _ => format!("inference `{name}` is stopped"),
        });
    }

    /// Updates the endpoint and the probes of replicas.
    fn show(
        &mut self,
        live: &[&Arc<WorkloadView>],
        serving: &Serving,
        proxy: &Proxy,
        host: &dyn Fn(Uuid, u32) -> Option<IpAddr>,
    ) {
        let (mut places, mut probes) = (Vec::new(), Vec::new());
        for revision in live {
            // Each revision has its own probe.
            let probe = revision.spec.serving.as_ref().map(|own| &own.probe);
            for pod in &revision.pods {
                let Some(port) = port_of(pod) else { continue };
                let Some(host) = host(pod.id, pod.generation) else { continue };
                let address = SocketAddr::from((host, port));
                let leaving = self.leaving.contains_key(&pod.id) || !pod.wanted;
                let (pod, generation) = (pod.id, pod.generation);
                places.push(ReplicaAddress { pod, generation, address, leaving });
                probes.push(probe.unwrap_or(&serving.probe));
            }
        }
        self.endpoint.set_places(&places, serving.concurrency_max);
        let there: BTreeSet<_> = places.iter().map(|place| (place.pod, place.generation)).collect();
        self.watches.retain(|run, _| there.contains(run));
        for (place, probe) in places.into_iter().zip(probes) {
            let watched = || Watched {
                endpoint: self.endpoint.clone(),
                pod: place.pod,
                generation: place.generation,
                address: place.address,
                probe: probe.clone(),
            };
            self.watches
                .entry((place.pod, place.generation))
                .or_insert_with(|| Watch::begin(watched(), proxy.clone()));
        }
    }

    /// Replicas whose readiness is not published correctly, once they have run for a moment. After
    /// a refused order they are found again, because the published state is compared. `asked`: the
    /// port of the submission.
    fn check_ready<'a>(
        &mut self,
        pods: impl Iterator<Item = &'a PodView>,
        asked: u16,
    ) -> Vec<Readiness> {
        let pods: Vec<_> = pods.filter(|pod| pod.state == PodState::Running).collect();
        let is_there = |run: &(Uuid, u32)| pods.iter().any(|pod| (pod.id, pod.generation) == *run);
        self.running.retain(|run, _| is_there(run));
        let mut seen = Vec::new();
        for pod in pods {
            let run = (pod.id, pod.generation);
            let since = self.running.entry(run).or_insert_with(Instant::now);
            let ready = self.endpoint.is_ready(pod.id);
            let fault = self.watches.get(&run).and_then(Watch::fault).filter(|_| !ready);
            let is_shown = pod.condition.as_ref().is_some_and(|why| why.code == NOT_READY.code);
            let is_news = fault.is_some() != is_shown;
            if is_news && (fault.is_none() || since.elapsed() >= UNREADY_AFTER) {
                let fault = fault.map(|fault| unready(&fault, asked));
                seen.push(Readiness { pod: pod.id, generation: pod.generation, fault });
            }
        }
        seen
    }

    fn replicas(&self, revision: &WorkloadView) -> Vec<Replica> {
        let mut pods = revision.pods.iter().peekable();
        let one = |number| match pods.next_if(|pod| pod.index == number) {
            Some(pod) => Replica {
                pod: pod.id,
                number,
                wanted: pod.wanted,
                placed: port_of(pod).is_some(),
                ready: self.endpoint.is_ready(pod.id),
            },
            None => {
                Replica { pod: Uuid::nil(), number, wanted: false, placed: false, ready: false }
            }
        };
        (0..revision.spec.pods.pods).map(one).collect()
    }

    /// Updates the number of replicas.
    fn decide(
        &mut self,
        newest: &WorkloadView,
        serving: &Serving,
        replicas: &[Replica],
        measure: bool,
    ) {
        let wanted = count(replicas, |replica| replica.wanted);
        let now = units::Instant(self.now_ms());
        if self.active.as_ref().is_none_or(|active| active.revision != newest.id) {
            let number = newest.spec.revision.map_or(0, |revision| revision.number);
            // A revision that gave its room to a newer one, which was given up, gets its former
            // number again.
            let given_up = self.active.as_ref().filter(|active| active.number > number);
            let wanted = given_up.map_or(wanted, |active| active.replicas.max(wanted));
            self.active = Some(Active {
                revision: newest.id,
                scaler: Scaler::new(serving.scaling.clone(), now, wanted),
                replicas: wanted,
                why: given_up
                    .map_or_else(String::new, |_| "the newer revision was given up".to_owned()),
                number,
                starting_since: None,
                lacking_since: None,
                room_since: None,
                was_ready: false,
            });
        }
        let Some(active) = &mut self.active else { return };
        active.scaler.follow(&serving.scaling);
        let ready = count(replicas, |replica| replica.wanted && replica.ready);
        active.was_ready |= ready > 0;
        let awaited = active.replicas == 0 && self.endpoint.waiting() > 0;
        if !measure && !awaited {
            return;
        }
        let (total, _) = self.endpoint.totals();
        let sample = Sample { at: now, ..total.since(self.seen) };
        self.seen = total;
        let decision = active.scaler.step(sample, ReplicaCounts { wanted: active.replicas, ready });
        if decision.replicas != active.replicas {
            active.replicas = decision.replicas;
            active.why = decision.why;
        }
    }

    /// Gives up a revision that has its place, or the room of an older one, and is not ready for
    /// too long.
    fn check_start(&mut self, newest: &WorkloadView, serving: &Serving) -> Option<Order> {
        let active = self.active.as_mut().filter(|active| active.revision == newest.id)?;
        active.starting_since = starting_since(active.starting_since, &newest.pods);
        let since = active.starting_since.or(active.room_since).filter(|_| !active.was_ready)?;
        if since.elapsed() < Duration::from_millis(serving.start_ms_max) {
            return None;
        }
        let seconds = serving.start_ms_max / 1000;
        let last = newest.pods.iter().find_map(|pod| pod.last_exit.as_ref());
        let last = last.map(|exit| format!("; a replica ended with {exit}")).unwrap_or_default();
        let of = match active.starting_since {
            Some(_) => "its start",
            None => "the end of one of the revision before, which gave it room",
        };
        let why = format!(
            "no replica was ready within {seconds} s of {of} (initializationTimeoutSeconds){last}"
        );
        Some(Order::GiveUp { revision: newest.id, why })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Active {
    /// Number of replicas of older revisions that stop before one of this is ready: one, if this
    /// waits for room and another replica still serves, or the settings allow an interruption.
    fn makes_room(
        &mut self,
        live: &[&Arc<WorkloadView>],
        replicas: &[Vec<Replica>],
        now: Instant,
    ) -> u32 {
        let ([newest, older @ ..], [own, ..]) = (live, replicas) else { return 0 };
        let waits = |pod: &PodView| pod.wanted && pod.state.is_pending();
        let lacks_room = !newest.pending.is_empty() && newest.pods.iter().any(waits);
        let is_starting = own.iter().any(|one| one.wanted && one.placed && !one.ready);
        let is_going = |pod: &PodView| !pod.wanted && pod.state.holds_place();
        let pods = || older.iter().flat_map(|revision| &revision.pods);
        let goes_anyway =
            roll(replicas, self.replicas, 0).iter().skip(1).any(|it| !it.leave.is_empty());
        if !lacks_room || is_starting || goes_anyway || pods().any(is_going) {
            self.lacking_since = None;
        } else {
            self.lacking_since.get_or_insert(now);
        }
        let recreate = newest.spec.serving.as_ref().is_some_and(|serving| serving.recreate);
        // The published reason may be older than room that has just become free.
        let lacks = self.lacking_since.is_some_and(|since| now - since >= LACKING_FOR);
        let serving = count(replicas.iter().flatten(), |one| one.wanted && one.ready);
        let ahead = lacks && !older.is_empty() && (serving > 1 || recreate);
        if ahead {
            self.room_since.get_or_insert(now);
        }
        u32::from(ahead)
    }
}

/// Start of the time in which any of these has had a place, given the former start. A replica that
/// restarts in its place keeps it; an evicted one starts over.
fn starting_since(before: Option<Instant>, pods: &[PodView]) -> Option<Instant> {
    let is_placed = |pod: &PodView| pod.wanted && pod.state.is_starting_or_running();
    pods.iter().any(is_placed).then(|| before.unwrap_or_else(Instant::now))
}

/// True if a revision in this phase serves or may.
const fn lives(phase: Phase) -> bool {
    !matches!(
        phase,
        Phase::Stopping | Phase::Stopped | Phase::Deleting | Phase::Completed | Phase::Failed
    )
}

/// Cause why a replica gets no requests, and the remedy. `asked`: the port of the submission.
fn unready(Unready { at, fault }: &Unready, asked: u16) -> String {
    match fault {
        ProbeFault::Status(_) => format!(
            "it runs and is not ready: {at}: {fault}. It is ready once the path of its \
             readiness probe answers with a status from 200 to 399"
        ),
        ProbeFault::Failed(_) => format!(
            "it runs and does not answer at {at}: {fault}. It has to listen at the port in the \
             environment variable PORT ($(PORT) in its command and arguments); port {asked} is where \
             clients reach it"
        ),
    }
}

/// The port of a replica, if its process runs.
fn port_of(pod: &PodView) -> Option<u16> {
    pod.port.filter(|_| pod.state.is_starting_or_running())
}

fn count<'a>(
    replicas: impl IntoIterator<Item = &'a Replica>,
    are: impl Fn(&Replica) -> bool,
) -> u32 {
    u32::try_from(replicas.into_iter().filter(|replica| are(replica)).count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(wanted: bool, state: PodState) -> PodView {
        PodView {
            id: Uuid::nil(),
            index: 0,
            generation: 1,
            restarts: 0,
            name: "svc.1-0".to_owned(),
            revision: None,
            port: None,
            wanted,
            state,
            node_name: None,
            gpus: Vec::new(),
            gpu_memory_bytes: 0,
            created_at: units::Instant(0),
            placed_at: None,
            held_since: None,
            started_at: None,
            last_exit: None,
            failed_after_ms: None,
            restart_at: None,
            condition: None,
        }
    }

    /// A controller that probes one replica with a closed port, and has found the fault.
    async fn of_a_silent_replica(replica: &PodView) -> Controller {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut keeper = Controller::new(Endpoint::new(Arc::default()));
        let watched = Watched {
            endpoint: keeper.endpoint.clone(),
            pod: replica.id,
            generation: replica.generation,
            address: closed,
            probe: spec::Probe::default(),
        };
        let watch = Watch::begin(watched, Proxy::default());
        while watch.fault().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        keeper.watches.insert((replica.id, replica.generation), watch);
        keeper
    }

    #[tokio::test]
    async fn a_replica_is_reported_until_the_state_shows_it() {
        let mut replica = pod(true, PodState::Running);
        let mut keeper = of_a_silent_replica(&replica).await;
        tokio::time::pause();
        let mut look = |replica: &PodView| keeper.check_ready([replica].into_iter(), 80);
        assert_eq!(look(&replica), [], "it has only begun");
        tokio::time::advance(UNREADY_AFTER).await;
        let reported = look(&replica);
        assert!(reported[0].fault.as_ref().unwrap().contains("does not answer at"), "{reported:?}");
        assert_eq!(look(&replica).len(), 1, "the first write was refused");
        let (code, at) = (NOT_READY.code.to_owned(), units::Instant(0));
        replica.condition = Some(view::ReasonView { code: code.into(), message: "".into(), at });
        assert_eq!(look(&replica), []);
        replica.generation = 2;
        assert_eq!(look(&replica)[0].fault, None, "another run, which has no fault yet");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_place_does_not_count_as_starting() {
        let before = Some(Instant::now());
        tokio::time::advance(Duration::from_secs(600)).await;
        let now = Some(Instant::now());
        for (before, wanted, state, since) in [
            (None, true, PodState::Pending, None),
            (None, true, PodState::Starting, now),
            (before, true, PodState::Running, before),
            (before, true, PodState::Starting, before),
            (before, true, PodState::Pending, None),
            (before, true, PodState::Reserved, None),
            (before, true, PodState::Terminating, None),
            (before, false, PodState::Running, None),
        ] {
            assert_eq!(starting_since(before, &[pod(wanted, state)]), since, "{state:?}");
        }
    }
}
