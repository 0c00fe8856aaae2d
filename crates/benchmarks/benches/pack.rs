//! Packing of the published trace and of mixes drawn from it, first without moves, then with
//! consolidation, compared with FGD and best fit on the same pods in the same order. Needs the
//! trace: ELASTANE_TRACE names a folder with nodes.csv and the lists of pods. ELASTANE_SEEDS is the
//! number of seeds (10), ELASTANE_MIX a part of the names of mixes. Prints; asserts nothing. The
//! published figures: Weng et al., USENIX ATC 2023.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::path::Path;

use benchmarks::packing::{Few, Mix, Published};
use sched::Policy;
use sim::trace::{Replay, read_nodes, read_pods, replay_moving, replay_until};

/// Lists, and their published results: percentage of GPUs given out by FGD and best fit at 100 %
/// requested.
const LISTS: [(&str, f64, f64); 5] = [
    ("default", 95.23, 92.86),
    ("gpushare40", 93.96, 91.44),
    ("multigpu20", 95.53, 93.73),
    ("cpu100", 95.21, 93.26),
    ("gpuspec10", 94.66, 93.10),
];
const SEED: u64 = 42;
/// Range of the requested percentages that the mean is over.
const ASKED: std::ops::RangeInclusive<usize> = 90..=100;

const fn bound(list: &'static str, bound_percent: u64) -> Mix {
    Mix { bound_percent, ..Mix::published(list) }
}

const DRAWN: [Mix; 10] = [
    bound("default", 20),
    bound("default", 27),
    bound("default", 35),
    bound("gpushare40", 27),
    bound("multigpu20", 27),
    bound("cpu100", 27),
    Mix { without: Some((Few::SingleGpu, 50)), ..Mix::published("multigpu20") },
    Mix { without: Some((Few::SingleGpu, 80)), ..Mix::published("multigpu20") },
    Mix { without: Some((Few::WholeGpu, 50)), ..Mix::published("gpushare40") },
    Mix { without: Some((Few::SingleGpu, 50)), ..bound("multigpu20", 27) },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(dir) = std::env::var("ELASTANE_TRACE") else {
        println!("packing: skipped (ELASTANE_TRACE names no folder with a trace)");
        return Ok(());
    };
    let text = |name: &str| std::fs::read_to_string(Path::new(&dir).join(name));
    let nodes = read_nodes(&text("nodes.csv")?)?;
    let seeds = std::env::var("ELASTANE_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let seeds = SEED..SEED + seeds.unwrap_or(10);
    let only = std::env::var("ELASTANE_MIX").unwrap_or_default();
    println!(
        "GPUs given out, in percent, means of {} seeds: of 90 to 100 % asked for | at 95 % | at 100 %",
        seeds.end - seeds.start
    );
    let published = LISTS.map(|(list, ..)| Mix::published(list));
    for mix in published.into_iter().chain(DRAWN).filter(|mix| mix.name().contains(&only)) {
        println!("{}", mix.name());
        let list = read_pods(&text(&format!("pods-{}.csv", mix.list))?)?;
        let draw = |seed| mix.draw(&nodes, &list, seed);
        for (name, way) in [("FGD", Published::Fgd), ("best fit", Published::BestFit)] {
            let runs = seeds.clone().map(|seed| Ok(way.replay(&nodes, &draw(seed), seed)));
            show(name, runs)?;
        }
        let policy = Policy::default();
        let stays = |seed| replay_until(&nodes, &draw(seed), seed, &policy, *ASKED.end());
        show("Elastane", seeds.clone().map(stays))?;
        let moves = |seed| replay_moving(&nodes, &draw(seed), seed, &policy, *ASKED.end());
        show("Elastane, moving", seeds.clone().map(moves))?;
        if let Some((_, fgd, best_fit)) = LISTS.iter().find(|(list, ..)| *list == mix.name()) {
            println!("  {:<17} at 100 %: FGD {fgd}, best fit {best_fit}", "published");
        }
    }
    Ok(())
}

/// Prints a row: means over runs, each with its own CPU time.
fn show(
    name: &str,
    runs: impl Iterator<Item = Result<Replay, sim::Error>>,
) -> Result<(), sim::Error> {
    let mut timed = Vec::new();
    let mut runs = runs;
    loop {
        let start = cpu_seconds();
        let Some(run) = runs.next() else { break };
        timed.push((run?, cpu_seconds() - start));
    }
    let mean = |of: &dyn Fn(&Replay) -> f64| {
        timed.iter().map(|(run, _)| of(run)).sum::<f64>() / timed.len() as f64
    };
    let percent = |run: &Replay, asked: usize| {
        let held = run.allocated_millis.get(asked - 1).or(run.allocated_millis.last());
        held.copied().unwrap_or(0) as f64 * 100.0 / run.capacity_millis as f64
    };
    let over =
        |run: &Replay| ASKED.map(|asked| percent(run, asked)).sum::<f64>() / ASKED.count() as f64;
    let rate = mean(&|run| run.arrived as f64) * timed.len() as f64
        / timed.iter().map(|(_, seconds)| seconds).sum::<f64>();
    print!(
        "  {name:<17} {:.2} | {:.2} | {:.2}; {rate:.0} arrivals/s of CPU time",
        mean(&over),
        mean(&|run| percent(run, 95)),
        mean(&|run| percent(run, 100)),
    );
    let moved = mean(&|run| run.moved as f64);
    let placed = mean(&|run| (run.arrived - run.refused) as f64);
    match moved > 0.0 {
        true => println!("; {:.1} moves for 100 placements", moved * 100.0 / placed),
        false => println!(),
    }
    Ok(())
}

/// CPU time of this process so far in seconds; 0 where the system does not report it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos: Option<u64> = stat.split_whitespace().next().and_then(|first| first.parse().ok());
    nanos.unwrap_or(0) as f64 / 1e9
}
