//! Rows of workloads, and their restoration after a restart in the places that still exist. Owns:
//! the handling of a workload whose place no longer exists.

use std::collections::{BTreeMap, BTreeSet};

use model::{DeviceShare, Placement, PodBinding, PodId};
use pod_life::Input;
use records::{Change, Desired, PlacementBody, PodRow};
use spec::WorkloadPast;
use uuid::Uuid;

use crate::Error;
use crate::state::State;
use crate::workloads::Workloads;
use crate::workloads::record;
use crate::workloads::restart_policy::BACK_OFF_MS_MAX;

/// Pods by their workloads.
pub(crate) fn by_workload(rows: Vec<PodRow>) -> BTreeMap<Uuid, Vec<PodRow>> {
    let mut pods: BTreeMap<Uuid, Vec<PodRow>> = BTreeMap::new();
    for row in rows {
        pods.entry(row.workload_id).or_default().push(row);
    }
    pods
}

impl Workloads {
    /// Makes all pods of these workloads be written with them next: the dates of their rows
    /// changed.
    pub(crate) fn write_again(&mut self, ids: &[Uuid]) {
        for id in ids {
            let pods = self.all.get_mut(id).into_iter().flat_map(|one| one.pods.iter_mut());
            pods.for_each(|pod| pod.written = None);
        }
    }
}

impl State {
    /// Changes of workloads as rows. A pod or a history that is equal to the written one is not
    /// written again: a workload may have many pods.
    pub(crate) fn changed_rows(&mut self, ids: &BTreeSet<Uuid>) -> Vec<Change> {
        let mut changes = Vec::new();
        for id in ids {
            let Some(workload) = self.workloads.get(id) else { continue };
            changes.push(Change::WorkloadState(*id, record::workload_state(workload, None)));
            let row = |pod| {
                let place = self.binding(pod);
                record::pod_row(workload, pod, &place, |place| self.place_body(place))
            };
            let rows: Vec<_> = workload.pods.iter().map(row).collect();
            // A workload that has left the model has no history to restore, and none is kept: its
            // moments would not be shifted when the clock is set.
            let past = workload.model.map(|id| WorkloadPast::of(&self.cluster.workloads()[id]));
            let past = past.unwrap_or_default();
            let Some(workload) = self.workloads.get_mut(id) else { continue };
            if past != workload.past.as_deref().copied().unwrap_or_default() {
                workload.past = Some(Box::new(past));
                changes.push(Change::WorkloadPast(*id, past));
            }
            for (pod, row) in workload.pods.iter_mut().zip(rows) {
                if pod.written.as_deref() != Some(&row) {
                    pod.written = Some(Box::new(row.clone()));
                    changes.push(Change::Pod(row));
                }
            }
        }
        changes
    }

    /// Restores workloads with their pods; returns the row of each pod, with its number in its
    /// workload.
    pub(crate) fn restore_workloads(
        &mut self,
        workloads: Vec<records::WorkloadRow>,
        pods: Vec<PodRow>,
    ) -> Result<Vec<(Uuid, usize, PodRow)>, Error> {
        let mut pods = by_workload(pods);
        let mut placed = Vec::new();
        for row in workloads {
            let (id, mut workload) = (row.id, record::workload_from_row(row)?);
            // The clock may have been set back since: no delay may exceed the maximum.
            let latest = self.now.plus_ms(BACK_OFF_MS_MAX);
            workload.not_before = workload.not_before.map(|at| at.min(latest));
            let rows = pods.remove(&id).unwrap_or_default();
            for row in &rows {
                let mut pod = record::pod_from_row(row)?;
                pod.set_life(pod.life().clone().restarting_by(latest));
                workload.pods.insert(pod);
            }
            self.add(workload, rows.iter().any(|row| row.body.current.is_some()))?;
            self.limits.note_expiry(&self.workloads[&id]);
            placed.extend(rows.into_iter().map(|row| (id, row.index as usize, row)));
        }
        Ok(placed)
    }

    /// Restores first all current places, then all reservations: a reservation must not displace a
    /// running pod.
    pub(crate) fn restore_places(&mut self, placed: &[(Uuid, usize, PodRow)]) {
        for (id, number, row) in placed {
            self.restore_current(*id, *number, row);
            if self.workloads.get(id).is_some_and(|w| w.pods[*number].life().is_assembling()) {
                self.runs.assembling.insert(*id);
            }
        }
        let held: BTreeSet<Uuid> = placed.iter().map(|(id, ..)| *id).collect();
        for id in held {
            if self.workloads.get(&id).is_some_and(|workload| self.holds_any(workload)) {
                self.note_at_rest(id, model::Activity::Pauses);
            }
        }
        for (id, number, row) in placed {
            self.restore_next(*id, *number, row);
        }
        // A pod that was allowed to end may have lost its place instead.
        for (id, ..) in placed {
            self.leave_if_over(*id);
        }
    }

