//! The server is killed at random moments while work comes and goes. Owns: what must be true after
//! every restart. Refuses to know: how the server keeps its promises.
//!
//! A few rounds by default; `ELASTANE_SOAK_ROUNDS=200` and `ELASTANE_SOAK_SEED=n` make it a soak.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::sandbox::{Process, Sandbox, environment, every_process, finish, wait_until};

const SERVER: &str = "elastane up --nodes 2x4x16GiB";
const GPUS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(30);

/// SplitMix64, so that a seed names a story.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// What the person at the terminal knows about a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belief {
    /// The submit was acknowledged.
    There,
    /// The answer to a submit or a delete got lost.
    Unsure,
}

enum Verb {
    Submit,
    Delete,
}

struct Story {
    sandbox: Sandbox,
    random: Random,
    believed: BTreeMap<String, Belief>,
    submitted: u32,
    acknowledged: u32,
    unanswered: u32,
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
            random: Random(seed),
            believed: BTreeMap::new(),
            submitted: 0,
            acknowledged: 0,
            unanswered: 0,
        }
    }

    /// A few requests at once, and the kill somewhere among them.
    fn disturb(&mut self) -> BTreeSet<String> {
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
        self.sandbox.kill_server();
        for (name, verb, child) in under_way {
            let output = finish(child);
            let said = |what| output.text.contains(&format!("{name}{what}"));
            match verb {
                Verb::Submit if said("' has been submitted successfully") => {
                    self.acknowledged += 1;
                    self.believed.insert(name, Belief::There);
                }
                Verb::Delete if said(" deleted successfully") => {
                    self.acknowledged += 1;
                    self.believed.remove(&name);
                }
                Verb::Submit | Verb::Delete => {
                    self.unanswered += 1;
                    self.believed.insert(name, Belief::Unsure);
                }
            }
        }
        deleted
    }

    /// Names in the list of jobs, in its order, without those that are on their way out.
    fn listed(&self) -> Vec<String> {
        let output = self.sandbox.shell("runai list jobs -p team-a");
        assert_eq!(output.code, Some(0), "{}", output.text);
        let rows = output.text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        });
        rows.filter(|(name, status)| name.starts_with("job-") && *status != "Terminating")
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// Every acknowledged workload is listed once, and nothing that was never submitted.
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

    /// What ran before the kill is the same process after it, unless somebody deleted it.
    fn check_same(
        &self,
        before: &BTreeMap<String, Vec<Process>>,
        deleted: &BTreeSet<String>,
        round: u64,
    ) {
        let after = self.running();
        for (name, processes) in before.iter().filter(|(name, _)| !deleted.contains(*name)) {
            let now = after.get(name).map(|processes| identities(processes));
            let then = Some(identities(processes));
            assert_eq!(now, then, "round {round}: {name} is not the process it was");
        }
    }

    /// No GPU has two living processes.
    fn check_gpus(&self, round: u64) {
        let mut holders: BTreeMap<(String, String), Process> = BTreeMap::new();
        for process in self.running().into_values().flatten() {
            let Some(env) = environment(process.pid) else { continue };
            let get = |name: &str| env.get(name).cloned().unwrap_or_default();
            let gpu = (get("NODE_NAME"), get("CUDA_VISIBLE_DEVICES"));
            assert!(gpu.1.parse::<u32>().is_ok(), "round {round}: one GPU each, not {gpu:?}");
            if let Some(other) = holders.insert(gpu.clone(), process.clone()) {
                // The first may have ended before the second was looked at.
                let alive = every_process();
                let both = alive.contains(&other) && alive.contains(&process);
                assert!(!both, "round {round}: GPU {gpu:?} has {other:?} and {process:?}");
            }
        }
    }

    /// Waits until as many workloads run as there is room for, each once.
    fn settle(&self, round: u64) {
        let expected = self.believed.len().min(GPUS);
        let settled = wait_until(PATIENCE, || {
            let running = self.running();
            running.len() == expected && running.values().all(|processes| processes.len() == 1)
        });
        let (believed, running) = (&self.believed, self.running());
        assert!(
            settled,
            "round {round}: {expected} of {believed:?} should run, not {running:?}\n{}\n{}",
            self.sandbox.shell("runai list jobs -p team-a").text,
            self.sandbox.server_text()
        );
    }

    /// Deletes everything; nothing may be left but the server.
    fn end(mut self) {
        let names: Vec<&str> = self.believed.keys().map(String::as_str).collect();
        if !names.is_empty() {
            let output = self.sandbox.shell(&format!("runai delete {}", names.join(" ")));
            assert_eq!(output.code, Some(0), "{}", output.text);
        }
        let gone = wait_until(PATIENCE, || self.listed().is_empty());
        assert!(gone, "still listed: {:?}", self.listed());
        self.sandbox.kill_server();
        let quiet = wait_until(PATIENCE, || self.sandbox.processes().is_empty());
        assert!(quiet, "orphans: {:?}", self.sandbox.processes());
    }
}

fn identities(processes: &[Process]) -> Vec<(u32, u64)> {
    processes.iter().map(|process| (process.pid, process.started)).collect()
}

fn number_from(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} must be a number: {text}")),
        Err(_) => default,
    }
}

#[test]
fn a_killed_server_forgets_nothing_and_does_nothing_twice() {
    println!("{}", kill_again_and_again(SERVER, number_from("ELASTANE_SOAK_ROUNDS", 10)));
}

#[test]
fn a_killed_server_finds_everything_in_postgresql() {
    let Some(postgres) = store::testing::PgServer::own() else { return };
    let server = format!("{SERVER} --database '{}'", postgres.text("postgres"));
    println!("{}", kill_again_and_again(&server, number_from("ELASTANE_SOAK_ROUNDS", 3)));
}

/// Returns what it was, for people.
fn kill_again_and_again(server: &str, rounds: u64) -> String {
    let seed = number_from("ELASTANE_SOAK_SEED", 1);
    let mut story = Story::begin(seed, server);
    for round in 1..=rounds {
        let before = story.running();
        let deleted = story.disturb();
        story.sandbox.start_server(server);
        story.check_list(round);
        story.check_same(&before, &deleted, round);
        story.check_gpus(round);
        story.settle(round);
        story.check_gpus(round);
    }
    let Story { acknowledged, unanswered, .. } = story;
    story.end();
    format!("seed {seed}: {rounds} kills, {acknowledged} requests answered, {unanswered} not")
}
