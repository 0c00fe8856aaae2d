//! Projects of different weights that request more than the capacity, over hours and days of
//! virtual time. Owns: the loads, and the division over time by the scheduler of the product, and
//! by an oracle that knows all run times and stops nothing. Does not know about: printing.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use sim::rng::Rng;
use sim::scenario::Scenario;
use sim::{Frame, Record};

/// GPUs of the cluster: five nodes of four.
pub const GPUS: u64 = 20;
/// Weight of each project, which is also its part of the cluster in pairs of GPUs.
const WEIGHTS: [u64; 4] = [1, 2, 3, 4];
/// Demand in percent of the cluster, for each project in proportion to its weight.
const DEMAND_PERCENT: u64 = 130;
/// Length of a history, in multiples of the GPU time of the largest workload divided by the
/// smallest share.
const LARGEST_TIMES: u64 = 50;
/// Divisor of the length of a history: this part at its beginning is not measured.
const UNMEASURED: u64 = 10;
/// Time limit of a workload in percent of its run time.
const LIMIT_PERCENT: u64 = 120;

/// GPUs that each project is entitled to.
#[must_use]
pub fn entitled() -> [u64; 4] {
    WEIGHTS.map(|weight| GPUS * weight / WEIGHTS.iter().sum::<u64>())
}

/// Sizes of workloads.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Name in the output.
    pub name: &'static str,
    /// Numbers of GPUs, equally frequent.
    gpus: &'static [u64],
    /// `true` if each GPU is of a pod of its own, and all pods start together.
    gang: bool,
}

/// Single GPUs, pods of several GPUs on one node, and gangs of pods with one GPU each.
pub const SHAPES: [Shape; 3] = [
    Shape { name: "singles", gpus: &[1], gang: false },
    Shape { name: "sizes 1-2-4", gpus: &[1, 2, 4], gang: false },
    Shape { name: "gangs 1-3-6", gpus: &[1, 3, 6], gang: true },
];

/// Run times of workloads.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Name in the output.
    pub name: &'static str,
    /// Shortest and longest run time in seconds; all between are equally frequent.
    run_s: (u64, u64),
}

/// Minutes and hours.
pub const LENGTHS: [Length; 2] = [
    Length { name: "minutes", run_s: (300, 3600) },
    Length { name: "hours", run_s: (3600, 8 * 3600) },
];

/// A workload of a history.
#[derive(Debug, Clone, Copy)]
struct Job {
    project: usize,
    arrives_s: u64,
    gpus: u64,
    run_s: u64,
}

/// The division of a cluster over time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Division {
    /// GPU time of each project, in GPU seconds.
    pub held: [u64; 4],
    /// Length of the measured interval in seconds.
    pub span_s: u64,
    /// Number of workloads that were stopped before their end.
    pub stopped: u64,
}

impl Division {
    /// GPUs in use on average.
    #[must_use]
    pub fn used(&self) -> f64 {
        self.held.iter().sum::<u64>() as f64 / self.span_s.max(1) as f64
    }

    /// GPU time of each project in percent of its entitlement.
    #[must_use]
    pub fn percent(&self) -> [f64; 4] {
        let mut percent = [0.0; 4];
        for ((percent, held), gpus) in percent.iter_mut().zip(self.held).zip(entitled()) {
            *percent = 100.0 * held as f64 / (gpus * self.span_s.max(1)) as f64;
        }
        percent
    }
}

/// A history: workloads of four projects in the order of their submission.
#[derive(Debug)]
pub struct History {
    shape: Shape,
    jobs: Vec<Job>,
    end_s: u64,
}

