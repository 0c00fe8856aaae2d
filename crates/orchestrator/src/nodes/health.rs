//! Faults of GPUs. Owns: that no new pod is placed on a GPU that is lost or used by foreign
//! processes, and that the pods of a lost one are moved; simulated failures. Does not know about:
//! how faults are detected (`watch`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use command::{NewId, NewObject, Subject};
use model::{NodeId, Placement, PodId};
use serde_json::json;
use spec::{NodeGpu, NodeSpec};

use crate::Error;
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::Pod;
use view::{GPU_LOST, GpuFault, GpuFaults, Object, Scope};

/// Kind of the objects of simulated GPU failures, named `<node>/<number>`.
const FAILURE: &str = "gpu-failure";

impl State {
    /// Takes over the faults of real GPUs.
    pub(crate) fn see_gpus(&mut self, seen: GpuFaults) {
        if self.gpus_seen != seen {
            self.gpus_seen = seen;
            self.settle_gpus();
        }
    }

    /// Takes GPUs out of service, and back, after a change of faults.
    pub(crate) fn settle_gpus(&mut self) {
        let ids: Vec<_> = self.nodes.iter().map(|node| node.id).collect();
        ids.into_iter().for_each(|id| self.settle_gpus_of(id));
    }

    /// Takes the GPUs of a node out of service, and back, after a change of faults.
    pub(crate) fn settle_gpus_of(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(id) else { return };
        let fresh = self.gpu_faults_of(&node.spec);
        let Some(node) = self.nodes.rows.get_mut(&id) else { return };
        let before = std::mem::replace(&mut node.gpu_faults, fresh.clone());
        if before != fresh {
            self.outbox.show_nodes();
        }
        let gpus: BTreeSet<u32> = before.keys().chain(fresh.keys()).copied().collect();
        for gpu in gpus {
            self.gpu_changed((id, gpu), before.get(&gpu), fresh.get(&gpu));
        }
    }

    /// Faults of the GPUs of a node, by index.
    pub(super) fn gpu_faults_of(&self, node: &NodeSpec) -> BTreeMap<u32, GpuFault> {
        let unusable = self.unusable_slots(&node.name);
        let fault = |(at, gpu): (u32, &NodeGpu)| {
            let made = node.simulated && self.failure(&node.name, at).is_some();
            let made = made.then(|| GpuFault::Lost("it was made to fail (simulated)".to_owned()));
            let seen = made.or_else(|| self.gpus_seen.get(gpu.looked_at()).cloned());
            let held = || self.runs.holders(&node.name, &gpu.uuid);
            let elsewhere = unusable.contains(&at).then_some(GpuFault::Elsewhere);
            let seen = seen.or(elsewhere);
            let worst = seen.clone().filter(GpuFault::is_loss).or_else(held).or(seen);
            Some((at, worst?))
        };
        (0..).zip(&node.gpus).filter_map(fault).collect()
    }

    fn gpu_changed(
        &mut self,
        gpu: (NodeId, u32),
        before: Option<&GpuFault>,
        now: Option<&GpuFault>,
    ) {
        let name = format!("GPU {} of {}", gpu.1, self.node_name(gpu.0));
        let code = |fault: Option<&GpuFault>| fault.map(GpuFault::code);
        // Foreign processes come and go; a GPU with such a process keeps its warning.
        if code(before) == code(now) {
            return;
        }
        let unplaced = self.cluster.set_in_service(gpu.0, gpu.1, now.is_none());
        for home in unplaced.into_iter().filter_map(|pod| self.home_of(pod)).collect::<Vec<_>>() {
            self.unreserved(home);
        }
        match (before, now) {
            (None, Some(GpuFault::Elsewhere)) | (Some(GpuFault::Elsewhere), None) => {}
            (_, Some(fault)) => {
                let event = EventBuilder::new(fault.code().name, format!("{name} is {fault}"));
                self.emit_of_cluster(event.warning().code(fault.code().code));
                if fault.is_held() {
                    self.leave_held(gpu);
                } else {
                    self.leave_lost(gpu, fault);
                }
            }
            (Some(fault), None) => {
                let event = EventBuilder::new("GpuBack", format!("{name} is in service again"));
                self.emit_of_cluster(event.code(fault.code().code));
            }
            (None, None) => {}
        }
    }

