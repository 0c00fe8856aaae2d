//! The server, supervisors, or all processes are killed at random moments under load. Owns: the
//! conditions after every kill. Does not know about: how the server fulfils them.
//!
//! A few rounds by default; `ELASTANE_SOAK_ROUNDS=200` and `ELASTANE_SOAK_SEED=n` make it a soak.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::sandbox::{Process, Sandbox, environment, every_process, finish, kill, wait_until};

const SERVER: &str = "elastane up --nodes 2x4x16GiB";
const GPUS: usize = 8;
/// Each lost run doubles the wait for the next one, so the test deletes the workload after this
/// number.
const STRUCK_MAX: u32 = 3;

/// SplitMix64, so that a seed reproduces a run.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// Expected state of a workload, by the answers to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belief {
    /// The submission was acknowledged.
    There,
    /// The answer to a submission or a deletion was lost.
    Unsure,
}

#[derive(Debug)]
enum Verb {
    Submit,
    Delete,
}

/// Target of a SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Server,
    /// A supervisor of a run.
    Supervisor,
    /// All processes at once, as after a power failure.
    Machine,
}

#[derive(Debug, Default)]
struct Tally {
    blows: BTreeMap<&'static str, u32>,
    acknowledged: u32,
    unanswered: u32,
    /// Longest time for which the reported state was wrong.
    untrue_max: Duration,
}

struct Story {
    sandbox: Sandbox,
    server: String,
    random: Random,
    believed: BTreeMap<String, Belief>,
    /// Number of lost processes of each existing workload.
    struck: BTreeMap<String, u32>,
    submitted: u32,
    tally: Tally,
}

impl Story {
    fn begin(seed: u64, server: &str) -> Self {
        let mut sandbox = Sandbox::new();
        sandbox.start_server(server);
        for line in ["elastane project create team-a --gpu-quota 8", "runai config project team-a"]
        {
            let output = sandbox.shell(line);
            assert_eq!(output.code, Some(0), "{line}: {}", output.text);
        }
        Self {
            sandbox,
            server: server.to_owned(),
            random: Random(seed),
            believed: BTreeMap::new(),
            struck: BTreeMap::new(),
            submitted: 0,
            tally: Tally::default(),
        }
    }

    /// Sends a few requests at once, with the kill at a random moment among them. Returns the names
    /// of the workloads to delete.
    fn disturb(&mut self, blow: Blow) -> BTreeSet<String> {
        let mut under_way = Vec::new();
        let mut deleted = BTreeSet::new();
        for _ in 0..=self.random.below(4) {
            let there: Vec<String> =
                self.believed.keys().filter(|name| !deleted.contains(*name)).cloned().collect();
            let crowded = there.len() > GPUS + 4;
            let submit = there.is_empty() || (!crowded && self.random.below(3) > 0);
            let (name, verb) = if submit {
                self.submitted += 1;
                (format!("job-{}", self.submitted), Verb::Submit)
            } else {
                let at = usize::try_from(self.random.below(there.len() as u64)).expect("an index");
                deleted.insert(there[at].clone());
                (there[at].clone(), Verb::Delete)
            };
            let line = match verb {
                Verb::Submit => {
                    format!("runai submit {name} -i ubuntu -g 1 --command -- sleep infinity")
                }
                Verb::Delete => format!("runai delete {name}"),
            };
            under_way.push((name, verb, self.sandbox.begin(&line)));
        }
        std::thread::sleep(Duration::from_millis(self.random.below(120)));
        self.strike(blow);
        under_way.into_iter().for_each(|(name, verb, child)| self.learn(name, &verb, child));
        deleted
    }

    fn strike(&mut self, blow: Blow) {
        match blow {
            Blow::Server => self.sandbox.kill_server(),
            Blow::Machine => self.sandbox.kill_everything(),
            Blow::Supervisor => {
                let supervisors = self.sandbox.processes().into_iter();
                let supervisors: Vec<Process> =
                    supervisors.filter(|process| process.command.contains(" supervise ")).collect();
                let at = self.random.below(supervisors.len().max(1) as u64);
                let chosen = usize::try_from(at).ok().and_then(|at| supervisors.get(at));
                chosen.iter().for_each(|process| kill(process.pid));
            }
        }
        *self.tally.blows.entry(blow.name()).or_default() += 1;
    }

