//! `simulate --trace`: runs over a trace with successive seeds. Owns: the means and their table.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use sim::trace::{ARRIVED_PERCENT_MAX, Replay, read_nodes, read_pods, replay, replay_moving};

use super::{Simulate, show};
use cli_kit::exit::Error;

/// Printed demands, in percent of the capacity.
const SHOWN: [usize; 14] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100, 110, 120, 130];

#[derive(Serialize)]
struct Point {
    arrived_percent: usize,
    allocated_percent: f64,
}

#[derive(Serialize)]
struct Report {
    pods: String,
    seed: u64,
    runs: u64,
    seconds_per_run: f64,
    arrived_pods: usize,
    refused_pods: usize,
    /// Moves that made room; `None` if moves were not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    moves: Option<usize>,
    /// Mean over the runs at each percent.
    points: Vec<Point>,
}

pub(super) fn run(flags: &Simulate, dir: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let nodes_file = dir.join("nodes.csv");
    let nodes = read_nodes(&super::text(&nodes_file)?);
    let nodes = nodes.map_err(|error| super::in_file(&nodes_file, &error))?;
    let pods_file = dir.join(&flags.pods);
    let pods = read_pods(&super::text(&pods_file)?);
    let pods = pods.map_err(|error| super::in_file(&pods_file, &error))?;
    let policy = super::policy(flags)?;
    let start = Instant::now();
    let mut runs = Vec::new();
    for number in 0..flags.runs {
        let seed = flags.seed.wrapping_add(number);
        let done = match flags.moves {
            true => replay_moving(&nodes, &pods, seed, &policy, ARRIVED_PERCENT_MAX),
            false => replay(&nodes, &pods, seed, &policy),
        };
        runs.push(done.map_err(|error| super::in_file(&pods_file, &error))?);
    }
    let seconds = start.elapsed().as_secs_f64();
    let total = |part: fn(&Replay) -> usize| runs.iter().map(part).sum::<usize>();
    let point = |percent: usize| Point {
        arrived_percent: percent,
        allocated_percent: mean_percent(&runs, percent),
    };
    let report = Report {
        pods: flags.pods.display().to_string(),
        seed: flags.seed,
        runs: flags.runs,
        seconds_per_run: seconds / flags.runs as f64,
        arrived_pods: total(|run| run.arrived),
        refused_pods: total(|run| run.refused),
        moves: flags.moves.then(|| total(|run| run.moved)),
        points: (1..=ARRIVED_PERCENT_MAX).map(point).collect(),
    };
    if flags.json {
        return show::json(&report, out);
    }
    let Report { pods, seed, runs, seconds_per_run, arrived_pods, refused_pods, moves, points } =
        report;
    let last = seed.wrapping_add(runs - 1);
    let runs = units::counted(runs, "run");
    writeln!(out, "{pods}: {runs}, seeds {seed} to {last}, {seconds_per_run:.2} s each")?;
    let moves = moves.map_or(String::new(), |moves| format!(", {}", units::counted(moves, "move")));
    writeln!(out, "{arrived_pods} pods arrived, {refused_pods} found no place{moves}\n")?;
    let mut table = show::table(&["Arrived", "GPUs Given Out"]);
    for point in points.iter().filter(|point| SHOWN.contains(&point.arrived_percent)) {
        table.row([
            format!("{} %", point.arrived_percent),
            format!("{:.2} %", point.allocated_percent),
        ]);
    }
    write!(out, "{}", table.ruled())?;
    Ok(())
}

/// Mean allocation over the runs when this percentage of the capacity had been requested. A trace
/// that never requests as much counts with its last value.
fn mean_percent(runs: &[Replay], percent: usize) -> f64 {
    let one = |run: &Replay| {
        let held = run.allocated_millis.get(percent - 1).or(run.allocated_millis.last());
        held.copied().unwrap_or(0) as f64 * 100.0 / run.capacity_millis as f64
    };
    runs.iter().map(one).sum::<f64>() / runs.len().max(1) as f64
}