impl History {
    /// The history of a seed.
    #[must_use]
    pub fn new(shape: Shape, length: Length, seed: u64) -> Self {
        let largest = shape.gpus.iter().max().copied().unwrap_or(1) * length.run_s.1;
        let end_s = LARGEST_TIMES * largest / entitled()[0];
        let mut jobs = Vec::new();
        for (project, gpus_entitled) in entitled().into_iter().enumerate() {
            let mut rng = Rng::new(seed + project as u64);
            let mut at_s = 0;
            while at_s < end_s {
                let gpus = shape.gpus[rng.below(shape.gpus.len())];
                let (least, most) = length.run_s;
                let run_s = least + rng.next() % (most - least + 1);
                jobs.push(Job { project, arrives_s: at_s, gpus, run_s });
                at_s += gpus * run_s * 100 / (gpus_entitled * DEMAND_PERCENT);
            }
        }
        jobs.sort_by_key(|job| job.arrives_s);
        Self { shape, jobs, end_s }
    }

    /// Number of workloads.
    #[must_use]
    pub fn workloads(&self) -> usize {
        self.jobs.len()
    }

    const fn begin_s(&self) -> u64 {
        self.end_s / UNMEASURED
    }

    /// The division by the scheduler, which knows time limits if there are any.
    ///
    /// # Errors
    /// The scenario cannot be played, which is a fault of this file.
    pub fn play(&self, limits: bool) -> Result<Division, sim::Error> {
        let scenario = Scenario::read(&self.scenario(limits))?;
        let frames = sim::run(&scenario, Record::Everything)?.frames;
        Ok(self.read(&frames))
    }

    fn scenario(&self, limits: bool) -> String {
        let mut text =
            "version: 1\nnodes: [{name: n, count: 5, gpus: 4, cpu: 64}]\nqueues:\n".to_owned();
        for (project, weight) in WEIGHTS.iter().enumerate() {
            let _ = writeln!(text, "  - {{name: p{project}, weight: {{gpu: {weight}}}}}");
        }
        text.push_str("steps:\n");
        // Interval of additional frames: an end without a decision after it records no frame.
        let every_s = self.end_s / 2000;
        let mut now_s = 0;
        let advance = |text: &mut String, now_s: &mut u64, to_s: u64| {
            while *now_s < to_s {
                let span_s = (to_s - *now_s).min(every_s);
                *now_s += span_s;
                let _ = writeln!(text, "  - advance: {span_s}s\n  - cycles: 1");
            }
        };
        for (number, job) in self.jobs.iter().enumerate() {
            advance(&mut text, &mut now_s, job.arrives_s);
            let Job { project, gpus, run_s, .. } = job;
            let size = match self.shape.gang {
                true => format!("gpu: 1, pods: {gpus}, pods_min: {gpus}"),
                false => format!("gpu: {gpus}"),
            };
            let limit = match limits {
                true => format!(", time_limit: {}s", run_s * LIMIT_PERCENT / 100),
                false => String::new(),
            };
            let _ = writeln!(
                text,
                "  - submit: {{name: j{number}, project: p{project}, {size}, runs_for: {run_s}s{limit}}}"
            );
        }
        advance(&mut text, &mut now_s, self.end_s);
        text
    }

    fn read(&self, frames: &[Frame]) -> Division {
        let (begin_s, end_s) = (self.begin_s(), self.end_s);
        let mut division = Division { span_s: end_s - begin_s, ..Division::default() };
        let ends = frames.iter().skip(1).map(|frame| frame.at_ms / 1000).chain([end_s]);
        for (frame, next_s) in frames.iter().zip(ends) {
            let span_s = next_s.min(end_s).saturating_sub((frame.at_ms / 1000).max(begin_s));
            for (project, held) in division.held.iter_mut().enumerate() {
                let row = frame.queues.iter().find(|row| row.name == format!("p{project}"));
                let gpus = row.and_then(|row| row.allocated.gpu_millis).unwrap_or(0) / 1000;
                *held += gpus * span_s;
            }
            let stopped = frame.decisions.iter().filter(|one| one.kind == "evict");
            let names: BTreeMap<_, _> = stopped.map(|one| (&*one.workload, ())).collect();
            division.stopped += names.len() as u64;
        }
        division
    }

