//! Time of a decision where all workloads differ: 10,000 wait in 1,000 queues of 4 levels, on
//! clusters that are half full and full, with one node pool and with 50. For each: the first
//! decision, with an empty memory; and, once decisions change nothing, one with no change, one
//! after a submission and one after the end of a running workload. CPU time
//! (`ELASTANE_BENCH_NODES=500,1000` and `ELASTANE_BENCH_STATE=full` choose some). Prints; asserts
//! nothing.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::io::Write;

use model::{Cluster, WorkloadId};
use sched::{Memory, Plan, Policy};
use sim::states::Different;
use units::Instant;

const PENDING: u32 = 10_000;
/// Name, percentage of the GPUs that are held, number of node pools.
const STATES: [(&str, u64, u32); 4] = [
    ("half full", 50, 1),
    ("full", 100, 1),
    ("half full, 50 pools", 50, 50),
    ("full, 50 pools", 100, 50),
];
/// Number of nodes; goals in milliseconds for a decision, and for one after a change.
const SIZES: [(u32, u64, u64); 3] = [(500, 20, 1), (1000, 40, 2), (5000, 200, 5)];
/// Number of changes of each kind; the median is printed.
const CHANGES: usize = 5;
/// Maximum number of decisions made until one changes nothing.
const SETTLE_MAX: usize = 20;

fn main() -> std::io::Result<()> {
    let nodes = std::env::var("ELASTANE_BENCH_NODES").ok();
    let chosen = |size: u32| {
        nodes.as_ref().is_none_or(|text| text.split(',').any(|one| one.parse() == Ok(size)))
    };
    let only = std::env::var("ELASTANE_BENCH_STATE").ok();
    println!("{PENDING} workloads wait, all different, in 1,000 queues; ms of CPU time (goal)");
    for (name, held_percent, pools) in STATES {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for (nodes, goal, goal_change) in SIZES.into_iter().filter(|size| chosen(size.0)) {
            let mut run = Run::new(Different { pending: PENDING, held_percent, pools }, nodes);
            print!("{name:<20} {nodes:>5} nodes: ");
            std::io::stdout().flush()?;
            let (plan, first_ms) = run.decide();
            print!(
                "first {first_ms:.1} ({goal}; {} steps, {} trials)",
                plan.steps.len(),
                plan.stats.trials
            );
            std::io::stdout().flush()?;
            let (rounds, last_ms) = run.decide_until_stable();
            print!(", the last of {rounds} until nothing changes {last_ms:.1}");
            std::io::stdout().flush()?;
            let calm_ms = run.decide().1;
            let submission_ms = run.median(Run::submit);
            let end_ms = run.median(Run::end);
            println!(
                "; with no change {calm_ms:.2}, after a submission {submission_ms:.2}, after an end \
                 {end_ms:.2} ({goal_change})"
            );
        }
    }
    Ok(())
}

struct Run {
    cluster: Cluster,
    memory: Memory,
    policy: Policy,
    state: Different,
    now: Instant,
    submitted: u64,
}

impl Run {
    fn new(state: Different, nodes: u32) -> Self {
        let cluster = state.build(nodes);
        let (memory, policy) = (Memory::default(), Policy::default());
        Self { cluster, memory, policy, state, now: Instant(1), submitted: 0 }
    }

    /// Makes one decision, and carries it out. Stopped pods free their places at once. Returns the
    /// plan and its CPU time in milliseconds.
    fn decide(&mut self) -> (Plan, f64) {
        self.now = self.now.plus_ms(1);
        let start = cpu_ms();
        let plan = self.memory.propose(&mut self.cluster, self.now, &self.policy);
        let ms = cpu_ms() - start;
        sched::carry(&mut self.cluster, self.now, &plan);
        for step in &plan.steps {
            if self.cluster.pods()[step.pod()].binding.releasing {
                self.cluster.vacate(step.pod());
            }
        }
        (plan, ms)
    }

    /// Decides until nothing changes; returns the number of decisions, and the CPU time of the
    /// last.
    fn decide_until_stable(&mut self) -> (usize, f64) {
        for round in 1..SETTLE_MAX {
            let (plan, ms) = self.decide();
            if plan.steps.is_empty() {
                return (round, ms);
            }
        }
        (SETTLE_MAX, self.decide().1)
    }

    /// The median CPU time of a decision after a change; nothing is left to decide before each
    /// change.
    fn median(&mut self, change: impl Fn(&mut Self)) -> f64 {
        let mut all = Vec::new();
        for _ in 0..CHANGES {
            change(self);
            all.push(self.decide().1);
            self.decide_until_stable();
        }
        all.sort_by(f64::total_cmp);
        all[CHANGES / 2]
    }

    fn submit(&mut self) {
        self.submitted += 1;
        let spec = self.state.another(&self.cluster, self.submitted);
        let id = self.cluster.add_workload(spec).expect("its queue is there");
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, true);
        }
    }

    /// Ends the running workload in the middle.
    fn end(&mut self) {
        let runs = |id: &WorkloadId| self.cluster.workloads()[*id].placed > 0;
        let running: Vec<_> = self.cluster.workloads().ids().filter(runs).collect();
        let Some(&id) = running.get(running.len() / 2) else { return };
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.vacate(pod);
            self.cluster.set_binding(pod, model::PodBinding::default());
            self.cluster.set_wants(pod, false);
        }
        self.cluster.remove_workload(id).expect("its pods are nowhere");
    }
}

/// CPU time of this process so far in milliseconds; 0 where the system does not report it.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos: Option<u64> = stat.split_whitespace().next().and_then(|first| first.parse().ok());
    nanos.unwrap_or(0) as f64 / 1e6
}
