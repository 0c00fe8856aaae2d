//! The words of a diagnosis. Owns: wording, for somebody who has not read the documentation.

use units::{Instant, Kind, format_bytes, format_millis};

use super::{
    Advice, Change, Diagnosis, Failing, Holder, Holders, HoldingQueue, Means, NodeClass, Obstacle,
    Outcome, Part, Refusals, Search, Standing,
};
use crate::Code;
use crate::reasons::{CODES, number, of};

impl Diagnosis {
    /// All of it, in lines under headings.
    #[must_use]
    pub fn lines(&self, now: Instant) -> Vec<String> {
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|reason| format!("  {} {reason}", reason.code().code));
        let first = std::iter::once("Why it waits:".to_owned()).chain(reasons);
        first.chain(self.details(now)).collect()
    }

    /// All but the reasons.
    #[must_use]
    pub fn details(&self, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        let mut section = |title: &str, items: Vec<String>| {
            if !items.is_empty() {
                lines.push(format!("{title}:"));
                lines.extend(items.into_iter().map(|item| format!("  {item}")));
            }
        };
        section("Where it does not fit", self.parts.iter().flat_map(Part::lines).collect());
        section("Who holds what it needs", self.holders.lines(now));
        let searches = self
            .searches
            .iter()
            .map(|search| format!("{} {}", search.code().code, search.text(now)));
        section("Why nothing was moved or taken for it", searches.collect());
        let mut advice: Vec<_> = self.advice.iter().map(|advice| advice.text(now)).collect();
        if advice.is_empty() && self.complete && !self.parts.is_empty() {
            advice.push("no single change was found; it waits for others to end".to_owned());
        }
        if !self.complete {
            advice.push(format!("more was not tried: {} decisions were enough", self.tries));
        }
        section("What would let it start (each tried out)", advice);
        lines
    }
}

impl Part {
    /// One line for the set and one for each class of nodes.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Self { set, pods, placeable, classes } = self;
        let name = if set.is_empty() { String::new() } else { format!("{set}: ") };
        let first = match (pods, placeable) {
            (1, _) => None,
            _ => Some(format!("{name}{placeable} of {pods} pods that are due find a place")),
        };
        let indent = if first.is_some() || name.is_empty() { "" } else { name.as_str() };
        let each = classes.iter().map(|class| format!("{indent}{}", class.text()));
        first.into_iter().chain(each).collect()
    }
}

impl NodeClass {
    /// One sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { classes, nodes, like, gpus, gpu_memory_bytes, capacity, labels, room, failing } =
            self;
        let who = match (*classes, *nodes) {
            (1, 1) => format!("1 node, {like}"),
            (1, nodes) => format!("{nodes} nodes like {like}"),
            (_, nodes) => format!("{nodes} nodes of other kinds, {like} and so on"),
        };
        let mut has = Vec::new();
        if *classes == 1 {
            has.push(match gpus {
                0 => "no GPU".to_owned(),
                1 => format!("1 GPU of {}", format_bytes(*gpu_memory_bytes)),
                _ => format!("{gpus} GPUs of {}", format_bytes(*gpu_memory_bytes)),
            });
            has.push(cores(capacity.cpu_millis));
            has.push(format_bytes(capacity.memory_bytes));
            has.extend(labels.iter().map(|(key, value)| format!("{key}={value}")));
        }
        let has = if has.is_empty() { String::new() } else { format!(" ({})", has.join(", ")) };
        let alone = *nodes == 1;
        let mut said: Vec<_> = failing.iter().map(|failing| failing.text(*nodes)).collect();
        if *room > 0 {
            said.push(match room {
                _ if alone => "has room".to_owned(),
                room if room == nodes => "all have room".to_owned(),
                1 => "1 has room".to_owned(),
                room => format!("{room} have room"),
            });
        }
        format!("{who}{has}: {}", said.join("; "))
    }
}

