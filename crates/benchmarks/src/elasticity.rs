//! Published clusters with elastic trainings, played by the scheduler of the product with no plan
//! made by hand. Owns: the set-ups, and the measures of a play. Does not know about: the published
//! results.
//!
//! Source: the performance report of ElasticDL 0.2 (2020): two equal jobs, and a training beside a
//! service that is scaled by a script, each with CPUs and with GPUs. The work of a job is such that
//! it takes the published time when alone. A pod works only after its start delay; until then it
//! holds its place and counts as idle. Stopped pods free their places at once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sim::scenario::{Scenario, State};
use sim::{Frame, Record};

/// Names of the measured jobs.
const JOBS: [&str; 2] = ["one", "two"];

/// How trainings share a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// All pods of a job run, or none.
    Gang,
    /// At least one pod of each job runs; both jobs are in one project, and the first keeps its
    /// pods.
    OneProject,
    /// At least one pod of each job runs; each job is in a project that is entitled to half the
    /// cluster.
    TwoProjects,
}

/// A published cluster.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Name in the report.
    pub name: &'static str,
    /// Usable devices.
    pub devices: u64,
    /// Attributes of a node in a scenario, and the number of nodes.
    nodes: (&'static str, u32),
    /// Resource request of a pod in a scenario.
    pod: &'static str,
    /// Maximum number of pods of a job.
    pods: u64,
    /// Run time in seconds of a job alone, its start delay included.
    alone_s: u64,
    /// Seconds after its start in which a pod does not work yet.
    pub start_delay_s: u64,
    /// Second at which the second job is submitted; `None` if there is one job.
    second_s: Option<u64>,
    /// Number of pods of the service, from each second on.
    service: &'static [(u64, u32)],
    /// Measured interval in seconds; `None` if the play ends with its jobs.
    window_s: Option<(u64, u64)>,
}

/// Two jobs of 13 CPUs on three nodes of 8, of which 7.91 are usable.
pub const E1: Setup = Setup {
    name: "E1",
    devices: 21,
    nodes: ("gpus: 0, cpu: 7.91", 3),
    pod: "cpu: 1",
    pods: 13,
    alone_s: 370,
    start_delay_s: 8,
    second_s: Some(30),
    service: &[],
    window_s: None,
};

/// A training that fills the same cluster, beside a service.
pub const E2: Setup = Setup {
    name: "E2",
    pods: 21,
    alone_s: 100_000,
    second_s: None,
    service: &[(0, 3), (85, 8), (167, 14), (270, 11), (367, 8), (467, 5), (470, 3)],
    window_s: Some((15, 485)),
    ..E1
};

/// Two jobs of 4 GPUs on 6.
pub const A1: Setup = Setup {
    name: "A1",
    devices: 6,
    nodes: ("gpus: 2, cpu: 32", 3),
    pod: "gpu: 1",
    pods: 4,
    alone_s: 465,
    start_delay_s: 25,
    second_s: Some(120),
    service: &[],
    window_s: None,
};

/// A training beside a service on 8 GPUs.
pub const A2: Setup = Setup {
    name: "A2",
    devices: 8,
    nodes: ("gpus: 4, cpu: 32", 2),
    pod: "gpu: 1",
    pods: 8,
    alone_s: 100_000,
    start_delay_s: 20,
    second_s: None,
    service: &[(0, 2), (63, 3), (164, 7), (230, 5), (330, 3), (400, 2)],
    window_s: Some((0, 460)),
};

/// Measures of a play.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// End of each job, in seconds.
    pub ends_s: Vec<u64>,
    /// Seconds from the submission of the last job to its first step.
    pub first_step_s: Option<u64>,
    /// Devices held, in percent of the usable ones.
    pub held_percent: f64,
    /// Devices at work, in percent of the usable ones.
    pub working_percent: f64,
    /// Pods of trainings at work, for each second.
    pub workers: Vec<u64>,
}

impl Played {
    /// End of the last job, in seconds.
    #[must_use]
    pub fn makespan_s(&self) -> u64 {
        self.ends_s.iter().copied().max().unwrap_or_default()
    }
}

impl Setup {
    /// Plays the set-up.
    ///
    /// # Errors
    /// The scenario cannot be played, which is a fault of this file.
    pub fn play(&self, sharing: Sharing) -> Result<Played, sim::Error> {
        let scenario = Scenario::read(&self.scenario(sharing))?;
        let frames = sim::run(&scenario, Record::Everything)?.frames;
        Ok(self.read(&frames))
    }

    /// Seconds of the longest play: one job after the other.
    fn longest_s(&self) -> u64 {
        self.window_s.map_or(self.alone_s * 2 + 60, |(_, end_s)| end_s)
    }

