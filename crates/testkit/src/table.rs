//! One state, some actions, the state after: for rules that are written as tables. Owns: reading
//! the state from a few lines and writing the outcome of every pod in one.

use std::collections::BTreeMap;

use model::{
    Cluster, DeviceShare, GpuRequest, NodeId, NodeSpec, Placement, PodBinding, QueueId, QueueSpec,
    Share, SliceValue, Usage, Weights, WorkloadId,
};
use sched::{Action, Plan, Policy};
use units::{GPU_MILLIS, Instant, Resources};

use crate::script;

/// Memory of every GPU: 10,000 MiB.
const GPU_MEMORY_BYTES: u64 = 10_000 << 20;
const CORES: u64 = 100;

/// A state, and the scheduler that acts on it.
#[derive(Debug, Clone)]
pub struct Table {
    /// The state.
    pub cluster: Cluster,
    /// Settings of the scheduler.
    pub policy: Policy,
    /// Now.
    pub now: Instant,
    /// Plan of the last cycle.
    pub plan: Plan,
    jobs: Vec<WorkloadId>,
}

impl Table {
    /// Nodes as `name:gpus[:cores[:pods]]`, GPUs as in [`crate::World::new`]; queues as
    /// `name:quota[:limit]` or `parent/name:…`, with `-` for unlimited and options after commas:
    /// `w2` weight, `p200` priority, `r9` `reclaim_min_runtime`, `t9` `preempt_min_runtime` in
    /// milliseconds, `c4` CPU quota, `C4` CPU limit, `u9` usage of GPUs in parts per million. Jobs
    /// one per line: `queue/name` and the flags of `submit`, then where its pods are: `@n1` runs,
    /// `!n1` is being stopped, `n1#0` on that GPU, `x` has ended, `+` has ended well, `.` waits;
    /// what is not listed waits. `^9` was started so many milliseconds ago.
    ///
    /// # Panics
    /// On anything it cannot read: it is a test's own text.
    #[must_use]
    pub fn new(nodes: &str, queues: &str, jobs: &str) -> Self {
        let mut table = Self {
            cluster: Cluster::new(),
            policy: crate::kai(),
            now: Instant(1_000_000),
            plan: Plan::default(),
            jobs: Vec::new(),
        };
        let mut names = BTreeMap::new();
        for node in nodes.split_whitespace() {
            let parts: Vec<_> = node.split(':').collect();
            let number = |at: usize, usual: u64| {
                parts.get(at).map_or(usual, |part| part.parse().expect("a number"))
            };
            let gpus = parts.get(1).map_or(Vec::new(), |gpus| script::divided(gpus));
            let mut mig: Vec<_> = gpus.into_iter().map(|gpu| gpu.mig).collect();
            let each = mig.iter_mut().flatten();
            each.for_each(|profile| *profile = profile.valued(SliceValue::Gpu));
            let memory = vec![GPU_MEMORY_BYTES; mig.len()];
            let cpu_millis = number(2, CORES) * 1000;
            let mut spec = NodeSpec::new(parts[0], memory, cpu_millis, 1 << 40);
            spec.mig = mig;
            spec.pods_max = u32::try_from(number(3, 1000)).expect("a small number");
            names.insert(parts[0].to_owned(), table.cluster.add_node(spec));
        }
        let mut known = BTreeMap::new();
        for (seq, text) in queues.split_whitespace().enumerate() {
            table.add_queue(&mut known, seq as u64, text);
        }
        for line in jobs.lines().map(str::trim).filter(|line| !line.is_empty()) {
            table.add_job(&names, &known, line);
        }
        table
    }

    fn add_queue(&mut self, known: &mut BTreeMap<String, QueueId>, seq: u64, text: &str) {
        let mut options = text.split(',');
        let parts: Vec<_> = options.next().expect("a queue").split(':').collect();
        let (parent, name) = match parts[0].split_once('/') {
            Some((parent, name)) => (Some(known[parent]), name),
            None => (None, parts[0]),
        };
        let gpus = |at: usize| match parts.get(at) {
            None | Some(&"-") => u64::MAX,
            Some(part) => units::parse_gpu_millis(part).expect("a GPU count"),
        };
        let amounts = |gpu_millis| Resources { gpu_millis, ..Resources::UNLIMITED };
        let mut share = Share::new(amounts(gpus(1)), amounts(gpus(2)));
        let mut usage = Usage::default();
        for option in options {
            let value: u64 = option[1..].parse().expect("a number");
            match &option[..1] {
                "w" => share.over_quota_weight = Weights::all(value),
                "p" => share.priority = u32::try_from(value).expect("a priority"),
                "r" => share.reclaim_min_runtime_ms = Some(value),
                "t" => share.preempt_min_runtime_ms = Some(value),
                "c" => share.quota.cpu_millis = value * 1000,
                "C" => share.limit.cpu_millis = value * 1000,
                "u" => usage.gpu_ppm = value,
                other => panic!("unknown option {other}"),
            }
        }
        let spec = QueueSpec { name: name.into(), parent, share, seq };
        let id = self.cluster.add_queue(spec).expect("a sound queue");
        self.cluster.set_usage(id, usage);
        known.insert(name.to_owned(), id);
    }