    /// Updates the expected state by the answer to a request, or by its loss.
    fn learn(&mut self, name: String, verb: &Verb, child: Child) {
        let output = finish(child);
        let said = |what| output.text.contains(&format!("{name}{what}"));
        match verb {
            Verb::Submit if said("' has been submitted successfully") => {
                self.tally.acknowledged += 1;
                self.believed.insert(name, Belief::There);
            }
            Verb::Delete if said(" deleted successfully") => {
                self.tally.acknowledged += 1;
                self.believed.remove(&name);
            }
            Verb::Submit | Verb::Delete => {
                self.tally.unanswered += 1;
                self.believed.insert(name, Belief::Unsure);
            }
        }
    }

    /// Workloads with their status, in the order of the list.
    fn told(&self) -> Vec<(String, String)> {
        let told = self.sandbox.statuses("runai list jobs -p team-a").into_iter();
        told.filter(|(name, _)| name.starts_with("job-")).collect()
    }

    /// Names in the list of jobs, in its order, without those that are being deleted.
    fn listed(&self) -> Vec<String> {
        let told = self.told().into_iter();
        told.filter(|(_, status)| status != "Terminating").map(|(name, _)| name).collect()
    }

    /// Waits until exactly the workloads with a process are reported as running.
    fn await_truth(&mut self, round: u64) {
        let since = Instant::now();
        let (mut told, mut running) = (Vec::new(), BTreeMap::new());
        let truth = wait_until(|| {
            (told, running) = (self.told(), self.running());
            let ending = |name: &str| told.iter().any(|(n, s)| n == name && s == "Terminating");
            running.retain(|name, _| !ending(name));
            let said = told.iter().filter(|(_, status)| status == "Running");
            said.map(|(name, _)| name).eq(running.keys())
        });
        assert!(truth, "round {round}: {told:?} are reported, {running:?} run");
        self.tally.untrue_max = self.tally.untrue_max.max(since.elapsed());
    }

    /// Checks that every acknowledged workload is listed once, and no workload that was never
    /// submitted.
    fn check_list(&mut self, round: u64) {
        let listed = self.listed();
        let set: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(set.len(), listed.len(), "round {round}: listed twice: {listed:?}");
        for (name, belief) in &self.believed {
            let lost = *belief == Belief::There && !set.contains(name);
            assert!(!lost, "round {round}: {name} was acknowledged and is lost: {listed:?}");
        }
        for name in &set {
            let known = self.believed.contains_key(name);
            assert!(known, "round {round}: {name} was deleted and is back: {listed:?}");
        }
        self.believed = set.into_iter().map(|name| (name, Belief::There)).collect();
    }

    /// The main processes of the workloads, by workload.
    fn running(&self) -> BTreeMap<String, Vec<Process>> {
        let mut running: BTreeMap<String, Vec<Process>> = BTreeMap::new();
        for process in self.sandbox.processes() {
            let name = environment(process.pid).and_then(|mut env| env.remove("JOB_NAME"));
            if let (Some(name), "sleep infinity") = (name, process.command.as_str()) {
                running.entry(name).or_default().push(process);
            }
        }
        running
    }

    /// Checks that every running process is the same after the kill, unless its workload was
    /// deleted or it was killed.
    fn check_same(
        &mut self,
        before: &BTreeMap<String, Vec<Process>>,
        (deleted, blow): (&BTreeSet<String>, Blow),
        round: u64,
    ) {
        let after = self.running();
        let differs = |(name, processes): &(&String, &Vec<Process>)| {
            !deleted.contains(*name)
                && after.get(*name).map(|now| identities(now)) != Some(identities(processes))
        };
        let changed: Vec<&String> = before.iter().filter(differs).map(|(name, _)| name).collect();
        let most = match blow {
            Blow::Server => 0,
            Blow::Supervisor => 1,
            Blow::Machine => before.len(),
        };
        assert!(changed.len() <= most, "round {round}: {changed:?} changed by {blow:?}: {after:?}");
        for name in changed {
            *self.struck.entry(name.clone()).or_default() += 1;
        }
    }

    /// No workload and no GPU has two living processes.
    fn check_once(&self, round: u64) {
        let mut holders: BTreeMap<String, Process> = BTreeMap::new();
        for (name, processes) in self.running() {
            for process in processes {
                let Some(env) = environment(process.pid) else { continue };
                let get = |name: &str| env.get(name).cloned().unwrap_or_default();
                let gpu = get("CUDA_VISIBLE_DEVICES");
                assert!(gpu.parse::<u32>().is_ok(), "round {round}: one GPU each, not {gpu:?}");
                for held in [name.clone(), format!("GPU {} {gpu}", get("NODE_NAME"))] {
                    let Some(other) = holders.insert(held.clone(), process.clone()) else {
                        continue;
                    };
                    // The first may have ended before the second was listed.
                    let alive = every_process();
                    let both = alive.contains(&other) && alive.contains(&process);
                    assert!(!both, "round {round}: {held} has {other:?} and {process:?}");
                }
            }
        }
    }