    fn scenario(&self, sharing: Sharing) -> String {
        let (node, count) = self.nodes;
        // The quota is of the kind of device that the jobs share.
        let kind = if self.pod.starts_with("gpu") { "gpu" } else { "cpu" };
        let (of_second, quota) = match sharing {
            Sharing::TwoProjects => ("second", self.devices / 2),
            _ => ("first", self.devices),
        };
        let mut text = format!(
            "version: 1\nnodes: [{{name: n, count: {count}, {node}}}]\nqueues:\n  - {{name: first, \
             quota: {{{kind}: {quota}}}}}\n  - {{name: second, quota: {{{kind}: {quota}}}}}\nsteps:\n"
        );
        let least = if sharing == Sharing::Gang { self.pods } else { 1 };
        let work_s = (self.alone_s - self.start_delay_s) * self.pods;
        let job = |name: &str, queue: &str| {
            format!(
                "  - submit: {{name: {name}, project: {queue}, {}, pods: {}, pods_min: {least}, \
                 priority: 50, work: {work_s}s, warm_up: {}s}}\n",
                self.pod, self.pods, self.start_delay_s
            )
        };
        let mut served = 0;
        for second in 0..self.longest_s() {
            if second == 0 {
                text.push_str(&job(JOBS[0], "first"));
            }
            if self.second_s == Some(second) {
                text.push_str(&job(JOBS[1], of_second));
            }
            if let Some((_, pods)) = self.service.iter().find(|(at_s, _)| *at_s == second) {
                for number in served..*pods {
                    let _ = writeln!(
                        text,
                        "  - submit: {{name: web-{number}, project: first, {}, priority: 125}}",
                        self.pod
                    );
                }
                for number in *pods..served {
                    let _ = writeln!(text, "  - delete: web-{number}");
                }
                served = *pods;
            }
            // A decision by hand leaves a frame.
            text.push_str("  - advance: 1s\n  - cycles: 1\n");
        }
        text
    }

    fn read(&self, frames: &[Frame]) -> Played {
        let delay_ms = self.start_delay_s * 1000;
        let (from_s, to_s) = self.window_s.unwrap_or((0, u64::MAX));
        let mut played = Played::default();
        let mut since_ms: BTreeMap<(String, u32, String), u64> = BTreeMap::new();
        let (mut held, mut working, mut seconds) = (0, 0, 0);
        let mut alive = [false; JOBS.len()];
        // The last frame of each second.
        let by_second: BTreeMap<u64, &Frame> =
            frames.iter().map(|frame| (frame.at_ms / 1000, frame)).collect();
        for (second, frame) in by_second {
            let mut now = BTreeMap::new();
            for task in frame.tasks.iter().filter(|task| task.state == State::Running) {
                let Some(place) = &task.place else { continue };
                let key = (task.workload.clone(), task.task, place.to_string());
                let since = since_ms.get(&key).copied().unwrap_or(frame.at_ms);
                now.insert(key, since);
            }
            since_ms = now;
            let at_work = since_ms.iter().filter(|(_, since)| frame.at_ms - **since >= delay_ms);
            let at_work: Vec<&str> = at_work.map(|((name, ..), _)| name.as_str()).collect();
            for (number, name) in JOBS.iter().enumerate() {
                let is_there = frame.tasks.iter().any(|task| task.workload == *name);
                if alive[number] && !is_there {
                    played.ends_s.push(second);
                }
                alive[number] = is_there;
            }
            let last = if self.second_s.is_some() { JOBS[1] } else { JOBS[0] };
            if played.first_step_s.is_none() && at_work.contains(&last) {
                played.first_step_s = Some(second - self.second_s.unwrap_or_default());
            }
            let workers = at_work.iter().filter(|name| JOBS.contains(name)).count() as u64;
            let is_over = self.window_s.is_none() && !alive.contains(&true);
            if (from_s..to_s).contains(&second) && !is_over {
                held += since_ms.len() as u64;
                working += at_work.len() as u64;
                seconds += 1;
                played.workers.push(workers);
            }
        }
        let percent = |sum: u64| 100.0 * sum as f64 / (self.devices * seconds.max(1)) as f64;
        (played.held_percent, played.working_percent) = (percent(held), percent(working));
        played
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_jobs_end_after_three_quarters_of_the_time_and_the_first_is_not_slower() {
        let (gang, elastic) = (E1.play(Sharing::Gang), E1.play(Sharing::OneProject));
        let (gang, elastic) = (gang.expect("a play"), elastic.expect("a play"));
        assert_eq!((gang.ends_s.len(), elastic.ends_s.len()), (2, 2));
        assert_eq!(elastic.ends_s[0], gang.ends_s[0]);
        assert!(elastic.makespan_s() * 100 <= gang.makespan_s() * 75, "{elastic:?}");
        assert!(elastic.first_step_s.is_some_and(|after_s| after_s <= 15), "{elastic:?}");
        assert!(elastic.working_percent >= 83.0, "{elastic:?}");
    }

    #[test]
    fn where_each_is_entitled_to_half_both_end_sooner_than_one_after_the_other() {
        let halves = E1.play(Sharing::TwoProjects).expect("a play");
        // Published for one after the other: 795 to 799 s.
        assert!(halves.makespan_s() * 100 <= 2 * E1.alone_s * 70, "{halves:?}");
        assert!(halves.working_percent >= 90.0, "{halves:?}");
    }

    #[test]
    fn a_training_fills_what_a_service_leaves() {
        let played = E2.play(Sharing::OneProject).expect("a play");
        assert!(played.working_percent >= 95.0, "{played:?}");
    }
}
