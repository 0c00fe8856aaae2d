//! How well pods are packed on the published trace, without moving anything. Needs the trace:
//! ELASTANE_TRACE names a folder with nodes.csv and the lists of pods. Prints; asserts nothing.
//! FGD's and best-fit's figures: Weng et al., USENIX ATC 2023.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::path::Path;
use std::time::Instant;

use sim::trace::{read_nodes, read_pods, replay};

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
        let start = Instant::now();
        let mut held = Vec::new();
        for seed in SEEDS {
            let run = replay(&nodes, &pods, seed, &sched::Policy::default())?;
            let millis = run.allocated_millis.get(99).copied().unwrap_or(0);
            held.push(millis as f64 * 100.0 / run.capacity_millis as f64);
        }
        let runs = held.len() as f64;
        let seconds = start.elapsed().as_secs_f64() / runs;
        let mean = held.iter().sum::<f64>() / runs;
        held.sort_by(f64::total_cmp);
        let (least, most) = (held[0], held[held.len() - 1]);
        println!(
            "{name:<12} {mean:.2} %, {least:.2} to {most:.2}  (published: FGD {fgd}, best fit \
             {best_fit}); {seconds:.2} s a run"
        );
    }
    Ok(())
}