impl Obstacle {
    /// Short stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cordoned => "cordoned",
            Self::Selector => "selector",
            Self::Affinity => "affinity",
            Self::Taint => "taint",
            Self::Gpus => "gpus",
            Self::GpuMemory => "gpu_memory",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::FreeGpus => "free_gpus",
            Self::FreeShare => "free_share",
            Self::FreeCpu => "free_cpu",
            Self::FreeMemory => "free_memory",
            Self::Pods => "pods",
            Self::Other => "other",
        }
    }
}

impl Failing {
    fn text(&self, of: u32) -> String {
        let Self { obstacle, nodes, needed, most, closest } = self;
        let alone = of == 1;
        let count = match *nodes {
            _ if alone => String::new(),
            nodes if nodes == of => "all ".to_owned(),
            nodes => format!("{nodes} "),
        };
        let verb = |one: &str, many: &str| {
            if alone || *nodes == 1 { one.to_owned() } else { many.to_owned() }
        };
        let amounts = |show: fn(u64) -> String| {
            let at = if alone { String::new() } else { format!(" on {closest}") };
            let most_is = if alone { "has" } else { "at most" };
            format!("needs {}, {most_is} {}{at}", show(*needed), show(*most))
        };
        let plain: fn(u64) -> String = |count| count.to_string();
        let (what, amounts) = match obstacle {
            Obstacle::Cordoned => return format!("{count}{} cordoned", verb("is", "are")),
            Obstacle::Selector => {
                return format!("{count}{} a label that it selects", verb("lacks", "lack"));
            }
            Obstacle::Affinity => {
                return format!("{count}{} outside its affinity", verb("is", "are"));
            }
            Obstacle::Taint => {
                return format!("{count}{} a taint that it does not tolerate", verb("has", "have"));
            }
            Obstacle::Pods => return format!("{count}{} no more pods", verb("takes", "take")),
            Obstacle::Other => return format!("{count}{} ruled out", verb("is", "are")),
            Obstacle::Gpus => ("GPUs, even when empty", amounts(plain)),
            Obstacle::GpuMemory => ("GPU memory, even when empty", amounts(format_bytes)),
            Obstacle::Cpu => ("cores, even when empty", amounts(format_millis)),
            Obstacle::Memory => ("memory, even when empty", amounts(format_bytes)),
            Obstacle::FreeGpus => ("free GPUs", amounts(plain)),
            Obstacle::FreeShare => ("of a GPU free", amounts(format_millis)),
            Obstacle::FreeCpu => ("free cores", amounts(format_millis)),
            Obstacle::FreeMemory => ("free memory", amounts(format_bytes)),
        };
        let few = match obstacle {
            Obstacle::Gpus | Obstacle::FreeGpus | Obstacle::Cpu | Obstacle::FreeCpu => "few",
            _ => "little",
        };
        format!("{count}{} too {few} {what} ({amounts})", verb("has", "have"))
    }
}

impl Holders {
    /// A line for each queue and each workload.
    #[must_use]
    pub fn lines(&self, now: Instant) -> Vec<String> {
        let more = |count: u32, what: &str| {
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("and {count} more {what}{plural}"))
        };
        let queues = self.queues.iter().map(HoldingQueue::text);
        let workloads = self.workloads.iter().map(|holder| holder.text(now));
        let queues = queues.chain(more(self.queues_more, "project"));
        queues.chain(workloads).chain(more(self.workloads_more, "workload")).collect()
    }
}

impl HoldingQueue {
    /// One sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { queue, held } = self;
        if *held == queue.allocated {
            return queue.to_string();
        }
        format!("{queue}, {} of it where it could go", number(queue.kind, *held))
    }
}

impl Holder {
    /// One sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        let Self { workload, kind, held, standing } = self;
        format!("{workload} holds {}: {}", of(*kind, *held), standing.text(now))
    }
}

