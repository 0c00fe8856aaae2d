//! How long a decision takes, on the published states and sizes (`ELASTANE_BENCH_NODES=500,1000`,
//! `ELASTANE_BENCH_STATE=fill` choose some). Prints; asserts nothing about time. KAI's figures: benchmarks reference §1 (decision time, Go benchmark) and §2.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::time::Instant;

use sim::states::{GPUS_PER_NODE, State};

/// State, what KAI publishes for it, and our goals in milliseconds at 500, 1,000, 5,000 nodes.
const ROWS: [(State, &str, [u64; 3]); 10] = [
    (State::Fill, "~1.2 k tasks/s at 500", [20, 40, 400]),
    (State::ReclaimGang, "9.1 s at 500, 76 s at 1,000", [10, 20, 150]),
    (State::ReclaimHalf, "102 s end to end at 500", [20, 50, 500]),
    (State::ReclaimSingles, "165.6 s at 500", [50, 100, 1000]),
    (State::OneShort, "249.5 s end to end at 500", [10, 20, 150]),
    (State::OneShortScattered, "-", [10, 20, 150]),
    (State::Fragmented, "455 s end to end at 500", [200, 500, 10_000]),
    (State::WideGang, "49 s end to end at 512", [5, 10, 60]),
    (State::TopologyGang, "48.7 s end to end at 512, preferred rack", [5, 10, 60]),
    (State::Full, "2.2 s at 4,000", [1, 2, 10]),
];

fn main() {
    let sizes: Vec<u32> = match std::env::var("ELASTANE_BENCH_NODES") {
        Ok(text) => text.split(',').filter_map(|size| size.parse().ok()).collect(),
        Err(_) => vec![500, 1000, 5000],
    };
    let only = std::env::var("ELASTANE_BENCH_STATE").ok();
    println!("decision time on an in-memory state, one core, ms (goal)");
    for (state, kai, goals) in ROWS {
        if only.as_ref().is_some_and(|only| only != state.name()) {
            continue;
        }
        let mut cells = Vec::new();
        for &nodes in &sizes {
            let goal = match nodes {
                0..=500 => goals[0],
                501..=1000 => goals[1],
                _ => goals[2],
            };
            cells.push(cell(state, nodes, goal));
        }
        println!("{:<20} {}   KAI: {kai}", state.name(), cells.join("  "));
    }
}

/// Best of three: the state is the same each time, so the least is the least disturbed.
fn cell(state: State, nodes: u32, goal_ms: u64) -> String {
    // The state that must be refused promises one GPU more than there is; in proportion, that
    // would be granted; and nobody moves, which would help as well.
    let strict = matches!(state, State::OneShort | State::OneShortScattered);
    let policy = sched::Policy {
        consolidation_moves_max: if strict { 0 } else { 8 * nodes as usize },
        shrinks_promises: !strict,
        protects_quota: !strict,
        ..sched::Policy::default()
    };
    let prototype = state.build(nodes);
    let mut best = f64::INFINITY;
    let mut steps = 0;
    for _ in 0..3 {
        let mut cluster = prototype.clone();
        let start = Instant::now();
        let plan = sched::cycle(&mut cluster, units::Instant(1), &policy);
        let ms = start.elapsed().as_secs_f64() * 1000.0;
        best = best.min(ms);
        steps = plan.steps.len();
        if ms > 20_000.0 {
            break;
        }
    }
    let rate = if state == State::Fill {
        let tasks = u64::from(nodes) * GPUS_PER_NODE;
        format!(", {:.0} k/s", tasks as f64 / best)
    } else {
        String::new()
    };
    format!("{nodes}: {best:.2} ({goal_ms}{rate}; {steps} steps)")
}
