//! Published loads, played from the first submission to the last end in virtual time: times of
//! submissions, and run times of pods. Owns: the loads, and a lower bound on the makespan of each.
//! Sources: benchmarks reference §2 (K13), §3 (Kueue) and §6 (times of all other steps).

mod orders;
mod play;

use model::{GpuRequest, NodeSpec, PodRequest, Share};
use sched::Policy;
use units::{GPU_MILLIS, Resources};

pub use play::{Played, play};

use sim::rng::Rng;

/// The jobs of a load, and the cluster and policy it is played on.
#[derive(Debug, Clone)]
pub struct Load {
    /// Name of the load.
    pub name: String,
    nodes: Vec<NodeSpec>,
    /// Number of departments, each with `projects` projects of share `share`.
    departments: usize,
    projects: usize,
    share: Share,
    jobs: Vec<Job>,
    policy: Policy,
    service: Service,
    /// Minimum wait before a job may preempt others.
    patience_ms: u64,
    /// Time limit of each pod, known to the scheduler; `None` if there is none.
    time_limit_ms: Option<u64>,
    /// Capacity of all nodes in the scarce resource: GPU thousandths or CPU thousandths.
    capacity_millis: u64,
}

/// A future workload.
#[derive(Debug, Clone)]
struct Job {
    /// Number of its project, over all departments.
    project: usize,
    /// Class for statistics.
    class: &'static str,
    arrives_ms: u64,
    priority: u32,
    request: PodRequest,
    /// Run time of each of its pods; all pods start together.
    runs_ms: Vec<u64>,
}

/// Times of all steps other than the pods' own work.
#[derive(Debug, Clone, Copy)]
struct Service {
    /// Minimum interval between two decisions.
    cycle_ms: u64,
    /// Time to bind a pod to a node, and the number of pods bound in parallel.
    bind_ms: u64,
    binds_at_once: usize,
    /// Time to start a pod, and time to stop one.
    start_ms: u64,
    stop_ms: u64,
}

impl Load {
    /// 90 gangs of each size 1, 2, 4, … pods of 8 GPUs, up to the largest that fits and 512; 200
    /// pods are created each second. A pod ends 20 to 40 s after its start, and has a time limit.
    /// GPUs that become free are reserved for the first gang in the queue: without that the largest
    /// gangs run last, one by one.
    #[must_use]
    pub fn nccl_burst(nodes: u32) -> Self {
        let request = PodRequest { gpu: GpuRequest::Whole(8), cpu_millis: 0, memory_bytes: 0 };
        let sizes = (0..10).map(|power| 1_usize << power);
        let sizes: Vec<_> = sizes.filter(|&size| size <= nodes.min(512) as usize).collect();
        let batches = (nodes / 1000).max(1);
        let mut rng = Rng::new(13);
        let mut jobs = Vec::new();
        for _ in 0..90 * batches {
            for &size in &sizes {
                let runs_ms = (0..size).map(|_| 20_000 + rng.below(20_001) as u64).collect();
                let arrives_ms =
                    jobs.iter().map(|job: &Job| job.runs_ms.len() as u64).sum::<u64>() * 5;
                let (project, priority) = (0, 50);
                jobs.push(Job { project, class: "gang", arrives_ms, priority, request, runs_ms });
            }
        }
        let node = |number| {
            NodeSpec::new(format!("node-{number:04}"), vec![80 << 30; 8], 32_000, 256 << 30)
        };
        Self {
            name: format!("NCCL burst, {nodes} nodes"),
            nodes: (0..nodes).map(node).collect(),
            departments: 1,
            projects: 1,
            share: Share::new(Resources::UNLIMITED, Resources::UNLIMITED),
            jobs,
            policy: Policy {
                consolidation_moves_max: 0,
                reserve_after_ms: 0,
                reservations_max: 1,
                ..Policy::default()
            },
            service: Service {
                cycle_ms: 100,
                bind_ms: 20,
                binds_at_once: 100,
                start_ms: 1000,
                stop_ms: 1000,
            },
            patience_ms: 0,
            time_limit_ms: Some(41_000),
            capacity_millis: u64::from(nodes) * 8 * GPU_MILLIS,
        }
    }

    /// Kueue's baseline: 5 cohorts of 6 queues with 20 units each; in each queue 350 small, 100
    /// medium and 50 large workloads.
    #[must_use]
    pub fn kueue_baseline() -> Self {
        let kinds = [
            ("small", 350, 1, 200, 50, 100),
            ("medium", 100, 5, 500, 100, 500),
            ("large", 50, 20, 1000, 200, 1200),
        ];
        Self::kueue("Kueue baseline", 5, 6, &kinds)
    }

