//! The state after a restart: what is stored, on the nodes there are now. Owns: rebuilding the
//! model with the places that were given out, and what becomes of a place that is gone.

use std::collections::{BTreeMap, BTreeSet};

use model::{DeviceShare, Occupancy, Placement, PodId, UsageWindow};
use records::{Change, Desired, PlacementBody, PodRow, Snapshot};
use spec::LimitsKept;
use units::GPU_MILLIS;
use uuid::Uuid;

use crate::effect::Outbox;
use crate::ending::BACK_OFF_MS_MAX;
use crate::idle::IdleSince;
use crate::input::Ids;
use crate::limits::Planned;
use crate::moment::{Moment, Settled};
use crate::node_list::NodeList;
use crate::nodes::{self, Nodes};
use crate::primary::Primary;
use crate::set_aside::Aside;
use crate::state::State;
use crate::trouble::Troubles;
use crate::{Error, persist};

fn by_workload(rows: Vec<PodRow>) -> BTreeMap<Uuid, Vec<PodRow>> {
    let mut pods: BTreeMap<Uuid, Vec<PodRow>> = BTreeMap::new();
    for row in rows {
        pods.entry(row.workload_id).or_default().push(row);
    }
    pods
}

/// Refuses nodes on which workloads would lose the places that they hold: they would be stopped,
/// and start again elsewhere if there is room.
///
/// # Errors
/// Names them.
pub fn check_nodes(snapshot: &Snapshot, list: &NodeList) -> Result<(), Error> {
    let nodes = nodes::at_start(list, snapshot)?;
    let gpus: BTreeMap<_, _> =
        nodes.iter().map(|node| (node.name.as_str(), node.gpus.len())).collect();
    let is_gone = |place: &PlacementBody| match gpus.get(place.node.as_str()) {
        None => true,
        Some(&count) => place.devices.iter().any(|(gpu, _)| *gpu as usize >= count),
    };
    let holds = |row: &&PodRow| row.body.current.is_some() && !row.body.releasing;
    let held = snapshot.pods.iter().filter(holds);
    let lost: Vec<_> = held.filter(|row| row.body.current.as_ref().is_some_and(is_gone)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let of_nodes: BTreeSet<_> =
        lost.iter().filter_map(|row| Some(row.body.current.as_ref()?.node.as_str())).collect();
    let ids: BTreeSet<_> = lost.iter().map(|row| row.workload_id).collect();
    let named = snapshot.workloads.iter().filter(|row| ids.contains(&row.id));
    let names: BTreeSet<_> = named.map(|row| row.spec.name.as_str()).collect();
    Err(Error::conflict(format!(
        "{} workload(s) would lose their places ({}), because these nodes, or GPUs of them, are not \
         there any more: {}. Start with the same --nodes or --gpus as the last server, or with \
         --replace-nodes to stop these workloads",
        ids.len(),
        first_of(&names),
        first_of(&of_nodes)
    )))
}

/// The first names, and how many more there are.
fn first_of(names: &BTreeSet<&str>) -> String {
    const SHOWN: usize = 10;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl State {
    /// Builds the state from what is stored. The result has an outbox: what has to be said and
    /// done because nodes are gone, the clock was set or volumes are still to be deleted. What is the matter
    /// with `gpus` was told.
    pub fn recover(
        mut snapshot: Snapshot,
        list: &NodeList,
        gpus: &Troubles,
        usage: Option<UsageWindow>,
        Settled { clock, step, at }: Settled,
    ) -> Result<Self, Error> {
        let mut changes = step.map(|step| step.redate(&mut snapshot, usage)).unwrap_or_default();
        if snapshot.clock != Some(clock) {
            changes.push(Change::Clock(clock));
        }
        let mut state = Self::restore(snapshot, (list, gpus), usage, at)?;
        state.outbox.changes.extend(changes);
        if step.is_some() {
            state.outbox.workloads.extend(state.workloads.keys());
        }
        state.drop_volumes_again();
        Ok(state)
    }

    fn restore(
        mut snapshot: Snapshot,
        (list, gpus): (&NodeList, &Troubles),
        usage: Option<UsageWindow>,
        at: Moment,
    ) -> Result<Self, Error> {
        let now = at.now;
        let nodes = nodes::at_start(list, &snapshot)?;
        let mut state = Self {
            now,
            clock: at.clock,
            ids: Ids::from_seed(at.seed),
            cluster: Primary::default(),
            cluster_created_at: snapshot.cluster.created_at,
            nodes: Nodes::new(list),
            pools: Vec::new(),
            departments: BTreeMap::new(),
            projects: BTreeMap::new(),
            workloads: BTreeMap::new(),
            objects: crate::Objects::from_rows(std::mem::take(&mut snapshot.objects))?,
            homes: BTreeMap::new(),
            by_model: BTreeMap::new(),
            holders: BTreeMap::new(),
            fair_shares: BTreeMap::new(),
            is_deciding: false,
            plans_dropped: 0,
            retells: false,
            unexplained: BTreeSet::new(),
            aside: Aside::default(),
            assembling: BTreeSet::new(),
            ports: BTreeMap::new(),
            restarting: BTreeMap::new(),
            strays: BTreeSet::new(),
            explained: BTreeSet::new(),
            usage: None,
            allocations: BTreeMap::new(),
            warned: BTreeMap::new(),
            idle: IdleSince::default(),
            gpus_seen: gpus.clone(),
            limits: Planned::default(),
            expiring: BTreeSet::new(),
            wake_at: None,
            halted: false,
            keeps: LimitsKept::ALL,
            last_department_id: snapshot.last_department_id,
            last_project_id: snapshot.last_project_id,
            last_workload_seq: snapshot.last_workload_seq,
            last_object_seq: snapshot.last_object_seq,
            last_event_seq: snapshot.last_event_seq,
            outbox: Outbox::default(),
        };
        state.add_pools()?;
        state.add_topologies()?;
        for node in nodes {
            state.add_node(node, state.cluster_created_at)?;
        }
        state.add_org(&snapshot)?;
        state.allocations = snapshot.allocations.into_iter().map(|row| (row.pod_id, row)).collect();
        let placed = state.restore_workloads(snapshot.workloads, snapshot.pods)?;
        state.restore_places(&placed);
        state.restore_usage(usage, &snapshot.usage);
        state.forget_other_simulated()?;
        state.show_everything();
        Ok(state)
    }

    /// Workloads with their pods; answers what each pod was, with its number in its workload.
    fn restore_workloads(
        &mut self,
        workloads: Vec<records::WorkloadRow>,
        pods: Vec<PodRow>,
    ) -> Result<Vec<(Uuid, usize, PodRow)>, Error> {
        let mut pods = by_workload(pods);
        let mut placed = Vec::new();
        for row in workloads {
            let (id, mut workload) = (row.id, persist::workload_from_row(row)?);
            // The clock may have been set back since: no delay is longer than the longest.
            let latest = self.now.plus_ms(BACK_OFF_MS_MAX);
            workload.not_before = workload.not_before.map(|at| at.min(latest));
            let rows = pods.remove(&id).unwrap_or_default();
            for row in &rows {
                let mut pod = persist::pod_from_row(row)?;
                pod.restart_at = pod.restart_at.map(|at| at.min(latest));
                workload.pods.push(pod);
            }
            self.add(workload, rows.iter().any(|row| row.body.current.is_some()))?;
            self.note_expiry(id);
            placed.extend(rows.into_iter().enumerate().map(|(number, row)| (id, number, row)));
        }
        Ok(placed)
    }

    fn add_org(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        for row in &snapshot.departments {
            let queue = self.department_queue(row.id, &row.name)?;
            self.departments.insert(row.id, persist::department_from_row(row, queue)?);
        }
        self.make_default_department()?;
        for row in &snapshot.projects {
            let queue = self.project_queue(row.id, &row.name, row.body.department_id)?;
            self.projects.insert(row.id, persist::project_from_row(row, queue)?);
        }
        self.settle_shares()
    }

    fn show_everything(&mut self) {
        self.outbox.everything = true;
        for workload in self.by_model.values().filter_map(|id| self.workloads.get(id)) {
            if self.allocated(workload) != units::Resources::ZERO {
                self.holders.entry(workload.project_id).or_default().insert(workload.id);
            }
        }
        self.outbox.shown.extend(self.workloads.keys().copied());
        self.outbox.projects.extend(self.projects.keys().copied());
    }

    /// First every place that is held, then every place that is kept for someone: a reservation
    /// must not crowd out what runs.
    fn restore_places(&mut self, placed: &[(Uuid, usize, PodRow)]) {
        for (id, number, row) in placed {
            self.restore_current(*id, *number, row);
            if self.workloads.get(id).is_some_and(|w| w.pods[*number].waits_for_others) {
                self.assembling.insert(*id);
            }
        }
        for (id, number, row) in placed {
            self.restore_next(*id, *number, row);
        }
    }

    fn restore_current(&mut self, id: Uuid, number: usize, row: &PodRow) {
        let Some(body) = &row.body.current else { return };
        let Some(workload) = self.workloads.get(&id) else { return };
        let pod = &workload.pods[number];
        let (pod_id, restart_at) = (pod.id, pod.restart_at);
        let (placed_at, resized_at) = (pod.placed_at, pod.resized_at);
        let generation = pod.generation;
        let (Some(model), Some(model_pod)) = (workload.model, pod.model) else { return };
        self.cluster.set_starts(model, placed_at, resized_at);
        let restarts = self.cluster.workloads()[model].restarts.max(generation.saturating_sub(1));
        self.cluster.set_restarts(model, restarts);
        match self.place(body, model_pod, true) {
            Some(place) => {
                let releasing = row.body.releasing;
                let occupancy = Occupancy { current: Some(place), releasing, next: None };
                self.cluster.set_occupancy(model_pod, occupancy);
                if let Some(at) = restart_at {
                    self.restarting.insert(pod_id, at);
                }
            }
            None => self.place_is_gone(id, number, &body.node),
        }
    }

    fn restore_next(&mut self, id: Uuid, number: usize, row: &PodRow) {
        let Some(body) = &row.body.next else { return };
        let found = self.workloads.get(&id).filter(|w| w.desired == Desired::Run);
        let Some(pod) = found.and_then(|w| w.pods[number].model) else { return };
        // A reservation that no longer fits is no loss: the scheduler finds the pod another.
        if let Some(place) = self.place(body, pod, false) {
            let mut occupancy = self.cluster.pods()[pod].occupancy.clone();
            if occupancy.current.is_none() || occupancy.releasing {
                occupancy.next = Some(place);
                self.cluster.set_occupancy(pod, occupancy);
            }
        }
    }

    /// The stored place, if it still exists and nothing else has its devices. What runs (`now`)
    /// goes on when the machine has less CPU or memory than before; what is only kept for
    /// someone has to fit.
    fn place(&self, body: &PlacementBody, pod: PodId, now: bool) -> Option<Placement> {
        let id = self.nodes.named(&body.node)?.id;
        let node = &self.cluster.nodes()[id];
        let devices = body.devices.iter().map(|&(gpu, millis)| DeviceShare { gpu, millis });
        let place = Placement { node: id, devices: devices.collect() };
        let free = |share: &DeviceShare| {
            node.gpus.get(share.gpu as usize).is_some_and(|gpu| {
                let taken = if now { gpu.used_millis } else { gpu.committed_millis };
                taken + share.millis <= GPU_MILLIS
            })
        };
        let amounts = self.cluster.amounts(pod, &place);
        let fits = now || (node.committed + amounts).fits_in(node.capacity);
        (fits && place.devices.iter().all(free)).then_some(place)
    }

    fn place_is_gone(&mut self, id: Uuid, number: usize, node: &str) {
        if let Some(pod) = self.pod_mut(id, number) {
            pod.started_at = None;
            pod.restart_at = None;
            pod.waits_for_others = false;
        }
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
