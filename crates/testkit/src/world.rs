//! A cluster under a scheduler, with an engine that obeys at once unless a test makes it slow.

use std::collections::BTreeMap;

use model::{
    Cluster, Effect, NodeSpec, PodBinding, QueueId, QueueSpec, Share, Taint, UsageLedger, Weights,
    WorkloadId,
};
use reasons::diagnosis::{Change, Diagnosis};
use sched::{Plan, Policy, Step, Waits};
use units::{GPU_MILLIS, Instant, Resources};

use crate::{colocation, needless_evictions, script, true_causes};

const GIB: u64 = 1 << 30;

/// A cluster, its scheduler and what happened so far.
#[derive(Debug, Clone)]
pub struct World {
    /// The state.
    pub cluster: Cluster,
    /// Settings of the scheduler.
    pub policy: Policy,
    /// Now.
    pub now: Instant,
    /// Plan of the last cycle.
    pub plan: Plan,
    /// True if stopped pods stay until `gone`.
    pub slow: bool,
    usage: Option<UsageLedger>,
    /// Memory of earlier decisions.
    memory: sched::Memory,
    /// Reasons why workloads wait, from the plans one after the other.
    told: BTreeMap<WorkloadId, Waits>,
    /// True if each step is followed by one decision only, not by as many as it takes to rest.
    pub only_cycle: bool,
    queues: BTreeMap<String, QueueId>,
    names: BTreeMap<String, WorkloadId>,
    seq: u64,
    /// Codes and texts of everything stopped in the last step.
    stopped: Vec<String>,
}

impl World {
    /// Nodes as `name:gpus[:cores]` (16 GiB per GPU, by default 100 cores and 1 TiB; GPUs divided
    /// into MIG instances as `2+3g.40gb,1g.10gb*4`, two whole and one of five, or as `/4,2*2` into
    /// a half and two quarters, for workloads that request parts) and projects as
    /// `name:quota[:limit]`, all in one department without quota.
    ///
    /// # Panics
    /// On anything it cannot read: it is a test's own text.
    #[must_use]
    pub fn new(nodes: &str, projects: &str) -> Self {
        let mut world = Self {
            cluster: Cluster::new(),
            policy: Policy::default(),
            now: Instant(1_000_000),
            plan: Plan::default(),
            slow: false,
            usage: None,
            memory: sched::Memory::default(),
            told: BTreeMap::new(),
            only_cycle: false,
            queues: BTreeMap::new(),
            names: BTreeMap::new(),
            seq: 0,
            stopped: Vec::new(),
        };
        nodes.split_whitespace().for_each(|node| world.add_node(node));
        let unlimited = share(u64::MAX, u64::MAX);
        world.queue("department", None, unlimited);
        for project in projects.split_whitespace() {
            world.add_queue(&format!("department/{project}"));
        }
        world
    }

    fn add_queue(&mut self, text: &str) {
        let mut parts = text.split(':');
        let name = parts.next().expect("a name");
        let (parent, name) = name.split_once('/').map_or((None, name), |(p, n)| (Some(p), n));
        let parent = parent.map(|parent| self.queues[parent]);
        let mut millis =
            || parts.next().map_or(u64::MAX, |n| units::parse_gpu_millis(n).expect("a GPU count"));
        let quota = millis();
        let share = share(quota, millis());
        self.queue(name, parent, share);
    }

    fn add_node(&mut self, text: &str) {
        let mut parts = text.split(':');
        let name = parts.next().expect("a name");
        let gpus = script::divided(parts.next().expect("GPUs"));
        let cores: u64 = parts.next().map_or(100, |cores| cores.parse().expect("cores"));
        let spec = NodeSpec::new(name, vec![16 * GIB; gpus.len()], cores * 1000, 1024 * GIB);
        let (mig, parts) = gpus.into_iter().map(|gpu| (gpu.mig, gpu.parts)).unzip();
        self.cluster.add_node(NodeSpec { mig, parts, ..spec });
    }

