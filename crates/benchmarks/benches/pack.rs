//! How well pods are packed on the published trace, first without moving anything, then with
//! consolidation (it stops when 100 % was asked for). Needs the trace:
//! ELASTANE_TRACE names a folder with nodes.csv and the lists of pods. Prints; asserts nothing.
//! FGD's and best-fit's figures: Weng et al., USENIX ATC 2023.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::fmt;
use std::path::Path;
use std::time::Instant;

use sched::Policy;
use sim::trace::{Replay, read_nodes, read_pods, replay, replay_moving};

/// List of pods, and the GPUs given out when 100 % was asked for: FGD, best-fit.
const ROWS: [(&str, f64, f64); 5] = [
    ("default", 95.23, 92.86),
    ("gpushare40", 93.96, 91.44),
    ("multigpu20", 95.53, 93.73),
    ("cpu100", 95.21, 93.26),
    ("gpuspec10", 94.66, 93.10),
];
const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(dir) = std::env::var("ELASTANE_TRACE") else {
        println!("packing: skipped (ELASTANE_TRACE names no folder with a trace)");
        return Ok(());
    };
    let text = |name: &str| std::fs::read_to_string(Path::new(&dir).join(name));
    let nodes = read_nodes(&text("nodes.csv")?)?;
    println!("GPUs given out when 100 % was asked for, mean of seeds 42 to 51");
    for (name, fgd, best_fit) in ROWS {
        let pods = read_pods(&text(&format!("pods-{name}.csv"))?)?;
        let stays = Figures::of(|seed| replay(&nodes, &pods, seed, &Policy::default()))?;
        println!("{name:<12} {stays}  (published: FGD {fgd}, best fit {best_fit})");
        let moves = Figures::of(|seed| replay_moving(&nodes, &pods, seed, &Policy::default()))?;
        println!("{:<12} {moves}  ({:.0} moves)", "  moving", moves.moved);
    }
    Ok(())
}

/// Means over the seeds.
struct Figures {
    percent: f64,
    percent_min: f64,
    percent_max: f64,
    moved: f64,
    seconds: f64,
}

impl Figures {
    fn of(run: impl Fn(u64) -> Result<Replay, sim::Error>) -> Result<Self, sim::Error> {
        let start = Instant::now();
        let runs = SEEDS.map(run).collect::<Result<Vec<_>, _>>()?;
        let count = runs.len() as f64;
        let held = |run: &Replay| run.allocated_millis.get(99).copied().unwrap_or(0);
        let percent = |run: &Replay| held(run) as f64 * 100.0 / run.capacity_millis as f64;
        let percents = runs.iter().map(percent);
        Ok(Self {
            percent: percents.clone().sum::<f64>() / count,
            percent_min: percents.clone().fold(f64::MAX, f64::min),
            percent_max: percents.fold(0.0, f64::max),
            moved: runs.iter().map(|run| run.moved as f64).sum::<f64>() / count,
            seconds: start.elapsed().as_secs_f64() / count,
        })
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { percent, percent_min, percent_max, seconds, .. } = self;
        write!(f, "{percent:.2} % ({percent_min:.2} to {percent_max:.2}), {seconds:.2} s a run")
    }
}
