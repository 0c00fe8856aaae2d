//! Checks of GPUs every few seconds. Owns: their interval, and when a finding counts. Does not know
//! about: what follows.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use engine::{Engine, ForeignProcess, GpuHealth};
use tokio::sync::watch;
use units::Instant;

use crate::metrics::{Metrics, Verb};
use crate::time::MonotonicClock;
use spec::NodeSpec;
use view::{GpuFault, GpuFaults, View};

/// Time between two checks.
const CHECK_EVERY_MS: u64 = 5_000;
/// A driver that does not answer in this time hangs, and nothing else must hang with it.
pub(crate) const ANSWER_WAIT_MS: u64 = 20_000;

/// Checks the real GPUs of this machine, and publishes their faults.
pub(crate) struct Watch {
    engine: Arc<dyn Engine>,
    clock: Arc<MonotonicClock>,
    filter: FaultFilter,
    told: watch::Sender<GpuFaults>,
    /// When it checks next.
    next: Instant,
    metrics: Metrics,
}

impl Watch {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<MonotonicClock>,
        told: watch::Sender<GpuFaults>,
        metrics: Metrics,
    ) -> Self {
        let next = clock.now();
        Self { engine, clock, filter: FaultFilter::default(), told, next, metrics }
    }

    /// Checks the GPUs of these nodes. Earlier findings stay if the driver does not answer.
    pub(crate) async fn check(&mut self, nodes: impl Iterator<Item = &NodeSpec>) {
        self.next = self.clock.now().plus_ms(CHECK_EVERY_MS);
        let real = nodes.filter(|node| !node.simulated).flat_map(|node| &node.gpus);
        let (mut uuids, mut lost) = (Vec::new(), BTreeMap::new());
        for gpu in real {
            match gpu.fault.clone() {
                None => uuids.push(gpu.looked_at().to_owned()),
                Some(why) => drop(lost.insert(gpu.uuid.clone(), GpuFault::Lost(why))),
            }
        }
        uuids.dedup(); // of the instances of one
        if uuids.is_empty() {
            self.publish_faults(lost);
            return;
        }
        let health = self.engine.gpu_health(uuids);
        let health = self.metrics.engine(Verb::GpuHealth, health);
        let Some(seen) = self.clock.within(ANSWER_WAIT_MS, health).await else {
            self.metrics.engine_failed(Verb::GpuHealth);
            tracing::warn!("the driver does not answer; the GPUs are taken for as they were");
            self.publish_lost(lost);
            return;
        };
        match seen {
            Ok(Some(seen)) => {
                let mut fresh = self.filter.confirmed_faults(seen);
                fresh.extend(lost);
                self.publish_faults(fresh);
            }
            Ok(None) => self.publish_lost(lost),
            Err(error) => {
                tracing::warn!(%error, "it is not known how the GPUs are");
                self.publish_lost(lost);
            }
        }
    }

    fn publish_faults(&self, fresh: BTreeMap<String, GpuFault>) {
        let fresh = Arc::new(fresh);
        self.told.send_if_modified(|told| {
            let news = !alike(told, &fresh);
            *told = fresh;
            news
        });
    }

    /// Adds the faults of GPUs that did not work when their nodes were seen; the published faults
    /// of other GPUs stay.
    fn publish_lost(&self, lost: BTreeMap<String, GpuFault>) {
        let mut all = BTreeMap::clone(&self.told.borrow());
        all.extend(lost);
        self.publish_faults(all);
    }

    /// Never ends by itself. Checks the GPUs of the nodes that are shown.
    pub(crate) async fn run(mut self, view: impl Fn() -> Arc<View>) -> Infallible {
        loop {
            self.clock.sleep_until(self.next).await;
            let view = view();
            self.check(view.nodes.iter().map(|node| &*node.spec)).await;
        }
    }
}

/// True if two samples allow the same use of each GPU. How much memory a foreign process holds
/// changes all the time and is not worth a decision.
fn alike(before: &BTreeMap<String, GpuFault>, now: &BTreeMap<String, GpuFault>) -> bool {
    let same = |(one, other): (&GpuFault, &GpuFault)| match (one, other) {
        (GpuFault::Taken(one), GpuFault::Taken(other)) => one.keys().eq(other.keys()),
        (one, other) => one == other,
    };
    before.keys().eq(now.keys()) && before.values().zip(now.values()).all(same)
}

/// Conclusions from a series of samples. A foreign process counts when two samples in a row have
/// it, since processes take a moment to end; one of the first sample counts at once, because work
/// is placed right after it. A process stays until a sample without it.
#[derive(Default)]
struct FaultFilter {
    /// By GPU: the process ids of the last sample, and the foreign processes that count.
    foreign: BTreeMap<String, (BTreeSet<u32>, BTreeMap<u32, ForeignProcess>)>,
}

