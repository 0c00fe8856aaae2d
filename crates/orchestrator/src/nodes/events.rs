//! Nodes added, changed and removed. Owns: the resulting changes of the records and the model. The
//! cost of an event depends on the pods of its node only.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::NodeId;
use spec::{NodeGiven, NodeGpu, NodeSpec, Scheduling};
use units::Instant;

use super::Node;
use crate::Error;
use crate::effect::Note;
use crate::emit::EventBuilder;
use crate::input::NodeEvent;
use crate::state::State;
use view::codes::NODE_GONE;

impl State {
    /// Takes over an observation of nodes.
    pub(crate) fn node_event(&mut self, event: NodeEvent) {
        let memories = self.cluster.gpu_memories();
        self.take_node_event(event);
        if self.cluster.gpu_memories() != memories {
            self.value_requests_again();
        }
    }

    fn take_node_event(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Applied(spec) => self.node_reported(spec),
            NodeEvent::Deleted(name) => {
                self.adopted.remove_node(&name);
                self.node_gone(&name);
            }
            NodeEvent::Listed(all) => {
                let names: BTreeSet<&str> = all.iter().map(|spec| spec.name.as_str()).collect();
                let gone = self.nodes.by_name.keys().filter(|name| !names.contains(name.as_str()));
                for name in gone.cloned().collect::<Vec<_>>() {
                    self.node_gone(&name);
                }
                all.into_iter().for_each(|spec| self.node_reported(spec));
            }
        }
    }

    /// Takes over a node, without the amounts that uncharged pods hold if a feed reports these.
    fn node_reported(&mut self, spec: NodeSpec) {
        if !self.adopted.is_open() {
            return self.node_seen(spec);
        }
        let name = spec.name.clone();
        self.adopted.take_node(spec);
        self.adopted.net(&name).into_iter().for_each(|spec| self.node_seen(spec));
        let id = self.nodes.named(&name).map(|node| node.id);
        id.into_iter().for_each(|id| self.settle_gpus_of(id));
    }

    /// Adds a node, or updates the one of this name.
    pub(crate) fn node_seen(&mut self, spec: NodeSpec) {
        if let Some(&id) = self.nodes.by_name.get(&spec.name) {
            return self.node_changed(id, spec);
        }
        let (name, made) = (spec.name.clone(), made_of(&spec));
        match self.add_node(spec, self.now) {
            Ok(()) => {
                self.emit_of_cluster(EventBuilder::new("NodeAdded", format!("{name} has {made}")));
            }
            Err(error) => {
                self.outbox.note(Note::Error(format!("node {name} is left out: {error}")));
            }
        }
    }

    /// Adds a node with its earlier settings, without an event, for the start of the server.
    pub(crate) fn add_node(&mut self, spec: NodeSpec, created_at: Instant) -> Result<(), Error> {
        let given = self.given_to(&spec.name)?;
        let (labels, pool) = self.pools.labels_in_model(&spec.labels_with(&given.labels));
        let id = self.cluster.add_node(model::NodeSpec { labels, ..spec.in_model() });
        let (gpu_faults, name) = (self.gpu_faults_of(&spec), spec.name.clone());
        for gpu in gpu_faults.keys() {
            self.cluster.set_in_service(id, *gpu, false);
        }
        let spec = Arc::new(spec);
        self.nodes.by_name.insert(name, id);
        let node = Node { spec, id, created_at, given, pool, gpu_faults, shown: None };
        self.nodes.rows.insert(id, node);
        self.settle_node(id);
        self.outbox.show_nodes();
        Ok(())
    }

    fn node_changed(&mut self, id: NodeId, spec: NodeSpec) {
        let Some(node) = self.nodes.rows.get_mut(&id) else { return };
        if *node.spec == spec {
            return;
        }
        let before = node.spec.clone();
        let (was, is) = (made_of(&before), made_of(&spec));
        let replaced = replaced_gpus(&before, &spec);
        // Counted GPUs of a feed have no device of their own.
        if !replaced.is_empty() && !self.adopted.is_open() {
            let why = format!("a GPU of {} that it used is no longer there", spec.name);
            self.lose_places(id, |place| replaced.iter().any(|gpu| place.uses(*gpu)), &why);
        }
        let spec = Arc::new(spec);
        self.nodes.rows.get_mut(&id).into_iter().for_each(|node| node.spec = spec.clone());
        let hardware = |spec: &NodeSpec| (spec.cpu_millis, spec.memory_bytes);
        if hardware(&before) != hardware(&spec) || before.gpus != spec.gpus {
            // Faults of a replaced GPU do not apply to the new one.
            for gpu in &replaced {
                self.cluster.set_in_service(id, *gpu, true);
                self.nodes.rows.get_mut(&id).and_then(|node| node.gpu_faults.remove(gpu));
            }
            let memories: Vec<_> = spec.gpus.iter().map(|gpu| gpu.memory_bytes).collect();
            self.cluster.set_hardware(id, memories, spec.cpu_millis, spec.memory_bytes);
        }
        if was != is && !self.adopted.is_open() {
            let name = &spec.name;
            self.emit_of_cluster(EventBuilder::new(
                "NodeChanged",
                format!("{name} has {is}, and had {was}"),
            ));
        }
        self.settle_node(id);
        self.settle_gpus_of(id);
        self.outbox.show_nodes();
    }

    /// Removes a node with all its pods.
    pub(super) fn node_gone(&mut self, name: &str) {
        let Some(id) = self.nodes.by_name.get(name).copied() else { return };
        let event = EventBuilder::new(NODE_GONE.name, format!("{name} is gone"));
        self.emit_of_cluster(event.warning().code(NODE_GONE.code));
        let why = format!("its node {name} is gone; it waits for another place");
        self.lose_places(id, |_| true, &why);
        self.cluster.remove_node(id);
        self.nodes.rows.remove(&id);
        self.nodes.by_name.remove(name);
        self.outbox.show_nodes();
    }

    /// Updates the labels, pool, taints and scheduling mode of a node from its specification and
    /// its settings.
    pub(crate) fn settle_node(&mut self, id: NodeId) {
        let Some(node) = self.nodes.rows.get(&id) else { return };
        let (labels, pool) = self.pools.labels_in_model(&node.labels());
        let (taints, scheduling) = (node.taints(), node.given.scheduling);
        let row = &self.cluster.nodes()[id];
        if row.labels != labels || row.taints != taints {
            self.cluster.set_labels(id, labels, taints);
            self.evict_intolerant(id);
        }
        self.settle_scheduling(id, scheduling);
        let Some(node) = self.nodes.rows.get_mut(&id) else { return };
        if std::mem::replace(&mut node.pool, pool.clone()) != pool {
            // Workloads show the pool they are in, and whether they are above the quota there.
            let here = self.cluster.nodes()[id].pods.iter();
            let here: Vec<_> = here.filter_map(|&pod| self.home_of(pod)).collect();
            for (workload, _) in here {
                self.outbox.show([workload]);
                self.outbox.recount(self.workloads.get(&workload).map(|w| w.project_id));
            }
        }
        self.outbox.show_nodes();
    }

    fn settle_scheduling(&mut self, id: NodeId, scheduling: Scheduling) {
        let is_draining = self.cluster.draining().contains(&id);
        match scheduling {
            Scheduling::Draining if is_draining => {}
            Scheduling::Draining => self.cluster.drain(id),
            Scheduling::Enabled | Scheduling::Disabled => {
                if is_draining {
                    self.cluster.set_schedulable(id, true);
                }
                let opens = scheduling.is_enabled();
                if self.cluster.nodes()[id].schedulable != opens {
                    self.cluster.set_schedulable(id, opens);
                }
            }
        }
    }

    /// Settings of a node that administrators made while the server ran.
    fn given_to(&self, name: &str) -> Result<NodeGiven, Error> {
        let Some(given) = self.given_object(name) else { return Ok(NodeGiven::default()) };
        serde_json::from_value(given.body.clone()).map_err(super::given::unreadable)
    }
}