    fn add_job(
        &mut self,
        nodes: &BTreeMap<String, NodeId>,
        queues: &BTreeMap<String, QueueId>,
        line: &str,
    ) {
        let is_state =
            |word: &&str| word.starts_with(['@', '!', '^', '.']) || ["x", "+"].contains(word);
        let (states, words): (Vec<_>, Vec<_>) = line.split_whitespace().partition(is_state);
        let seq = self.jobs.len() as u64;
        let queue = queues[script::project(&words)];
        let (_, mut spec) = script::workload(&self.cluster, &words, queue, seq, self.now);
        for set in &mut spec.pod_sets {
            if let GpuRequest::Mig(instances) = &mut set.request.gpu {
                *instances = instances.valued(SliceValue::Gpu);
            }
        }
        let id = self.cluster.add_workload(spec).expect("a sound workload");
        self.jobs.push(id);
        let pods = self.cluster.workloads()[id].pods.clone();
        let mut next = pods.iter().copied();
        for &pod in &pods {
            self.cluster.set_wants(pod, true);
        }
        for state in states {
            if let Some(ago) = state.strip_prefix('^') {
                let start = Instant(self.now.0 - ago.parse::<u64>().expect("milliseconds"));
                self.cluster.set_starts(id, Some(start), None);
                continue;
            }
            let pod = next.next().expect("as many states as pods");
            match state {
                "." => {}
                "x" | "+" => {
                    self.cluster.set_wants(pod, false);
                    self.cluster.set_succeeded(pod, state == "+");
                }
                place => {
                    let (node, gpu) = match place[1..].split_once('#') {
                        Some((node, gpu)) => (node, Some(gpu.parse().expect("an index"))),
                        None => (&place[1..], None),
                    };
                    let current = Some(self.place(pod, nodes[node], gpu));
                    let releasing = place.starts_with('!');
                    // Pods that are being stopped at the start do not come back.
                    self.cluster.set_wants(pod, !releasing);
                    let binding = PodBinding { current, releasing, next: None };
                    self.cluster.set_binding(pod, binding);
                }
            }
        }
    }

    /// The first devices with room, or the named one and those after it.
    fn place(&self, pod: model::PodId, node: NodeId, gpu: Option<u32>) -> Placement {
        let row = &self.cluster.nodes()[node];
        let set = self.cluster.pods()[pod].set as usize;
        let request = self.cluster.workload_of(pod).spec.pod_sets[set].request.gpu;
        let share = |(at, device): (u32, &model::Gpu)| {
            let millis = request.needs_of(device)?;
            let free = device.capacity_millis().saturating_sub(device.used_millis) >= millis;
            (free && gpu.is_none_or(|first| at >= first)).then_some(DeviceShare { gpu: at, millis })
        };
        let wanted = request.devices() as usize;
        let devices: Vec<_> = (0..).zip(&row.gpus).filter_map(share).take(wanted).collect();
        assert_eq!(devices.len(), wanted, "room on node {}", row.name);
        Placement { node, devices: devices.into_iter().collect() }
    }

    /// One cycle of these actions, or of all of the policy's if none is named. Returns the state of
    /// every pod: `n1` runs, `n1!` is being stopped, `>n1` has a place there that is still being
    /// freed, `n1>n2` both, `.` waits, `x` has ended, `+` well; shares with the GPU: `n1#0`.
    ///
    /// # Panics
    /// When an invariant is broken or an action is unknown.
    pub fn run(&mut self, actions: &str) -> String {
        let usual = self.policy.actions.clone();
        if !actions.is_empty() {
            self.policy.actions = actions.split_whitespace().map(action).collect();
        }
        self.now = self.now.plus_ms(1);
        self.plan = sched::cycle(&mut self.cluster, self.now, &self.policy);
        self.policy.actions = usual;
        self.cluster.verify().expect("sound accounts");
        self.describe()
    }

    /// Removes the pods that are being stopped.
    pub fn gone(&mut self) {
        for pod in self.cluster.pods().ids().collect::<Vec<_>>() {
            if self.cluster.pods()[pod].binding.releasing {
                self.cluster.vacate(pod);
            }
        }
    }

    fn describe(&self) -> String {
        let jobs = self.jobs.iter().map(|&id| {
            let row = &self.cluster.workloads()[id];
            let pods = row.pods.iter().map(|&pod| self.pod(&self.cluster.pods()[pod]));
            format!("{} {}", row.spec.name, pods.collect::<Vec<_>>().join(" "))
        });
        jobs.collect::<Vec<_>>().join(" | ")
    }

    fn pod(&self, pod: &model::Pod) -> String {
        let place = |place: &Placement| {
            let node = &self.cluster.nodes()[place.node].name;
            let shares = place.devices.iter().filter(|share| share.millis < GPU_MILLIS);
            let shares: String = shares.map(|share| format!("#{}", share.gpu)).collect();
            format!("{node}{shares}")
        };
        match &pod.binding {
            PodBinding { current: Some(here), next: Some(next), .. } => {
                format!("{}>{}", place(here), place(next))
            }
            PodBinding { current: Some(here), releasing: true, .. } => format!("{}!", place(here)),
            PodBinding { current: Some(here), .. } => place(here),
            PodBinding { next: Some(next), .. } => format!(">{}", place(next)),
            _ if pod.wants => ".".into(),
            _ if pod.succeeded => "+".into(),
            _ => "x".into(),
        }
    }

    /// Fair shares in GPUs: `a 2 b 1.5`.
    #[must_use]
    pub fn shares(&self) -> String {
        let shares = sched::fair_shares(&self.cluster, &self.policy);
        let each = self.cluster.queues().iter().map(|(id, queue)| {
            format!("{} {}", queue.name, units::format_millis(shares[&id].gpu_millis))
        });
        each.collect::<Vec<_>>().join(" ")
    }
}

fn action(word: &str) -> Action {
    match word {
        "allocate" => Action::Allocate,
        "consolidate" => Action::Consolidate,
        "reclaim" => Action::Reclaim,
        "preempt" => Action::Preempt,
        "stale" => Action::Stale,
        other => panic!("unknown action {other}"),
    }
}