impl FaultFilter {
    fn confirmed_faults(
        &mut self,
        seen: BTreeMap<String, GpuHealth>,
    ) -> BTreeMap<String, GpuFault> {
        let mut gpu_faults = BTreeMap::new();
        for (uuid, GpuHealth { fault, foreign }) in seen {
            if let Some(mut foreign) = foreign {
                let now = foreign.keys().copied().collect();
                if let Some((before, _)) = self.foreign.get(&uuid) {
                    foreign.retain(|pid, _| before.contains(pid));
                }
                self.foreign.insert(uuid.clone(), (now, foreign));
            }
            let believed = self.foreign.get(&uuid).map(|(_, believed)| believed.clone());
            let taken = believed.filter(|foreign| !foreign.is_empty()).map(GpuFault::Taken);
            if let Some(fault) = fault.map(GpuFault::Lost).or(taken) {
                gpu_faults.insert(uuid, fault);
            }
        }
        gpu_faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault, and foreign processes, as far as they are known.
    type Seen<'a> = (Option<&'a str>, Option<&'a [u32]>);

    fn gpu((fault, pids): Seen<'_>) -> BTreeMap<String, GpuHealth> {
        let process =
            ForeignProcess { name: "python".into(), user: "eve".into(), memory_bytes: 1 << 30 };
        let all = |pids: &[u32]| pids.iter().map(|pid| (*pid, process.clone())).collect();
        let foreign = pids.map(all);
        [("GPU-1".to_owned(), GpuHealth { fault: fault.map(str::to_owned), foreign })].into()
    }

    #[test]
    fn who_holds_a_gpu_is_news_and_not_how_much_of_it() {
        let taken = |pid: u32, memory_bytes: u64| {
            let process = ForeignProcess { name: "a".into(), user: "eve".into(), memory_bytes };
            GpuFault::Taken([(pid, process)].into())
        };
        let on = |gpu: &str, fault: GpuFault| BTreeMap::from([(gpu.to_owned(), fault)]);
        let before = on("GPU-1", taken(7, 1));
        assert!(alike(&before, &on("GPU-1", taken(7, 2))));
        for other in [
            on("GPU-1", taken(8, 1)),
            on("GPU-2", taken(7, 1)),
            on("GPU-1", GpuFault::Lost("gone".into())),
            BTreeMap::new(),
        ] {
            assert!(!alike(&before, &other), "{other:?}");
        }
    }

    /// Reports after each sample.
    fn told(looks: &[Seen<'_>]) -> Vec<String> {
        let mut filter = FaultFilter::default();
        let text = |seen: &Seen<'_>| {
            let told = filter.confirmed_faults(gpu(*seen));
            told.get("GPU-1").map(ToString::to_string).unwrap_or_default()
        };
        looks.iter().map(text).collect()
    }

    #[test]
    fn a_foreign_process_is_believed_when_it_was_seen_twice_or_at_the_start() {
        let looks = [&[][..], &[7], &[7], &[8], &[]].map(|pids| (None, Some(pids)));
        assert_eq!(told(&looks), ["", "", &taken(7), "", ""], "another one is another");
        let looks = [&[7][..], &[]].map(|pids| (None, Some(pids)));
        assert_eq!(told(&looks), [taken(7), String::new()]);
    }

    fn taken(pid: u32) -> String {
        format!("used by foreign processes: python of eve (process {pid}, 1GiB)")
    }

    #[test]
    fn who_is_not_known_to_be_gone_is_there() {
        let looks = [Some(&[7][..]), None, Some(&[7]), None, Some(&[])].map(|pids| (None, pids));
        assert_eq!(told(&looks), [&taken(7), &taken(7), &taken(7), &taken(7), ""]);
        let looks = [Some(&[][..]), Some(&[7]), None, Some(&[7])].map(|pids| (None, pids));
        assert_eq!(told(&looks), ["", "", "", &taken(7)], "no look is no second one");
        assert_eq!(told(&[(None, None), (None, Some(&[7]))]), ["", &taken(7)]);
    }

    #[test]
    fn a_loss_is_believed_at_once_and_matters_more_than_foreign_processes() {
        let looks: &[Seen<'_>] =
            &[(None, Some(&[])), (Some("off the bus"), Some(&[7])), (None, Some(&[7]))];
        assert_eq!(told(looks), ["", "lost: off the bus", &taken(7)]);
    }
}
