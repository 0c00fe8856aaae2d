//! Two trainings, and a training beside a service, on published clusters, in virtual time: when
//! they end and how much of the cluster works, compared with the published results. Prints; asserts
//! nothing (the goals are in the tests of this crate).

#![expect(clippy::print_stdout, reason = "a benchmark is for reading")]

use benchmarks::elasticity::{A1, A2, E1, E2, Setup, Sharing};

fn main() -> Result<(), sim::Error> {
    println!("trainings that stretch, virtual time (one start delay for every pod)");
    two_jobs(&E1, "795-799 s gang, 580 s elastic (0.73), 83.2 % used", 370)?;
    two_jobs(&A1, "968 s gang, 809 s elastic (0.84), 77.6 % used", 465)?;
    beside_a_service(&E2, "97.7 % used")?;
    beside_a_service(&A2, "96.5 % used")
}

fn two_jobs(setup: &Setup, published: &str, alone_s: u64) -> Result<(), sim::Error> {
    println!("{}, start delay {} s; published: {published}", setup.name, setup.start_delay_s);
    let mut gang_s = None;
    for sharing in [Sharing::Gang, Sharing::OneProject, Sharing::TwoProjects] {
        let played = setup.play(sharing)?;
        let (end_s, first_s) = (played.makespan_s(), played.ends_s.first().copied());
        let gang_s = *gang_s.get_or_insert(end_s);
        println!(
            "  {:<14} all done after {end_s} s ({:.2} of gang), job 1 after {} s ({:.2} of alone), first \
             step of job 2 after {} s, {:.1} % work, {:.1} % held",
            format!("{sharing:?}"),
            end_s as f64 / gang_s as f64,
            first_s.unwrap_or_default(),
            first_s.unwrap_or_default() as f64 / alone_s as f64,
            played.first_step_s.unwrap_or_default(),
            played.working_percent,
            played.held_percent,
        );
    }
    Ok(())
}

fn beside_a_service(setup: &Setup, published: &str) -> Result<(), sim::Error> {
    println!("{}, start delay {} s; published: {published}", setup.name, setup.start_delay_s);
    let played = setup.play(Sharing::OneProject)?;
    let mut steps = played.workers.clone();
    steps.dedup();
    let (held, working) = (played.held_percent, played.working_percent);
    println!("  {held:.1} % held, {working:.1} % work; workers {steps:?}");
    Ok(())
}
