//! Ports of pods that work together or serve. Owns: how far the search for those of a workload has
//! come, and when it is made again because too few were free.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

/// The ports that are given out: below those that systems give to outgoing connections.
const PORT_FIRST: u16 = 20_000;
const PORT_COUNT: u16 = 10_000;
/// After so long the engine is asked for ports again, where there were too few.
const PORTS_AGAIN_MS: u64 = 5_000;

/// How far the search for the ports of a workload has come.
#[derive(Debug, Default)]
struct Search {
    /// The engine is looking for them.
    is_asked: bool,
    /// These were free when it looked.
    found: Vec<u16>,
    /// Too few were free: it is asked again then.
    again_at: Option<Instant>,
    /// There is an event that says so.
    has_event: bool,
}

/// Ports to look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortsWanted {
    /// Of which workload they will be.
    pub workload: Uuid,
    /// How many are needed.
    pub count: usize,
    /// Where the search begins, so that different workloads find different ones.
    first: u16,
    /// Not these, whether they are free or not.
    taken: BTreeSet<u16>,
}

impl PortsWanted {
    /// Those that may be given out, in the order in which they are to be tried.
    pub fn candidates(&self) -> impl Iterator<Item = u16> {
        let port = |at| PORT_FIRST + (self.first % PORT_COUNT + at) % PORT_COUNT;
        (0..PORT_COUNT).map(port).filter(|port| !self.taken.contains(port))
    }
}

/// The searches for the ports of workloads, until they have them.
#[derive(Debug, Default)]
pub(crate) struct Ports(BTreeMap<Uuid, Search>);

impl Ports {
    /// So many ports that were free for a workload and are not taken. Where there are not as many,
    /// what the engine is to look for, unless it does already: beyond the highest port `before`.
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

    /// True if ports of a workload are looked for.
    pub(super) fn is_searching(&self, workload: Uuid) -> bool {
        self.0.contains_key(&workload)
    }

    /// The engine has looked: these are free. Answers whether they are too few for the first time.
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

    /// The workloads whose ports are to be searched for again now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Uuid> {
        let is_due = |search: &mut Search| search.again_at.take_if(|at| *at <= now).is_some();
        self.0.iter_mut().filter_map(|(id, search)| is_due(search).then_some(*id)).collect()
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.0.values().filter_map(|search| search.again_at).min()
    }
}
