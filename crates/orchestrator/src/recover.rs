//! The state after a restart: stored rows, on the present nodes. Owns: rebuilding the model with
//! the places of pods, and the handling of places that no longer exist.

use std::collections::{BTreeMap, BTreeSet};

use model::{Primary, UsageWindow};
use records::{Change, Ids, Moment, PlacementBody, PodRow, Settled, Snapshot, clock_shift};
use sched::Policy;
use units::Instant;

use crate::Error;
use crate::decisions::Decisions;
use crate::documents::Documents;
use crate::effect::Outbox;
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::node_list::NodeList;
use crate::nodes::{self, Nodes};
use crate::org::Org;
use crate::pools::Pools;
use crate::settings::Settings;
use crate::state::State;
use crate::workloads::{Runs, Workloads};
use view::GpuFaults;

/// Stored rows, and the other inputs from which a state is built.
#[derive(Debug, Clone)]
pub struct StoredState {
    /// The rows of the database.
    pub rows: Snapshot,
    /// List of the present nodes.
    pub nodes: NodeList,
    /// Faults of their GPUs.
    pub gpus: GpuFaults,
    /// Policy of decisions.
    pub policy: Policy,
    /// Settings of the operator.
    pub settings: Settings,
    /// Present time.
    pub now: Instant,
}

/// Refuses nodes on which workloads would lose their places: they would be stopped, and restarted
/// elsewhere if there is room.
///
/// # Errors
/// The names of the workloads and nodes.
pub fn check_nodes(snapshot: &Snapshot, list: &NodeList) -> Result<(), Error> {
    let nodes = nodes::at_start(list, snapshot)?;
    let gpus: BTreeMap<_, _> =
        nodes.iter().map(|(node, _)| (node.name.as_str(), node.gpus.len())).collect();
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
        "{} would lose places ({}), because these nodes, or GPUs of them, are not \
         there any more: {}. Start with the same --nodes or --gpus as the last server, or with \
         --replace-nodes to stop these workloads",
        units::counted(ids.len(), "workload"),
        first_of(&names),
        first_of(&of_nodes)
    )))
}

/// The first names, and the number of further ones.
fn first_of(names: &BTreeSet<&str>) -> String {
    const SHOWN: usize = 10;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl State {
    /// Builds the state from stored rows. Its outbox has the effects of missing nodes, of a set
    /// clock and of volumes that are still to be deleted. `gpus` are the last reported faults.
    pub fn recover(
        mut snapshot: Snapshot,
        list: &NodeList,
        gpus: &GpuFaults,
        usage: Option<UsageWindow>,
        Settled { clock, step, at }: Settled,
    ) -> Result<Self, Error> {
        let step = step.or_else(|| clock_shift::unseen(&mut snapshot, at.now));
        let mut changes =
            step.map(|step| clock_shift::shift(step, &mut snapshot, usage)).unwrap_or_default();
        if snapshot.clock != Some(clock) {
            changes.push(Change::Clock(clock));
        }
        let mut state = Self::restore(snapshot, (list, gpus), usage, at)?;
        state.outbox.write(changes);
        if step.is_some() {
            let all: Vec<_> = state.workloads.ids().collect();
            state.workloads.write_again(&all);
            state.outbox.touch(all);
        }
        state.documents.drop_volumes_again(&mut state.outbox);
        Ok(state)
    }

    fn restore(
        mut snapshot: Snapshot,
        (list, gpus): (&NodeList, &GpuFaults),
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
            adopted: Box::default(),
            pools: Pools::default(),
            org: Org::new(snapshot.last_department_id, snapshot.last_project_id),
            workloads: Workloads::new(
                snapshot.last_workload_seq,
                std::mem::take(&mut snapshot.archived),
            ),
            runs: Runs::default(),
            documents: Documents::new(
                std::mem::take(&mut snapshot.objects),
                snapshot.last_object_seq,
            )?,
            decisions: Decisions::default(),
            ledger: Ledger::new(std::mem::take(&mut snapshot.allocations)),
            gpus_seen: gpus.clone(),
            limits: Limits::default(),
            settings: Settings::default(),
            halted: false,
            last_event_seq: snapshot.last_event_seq,
            outbox: Outbox::default(),
        };
        state.add_pools()?;
        state.add_topologies()?;
        for (node, added_at) in nodes {
            state.add_node(node, added_at.unwrap_or(state.cluster_created_at))?;
        }
        state.restore_org(&snapshot.departments, &snapshot.projects)?;
        let placed = state.restore_workloads(snapshot.workloads, snapshot.pods)?;
        state.restore_places(&placed);
        state.restore_pasts(snapshot.pasts);
        state.leave_unfit();
        state.restore_usage(usage, &snapshot.usage);
        state.restore_lags(&snapshot.lags);
        state.forget_other_simulated()?;
        state.show_everything();
        Ok(state)
    }

    fn show_everything(&mut self) {
        self.outbox.show_everything();
        self.note_holders();
        self.outbox.show(self.workloads.ids());
        self.outbox.recount(self.org.project_ids());
    }
}