    /// Kueue's large-scale: 10 cohorts of 100 queues.
    #[must_use]
    pub fn kueue_large_scale() -> Self {
        let kinds = [
            ("small", 35, 1, 150, 50, 60),
            ("medium", 11, 5, 350, 100, 300),
            ("large", 4, 20, 700, 200, 700),
        ];
        Self::kueue("Kueue large-scale", 10, 100, &kinds)
    }

    /// `kinds`: name, count, units, run time, priority, interval between two.
    fn kueue(
        name: &str,
        departments: usize,
        projects: usize,
        kinds: &[(&'static str, u64, u64, u64, u32, u64)],
    ) -> Self {
        let units = (departments * projects) as u64 * 20;
        let mut jobs = Vec::new();
        for project in 0..departments * projects {
            for &(class, count, units, run_ms, priority, interval_ms) in kinds {
                let gpu = GpuRequest::Whole(0);
                let request = PodRequest { gpu, cpu_millis: units * 1000, memory_bytes: 0 };
                jobs.extend((1..=count).map(|number| Job {
                    project,
                    class,
                    arrives_ms: number * interval_ms,
                    priority,
                    request,
                    runs_ms: vec![run_ms],
                }));
            }
        }
        jobs.sort_by_key(|job| job.arrives_ms);
        let quota = Resources { cpu_millis: 20_000, ..Resources::UNLIMITED };
        // This load has no places, only amounts: one node holds them all.
        let node = NodeSpec::new("all", Vec::new(), units * 1000, 1 << 50);
        Self {
            name: name.into(),
            nodes: vec![node],
            departments,
            projects,
            share: Share::new(quota, Resources::UNLIMITED),
            jobs,
            policy: Policy::default(),
            service: Service {
                cycle_ms: 10,
                bind_ms: 0,
                binds_at_once: 1,
                start_ms: 0,
                stop_ms: 0,
            },
            patience_ms: 0,
            time_limit_ms: None,
            capacity_millis: units * 1000,
        }
    }

    /// The load with a minimum wait before preemption.
    #[must_use]
    pub fn patient(mut self, patience_ms: u64) -> Self {
        self.patience_ms = patience_ms;
        self
    }

    /// Lower bound on the makespan, in milliseconds: from any moment on, all work submitted after
    /// it has to be done by the full capacity. The work of a pod is its resources times its run
    /// time.
    #[must_use]
    pub fn bound_ms(&self) -> u64 {
        let work = |job: &Job| -> u128 {
            let held = job.request.resources(1);
            let held = held.gpu_millis.max(held.cpu_millis);
            job.runs_ms.iter().map(|&ms| u128::from(held) * u128::from(ms)).sum()
        };
        let mut jobs: Vec<_> = self.jobs.iter().map(|job| (job.arrives_ms, work(job))).collect();
        jobs.sort_unstable();
        let (mut left, mut bound) = (0, 0);
        for &(arrives_ms, work) in jobs.iter().rev() {
            left += work;
            bound = bound.max(u128::from(arrives_ms) + left / u128::from(self.capacity_millis));
        }
        u64::try_from(bound).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, play};

    #[test]
    fn everything_comes_to_its_end_and_no_sooner_than_it_can() {
        let load = Load::nccl_burst(8);
        let played = play(&load);
        assert_eq!((played.unfinished, played.stops), (0, 0));
        assert_eq!(played.waits_ms["gang"].1, 90 * 4, "gangs of 1, 2, 4 and 8 pods");
        assert!(played.makespan_ms >= load.bound_ms(), "{played:?}");
        let ordered_ms = load.best_order_ms(4);
        assert!((load.bound_ms()..=played.makespan_ms).contains(&ordered_ms), "{ordered_ms}");
    }

    #[test]
    fn patience_spares_work_that_would_be_lost() {
        let kinds = [("small", 100, 4, 300, 50, 20), ("large", 2, 20, 1000, 200, 700)];
        let load = Load::kueue("two queues", 1, 2, &kinds);
        let (hasty, patient) = (play(&load), play(&load.clone().patient(10_000)));
        assert_eq!((hasty.unfinished, patient.unfinished), (0, 0));
        assert!(hasty.stops > 0 && patient.stops == 0, "{patient:?} {hasty:?}");
    }
}
