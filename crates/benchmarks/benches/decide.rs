//! Time of a decision and memory of the process that makes it, on the published states and sizes
//! (`ELASTANE_BENCH_NODES=500,1000`, `ELASTANE_BENCH_STATE=fill` choose some). Each is measured in
//! a process of its own. Prints; asserts nothing. KAI's figures: benchmarks reference §1 (decision
//! time, Go benchmark) and §2.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::process::{Command, Stdio};
use std::time::Instant;

use sim::states::{GPUS_PER_NODE, State};

/// State, KAI's published result for it, and our goals in milliseconds at 500, 1,000, 5,000 nodes.
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

/// Our goals for the peak memory of the process in MB, at 500, 1,000, 5,000 nodes.
const MEMORY_GOALS_MB: [u64; 3] = [100, 200, 1000];

/// Environment variable that selects the cell of the table for a child process: `state:nodes`.
const CELL: &str = "ELASTANE_BENCH_CELL";

fn main() {
    if let Ok(cell) = std::env::var(CELL) {
        let known = cell.split_once(':').and_then(|(state, nodes)| {
            let row = ROWS.iter().find(|(row, ..)| row.name() == state)?;
            Some((row, nodes.parse().ok()?))
        });
        match known {
            Some(((state, _, goals), nodes)) => println!("{}", measured(*state, nodes, goals)),
            None => println!("{CELL}={cell} names no cell"),
        }
        return;
    }
    let sizes: Vec<u32> = match std::env::var("ELASTANE_BENCH_NODES") {
        Ok(text) => text.split(',').filter_map(|size| size.parse().ok()).collect(),
        Err(_) => vec![500, 1000, 5000],
    };
    let only = std::env::var("ELASTANE_BENCH_STATE").ok();
    println!(
        "decision on an in-memory state, one core: ms (goal), peak memory of the process in MB (goal)"
    );
    for (state, kai, _) in ROWS {
        if only.as_ref().is_some_and(|only| only != state.name()) {
            continue;
        }
        let cells: Vec<_> = sizes.iter().map(|&nodes| cell(state, nodes)).collect();
        println!("{:<20} {}   KAI: {kai}", state.name(), cells.join("  "));
    }
}

/// Runs a child process for a cell, and returns its output.
fn cell(state: State, nodes: u32) -> String {
    let said = std::env::current_exe().and_then(|program| {
        let cell = format!("{}:{nodes}", state.name());
        Command::new(program).env(CELL, cell).stderr(Stdio::inherit()).output()
    });
    match said {
        Ok(said) if said.status.success() => {
            String::from_utf8_lossy(&said.stdout).trim().to_owned()
        }
        Ok(said) => format!("{nodes}: failed ({})", said.status),
        Err(error) => format!("{nodes}: failed ({error})"),
    }
}

/// Peak memory of this process so far, in MB; `None` where the system does not report it.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// The best of three decisions: the state is equal each time, so the shortest time is the least
/// disturbed one. The memory is that of the first, before any other.
fn measured(state: State, nodes: u32, goals_ms: &[u64; 3]) -> String {
    let size = match nodes {
        0..=500 => 0,
        501..=1000 => 1,
        _ => 2,
    };
    // This state must be infeasible, and its quotas exceed the capacity by one GPU; quotas in
    // proportion or moves would make it feasible.
    let strict = matches!(state, State::OneShort | State::OneShortScattered);
    let policy = sched::Policy {
        consolidation_moves_max: if strict { 0 } else { 8 * nodes as usize },
        shrinks_promises: !strict,
        protects_quota: !strict,
        ..sched::Policy::default()
    };
    let mut best = f64::INFINITY;
    let mut memory = None;
    let mut steps = 0;
    for _ in 0..3 {
        let mut cluster = state.build(nodes);
        let start = Instant::now();
        let plan = sched::cycle(&mut cluster, units::Instant(1), &policy);
        let ms = start.elapsed().as_secs_f64() * 1000.0;
        best = best.min(ms);
        memory = memory.or_else(peak_mb);
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
    let memory = memory.map_or("memory unknown".to_owned(), |mb| {
        format!("{mb:.0} MB ({})", MEMORY_GOALS_MB[size])
    });
    format!("{nodes}: {best:.2} ({}{rate}; {steps} steps), {memory}", goals_ms[size])
}