    /// Adds a queue.
    ///
    /// # Panics
    /// The model refuses it.
    pub fn queue(&mut self, name: &str, parent: Option<QueueId>, share: Share) -> QueueId {
        self.seq += 1;
        let spec = QueueSpec { name: name.into(), parent, share, seq: self.seq };
        let id = self.cluster.add_queue(spec).expect("a sound queue");
        self.queues.insert(name.into(), id);
        id
    }

    /// Runs steps separated by `;` or line ends, scheduling to rest after each: `submit …`,
    /// `delete NAME…`, `suspend NAME…`, `resume NAME…`, `quota PROJECT[@POOL] N`,
    /// `limit PROJECT[@POOL] N`, `weight PROJECT[@POOL] N` (over quota),
    /// `queue [PARENT/]NAME:QUOTA[:LIMIT]`, `wait MS`, `slow`, `gone` (what was being stopped is
    /// gone now), `cordon NODE`, `uncordon NODE`, `ungate WORKLOAD [INDEX]`, `drain NODE`,
    /// `lose-node NODE`, `take-gpu NODE INDEX` (foreign processes use it), `lose-gpu NODE INDEX`
    /// (what runs there is stopped, too), `return-gpu NODE INDEX`, `add-node NAME:GPUS[:CORES]`,
    /// `checkpoint NAME…` (saved its progress just now), `restarts NAME N`,
    /// `label NODE LABEL=VALUE… !TAINT… ~SOFT-TAINT…`, `min-runtime PROJECT[@POOL] MS`,
    /// `topology NAME LABEL…` (coarse to fine; the first is called `net`), `lose WORKLOAD INDEX`
    /// (that pod ended and will not come back).
    ///
    /// # Panics
    /// On a step it cannot read, and when an invariant of the model is broken.
    pub fn run(&mut self, script: &str) {
        for step in script.split([';', '\n']).map(str::trim).filter(|step| !step.is_empty()) {
            let words: Vec<_> = step.split_whitespace().collect();
            self.stopped.clear();
            match words[0] {
                "submit" => self.submit(&words[1..]),
                "topology" => self.topology(&words[1..]),
                "delete" => words[1..].iter().for_each(|name| self.delete(name)),
                "suspend" => words[1..].iter().for_each(|name| self.wants(name, false)),
                "resume" => words[1..].iter().for_each(|name| self.wants(name, true)),
                "quota" => self.quota(words[1], words[2]),
                "limit" => self.limit(words[1], words[2]),
                "weight" => self.weight(words[1], words[2]),
                "queue" => self.add_queue(words[1]),
                "wait" => self.now = self.now.plus_ms(words[1].parse().expect("milliseconds")),
                "checkpoint" => words[1..].iter().for_each(|name| self.checkpoint(name)),
                "restarts" => self.restarts(words[1], words[2]),
                "cordon" => self.cordon(words[1], false),
                "uncordon" => self.cordon(words[1], true),
                "ungate" => self.ungate(words[1], words.get(2).copied()),
                "drain" => {
                    let node = self.node(words[1]);
                    self.cluster.drain(node);
                }
                "lose-node" => {
                    let node = self.node(words[1]);
                    self.cluster.remove_node(node);
                }
                "take-gpu" => self.gpu(words[1], words[2], false),
                "lose-gpu" => self.lose_gpu(words[1], words[2]),
                "return-gpu" => self.gpu(words[1], words[2], true),
                "add-node" => self.add_node(words[1]),
                "label" => self.label(words[1], &words[2..]),
                "min-runtime" => self.min_runtime(words[1], words[2]),
                "lose" => self.lose(words[1], words[2]),
                "succeed" => self.succeed(words[1], words[2]),
                "slow" => self.slow = true,
                "gone" => self.vacate_all(),
                other => panic!("unknown step {other}"),
            }
            self.schedule_until_stable();
        }
    }

