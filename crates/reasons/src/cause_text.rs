//! The one sentence of each cause of an eviction, move or resize. Owns: wording, in the past tense:
//! it is read long after.

use std::fmt;

use units::counted;

use super::text::number;
use super::{Cause, Lost, QueueNumbers, Strategy};

/// The numbers of a queue at a past time.
struct Then<'a>(&'a QueueNumbers);

impl fmt::Display for Then<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, "held")
    }
}

/// Continues a sentence; empty for less than a minute.
impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = if self.checkpointed {
            "its last checkpoint was reported"
        } else {
            "its last start and no checkpoint was reported"
        };
        match self.unsaved_ms / 60_000 {
            0 => Ok(()),
            minutes @ ..120 => write!(f, "; {minutes} min had passed since {since}"),
            minutes => write!(f, "; {} h had passed since {since}", minutes / 60),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reclaimed { strategy, beneficiary, requested, loser, winner, lost } => write!(
                f,
                "stopped so that {beneficiary} gets its {}: {}; {} and asked for {}{lost}",
                match strategy {
                    Strategy::QuotaGuaranteed => "quota",
                    Strategy::FairShareMaintained => "fair share",
                },
                Then(loser),
                Then(winner),
                number(winner.kind, *requested)
            ),
            Self::Preempted { beneficiary, priority, beneficiary_priority, lost }
                if priority == beneficiary_priority =>
            {
                write!(
                    f,
                    "stopped for {beneficiary} of the same priority ({priority}), which cannot be \
                     preempted and has a right to the quota{lost}"
                )
            }
            Self::Preempted { beneficiary, priority, beneficiary_priority, lost } => write!(
                f,
                "stopped for {beneficiary} of higher priority ({beneficiary_priority} over \
                 {priority}){lost}"
            ),
            Self::Consolidated { beneficiary, lost } => {
                write!(f, "moved to make room for {beneficiary}{lost}")
            }
            Self::Resized { gpus_before, gpus_after, beneficiary: Some(who) } => {
                write!(f, "shrunk from {gpus_before} to {} for {who}", counted(*gpus_after, "GPU"))
            }
            Self::GrownBack { gpus_before, gpus_after } => write!(
                f,
                "grown back from {gpus_before} to {}, within the quota of its project",
                counted(*gpus_after, "GPU")
            ),
            Self::StaleGang { pods_min, pods } => {
                write!(f, "stopped: {pods} of the {pods_min} pods that must run together were left")
            }
            Self::Drained { node } => write!(f, "its node {node} is being emptied"),
            Self::Resized { gpus_before, gpus_after, beneficiary: None } => {
                let after = counted(*gpus_after, "GPU");
                write!(f, "grown from {gpus_before} to {after} that were idle")
            }
        }
    }
}
