//! A history in progress: the machine, the inputs and observations that the server has not taken,
//! and the outcomes reported to users.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use orchestrator::{Command, IdleSince, Input, Subject, new_topology};
use sched::Policy;
use spec::{
    CheckpointNews, DiskRoom, Exit, GpuOver, Observation, PullFailure, RunEvent, RunKey, RunState,
};
use uuid::Uuid;
use view::GpuFault;

use super::specs::{self, LEVELS, Named};
use super::step::{Asked, Kind, Step};
use super::{Tally, check};
use crate::machine::{Cut, Faults, Machine, Outcomes, StartFault};
use crate::rng::Rng;

/// Maximum number of observations that are kept for repetition.
const REMEMBERED: usize = 64;
/// Maximum number of rounds until nothing is in progress.
const ROUNDS_MAX: usize = 3000;
/// Number of pieces in which time passes after the last faults, and the milliseconds of each:
/// longer than every delay.
const AFTER: (usize, u64) = (12, 400_000);

pub(super) struct History {
    pub(super) machine: Machine,
    /// Inputs sent to the server that it has not taken.
    queue: VecDeque<(Input, Option<Asked>)>,
    /// Acknowledged workloads, each with `true` if it may be gone.
    pub(super) known: BTreeMap<Uuid, bool>,
    pub(super) named: u64,
    seen: VecDeque<Observation>,
    told: Option<String>,
    tally: Tally,
    hasher: DefaultHasher,
}

impl History {
    pub(super) fn new(start: u64, policy: Policy, is_told: bool) -> Self {
        let mut rng = Rng::new(start);
        let nodes = specs::nodes(&mut rng);
        let policy = specs::policy(&mut rng, policy);
        let mut machine = Machine::new(nodes, policy, Some(check::decision));
        // One ended workload is kept, so that most are archived and some commands are about
        // archived ones.
        machine.settings.ended_kept = 1;
        let mut history = Self {
            machine,
            queue: VecDeque::new(),
            known: BTreeMap::new(),
            named: 0,
            seen: VecDeque::new(),
            told: is_told.then(String::new),
            tally: Tally::default(),
            hasher: DefaultHasher::new(),
        };
        // The rows of a new database suffice.
        let started = history.machine.start();
        debug_assert_eq!(started, Ok(()));
        for name in ["team-a", "team-b"] {
            let spec = specs::given(&mut rng, Some(name.to_owned()), &Named::default());
            let (by, department_id) = ("admin".to_owned(), 1);
            history.send(Asked::Other, Command::CreateProject { by, department_id, spec });
        }
        let (by, new) =
            ("admin".to_owned(), new_topology("net".to_owned(), &LEVELS.map(str::to_owned)));
        history.send(Asked::Other, Command::CreateObject { by, new });
        history
    }

    pub(super) fn tally(&self) -> Tally {
        Tally { digest: self.hasher.finish(), ..self.tally }
    }

    pub(super) fn told(&self) -> String {
        self.told.clone().unwrap_or_default()
    }

