//! The long diagnosis of one waiting workload. Owns: the parts of the answer and their wording, for
//! readers who do not know the documentation. Does not know about: how the scheduler finds it. The
//! reasons of a cycle are the short answer.

mod advice;
mod ahead;
mod apply;
mod change;
mod holders;
mod nodes;
mod searches;

use units::{Instant, Kind, format_millis};

use crate::{Pending, number};

pub use advice::{Advice, HowTo};
pub use ahead::{Ahead, Before, Precedence};
pub use apply::apply_change;
pub use change::{Change, Raise};
pub use holders::{Holder, Holders, HoldingQueue, OwnDemand, Standing};
pub use nodes::{Failing, NodeClass, Obstacle, Part};
pub use searches::{Means, Outcome, Refusals, Search};

/// The long diagnosis of a waiting workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The reasons of the cycle.
    pub reasons: Vec<Pending>,
    /// Reasons in each node pool, where one of the reasons stands for many pools.
    pub in_pools: Vec<Pending>,
    /// Obstacles for its pods, by pod set. Empty if it only waits for a time or a release.
    pub parts: Vec<Part>,
    /// Holders of the resources that it needs.
    pub holders: Holders,
    /// Searches for workloads to move or preempt, and why each failed.
    pub searches: Vec<Search>,
    /// True if some of its pods have a place.
    pub runs: bool,
    /// Workloads of its project that the scheduler looks at before it.
    pub ahead: Ahead,
    /// Changes that would let it start, each tried out.
    pub advice: Vec<Advice>,
    /// Number of trial decisions.
    pub tries: u32,
    /// True if every change that might help was tried; false if that would have cost too much.
    pub complete: bool,
}

impl Diagnosis {
    /// All parts, in lines under headings.
    #[must_use]
    pub fn lines(&self, now: Instant) -> Vec<String> {
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|reason| format!("  {} {reason}", reason.code().code));
        let first = std::iter::once("Why it waits:".to_owned()).chain(reasons);
        first.chain(self.details(now)).collect()
    }

    /// All but the reasons, for a reader with all permissions.
    #[must_use]
    pub fn details(&self, now: Instant) -> Vec<String> {
        let anyone = |advice: &Advice| HowTo { commands: advice.commands(), ask: None };
        self.details_for(now, &anyone)
    }

    /// All but the reasons, for a workload that was not submitted: no command changes it.
    #[must_use]
    pub fn details_before_submission(&self, now: Instant) -> Vec<String> {
        let how_to =
            |advice: &Advice| HowTo { commands: advice.commands_before_submission(), ask: None };
        self.details_for(now, &how_to)
    }

    /// All but the reasons, with the steps that this reader can take for each advice.
    #[must_use]
    pub fn details_for(&self, now: Instant, how_to: &dyn Fn(&Advice) -> HowTo) -> Vec<String> {
        self.details_with(now, how_to, Vec::new()).lines
    }

    /// The details with further advice, each in its lines.
    #[must_use]
    pub fn details_with(
        &self,
        now: Instant,
        how_to: &dyn Fn(&Advice) -> HowTo,
        further: Vec<Vec<String>>,
    ) -> Details {
        let mut lines = Vec::new();
        let mut section = |title: &str, items: Vec<String>| {
            if !items.is_empty() {
                lines.push(format!("{title}:"));
                lines.extend(items.into_iter().map(|item| format!("  {item}")));
            }
        };
        let in_pools = self.in_pools.iter().map(|one| format!("{} {one}", one.code().code));
        section("In each node pool", in_pools.collect());
        let fits = !self.parts.is_empty() && self.parts.iter().all(Part::fits);
        let nodes = if fits { "Where it would fit" } else { "Where it does not fit" };
        section(nodes, self.parts.iter().flat_map(Part::lines).collect());
        section("Who holds what it needs", self.holders.lines(now));
        section("Who is looked at before it in its project", self.ahead.lines());
        let searches = self
            .searches
            .iter()
            .map(|search| format!("{} {}", search.code().code, search.text(now)));
        section("Why nothing was moved or taken for it", searches.collect());
        let own = self.advice.iter().map(|one| how_to(one).lines(one, now));
        let (mut advice, mut starts) = (Vec::new(), Vec::new());
        for one in own.chain(further) {
            starts.push(advice.len());
            advice.extend(one);
        }
        if advice.is_empty() && self.complete && !self.parts.is_empty() {
            let then = match self.reasons.iter().any(Pending::outlasts_others) {
                true => "other workloads that end would not help",
                false => "it waits until other workloads end or give up their places",
            };
            advice.push(format!("none of the changes that were tried lets it start; {then}"));
        }
        if !self.complete {
            advice.push(format!("more was not tried: {} decisions were enough", self.tries));
        }
        let count = advice.len();
        let what = if self.runs { "its other pods" } else { "it" };
        section(&format!("What would let {what} start (each tried out)"), advice);
        let first = lines.len() - count;
        let advice_at = starts.into_iter().map(|start| first + start).collect();
        Details { lines, advice_at }
    }
}

/// The details of a diagnosis as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Lines under headings.
    pub lines: Vec<String>,
    /// Index in `lines` of the sentence of each advice, in order.
    pub advice_at: Vec<usize>,
}

fn cores(millis: u64) -> String {
    let plural = if millis == units::GPU_MILLIS { "" } else { "s" };
    format!("{} core{plural}", format_millis(millis))
}

fn are(kind: Kind, amount: u64) -> String {
    let verb = if kind == Kind::Gpu && amount == units::GPU_MILLIS { "is" } else { "are" };
    format!("{} {verb}", number(kind, amount))
}

/// A duration, rounded up: `3s`, `2m 5s`, `1h 20m`.
#[must_use]
pub fn span(now: Instant, until: Instant) -> String {
    let seconds = until.0.saturating_sub(now.0).div_ceil(1000);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => {
            let minutes = seconds.div_ceil(60);
            format!("{}h {}m", minutes / 60, minutes % 60)
        }
    }
}