    /// The division by an oracle. It starts the oldest workload of the project that is furthest
    /// behind its entitlement. If that has no room, room is reserved for it at the known ends of
    /// others, and workloads that end before use it meanwhile. It ignores which GPUs are on one
    /// node.
    #[must_use]
    pub fn oracle(&self) -> Division {
        let mut oracle = Oracle { free: GPUS, ..Oracle::default() };
        let mut arrivals = self.jobs.iter().peekable();
        let mut division = Division { span_s: self.end_s - self.begin_s(), ..Division::default() };
        while oracle.now_s < self.end_s {
            while let Some(job) = arrivals.next_if(|job| job.arrives_s <= oracle.now_s) {
                oracle.waiting[job.project].push_back(*job);
            }
            oracle.start();
            let ends = oracle.running.keys().next().map(|(end_s, _)| *end_s);
            let next = ends.into_iter().chain(arrivals.peek().map(|job| job.arrives_s)).min();
            let next_s = next.unwrap_or(self.end_s).min(self.end_s);
            let measured_s = next_s.saturating_sub(oracle.now_s.max(self.begin_s()));
            for (held, gpus) in division.held.iter_mut().zip(oracle.holds) {
                *held += gpus * measured_s;
            }
            oracle.pass(next_s);
        }
        division
    }
}

/// A list scheduler with known run times.
#[derive(Debug, Default)]
struct Oracle {
    now_s: u64,
    free: u64,
    /// Running workloads by their end and number.
    running: BTreeMap<(u64, u64), Job>,
    started: u64,
    waiting: [VecDeque<Job>; 4],
    holds: [u64; 4],
    /// GPU seconds of each project so far.
    had: [u64; 4],
}

impl Oracle {
    /// Projects with waiting workloads, the one furthest behind its entitlement first.
    fn order(&self) -> Vec<usize> {
        let behind = |project: usize| {
            let due = i128::from(entitled()[project] * self.now_s);
            due - i128::from(self.had[project])
        };
        let mut order: Vec<_> =
            (0..WEIGHTS.len()).filter(|&project| !self.waiting[project].is_empty()).collect();
        order.sort_by_key(|&project| (std::cmp::Reverse(behind(project)), project));
        order
    }

    fn start(&mut self) {
        while let Some(first) = self.order().first().copied() {
            let Some(&job) = self.waiting[first].front() else { return };
            if job.gpus > self.free {
                return self.backfill(job);
            }
            self.waiting[first].pop_front();
            self.run(job);
        }
    }

    /// Starts workloads that do not delay the one that waits for room.
    fn backfill(&mut self, first: Job) {
        let (mut free, mut from_s) = (self.free, self.now_s);
        for ((end_s, _), job) in &self.running {
            if free >= first.gpus {
                break;
            }
            (free, from_s) = (free + job.gpus, *end_s);
        }
        let mut spare = free.saturating_sub(first.gpus);
        for project in self.order() {
            let mut kept = VecDeque::new();
            for job in std::mem::take(&mut self.waiting[project]) {
                let ends_before = self.now_s + job.run_s <= from_s;
                if job.gpus <= self.free && (ends_before || job.gpus <= spare) {
                    spare -= if ends_before { 0 } else { job.gpus };
                    self.run(job);
                } else {
                    kept.push_back(job);
                }
            }
            self.waiting[project] = kept;
        }
    }

    fn run(&mut self, job: Job) {
        self.free -= job.gpus;
        self.holds[job.project] += job.gpus;
        self.started += 1;
        self.running.insert((self.now_s + job.run_s, self.started), job);
    }

    fn pass(&mut self, to_s: u64) {
        for (had, gpus) in self.had.iter_mut().zip(self.holds) {
            *had += gpus * (to_s - self.now_s);
        }
        self.now_s = to_s;
        while let Some(entry) = self.running.first_entry().filter(|entry| entry.key().0 <= to_s) {
            let job = entry.remove();
            self.free += job.gpus;
            self.holds[job.project] -= job.gpus;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_gives_each_project_its_part() {
        for shape in SHAPES {
            let division = History::new(shape, LENGTHS[0], 1).oracle();
            assert!(division.used() > 18.0, "{}: {division:?}", shape.name);
            let worst = division.percent().into_iter().fold(f64::MAX, f64::min);
            assert!(worst > 85.0, "{}: {division:?}", shape.name);
        }
    }
}