    pub(super) fn say(&mut self, words: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            let _ = writeln!(told, "{}", words());
        }
    }

    /// Sends a command to the server.
    pub(super) fn send(&mut self, asked: Asked, command: Command) {
        self.say(|| format!("asked: {}", in_words(&command)));
        let input = Input::Command(Box::new(command), Default::default());
        self.queue.push_back((input, Some(asked)));
    }

    pub(super) fn take(&mut self, step: &Step) -> Result<(), String> {
        let mut rng = Rng::new(step.chance);
        if self.machine.view().is_none() {
            self.queue.clear();
            if rng.below(2) == 0 {
                return self.start();
            }
        }
        match step.kind {
            Kind::Batch => self.batch(&mut rng),
            Kind::Verdict => self.verdict(cut(&mut rng)),
            Kind::Ask => {
                for _ in 0..=rng.below(8) {
                    let asking = self.machine.asking();
                    self.say(|| format!("one of {asking} actions is carried out"));
                    self.machine.ask(rng.below(asking));
                }
                self.check()
            }
            Kind::GoOn | Kind::Exit | Kind::Tell => {
                self.run_changes(step.kind, &mut rng);
                Ok(())
            }
            Kind::Hear => {
                self.hear(&mut rng);
                Ok(())
            }
            Kind::HearAgain => {
                if let Some(seen) = self.seen.get(rng.below(self.seen.len())).cloned() {
                    self.say(|| format!("seen again: {seen:?}"));
                    self.queue.push_back((Input::Run(seen), None));
                }
                Ok(())
            }
            Kind::EngineFault => {
                self.machine.engine.faults = faults(&mut rng);
                self.say_of_engine();
                Ok(())
            }
            Kind::Time | Kind::ClockSet => self.time(step.kind, &mut rng),
            Kind::Crash | Kind::Reboot => self.crash(step.kind, &mut rng),
            Kind::Nodes => {
                self.machine.nodes = specs::nodes(&mut rng);
                self.say(|| "the next server has other nodes".to_owned());
                Ok(())
            }
            Kind::RealGpus => {
                self.real_gpus(&mut rng);
                Ok(())
            }
            Kind::Idle => {
                self.idle(&mut rng);
                Ok(())
            }
            Kind::SchedulerFails => {
                let all = rng.below(4) == 0;
                let failed = self.machine.fail_scheduler(all);
                self.say(|| "the scheduler fails".to_owned());
                self.batch_of(failed.into_iter().collect(), None)
            }
            kind => {
                self.ask(kind, &mut rng);
                Ok(())
            }
        }
    }

    fn say_of_engine(&mut self) {
        let faults = self.machine.engine.faults.clone();
        self.say(|| format!("the engine now: {faults:?}"));
    }

    /// Forgets observations of failed starts of which no run is left.
    fn forget_attempts(&mut self) {
        let runs = self.machine.engine.runs();
        self.seen.retain(|seen| runs.contains_key(&seen.key));
    }

    fn start(&mut self) -> Result<(), String> {
        self.say(|| "the server starts".to_owned());
        self.forget_attempts();
        self.machine.start().map_err(|error| format!("the server does not start: {error}"))?;
        self.wrote();
        self.check()
    }

    fn batch(&mut self, rng: &mut Rng) -> Result<(), String> {
        if self.machine.waits_for_verdict() {
            return self.verdict(None);
        }
        let count = 1 + rng.below(6);
        self.batch_of_queue(count, cut(rng))?;
        // On a machine without other work the decision is available at once.
        if rng.below(2) == 0 { self.verdict(cut(rng)) } else { Ok(()) }
    }

    fn batch_of_queue(&mut self, count: usize, cut: Option<Cut>) -> Result<(), String> {
        let taken: Vec<_> = self.queue.drain(..count.min(self.queue.len())).collect();
        let (inputs, asked): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
        let asked: Vec<_> = asked.into_iter().flatten().collect();
        let outcomes = self.commit(inputs, cut)?;
        for (asked, outcome) in asked.into_iter().zip(outcomes) {
            self.say(|| format!("answered: {outcome:?}"));
            self.acknowledged(asked, outcome);
        }
        self.check()
    }

    fn batch_of(&mut self, inputs: Vec<Input>, cut: Option<Cut>) -> Result<(), String> {
        self.commit(inputs, cut)?;
        self.check()
    }

    fn verdict(&mut self, cut: Option<Cut>) -> Result<(), String> {
        match self.machine.verdict() {
            Some(verdict) => {
                self.say(|| format!("decided: {verdict:?}"));
                self.batch_of(vec![verdict], cut)
            }
            None => Ok(()),
        }
    }

    fn commit(&mut self, inputs: Vec<Input>, cut: Option<Cut>) -> Result<Outcomes, String> {
        let (count, now) = (inputs.len(), self.machine.clock.now());
        self.say(|| match cut {
            Some(cut) => format!("batch of {count} at {}: {cut:?}", now.0),
            None => format!("batch of {count} at {}", now.0),
        });
        let (lives, rebuilds) = (self.machine.view().is_some(), self.machine.rebuilds());
        let outcomes = self.machine.take(inputs, cut);
        let outcomes =
            outcomes.map_err(|error| format!("the state cannot be built again: {error}"))?;
        self.tally.crashes += u64::from(lives && self.machine.view().is_none());
        if self.machine.rebuilds() != rebuilds {
            self.say(|| "the state was built again".to_owned());
            self.queue.retain(|(_, asked)| asked.is_some());
            self.forget_attempts();
        }
        self.wrote();
        Ok(outcomes.unwrap_or_default())
    }

    /// Counts the written rows.
    fn wrote(&mut self) {
        self.tally.batches += 1;
        for change in self.machine.written() {
            if let records::Change::Event(event) = change {
                self.tally.starts += u64::from(event.kind == "Started");
                (event.seq, event.at.0, &event.kind, &event.message).hash(&mut self.hasher);
            }
        }
    }

    fn acknowledged(&mut self, asked: Asked, outcome: Result<Subject, orchestrator::Error>) {
        match (asked, outcome) {
            (Asked::Submit { may_go }, Ok(Subject::Submitted(id, _))) => {
                self.known.insert(id, may_go);
            }
            (Asked::MayGo(id), Ok(_)) => {
                self.known.insert(id, true);
            }
            _ => {}
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        check::batch(&self.machine, &self.known)
    }

    fn hear(&mut self, rng: &mut Rng) {
        // The newest of several observations may come first.
        let newest = (rng.below(4) == 0).then(|| self.machine.newest_seen()).flatten();
        let mut news: Vec<_> = newest.map(Input::Run).into_iter().collect();
        for _ in 0..=rng.below(8) {
            news.extend(self.machine.news());
        }
        for input in news {
            if let Input::Run(seen) = &input {
                if self.seen.len() == REMEMBERED {
                    self.seen.pop_front();
                }
                self.seen.push_back(seen.clone());
            }
            self.say(|| format!("seen: {input:?}"));
            self.queue.push_back((input, None));
        }
    }

    fn any_alive(&self, rng: &mut Rng) -> Option<RunKey> {
        let alive: Vec<_> = self.machine.engine.alive().map(|(key, _)| *key).collect();
        alive.get(rng.below(alive.len())).copied()
    }

    fn run_changes(&mut self, kind: Kind, rng: &mut Rng) {
        let now = self.machine.clock.wall();
        let most = if kind == Kind::GoOn { 8 } else { 3 };
        for _ in 0..=rng.below(most) {
            let Some(key) = self.any_alive(rng) else { return };
            match kind {
                Kind::Exit => {
                    let exits = [
                        Exit::Code(0),
                        Exit::Code(0),
                        Exit::Code(1),
                        Exit::OutOfMemory,
                        Exit::OutOfDisk(DiskRoom::default()),
                        Exit::NotKept("a test".to_owned()),
                        Exit::Lost,
                    ];
                    let exit = exits[rng.below(exits.len())].clone();
                    self.say(|| format!("run {key} ends: {exit:?}"));
                    self.machine.engine.end(key, exit, now);
                }
                Kind::Tell => self.tells(key, rng),
                _ => {
                    self.say(|| format!("run {key} goes on"));
                    self.machine.engine.go_on(key, now);
                }
            }
        }
    }

    fn tells(&mut self, key: RunKey, rng: &mut Rng) {
        let is_starting =
            |run: &crate::machine::Run| !matches!(run.state, RunState::Running { .. });
        let event = if self.machine.engine.runs().get(&key).is_some_and(is_starting) {
            let why = "no answer".to_owned();
            let failure = PullFailure { why, tries: 1, again_in_ms: 1000 };
            [RunEvent::Preparing("fetching".to_owned()), RunEvent::PullFailed(failure)]
                [rng.below(2)]
            .clone()
        } else {
            let (gpu, held_bytes, limit_bytes) = ("GPU-sim".to_owned(), 2 << 30, 1 << 30);
            [
                RunEvent::Struck(1),
                RunEvent::GpuOver(GpuOver { gpu, held_bytes, limit_bytes, ended: None }),
                RunEvent::GpuUnlimited("its program is static".to_owned()),
                RunEvent::Checkpoint(CheckpointNews::Saved { ago_ms: 1500 }),
                RunEvent::Checkpoint(CheckpointNews::Gone),
                RunEvent::Checkpoint(CheckpointNews::Awaited { within_ms: 1500 }),
                RunEvent::Meets(true),
                RunEvent::Meets(false),
            ][rng.below(8)]
            .clone()
        };
        self.say(|| format!("run {key} says: {event:?}"));
        self.machine.engine.tell(key, event);
    }

    fn time(&mut self, kind: Kind, rng: &mut Rng) -> Result<(), String> {
        let ms = [300, 1500, 20_000, 120_000, 4_000_000][rng.below(5)];
        if kind == Kind::Time {
            self.say(|| format!("{ms} ms pass"));
            self.machine.clock.advance_ms(ms);
        } else {
            let by = if rng.below(2) == 0 { ms.cast_signed() } else { -ms.cast_signed() };
            self.say(|| format!("the clock is set by {by} ms"));
            self.machine.clock.set_by_ms(by);
        }
        if self.machine.waits_for_verdict() {
            return Ok(());
        }
        self.batch_of(Vec::new(), None)
    }

    fn crash(&mut self, kind: Kind, rng: &mut Rng) -> Result<(), String> {
        self.tally.crashes += u64::from(self.machine.view().is_some());
        self.machine.crash();
        self.queue.clear();
        self.say(|| "the server crashes".to_owned());
        let now = self.machine.clock.wall();
        if kind == Kind::Reboot {
            self.say(|| "the machine starts again".to_owned());
            self.machine.engine.reboot(now);
            self.machine.clock.reboot();
        }
        // A start that was interrupted may have prepared nothing.
        let starting = |run: &crate::machine::Run| matches!(run.state, RunState::Starting);
        let cut_short = self.machine.engine.alive().find(|(_, run)| starting(run));
        if let Some(key) = cut_short.map(|(key, _)| *key).filter(|_| rng.below(3) == 0) {
            self.say(|| format!("run {key} was never prepared"));
            self.machine.engine.lose(key);
        }
        let starts = rng.below(3) != 0;
        if rng.below(3) == 0 {
            self.stray(rng);
        }
        if starts { self.start() } else { Ok(()) }
    }

    /// Starts an orphaned run on a GPU that no other run has; half of them cannot be killed.
    fn stray(&mut self, rng: &mut Rng) {
        let has = |uuid: &str| {
            let mut alive = self.machine.engine.alive();
            alive.any(|(_, run)| run.spec.devices.iter().any(|device| device.uuid == uuid))
        };
        let nodes = self.machine.nodes.nodes.iter();
        let gpus = nodes.flat_map(|node| node.gpus.iter().map(|gpu| (node.name.clone(), gpu)));
        let free: Vec<_> = gpus.filter(|(_, gpu)| !has(&gpu.uuid)).collect();
        let Some((node, gpu)) = free.get(rng.below(free.len())) else { return };
        let (spec, gpu) = (specs::stray(rng, node.clone(), gpu), gpu.uuid.clone());
        let key = spec.key;
        let is_unkillable = rng.below(2) == 0;
        self.say(|| {
            format!("run {key} has {gpu}, which no server asked for; unkillable: {is_unkillable}")
        });
        self.machine.engine.plant(spec, self.machine.clock.wall());
        self.machine.engine.unkillable.extend(Some(key).filter(|_| is_unkillable));
    }

    fn real_gpus(&mut self, rng: &mut Rng) {
        let nodes = self.machine.nodes.nodes.iter().filter(|node| !node.simulated);
        let gpus: Vec<_> = nodes.flat_map(|node| &node.gpus).map(|gpu| gpu.uuid.clone()).collect();
        let some = gpus.into_iter().filter(|_| rng.below(3) == 0).collect::<Vec<_>>();
        let fault = |uuid: String| (uuid, GpuFault::Lost("it fell off the bus".to_owned()));
        let gpu_faults =
            std::sync::Arc::new(some.into_iter().map(fault).collect::<BTreeMap<_, _>>());
        self.say(|| format!("GPUs are now: {gpu_faults:?}"));
        self.machine.gpus = gpu_faults.clone();
        self.queue.push_back((Input::Gpus(gpu_faults), None));
    }

    fn idle(&mut self, rng: &mut Rng) {
        let now = self.machine.clock.now();
        let ids: Vec<_> = self.known.keys().copied().filter(|_| rng.below(3) == 0).collect();
        let since = std::sync::Arc::new(ids.into_iter().map(|id| (id, now)).collect());
        self.machine.idle = IdleSince { measured_at: now, since };
        self.queue.push_back((Input::Idle(self.machine.idle.clone()), None));
    }

    /// Ends the faults, lets all delays pass, and waits until nothing is in progress, unless
    /// decisions go on for ever.
    pub(super) fn settle(&mut self, rests: bool) -> Result<(), String> {
        self.say(|| "the storm is over".to_owned());
        self.machine.engine.faults = Faults::default();
        if !rests {
            return self.go_on(ROUNDS_MAX / 100).map(drop);
        }
        if self.machine.view().is_some() {
            self.come_to_rest()?;
        }
        if self.machine.is_halted() {
            self.machine.crash();
        }
        if self.machine.view().is_none() {
            self.queue.clear();
            self.start()?;
        }
        self.come_to_rest()?;
        for _ in 0..AFTER.0 {
            self.machine.clock.advance_ms(AFTER.1);
            self.come_to_rest()?;
        }
        check::at_rest(&self.machine)?;
        let now = self.machine.clock.wall();
        for key in self.machine.engine.unkillable.clone() {
            self.say(|| format!("run {key} is gone at last"));
            self.machine.engine.end(key, Exit::Lost, now);
        }
        self.come_to_rest()?;
        check::at_rest(&self.machine)
    }

    fn come_to_rest(&mut self) -> Result<(), String> {
        self.verdict(None)?;
        self.batch_of_queue(usize::MAX, None)?;
        match self.go_on(ROUNDS_MAX)? {
            true => Err(format!("it does not come to rest in {ROUNDS_MAX} rounds")),
            false => Ok(()),
        }
    }

    /// Continues everything in progress for `rounds` rounds; returns `true` if something is left.
    fn go_on(&mut self, rounds: usize) -> Result<bool, String> {
        for _ in 0..rounds {
            if let Some(plan) = self.machine.decided().cloned() {
                self.say(|| format!("decided: {plan:?}"));
            }
            let goes_on = self.machine.go_on();
            let goes_on =
                goes_on.map_err(|error| format!("the state cannot be built again: {error}"));
            self.wrote();
            self.check()?;
            if !goes_on? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A command as text; of a specification only the fields that are likely to matter.
fn in_words(command: &Command) -> String {
    let spec = match command {
        Command::Submit { wanted, .. } | Command::UpdateInference { wanted, .. } => &wanted.spec,
        other => return format!("{other:?}"),
    };
    let sets = spec.sets().map(|set| {
        let (pod, pods, least) = (&set.pod, set.pods, set.pods_min);
        format!("{pods} (at least {least}) with {:?}, restarted {:?}", pod.gpu, pod.restart)
    });
    let sets = sets.collect::<Vec<_>>().join(" and ");
    let together = spec.distributed.map(|together| format!(", {together:?}")).unwrap_or_default();
    let (name, kind, priority) = (&spec.name, spec.kind, spec.priority.value);
    format!("{name} ({kind:?}, priority {priority}, elastic {}): {sets}{together}", spec.elastic)
}

fn cut(rng: &mut Rng) -> Option<Cut> {
    match rng.below(32) {
        0 => Some(Cut::WriteFails),
        1 => Some(Cut::BeforeRows),
        2 => Some(Cut::AfterActions(rng.below(4))),
        _ => None,
    }
}

fn faults(rng: &mut Rng) -> Faults {
    let starts =
        [None, None, Some(StartFault::Never), Some(StartFault::NotNow), Some(StartFault::Half)];
    let mut one_in = |sides: usize| rng.below(sides) == 0;
    let (stop, stubborn, remove) = (one_in(4), one_in(3), one_in(4));
    let (volume, ports) = (one_in(3), one_in(4));
    Faults { start: starts[rng.below(5)], stop, stubborn, remove, volume, ports }
}
