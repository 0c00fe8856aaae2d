//! Makespan of published loads in virtual time, compared with a lower bound. Prints; asserts
//! nothing. Other schedulers' figures: benchmarks reference §2 and §3.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use std::time::Instant;

use benchmarks::loads::{Load, play};

fn main() {
    println!("makespan of published loads in virtual time");
    let burst = Load::nccl_burst(500);
    // A batch is a gang of each size.
    let (ordered, bound) = (burst.best_order_ms(9) as f64, burst.bound_ms() as f64);
    println!(
        "{:<24} {:.1} s, ratio {:.3}, is the best order found if all run times are known and nothing is preempted",
        burst.name,
        ordered / 1000.0,
        ordered / bound
    );
    let rows = [
        (burst, "KAI 5,098.7 s, and 12,651 of 45,990 pods seen to end"),
        (Load::kueue_baseline(), "Kueue 351 s"),
        (Load::kueue_baseline().patient(500), "no preemption for one that waited less than 500 ms"),
        (Load::kueue_large_scale().patient(500), "Kueue 1,179 s"),
    ];
    for (load, others) in rows {
        let start = Instant::now();
        let played = play(&load);
        let (makespan, bound) = (played.makespan_ms as f64, load.bound_ms() as f64);
        let wall = start.elapsed().as_secs_f64();
        println!(
            "{:<24} {:.1} s, least {:.1} s, ratio {:.3}; {} stopped, {} unfinished; {} decisions in {wall:.1} s   {others}",
            load.name,
            makespan / 1000.0,
            bound / 1000.0,
            makespan / bound,
            played.stops,
            played.unfinished,
            played.cycles
        );
        for (class, (ms, count)) in &played.waits_ms {
            println!(
                "    {class:<8} waits {:.1} s on average",
                *ms as f64 / 1000.0 / *count as f64
            );
        }
    }
}