    /// Schedules until nothing more happens.
    fn schedule_until_stable(&mut self) {
        for _ in 0..100 {
            self.now = self.now.plus_ms(1);
            self.cycle();
            if self.plan.steps.is_empty() || self.only_cycle {
                return;
            }
            if !self.slow {
                self.vacate_all();
            }
        }
        panic!("the scheduler does not come to rest: {:?}", self.plan.steps);
    }

    /// One decision, with every invariant checked.
    ///
    /// # Panics
    /// An invariant is broken.
    pub fn cycle(&mut self) {
        self.observe_usage();
        let before = self.cluster.clone();
        self.decide();
        self.observe_usage();
        if let Err(fault) = self.cluster.verify() {
            panic!("after a cycle: {fault}");
        }
        self.check_gangs(&before);
        let pools = self.cluster.verify_pools(&before);
        if let Err(fault) = self.cluster.verify_together(&before).and(pools) {
            panic!("after a cycle: {fault}");
        }
        let stops = |step: &Step| !matches!(step, Step::Bind { .. } | Step::Reserve { .. });
        colocation::check(&before, &self.cluster, self.plan.steps.iter().any(stops));
        if self.policy.profile == sched::Profile::Default {
            needless_evictions::check(&self.cluster, &self.plan);
            true_causes::check(&before, &self.cluster, &self.plan, self.now);
        }
        let mut again = before;
        let same = sched::cycle(&mut again, self.now, &self.policy);
        again.follow_lags(self.now, &same.shares);
        self.plan.stats.trials = same.stats.trials;
        assert_eq!(self.plan, same, "equal input, equal plan, whatever is known from before");
        self.cluster.same_as(&again).expect("equal plans leave the cluster alike");
        for step in &self.plan.steps {
            if let Step::Evict { pod, cause, .. }
            | Step::Move { pod, cause, .. }
            | Step::Resize { pod, cause, .. } = step
            {
                let name = &self.cluster.workload_of(*pod).spec.name;
                self.stopped.push(format!("{name} {} {cause}", cause.code().code));
            }
        }
        for id in self.cluster.waiting() {
            let reasons = self.plan.pending.get(&id).map_or(0, |reasons| reasons.len());
            assert!(reasons > 0, "every pending workload has a reason");
        }
    }

    /// Decides with what is known from earlier decisions.
    fn decide(&mut self) {
        let mut waiting = std::mem::take(&mut self.told);
        if self.seq % 2 == 1 {
            // A plan that is dropped has no effect on the next.
            let mut dropped = self.memory.propose(&mut self.cluster, self.now, &self.policy);
            dropped.drop_steps(&self.cluster);
            dropped.tell(&mut waiting);
        }
        self.plan = self.memory.cycle(&mut self.cluster, self.now, &self.policy);
        self.plan.tell(&mut waiting);
        waiting.retain(|_, waits| !waits.is_empty());
        self.told.clone_from(&waiting);
        waiting.values_mut().for_each(|waits| waits.class = None);
        self.plan = Plan { pending: waiting, ..std::mem::take(&mut self.plan) };
        (self.plan.renewed, self.plan.is_renumbered) = Default::default();
        self.plan.shares = self.memory.shares().clone();
        self.cluster.follow_lags(self.now, &self.plan.shares);
    }

    /// Keeps the ledger of usage as soon as the policy wants one.
    fn observe_usage(&mut self) {
        let Some(window) = self.policy.usage else { return };
        let ledger = self.usage.get_or_insert_with(|| UsageLedger::new(window));
        ledger.observe(&mut self.cluster, self.now);
    }

