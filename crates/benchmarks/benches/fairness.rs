//! Division of a cluster over time among projects that request more than the capacity, beside that
//! of an oracle. Prints; asserts nothing. Arguments restrict it to loads whose names contain one of
//! them, like `gangs` or `hours`.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::time::Instant;

use benchmarks::fairness::{Division, GPUS, History, LENGTHS, SHAPES};

fn main() -> Result<(), sim::Error> {
    let only: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!(
        "fairness over time: {GPUS} GPUs, weights 1:2:3:4, 130 % asked; GPU time in percent of the \
         entitlement of each project (goal: within 3 % of the oracle's)"
    );
    for shape in SHAPES {
        for length in LENGTHS {
            let name = format!("{}, {}", shape.name, length.name);
            if !only.is_empty() && !only.iter().any(|part| name.contains(part)) {
                continue;
            }
            let history = History::new(shape, length, 1);
            println!("{name}: {} workloads", history.workloads());
            print("oracle", &history.oracle(), None);
            for (name, limits) in [("without limits", false), ("with limits", true)] {
                let start = Instant::now();
                let division = history.play(limits)?;
                print(name, &division, Some(start.elapsed().as_secs_f64()));
            }
        }
    }
    Ok(())
}

fn print(name: &str, division: &Division, wall_s: Option<f64>) {
    let [a, b, c, d] = division.percent();
    let wall = wall_s.map(|seconds| format!(", played in {seconds:.1} s")).unwrap_or_default();
    println!(
        "  {name:<15} {a:>6.1} {b:>6.1} {c:>6.1} {d:>6.1}   {:.2} GPUs in use, {} stopped{wall}",
        division.used(),
        division.stopped
    );
}