    /// Waits until as many workloads run as there is room for, each once.
    fn settle(&self, round: u64) {
        let expected = self.believed.len().min(GPUS);
        let settled = wait_until(|| {
            self.check_once(round);
            self.running().len() == expected
        });
        let (believed, running) = (&self.believed, self.running());
        assert!(
            settled,
            "round {round}: {expected} of {believed:?} should run, not {running:?}\n{}\n{}",
            self.sandbox.shell("runai list jobs -p team-a").text,
            self.sandbox.server_text()
        );
    }

    /// Deletes workloads that were hit so often that their next run starts late.
    fn give_up(&mut self) {
        self.struck.retain(|name, _| self.believed.contains_key(name));
        let often = self.struck.iter().filter(|(_, times)| **times >= STRUCK_MAX);
        for name in often.map(|(name, _)| name).cloned().collect::<Vec<_>>() {
            let output = self.sandbox.shell(&format!("runai delete {name}"));
            assert!(output.text.contains("deleted successfully"), "{}", output.text);
            self.believed.remove(&name);
        }
    }

    /// Deletes all workloads; only the server may remain.
    fn end(mut self) {
        let names: Vec<&str> = self.believed.keys().map(String::as_str).collect();
        if !names.is_empty() {
            let output = self.sandbox.shell(&format!("runai delete {}", names.join(" ")));
            assert_eq!(output.code, Some(0), "{}", output.text);
        }
        let gone = wait_until(|| self.listed().is_empty());
        assert!(gone, "still listed: {:?}", self.listed());
        self.sandbox.kill_server();
        let quiet = wait_until(|| self.sandbox.processes().is_empty());
        assert!(quiet, "orphans: {:?}", self.sandbox.processes());
    }
}

fn identities(processes: &[Process]) -> Vec<(u32, u64)> {
    processes.iter().map(|process| (process.pid, process.started)).collect()
}

impl Blow {
    /// A random target, mostly the server, which has the most state.
    fn any(random: &mut Random) -> Self {
        match random.below(6) {
            0..=2 => Self::Server,
            3 | 4 => Self::Supervisor,
            _ => Self::Machine,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Server => "servers",
            Self::Supervisor => "supervisors",
            Self::Machine => "machines",
        }
    }
}

/// A number from the environment, as `make soak` sets it.
pub(crate) fn number_from(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} must be a number: {text}")),
        Err(_) => default,
    }
}

#[test]
fn whatever_is_killed_in_a_crash_nothing_is_forgotten_or_runs_twice() {
    println!("{}", kill_again_and_again(SERVER, number_from("ELASTANE_SOAK_ROUNDS", 10)));
}

#[test]
fn after_a_crash_everything_is_found_in_postgresql() {
    let Some(postgres) = store::testing::PgServer::own() else { return };
    let server = format!("{SERVER} --database '{}'", postgres.text("postgres"));
    println!("{}", kill_again_and_again(&server, number_from("ELASTANE_SOAK_ROUNDS", 3)));
}

/// Returns a summary, for people.
fn kill_again_and_again(server: &str, rounds: u64) -> String {
    let seed = number_from("ELASTANE_SOAK_SEED", 1);
    let mut story = Story::begin(seed, server);
    for round in 1..=rounds {
        let before = story.running();
        let blow = Blow::any(&mut story.random);
        let deleted = story.disturb(blow);
        if blow != Blow::Supervisor {
            story.sandbox.start_server(&story.server);
        }
        story.await_truth(round);
        story.check_list(round);
        story.check_same(&before, (&deleted, blow), round);
        story.settle(round);
        story.give_up();
    }
    let tally = std::mem::take(&mut story.tally);
    story.end();
    format!("seed {seed}: {rounds} rounds, {tally}")
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { blows, acknowledged, unanswered, untrue_max } = self;
        let blows: Vec<String> =
            blows.iter().map(|(what, times)| format!("{times} {what}")).collect();
        write!(
            f,
            "killed {}; {acknowledged} requests answered, {unanswered} not; the reported state was correct \
             {} ms after a blow at the latest",
            blows.join(", "),
            untrue_max.as_millis()
        )
    }
}