    /// A gang of which nothing ran starts with at least its minimum.
    fn check_gangs(&self, before: &Cluster) {
        let running = |cluster: &Cluster, id: WorkloadId| {
            let pods = cluster.workloads()[id].pods.iter();
            pods.filter(|pod| cluster.pods()[**pod].runs()).count()
        };
        for (id, workload) in self.cluster.workloads().iter() {
            let started = running(before, id) == 0 && running(&self.cluster, id) > 0;
            // A gang that lost pods for good has a grace period, and may be moved in it.
            let lost = workload.pods.iter().any(|&pod| !self.cluster.pods()[pod].wants);
            let whole = lost || self.cluster.runs(id);
            assert!(!started || whole, "gang {} started in part", workload.spec.name);
        }
    }

    fn vacate_all(&mut self) {
        for pod in self.cluster.pods().ids().collect::<Vec<_>>() {
            if self.cluster.pods()[pod].binding.releasing {
                self.cluster.vacate(pod);
            }
        }
    }

    fn submit(&mut self, words: &[&str]) {
        self.seq += 1;
        let project = script::project(words);
        let queue = self.queues[project];
        let (submit, spec) = script::workload(&self.cluster, words, queue, self.seq, self.now);
        let id = self.cluster.add_workload(spec).expect("a sound workload");
        self.names.insert(submit.name.clone(), id);
        if submit.gated {
            for pod in self.cluster.workloads()[id].pods.clone() {
                self.cluster.set_gated(pod, true);
            }
        }
        self.wants(&submit.name, true);
    }

    fn topology(&mut self, words: &[&str]) {
        let levels = words[1..].iter().map(|&level| level.to_owned()).collect();
        self.cluster.add_topology(words[0], levels).expect("a sound topology");
    }

    fn wants(&mut self, name: &str, wants: bool) {
        for pod in self.cluster.workloads()[self.names[name]].pods.clone() {
            self.cluster.set_wants(pod, wants);
            if !wants {
                self.cluster.release(pod);
            }
        }
    }

    fn ungate(&mut self, name: &str, index: Option<&str>) {
        let pods = self.cluster.workloads()[self.names[name]].pods.clone();
        let only = index.map(|index| index.parse::<usize>().expect("a number"));
        for (_, pod) in (0..).zip(pods).filter(|(at, _)| only.is_none_or(|only| only == *at)) {
            self.cluster.set_gated(pod, false);
        }
    }

    fn node(&self, name: &str) -> model::NodeId {
        let mut nodes = self.cluster.nodes().iter();
        nodes.find(|(_, node)| node.name == name).expect("a node of this name").0
    }

    fn gpu(&mut self, node: &str, gpu: &str, in_service: bool) {
        let node = self.node(node);
        self.cluster.set_in_service(node, gpu.parse().expect("a number"), in_service);
    }

    fn lose_gpu(&mut self, name: &str, gpu: &str) {
        self.gpu(name, gpu, false);
        let (node, gpu) = (self.node(name), gpu.parse().expect("a number"));
        for pod in self.cluster.nodes()[node].pods.clone() {
            let place = self.cluster.pods()[pod].binding.current.as_ref();
            if place.is_some_and(|place| place.node == node && place.uses(gpu)) {
                self.cluster.release(pod);
            }
        }
        if !self.slow {
            self.vacate_all();
        }
    }

    fn min_runtime(&mut self, project: &str, ms: &str) {
        let id = self.queue_named(project);
        let ms = ms.parse().expect("milliseconds");
        let share = self.cluster.queues()[id].share;
        let share =
            Share { preempt_min_runtime_ms: Some(ms), reclaim_min_runtime_ms: Some(ms), ..share };
        self.cluster.set_share(id, share).expect("a living queue");
    }

    fn checkpoint(&mut self, name: &str) {
        self.cluster.set_checkpointed(self.names[name], Some(self.now));
    }

    fn restarts(&mut self, name: &str, count: &str) {
        self.cluster.set_restarts(self.names[name], count.parse().expect("a number"));
    }

    fn lose(&mut self, name: &str, index: &str) {
        let index: usize = index.parse().expect("a number");
        let pod = self.cluster.workloads()[self.names[name]].pods[index];
        self.cluster.set_wants(pod, false);
        self.cluster.vacate(pod);
    }

