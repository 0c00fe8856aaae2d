//! Ports of pods that work together or serve. Owns: the progress of the search for the ports of a
//! workload, and its repetition after one that found too few.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

/// The range of ports that are assigned: below the range that systems use for outgoing connections.
const PORT_FIRST: u16 = 20_000;
const PORT_COUNT: u16 = 10_000;
/// Time until a search that found too few ports is repeated, in milliseconds.
const PORTS_AGAIN_MS: u64 = 5_000;

/// Progress of the search for the ports of a workload.
#[derive(Debug, Default)]
struct Search {
    /// True while the engine is searching.
    is_asked: bool,
    /// Ports that were free at the search.
    found: Vec<u16>,
    /// Time of the next search after one that found too few.
    again_at: Option<Instant>,
    /// True if an event has reported that.
    has_event: bool,
}

/// Ports to search for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortsWanted {
    /// Id of their workload.
    pub workload: Uuid,
    /// Number of ports that are needed.
    pub count: usize,
    /// Offset at which the search begins, so that different workloads find different ports.
    first: u16,
    /// Ports to leave out, free or not.
    taken: BTreeSet<u16>,
}

impl PortsWanted {
    /// Ports that may be assigned, in the order in which they are tried.
    pub fn candidates(&self) -> impl Iterator<Item = u16> {
        let port = |at| PORT_FIRST + (self.first % PORT_COUNT + at) % PORT_COUNT;
        (0..PORT_COUNT).map(port).filter(|port| !self.taken.contains(port))
    }
}

/// Searches for the ports of workloads, until they have them.
#[derive(Debug, Default)]
pub(crate) struct Ports(BTreeMap<Uuid, Search>);

impl Ports {
    /// Takes `count` ports that were free for a workload and are not taken. If there are fewer,
    /// returns the search to request from the engine, beginning after the highest port `before`;
    /// `None` if one is in progress.
    pub(super) fn take(
        &mut self,
        workload: Uuid,
        count: usize,
        taken: BTreeSet<u16>,
        before: Option<u16>,
    ) -> Result<Vec<u16>, Option<PortsWanted>> {
        let search = self.0.entry(workload).or_default();
        search.found.retain(|port| !taken.contains(port));
        if search.found.len() >= count {
            return Ok(self.0.remove(&workload).map(|search| search.found).unwrap_or_default());
        }
        if search.is_asked || search.again_at.is_some() {
            return Err(None);
        }
        search.is_asked = true;
        let [.., high, low] = workload.into_bytes();
        let first = before.map_or(u16::from_be_bytes([high, low]), |port| port - PORT_FIRST + 1);
        Err(Some(PortsWanted { workload, count, first, taken }))
    }

    pub(super) fn forget(&mut self, workload: Uuid) {
        self.0.remove(&workload);
    }

    /// True if ports of a workload are being searched for.
    pub(super) fn is_searching(&self, workload: Uuid) -> bool {
        self.0.contains_key(&workload)
    }

    /// Takes over the free ports that the engine has found. True if they are too few for the first
    /// time.
    pub(super) fn found(&mut self, wanted: &PortsWanted, found: Vec<u16>, now: Instant) -> bool {
        let Some(search) = self.0.get_mut(&wanted.workload) else { return false };
        search.is_asked = false;
        if found.len() >= wanted.count {
            search.found = found;
            return false;
        }
        search.again_at = Some(now.plus_ms(PORTS_AGAIN_MS));
        !std::mem::replace(&mut search.has_event, true)
    }

    /// The workloads whose search for ports is to be repeated now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Uuid> {
        let is_due = |search: &mut Search| search.again_at.take_if(|at| *at <= now).is_some();
        self.0.iter_mut().filter_map(|(id, search)| is_due(search).then_some(*id)).collect()
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.0.values().filter_map(|search| search.again_at).min()
    }
}