    pub(crate) fn restore_pasts(&mut self, pasts: BTreeMap<Uuid, WorkloadPast>) {
        for (id, past) in pasts {
            let Some(workload) = self.workloads.get_mut(&id) else { continue };
            workload.past = Some(Box::new(past));
            if let Some(model) = workload.model {
                self.cluster.change_workload(model, move |cluster| past.restore(cluster, model));
                self.bound_grace(model);
            }
        }
    }

    fn restore_current(&mut self, id: Uuid, number: usize, row: &PodRow) {
        let Some(body) = &row.body.current else { return };
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(model_pod) = workload.pods[number].model else { return };
        match self.place(body, model_pod, true) {
            Some(place) => {
                let releasing = row.body.releasing;
                let binding = PodBinding { current: Some(place), releasing, next: None };
                self.cluster.set_binding(model_pod, binding);
            }
            None => self.place_is_gone(id, number, &body.node),
        }
    }

    fn restore_next(&mut self, id: Uuid, number: usize, row: &PodRow) {
        let Some(body) = &row.body.next else { return };
        let found = self.workloads.get(&id).filter(|w| w.desired == Desired::Run);
        let Some(pod) = found.and_then(|w| w.pods[number].model) else { return };
        // A reservation that no longer fits is dropped: the scheduler finds another place for the
        // pod.
        if let Some(place) = self.place(body, pod, false) {
            let mut binding = self.cluster.pods()[pod].binding.clone();
            if binding.current.is_none() || binding.releasing {
                binding.next = Some(place);
                self.cluster.set_binding(pod, binding);
            }
        }
    }

    /// The stored form of a place: the model refers to nodes by id, a row by name.
    pub(super) fn place_body(&self, place: &Placement) -> PlacementBody {
        let gpus = self.nodes.get(place.node).map(|node| &*node.spec.gpus).unwrap_or_default();
        let instance = |share: &DeviceShare| {
            let gpu = gpus.get(share.gpu as usize)?;
            gpu.instance.as_ref().map(|_| gpu.uuid.clone())
        };
        PlacementBody {
            node: self.node_name(place.node),
            devices: place.devices.iter().map(|share| (share.gpu, share.millis)).collect(),
            instances: place.devices.iter().filter_map(instance).collect(),
        }
    }

    /// The stored place, if it still exists and its devices are free. A running pod (`now`) stays
    /// when the machine has less CPU or memory than before; a reservation must fit.
    fn place(&self, body: &PlacementBody, pod: PodId, now: bool) -> Option<Placement> {
        let named = self.nodes.named(&body.node)?;
        let (id, gpus) = (named.id, &named.spec.gpus);
        let node = &self.cluster.nodes()[id];
        let mut devices = body.devices.clone();
        for (at, uuid) in body.instances.iter().enumerate() {
            let gpu = gpus.iter().position(|gpu| gpu.uuid == *uuid)?;
            devices.get_mut(at)?.0 = u32::try_from(gpu).ok()?;
        }
        let is_named = |&(gpu, _): &(u32, u64)| {
            let instance = gpus.get(gpu as usize).and_then(|gpu| gpu.instance.as_ref());
            instance.is_none() || !body.instances.is_empty()
        };
        if !devices.iter().all(is_named) {
            return None;
        }
        let devices = devices.into_iter().map(|(gpu, millis)| DeviceShare { gpu, millis });
        let place = Placement { node: id, devices: devices.collect() };
        let free = |share: &DeviceShare| {
            node.gpus.get(share.gpu as usize).is_some_and(|gpu| {
                let taken = if now { gpu.used_millis } else { gpu.committed_millis };
                let taken = gpu.taken_by(taken);
                (now || gpu.in_service) && taken + share.millis <= gpu.capacity_millis()
            })
        };
        let amounts = self.cluster.amounts(pod, &place);
        let fits = now || (node.committed + amounts).fits_in(node.capacity);
        (fits && place.devices.iter().all(free)).then_some(place)
    }

    fn place_is_gone(&mut self, id: Uuid, number: usize, node: &str) {
        self.happens((id, number), &Input::LosesPlace);
        self.touch(id);
        if self.workloads.get(&id).is_some_and(|w| w.desired == Desired::Run) {
            let message = format!(
                "its place on {node} is gone: the node, or as many GPUs, are no longer there; \
                 it waits for another"
            );
            self.say_place_gone(id, number, &message);
        }
    }
}