    fn succeed(&mut self, name: &str, index: &str) {
        self.lose(name, index);
        let index: usize = index.parse().expect("a number");
        let pod = self.cluster.workloads()[self.names[name]].pods[index];
        self.cluster.set_succeeded(pod, true);
    }

    fn cordon(&mut self, name: &str, schedulable: bool) {
        let node = self.node(name);
        self.cluster.set_schedulable(node, schedulable);
    }

    fn label(&mut self, name: &str, words: &[&str]) {
        let taint = |word: &str| {
            let effect = match word.chars().next()? {
                '!' => Effect::NoSchedule,
                '~' => Effect::PreferNoSchedule,
                _ => return None,
            };
            let (key, value) = script::pair(&word[1..]);
            Some(Taint { key, value, effect })
        };
        let taints = words.iter().filter_map(|word| taint(word)).collect();
        let labels = words.iter().filter(|word| taint(word).is_none());
        let labels = labels.map(|word| script::pair(word)).collect();
        let node = self.node(name);
        self.cluster.set_labels(node, labels, taints);
    }

    fn delete(&mut self, name: &str) {
        self.wants(name, false);
        let id = self.names.remove(name).expect("a submitted workload");
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_binding(pod, PodBinding::default());
        }
        self.cluster.remove_workload(id).expect("nothing of it is left");
    }

    fn quota(&mut self, project: &str, gpus: &str) {
        let millis = units::parse_gpu_millis(gpus).expect("a GPU count");
        let id = self.queue_named(project);
        let limit = self.cluster.queues()[id].share.limit.gpu_millis;
        self.cluster.set_share(id, share(millis, limit)).expect("a living queue");
    }

    fn limit(&mut self, project: &str, gpus: &str) {
        let gpu_millis = units::parse_gpu_millis(gpus).expect("a GPU count");
        let id = self.queue_named(project);
        let before = self.cluster.queues()[id].share;
        let limit = Resources { gpu_millis, ..before.limit };
        self.cluster.set_share(id, Share { limit, ..before }).expect("a living queue");
    }

    fn weight(&mut self, project: &str, weight: &str) {
        let over_quota_weight = Weights::all(weight.parse().expect("a weight"));
        let id = self.queue_named(project);
        let share = Share { over_quota_weight, ..self.cluster.queues()[id].share };
        self.cluster.set_share(id, share).expect("a living queue");
    }

    /// `PROJECT` or `PROJECT@POOL`, which gives every pool queues of its own.
    fn queue_named(&mut self, name: &str) -> QueueId {
        let Some((project, pool)) = name.split_once('@') else { return self.queues[name] };
        self.cluster.divide_by_pool();
        let pool = self.cluster.add_pool(pool);
        self.cluster.queue_in(self.queues[project], pool)
    }

    /// Contents of each GPU: `n1[a2 a2] n2[a1 .]`; shares as `frac05:0.5`.
    #[must_use]
    pub fn gpus(&self) -> String {
        let nodes = self.cluster.nodes().iter().map(|(id, node)| {
            let devices = (0..node.gpus.len()).map(|gpu| {
                let users = node.pods.iter().filter_map(|&pod| self.user(pod, id, gpu));
                let users: Vec<_> = users.collect();
                if users.is_empty() { ".".into() } else { users.join("+") }
            });
            format!("{}[{}]", node.name, devices.collect::<Vec<_>>().join(" "))
        });
        nodes.collect::<Vec<_>>().join(" ")
    }

    fn user(&self, pod: model::PodId, node: model::NodeId, gpu: usize) -> Option<String> {
        let binding = &self.cluster.pods()[pod].binding;
        let place = binding.current.as_ref().filter(|place| place.node == node)?;
        let share = place.devices.iter().find(|share| share.gpu as usize == gpu)?;
        let name = &self.cluster.workload_of(pod).spec.name;
        let leaving = if binding.releasing { "!" } else { "" };
        let device = &self.cluster.nodes()[node].gpus[gpu];
        let part = if share.millis == GPU_MILLIS || device.profile().is_some() {
            String::new()
        } else {
            format!(":{}", units::format_millis(share.millis))
        };
        Some(format!("{name}{leaving}{part}"))
    }

    /// Names of the workloads that wait, in order of creation.
    #[must_use]
    pub fn waiting(&self) -> String {
        let mut waiting: Vec<_> = self.cluster.waiting().collect();
        waiting.sort_by_key(|&id| self.cluster.workloads()[id].spec.seq);
        let names = waiting.iter().map(|&id| self.cluster.workloads()[id].spec.name.as_str());
        names.collect::<Vec<_>>().join(" ")
    }

    /// Reasons why a workload waits: codes and texts, one per line.
    #[must_use]
    pub fn why(&self, name: &str) -> String {
        let reasons = self.plan.pending.get(&self.names[name]);
        let reasons = reasons.into_iter().flat_map(|reasons| reasons.iter());
        reasons.map(|r| format!("{} {}\n", r.code().code, r.as_of(self.now))).collect()
    }

    /// The id of a workload.
    ///
    /// # Panics
    /// No workload has this name.
    #[must_use]
    pub fn id(&self, name: &str) -> WorkloadId {
        self.names[name]
    }

    /// The long answer to why a workload waits: nothing if it does not.
    #[must_use]
    pub fn diagnosis(&self, name: &str) -> Option<Diagnosis> {
        sched::diagnose(&self.cluster, self.id(name), self.now, &self.policy)
    }

    /// The diagnosis of a workload in words, one line each.
    #[must_use]
    pub fn diagnosed(&self, name: &str) -> String {
        let lines = self.diagnosis(name).map(|diagnosis| diagnosis.lines(self.now));
        lines.into_iter().flatten().map(|line| format!("{line}\n")).collect()
    }

    /// Changes that would let a workload start, one per line.
    #[must_use]
    pub fn advice(&self, name: &str) -> String {
        let advice = self.diagnosis(name).map(|diagnosis| diagnosis.advice);
        let advice = advice.into_iter().flatten();
        advice.map(|advice| format!("{}\n", advice.text(self.now))).collect()
    }

    /// Makes a change that was suggested for a workload, and schedules to rest.
    ///
    /// # Panics
    /// The change cannot be made.
    pub fn follow(&mut self, name: &str, change: &Change) {
        let id = self.id(name);
        let changed = reasons::diagnosis::apply_change(change, &mut self.cluster, id, self.now);
        let (id, now) = changed.expect("a possible change");
        self.names.insert(name.into(), id);
        self.now = now;
        self.schedule_until_stable();
    }

    /// True if a workload has a place, or one that is being freed for it.
    #[must_use]
    pub fn has_place(&self, name: &str) -> bool {
        self.cluster.workloads()[self.id(name)].placed > 0
    }

    /// Workloads that the last step of the script stopped, and the causes, one per line.
    #[must_use]
    pub fn stopped(&self) -> String {
        self.stopped.iter().map(|line| format!("{line}\n")).collect()
    }

    /// GPUs of a workload: allocated (requested).
    #[must_use]
    pub fn size(&self, name: &str) -> String {
        let workload = &self.cluster.workloads()[self.names[name]];
        let places =
            workload.pods.iter().filter_map(|&pod| self.cluster.pods()[pod].binding.effective());
        let held: u64 = places.map(model::Placement::gpu_millis).sum();
        let asked = workload.demand().gpu_millis;
        format!("{} ({})", units::format_millis(held), units::format_millis(asked))
    }
}

fn share(quota_millis: u64, limit_millis: u64) -> Share {
    let gpus = |gpu_millis| Resources { gpu_millis, ..Resources::UNLIMITED };
    Share {
        over_quota_weight: Weights::all(2),
        ..Share::new(gpus(quota_millis), gpus(limit_millis))
    }
}
