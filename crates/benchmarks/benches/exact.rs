//! Quality of decisions compared with the optimum, on instances small enough for exhaustive search.
//! Prints; asserts nothing.

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use benchmarks::exact::{Compared, moves, packing, victims};

const SEED: u64 = 1;
const INSTANCES: u32 = 2000;

fn main() {
    println!("decisions beside exhaustive search, {INSTANCES} small instances each");
    for (name, one_by_one) in [("packing, one by one", true), ("packing, all at once", false)] {
        let Compared { best, gpus, gpus_best, .. } = packing(SEED, INSTANCES, one_by_one);
        let ratio = f64::from(gpus) / f64::from(gpus_best);
        println!(
            "{name:<20} {ratio:.4} of the most GPUs that can be given out; in {best} instances all of them"
        );
    }
    let Compared { best, gpus, gpus_best, gpus_worse, worst, not_found, .. } =
        victims(SEED, INSTANCES);
    let mean = f64::from(gpus_worse) / f64::from(INSTANCES);
    println!(
        "victims of a gang    {mean:.4} GPUs lost beyond the least without moving anybody, in {best} instances none; {gpus} lost in all, at least {gpus_best}; {worst} too many at the worst; {not_found} not found"
    );
    let Compared { best, gpus, gpus_best, not_found, .. } = moves(SEED, INSTANCES);
    println!(
        "moves for one pod    {gpus} workloads moved, at least {gpus_best}; in {best} instances no more of them, of their GPUs and of their pods than have to be; {not_found} not found"
    );
}