impl Standing {
    /// Short stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MayGive => "may_give",
            Self::NotPreemptible => "not_preemptible",
            Self::AsImportant { .. } => "as_important",
            Self::GuaranteedUntil(_) => "guaranteed",
            Self::WithinItsShare => "within_its_share",
            Self::NotEntitled => "not_entitled",
        }
    }

    /// Half a sentence.
    #[must_use]
    pub fn text(self, now: Instant) -> String {
        match self {
            Self::MayGive => "may be taken from".to_owned(),
            Self::NotPreemptible => "is not preemptible".to_owned(),
            Self::AsImportant { priority } => {
                format!("same project, and not less important (priority {priority})")
            }
            Self::GuaranteedUntil(until) => {
                format!("its guaranteed run time ends in {}", span(now, until))
            }
            Self::WithinItsShare => "its project holds no more than is its own".to_owned(),
            Self::NotEntitled => "nothing is taken from other projects for this one".to_owned(),
        }
    }
}

impl Search {
    /// Code and name.
    #[must_use]
    pub const fn code(&self) -> Code {
        CODES[match self.means {
            Means::Consolidate => 18,
            Means::Reclaim => 19,
            Means::Preempt => 20,
        }]
    }

    /// One sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        let what = match self.means {
            Means::Consolidate => "nobody is moved",
            Means::Reclaim => "nothing is taken from other projects",
            Means::Preempt => "nothing is taken inside its project",
        };
        format!("{what}: {}", self.outcome.text(self.means, now))
    }
}

impl Outcome {
    fn text(&self, means: Means, now: Instant) -> String {
        match self {
            Self::Patient { until } => {
                format!("its preemption delay ends in {}", span(now, *until))
            }
            Self::Refused(reason) => {
                format!("its queue refuses it, whatever others do ({})", reason.code().code)
            }
            Self::NotEntitled { queue, requested } => format!(
                "with {} more it would hold more than its fair share; {queue}",
                number(queue.kind, *requested)
            ),
            Self::FreeTooLittle { kind, requested, free } => format!(
                "it needs {} and only {} free on all nodes together",
                of(*kind, *requested),
                are(*kind, *free)
            ),
            Self::NowhereToMove => {
                "whoever is in the way has no other place, or may not be moved".to_owned()
            }
            Self::MovesMax { moves, moves_max } => format!(
                "{moves} workloads would have to move and at most {moves_max} are moved for one"
            ),
            Self::Nobody(refusals) => match refusals.text(now) {
                said if !said.is_empty() => format!("nobody may be asked: {said}"),
                _ if means == Means::Reclaim => "no other project has anything running".to_owned(),
                _ => "nothing else of its project is running".to_owned(),
            },
            Self::NotEnough { givers, freed_gpu_millis, placeable, pods, refusals } => {
                let fits = match pods {
                    1 => "it still finds no place".to_owned(),
                    _ => format!("only {placeable} of {pods} pods find a place"),
                };
                let rest = match refusals.text(now) {
                    said if said.is_empty() => String::new(),
                    said => format!("; of the others {said}"),
                };
                format!(
                    "if all {givers} that may be taken from gave {}, {fits}{rest}",
                    of(Kind::Gpu, *freed_gpu_millis)
                )
            }
            Self::Unfair { queue } => {
                format!("afterwards its project would hold more than its share; {queue}")
            }
            Self::NotFound => {
                "enough could be taken, but no way was found that keeps every rule".to_owned()
            }
        }
    }
}

impl Refusals {
    fn text(&self, now: Instant) -> String {
        let Self { not_preemptible, as_important, guaranteed, guaranteed_until, within_share } =
            self;
        let until = guaranteed_until
            .map_or_else(String::new, |until| format!(", the first for {} more", span(now, until)));
        let parts = [
            (not_preemptible, "not preemptible".to_owned()),
            (as_important, "not less important".to_owned()),
            (guaranteed, format!("in guaranteed run time{until}")),
            (within_share, "of projects that hold no more than is theirs".to_owned()),
        ];
        let said = parts.iter().filter(|(count, _)| **count > 0);
        said.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}

impl Advice {
    /// One sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        let disturbs = match self.disturbs {
            0 => String::new(),
            1 => " (1 other is stopped or moved for it then)".to_owned(),
            n => format!(" ({n} others are stopped or moved for it then)"),
        };
        format!("{}{disturbs}", self.change.text(now))
    }
}

