//! A play of a load from its first submission to its last end. Owns: virtual time and the events in
//! it. Does not know about: the decisions, which the scheduler makes after each change.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use model::{Cluster, PodId, PodSetSpec, QueueId, QueueSpec, Share, WorkloadId, WorkloadSpec};
use sched::Step;
use units::{Instant, Resources};

use super::Load;

/// The result of a play.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Played {
    /// End of the last pod, in milliseconds after the first submission.
    pub makespan_ms: u64,
    /// Sum of the times in milliseconds that workloads waited for their first start, and the number
    /// of these workloads, by class.
    pub waits_ms: BTreeMap<&'static str, (u64, u64)>,
    /// Number of pods stopped before their end.
    pub stops: u64,
    /// Number of decisions.
    pub cycles: u64,
    /// Number of workloads that did not end.
    pub unfinished: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives(usize),
    /// The run with this number of a pod ends.
    Ends(PodId, u64),
    /// A stopped pod has terminated.
    Gone(PodId),
}

struct Playing<'l> {
    load: &'l Load,
    cluster: Cluster,
    queues: Vec<QueueId>,
    now_ms: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    jobs: BTreeMap<WorkloadId, usize>,
    /// Number of the present run of each pod; an end of an earlier run is ignored.
    runs: BTreeMap<PodId, u64>,
    /// Number of runs so far.
    starts: u64,
    started: Vec<bool>,
    /// Time at which each binding slot becomes free.
    binders: BinaryHeap<Reverse<u64>>,
    played: Played,
}

/// Plays a load to its end.
#[must_use]
pub fn play(load: &Load) -> Played {
    let mut p = Playing::new(load);
    let mut wake_ms = None;
    while let Some(&Reverse((next, _))) = p.events.peek() {
        let next = wake_ms.map_or(next, |wake_ms: u64| wake_ms.min(next));
        // Events between two decisions take effect at the second.
        p.now_ms = next.max(p.now_ms + 1).next_multiple_of(load.service.cycle_ms);
        while let Some(&Reverse((at, event))) = p.events.peek()
            && at <= p.now_ms
        {
            p.events.pop();
            p.happens(at, event);
        }
        wake_ms = p.decide();
    }
    Played { unfinished: p.jobs.len(), ..p.played }
}

impl<'l> Playing<'l> {
    fn new(load: &'l Load) -> Self {
        let mut cluster = Cluster::new();
        for node in &load.nodes {
            cluster.add_node(node.clone());
        }
        let mut queues = Vec::new();
        let mut add = |name: String, parent, share| {
            let seq = cluster.queues().len() as u64;
            let spec = QueueSpec { name, parent, share, seq };
            cluster.add_queue(spec).expect("loads add queues under queues only")
        };
        for department in 0..load.departments {
            let unlimited = Share::new(Resources::UNLIMITED, Resources::UNLIMITED);
            let above = add(format!("department-{department}"), None, unlimited);
            for project in 0..load.projects {
                let name = format!("project-{department}-{project}");
                queues.push(add(name, Some(above), load.share));
            }
        }
        let arrivals = load.jobs.iter().enumerate();
        let events = arrivals.map(|(at, job)| Reverse((job.arrives_ms, Event::Arrives(at))));
        Self {
            load,
            events: events.collect(),
            cluster,
            queues,
            now_ms: 0,
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            started: vec![false; load.jobs.len()],
            binders: vec![Reverse(0); load.service.binds_at_once].into(),
            starts: 0,
            played: Played::default(),
        }
    }

    fn happens(&mut self, at_ms: u64, event: Event) {
        match event {
            Event::Arrives(job) => self.submit(job),
            Event::Gone(pod) => self.cluster.vacate(pod),
            Event::Ends(pod, run) if self.runs.get(&pod) == Some(&run) => {
                let id = self.cluster.pods()[pod].workload;
                self.cluster.vacate(pod);
                self.cluster.set_wants(pod, false);
                self.runs.remove(&pod);
                self.played.makespan_ms = self.played.makespan_ms.max(at_ms);
                let pods = &self.cluster.workloads()[id].pods;
                if pods.iter().all(|&pod| !self.cluster.pods()[pod].wants) {
                    self.cluster.remove_workload(id).expect("all of it is gone");
                    self.jobs.remove(&id);
                }
            }
            Event::Ends(..) => {}
        }
    }

    fn submit(&mut self, at: usize) {
        let job = &self.load.jobs[at];
        let name = format!("job-{at}");
        let pods = u32::try_from(job.runs_ms.len()).unwrap_or(u32::MAX);
        let set = PodSetSpec { pods, pods_min: pods, ..job.request.into() };
        let spec = WorkloadSpec {
            priority: job.priority,
            preemption_delay_ms: self.load.patience_ms,
            time_limit_ms: self.load.time_limit_ms,
            created_at: Instant(job.arrives_ms),
            ..WorkloadSpec::new(name, self.queues[job.project], at as u64, set)
        };
        let id = self.cluster.add_workload(spec).expect("loads add workloads to leaves only");
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, true);
        }
        self.jobs.insert(id, at);
    }

    /// Makes a decision, and carries it out; returns the time of the next decision that the
    /// scheduler requests.
    fn decide(&mut self) -> Option<u64> {
        let plan = sched::cycle(&mut self.cluster, Instant(self.now_ms), &self.load.policy);
        self.played.cycles += 1;
        for step in plan.steps {
            match step {
                Step::Bind { pod, .. } => self.bind(pod),
                Step::Evict { pod, .. } | Step::Move { pod, .. } | Step::Resize { pod, .. } => {
                    self.played.stops += 1;
                    self.runs.remove(&pod);
                    let gone_ms = self.now_ms + self.load.service.stop_ms;
                    self.events.push(Reverse((gone_ms, Event::Gone(pod))));
                }
                Step::Reserve { .. } | Step::Unreserve { .. } => {}
            }
        }
        plan.wake_at.map(|at| at.0)
    }

    fn bind(&mut self, pod: PodId) {
        let service = self.load.service;
        let free_ms = self.binders.pop().map_or(0, |Reverse(at)| at);
        let bound_ms = free_ms.max(self.now_ms) + service.bind_ms;
        self.binders.push(Reverse(bound_ms));
        let row = &self.cluster.pods()[pod];
        let at = self.jobs[&row.workload];
        let job = &self.load.jobs[at];
        if !std::mem::replace(&mut self.started[at], true) {
            let waits = self.played.waits_ms.entry(job.class).or_default();
            *waits = (waits.0 + self.now_ms - job.arrives_ms, waits.1 + 1);
        }
        self.starts += 1;
        self.runs.insert(pod, self.starts);
        let ends_ms = bound_ms + service.start_ms + job.runs_ms[row.index as usize];
        self.events.push(Reverse((ends_ms, Event::Ends(pod, self.starts))));
    }
}