    /// Moves the pods of a GPU that is lost.
    fn leave_lost(&mut self, gpu: (NodeId, u32), fault: &GpuFault) {
        if !fault.is_loss() {
            return;
        }
        let why = format!("GPU {} of {}, which it used, is {fault}", gpu.1, self.node_name(gpu.0));
        let uses = |place: &Placement| place.node == gpu.0 && place.uses(gpu.1);
        let used =
            |pod: &PodId| self.cluster.pods()[*pod].binding.current.as_ref().is_some_and(uses);
        let pods = self.cluster.nodes()[gpu.0].pods.iter().copied().filter(used);
        self.move_off(pods.collect(), GPU_LOST, &why);
    }

    /// Moves pods off restored places on lost GPUs or with taints that they do not tolerate: the
    /// server may have started with other nodes than before.
    pub(crate) fn leave_unfit(&mut self) {
        let nodes = self.nodes.iter().map(|node| (node.id, node.gpu_faults.clone()));
        for (id, faults) in nodes.collect::<Vec<_>>() {
            faults.iter().for_each(|(gpu, fault)| self.leave_lost((id, *gpu), fault));
            self.evict_intolerant(id);
        }
    }
}

/// GPUs that are held by orphaned runs.
impl State {
    /// Removes pods that are placed on a held GPU and have not started.
    fn leave_held(&mut self, gpu: (NodeId, u32)) {
        let is_there = |pod: &PodId| {
            let place = &self.cluster.pods()[*pod].binding;
            let at = |at: &Placement| at.node == gpu.0 && at.uses(gpu.1);
            place.current.as_ref().is_some_and(at) && !place.releasing
        };
        let there = self.cluster.nodes()[gpu.0].pods.iter().copied().filter(is_there);
        let homes = there.filter_map(|pod| self.home_of(pod));
        let is_idle = |(id, number): &(uuid::Uuid, usize)| {
            self.workloads.pod(*id, *number).is_some_and(Pod::is_idle)
        };
        for (id, number) in homes.filter(is_idle).collect::<Vec<_>>() {
            self.leave_held_gpu(id, number);
        }
    }
}

/// Simulated failures for tests.
impl State {
    /// Makes a simulated GPU fail; a failed one stays failed.
    pub(crate) fn fail_gpu(&mut self, by: String, node: &str, gpu: u32) -> Result<Subject, Error> {
        let name = self.simulated_gpu(node, gpu)?;
        if self.failure(node, gpu).is_none() {
            let (owner, scope, body) = (String::new(), Scope::Cluster, json!({}));
            let (kind, id) = (FAILURE, NewId::Any);
            self.create_object(by, NewObject { kind, id, scope, owner, name, body, newest: None })?;
            self.settle_gpus();
        }
        Ok(Subject::Nothing)
    }

    /// Repairs a simulated GPU.
    pub(crate) fn heal_gpu(&mut self, by: &str, node: &str, gpu: u32) -> Result<Subject, Error> {
        // Also of a removed node, or one with fewer GPUs now.
        match self.failure(node, gpu).cloned() {
            Some(failure) => {
                self.delete_object(by, FAILURE, &failure.id)?;
                self.settle_gpus();
            }
            None => drop(self.simulated_gpu(node, gpu)?),
        }
        Ok(Subject::Nothing)
    }

    /// The name of a simulated GPU; an error for a real one.
    fn simulated_gpu(&self, node: &str, gpu: u32) -> Result<String, Error> {
        let spec = &self.nodes.named(node).ok_or_else(|| Error::no_node(node))?.spec;
        if spec.has_real_gpus() {
            let why =
                format!("the GPUs of {node} are real; only simulated ones can be made to fail");
            return Err(Error::conflict(why));
        }
        match spec.gpus.len() {
            0 => Err(Error::conflict(format!("{node} has no GPUs"))),
            count if gpu as usize >= count => {
                let why = format!("{node} has no GPU {gpu}; its {count} are counted from 0");
                Err(Error::invalid("gpu", why))
            }
            _ => Ok(gpu_name(node, gpu)),
        }
    }

    /// The object of a simulated failure.
    fn failure(&self, node: &str, gpu: u32) -> Option<&Arc<Object>> {
        self.documents.named(FAILURE, Scope::Cluster, &gpu_name(node, gpu))
    }
}

fn gpu_name(node: &str, gpu: u32) -> String {
    format!("{node}/{gpu}")
}