/// Indices of the GPUs that no longer exist.
fn replaced_gpus(before: &NodeSpec, now: &NodeSpec) -> BTreeSet<u32> {
    let is_there = |at: u32, was: &NodeGpu| {
        let is = now.gpus.get(at as usize);
        is.is_some_and(|is| (&is.uuid, is.memory_bytes) == (&was.uuid, was.memory_bytes))
    };
    let all = (0..).zip(&before.gpus);
    all.filter(|(at, gpu)| !is_there(*at, gpu)).map(|(at, _)| at).collect()
}

/// Hardware of a node in words: `4 GPUs of 16GiB, 64 cores and 256GiB of memory`.
fn made_of(spec: &NodeSpec) -> String {
    let NodeSpec { gpus, cpu_millis, memory_bytes, .. } = spec;
    let gpus = match gpus.as_slice() {
        [] => "no GPU".to_owned(),
        [one] => format!("1 GPU of {}", units::format_bytes(one.memory_bytes)),
        [first, ..] => {
            format!("{} GPUs of {}", gpus.len(), units::format_bytes(first.memory_bytes))
        }
    };
    let (cores, memory) = (units::format_millis(*cpu_millis), units::format_bytes(*memory_bytes));
    format!("{gpus}, {cores} cores and {memory} of memory")
}
