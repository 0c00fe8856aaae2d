//! A run that has a part of a GPU. Owns: what it holds, and which event and action
//! follow where that is more than it may. Does not know about: other runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::GpuOver;
use fraction_agent::{Pages, Unreached};

use crate::fraction::{Fraction, Limit};
use crate::policy::MemoryOver;

/// Memory beyond the limit and the grant of a run from which one of its processes is ended;
/// contexts of real GPUs may take this much before they are counted.
const OVER_BYTES: u64 = 1 << 30;
/// Consecutive measurements with that much memory before the process is ended.
const OVER_TIMES: u32 = 2;
/// Minimum time between two of these measurements.
const LOOK_PAUSE: Duration = Duration::from_millis(900);

/// Memory of a GPU in use by a run with these pages, in bytes: claims of its processes, and
/// uncounted memory that the driver shows.
pub(crate) fn held(pages: &Path, device: usize, uuid: [u8; 16]) -> u64 {
    let pages = Pages::at(pages);
    let limits = pages.limits().unwrap_or_default();
    let own = limits.iter().find(|limit| limit.uuid == uuid);
    pages.claimed(device).saturating_add(own.map_or(0, |limit| limit.uncounted))
}

/// A GPU of which a run holds more than it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// Memory in use and its limit.
    pub seen: GpuOver,
    /// True if the newest process of the run on the GPU must be ended.
    pub ends: bool,
}

/// A run that has not ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) fraction: Fraction,
    /// The folder of its pages.
    pub(crate) pages: PathBuf,
    /// The GPUs of which it was seen to hold more than it may, how often in a row, and when that
    /// was counted.
    over: BTreeMap<String, (u32, Instant)>,
    /// A look more decides whether a process of it is ended.
    pub(crate) may_end: bool,
    /// The event that its program is not limited was sent, by this server or an earlier one.
    is_unlimited: bool,
}

impl Run {
    pub(crate) const fn new(fraction: Fraction, pages: PathBuf) -> Self {
        Self { fraction, pages, over: BTreeMap::new(), may_end: false, is_unlimited: false }
    }

    /// Why its program is not limited, once that was written down; once for each run.
    pub(crate) fn unreached(&mut self) -> Option<String> {
        if !self.fraction.preloaded || self.is_unlimited {
            return None;
        }
        let why = Pages::at(&self.pages).unreached()?;
        self.is_unlimited = true;
        match Pages::at(&self.pages).report_unreached() {
            Ok(true) => {}
            Ok(false) => return None, // by an earlier server
            Err(error) => tracing::warn!("E206 of a run may be reported again: {error}"),
        }
        let is_not = match why {
            Unreached::Unknown => "may not be",
            Unreached::Static | Unreached::OtherLibrary | Unreached::OtherProcessor => "is not",
        };
        Some(format!("its program {why}, so the library that keeps parts of GPUs {is_not} in it"))
    }

    /// Limit of the run on a GPU, with its index in the pages.
    pub(crate) fn limit(&self, gpu: &str) -> Option<(usize, &Limit)> {
        self.fraction.limits.iter().enumerate().find(|(_, limit)| limit.gpu == gpu)
    }

    /// The event about what it holds too much, and the action that follows: the first time since
    /// it held less, and when it is enough. With each goes what of it was not granted.
    pub(crate) fn record_excess(
        &mut self,
        over: Vec<(GpuOver, u64)>,
        policy: MemoryOver,
        now: Instant,
    ) -> Vec<Over> {
        let before = std::mem::take(&mut self.over);
        self.may_end = false;
        let mut told = Vec::new();
        for (seen, not_granted) in over {
            let known = before.get(&seen.gpu).copied();
            let (times, at) = match known {
                None => (1, now),
                // Two measurements at the same moment are one look.
                Some((times, at)) if now.saturating_duration_since(at) < LOOK_PAUSE => (times, at),
                Some((times, _)) => (times + 1, now),
            };
            let much = not_granted > OVER_BYTES && policy == MemoryOver::End;
            let ends = much && times >= OVER_TIMES;
            self.may_end |= much && !ends;
            self.over.insert(seen.gpu.clone(), (if ends { 0 } else { times }, at));
            if ends || known.is_none() {
                told.push(Over { seen, ends });
            }
        }
        told
    }
}