impl Change {
    /// Short stable name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Gpus { .. } => "fewer_gpus",
            Self::Share { .. } => "smaller_share",
            Self::GpuMemory { .. } => "less_gpu_memory",
            Self::Pods { .. } => "fewer_pods",
            Self::Cpu { .. } => "less_cpu",
            Self::Memory { .. } => "less_memory",
            Self::Elastic => "elastic",
            Self::Preemptible => "preemptible",
            Self::Priority { .. } => "priority",
            Self::WithoutSelector { .. } => "without_selector",
            Self::WithoutAffinity => "without_affinity",
            Self::Tolerate { .. } => "tolerate",
            Self::Wait { .. } => "wait",
            Self::End { .. } => "end",
            Self::Quota(_) => "quota",
            Self::Limit(_) => "limit",
            Self::Uncordon { .. } => "uncordon",
            Self::Nodes { .. } => "more_nodes",
        }
    }

    /// One sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        match self {
            Self::Gpus { gpus } => {
                format!("ask for at most {}", of(Kind::Gpu, u64::from(*gpus) * units::GPU_MILLIS))
            }
            Self::Share { millis } => {
                format!("ask for at most {} of a GPU", format_millis(*millis))
            }
            Self::GpuMemory { bytes } => {
                format!("ask for at most {} of GPU memory", format_bytes(*bytes))
            }
            Self::Pods { pods } => format!("ask for at most {pods} pod(s) at a time"),
            Self::Cpu { millis } => format!("ask for at most {}", cores(*millis)),
            Self::Memory { bytes } => format!("ask for at most {} of memory", format_bytes(*bytes)),
            Self::Elastic => "let it be elastic: it starts smaller and grows later".to_owned(),
            Self::Preemptible => "let it be preemptible".to_owned(),
            Self::Priority { priority } => format!("give it priority {priority} or more"),
            Self::WithoutSelector { key } => format!("do not select the label {key}"),
            Self::WithoutAffinity => "do without its required node affinity".to_owned(),
            Self::Tolerate { taint } => {
                let value = if taint.value.is_empty() {
                    String::new()
                } else {
                    format!("={}", taint.value)
                };
                format!("tolerate the taint {}{value}", taint.key)
            }
            Self::Wait { until } => {
                format!("wait {}, if nothing else changes", span(now, *until))
            }
            Self::End { workload } => format!("that {workload} ends"),
            Self::Quota(raises) => raised("quota", raises),
            Self::Limit(raises) => raised("limit", raises),
            Self::Uncordon { node } => format!("open the cordoned node {node}"),
            Self::Nodes { like, count: 1 } => format!("add a node like {like}"),
            Self::Nodes { like, count } => format!("add {count} nodes like {like}"),
        }
    }
}

fn raised(what: &str, raises: &[super::change::Raise]) -> String {
    let each = raises.iter().map(|raise| {
        format!(
            "of {} from {} to {}",
            raise.queue,
            number(raise.kind, raise.from),
            of(raise.kind, raise.to)
        )
    });
    format!("raise the {what} {}", each.collect::<Vec<_>>().join(" and "))
}

fn cores(millis: u64) -> String {
    let plural = if millis == units::GPU_MILLIS { "" } else { "s" };
    format!("{} core{plural}", format_millis(millis))
}

fn are(kind: Kind, amount: u64) -> String {
    let verb = if kind == Kind::Gpu && amount == units::GPU_MILLIS { "is" } else { "are" };
    format!("{} {verb}", number(kind, amount))
}

/// A stretch of time, rounded up: `3s`, `2m 5s`, `1h 20m`.
fn span(now: Instant, until: Instant) -> String {
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
