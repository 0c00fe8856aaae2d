//! Memory in use by runs with parts of GPUs. Owns: the difference between the drivers' numbers and
//! the claims of runs, and actions on it. Does not know about: how runs get their limits.

use std::collections::BTreeMap;
use std::time::Instant;

use engine::{GpuOver, GpuUse, RunKey};
use fraction_agent::{Connection, Pages, Simulated};
use gpu::{Activity, ProcessActivity};

use super::{Fractions, open, text};
use crate::fraction::SimulatedGpu;
use crate::run::{Over, Run, held};

/// Uncounted memory of a GPU, in bytes, below which the next scheduled measurement is soon enough.
const UNCOUNTED_BYTES: u64 = 256 << 20;

impl Fractions {
    /// Activity of simulated GPUs. The utilisation of a process stays unknown until it runs a
    /// virtual kernel: a process that only pretends to train would count as idle, and limits on
    /// idleness would stop it.
    #[must_use]
    pub fn activities(&self) -> Vec<Activity> {
        let connections = open(&self.connections);
        let activity = |(gpu, connection): (&Simulated, &Connection)| {
            let state = connection.state(gpu.bytes);
            let state = state.map_err(|error| {
                tracing::warn!("the simulated driver of {} does not answer: {error}", gpu.name);
            });
            let state = state.ok()?;
            let whole = state.busy.values().sum::<u64>().min(1000);
            let process = |(pid, bytes): (&u32, &u64)| {
                let busy_millis = state.busy.get(pid).copied();
                (*pid, ProcessActivity { busy_millis, memory_bytes: Some(*bytes) })
            };
            Some(Activity {
                uuid: gpu.name.clone(),
                busy_millis: (!state.busy.is_empty()).then_some(whole),
                memory_bytes: Some(state.used),
                processes: state.holders.iter().map(process).collect(),
            })
        };
        connections.iter().filter_map(activity).collect()
    }

    /// The simulated GPUs of a run that none of its processes uses: the driver shows all that do.
    #[must_use]
    pub fn idle(&self, key: RunKey, used: &[GpuUse]) -> Vec<GpuUse> {
        let runs = open(&self.runs);
        let own = runs.get(&key).into_iter().flat_map(|run| &run.fraction.simulated);
        let unused = own.filter(|own| used.iter().all(|gpu| gpu.uuid != own.gpu));
        let idle = |gpu: &SimulatedGpu| GpuUse {
            uuid: gpu.gpu.clone(),
            busy_millis: None,
            memory_bytes: Some(0),
        };
        unused.map(idle).collect()
    }

    /// True if a measurement should take place at once: since the last call the driver shows more
    /// memory on a GPU that is not counted for the runs there, or another measurement decides
    /// whether a process is ended. `sample` asks the driver of real GPUs, where that is needed.
    /// Blocks as `sample` does.
    pub fn is_urgent(&self, sample: impl FnOnce() -> Vec<Activity>) -> bool {
        let runs = open(&self.runs);
        let limited = runs.values().filter(|run| !run.fraction.limits.is_empty());
        let limited: Vec<_> =
            limited.map(|run| (run.pages.clone(), run.fraction.clone())).collect();
        let may_end = runs.values().any(|run| run.may_end);
        drop(runs);
        if limited.is_empty() {
            return false;
        }
        let mut uncounted = BTreeMap::new();
        for gpu in self.activities().into_iter().chain(sample()) {
            let shown = gpu.processes.values().filter_map(|process| process.memory_bytes);
            let shown = shown.fold(0, u64::saturating_add);
            if shown > UNCOUNTED_BYTES {
                uncounted.insert(gpu.uuid, shown);
            }
        }
        for (pages, fraction) in limited {
            for (place, limit) in fraction.limits.iter().enumerate() {
                let Some(shown) = uncounted.get_mut(&limit.gpu) else { continue };
                let own = fraction.uuid(&limit.gpu).map_or(0, |uuid| held(&pages, place, uuid));
                *shown = shown.saturating_sub(own);
            }
        }
        // Memory that a measurement does not explain belongs to a process outside any run; it is
        // urgent once.
        let mut known = open(&self.uncounted);
        let is_news = |(gpu, bytes): (&String, &u64)| {
            let known = known.get(gpu).copied().unwrap_or(0);
            *bytes > known.saturating_add(UNCOUNTED_BYTES)
        };
        let is_urgent = uncounted.iter().any(is_news);
        *known = uncounted;
        may_end || is_urgent
    }

    /// The runs whose program was seen to be not limited, and why: each once.
    #[must_use]
    pub fn unreached(&self) -> Vec<(RunKey, String)> {
        let mut runs = open(&self.runs);
        runs.iter_mut().filter_map(|(key, run)| Some((*key, run.unreached()?))).collect()
    }

    /// Memory in use as runs with limits claim it, in bytes, one value for each limit.
    pub fn claims(&self) -> BTreeMap<RunKey, Vec<u64>> {
        let runs = open(&self.runs);
        let limited = runs.iter().filter(|(_, run)| !run.fraction.limits.is_empty());
        let claims = |(key, run): (&RunKey, &Run)| {
            let pages = Pages::at(&run.pages);
            (*key, (0..run.fraction.limits.len()).map(|device| pages.claimed(device)).collect())
        };
        limited.map(claims).collect()
    }

    /// Counts memory of a run that the driver shows and its claims do not contain. `before`: its
    /// claims before the driver was asked; changes meanwhile are in one of the two. Returns the
    /// GPUs on which the run exceeds its limit.
    #[must_use]
    pub fn reconcile(&self, key: RunKey, before: &[u64], seen: &[GpuUse]) -> Vec<Over> {
        let found = open(&self.runs).get(&key).map(|run| (run.fraction.clone(), run.pages.clone()));
        let Some((fraction, pages)) = found else { return Vec::new() };
        let pages = Pages::at(&pages);
        let Ok(limits) = pages.limits() else { return Vec::new() };
        let mut over = Vec::new();
        for (device, limit) in fraction.limits.iter().enumerate() {
            let own = seen.iter().find(|gpu| gpu.uuid == limit.gpu);
            let observed = own.and_then(|gpu| gpu.memory_bytes).unwrap_or(0);
            let claimed = pages.claimed(device).max(before.get(device).copied().unwrap_or(0));
            let uncounted = observed.saturating_sub(claimed);
            let Some(uuid) = fraction.uuid(&limit.gpu) else { continue };
            let Some(known) = limits.iter().find(|known| known.uuid == uuid) else { continue };
            let (held_bytes, limit_bytes) = (claimed.saturating_add(uncounted), known.bytes);
            if held_bytes > limit_bytes {
                let gpu = limit.gpu.clone();
                let not_granted = uncounted.min(held_bytes - limit_bytes);
                let seen = GpuOver { gpu, held_bytes, limit_bytes, ended: None };
                over.push((seen, not_granted));
            }
            if known.uncounted == uncounted {
                continue;
            }
            if let Err(error) = pages.set_uncounted(uuid, uncounted) {
                tracing::warn!("cannot count what {key} holds of {}: {}", limit.gpu, text(&error));
            }
        }
        let may_grow = fraction.limits.iter().filter(|limit| limit.most() > limit.bytes);
        self.divide(may_grow.map(|limit| limit.gpu.as_str()));
        let mut runs = open(&self.runs);
        runs.get_mut(&key)
            .map_or_else(Vec::new, |run| run.record_excess(over, self.over, Instant::now()))
    }
}
