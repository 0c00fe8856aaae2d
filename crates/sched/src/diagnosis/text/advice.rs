//! What would let a workload start, in words. Owns: a sentence for each change.

use units::{Instant, Kind, format_bytes, format_millis};

use super::{cores, span};
use crate::diagnosis::change::Raise;
use crate::diagnosis::{Advice, Change};
use reasons::{WorkloadRef, number, of};

/// What a workload is called on a command line.
struct Named<'a> {
    name: &'a str,
    project: &'a str,
}

impl<'a> Named<'a> {
    /// A revision of an inference has the name of that with a number behind a dot, which is in no
    /// other name.
    fn of(workload: &'a WorkloadRef) -> Self {
        let name = workload.name.split('.').next().unwrap_or_default();
        Self { name, project: &workload.queue }
    }
}

impl Advice {
    /// One sentence, and what to type for it on lines of its own.
    pub(super) fn lines(&self, now: Instant) -> Vec<String> {
        let commands = self.commands().into_iter().map(|command| format!("  {command}"));
        std::iter::once(self.text(now)).chain(commands).collect()
    }

    /// What to type for it, in this order; none if no command does it by itself. The request
    /// at the submission can only be changed by another one, whose words are not known here.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        let update = |flag: &str, value: &str| {
            let Named { name, project } = Named::of(&self.workload);
            vec![format!("runai workload update {name} -p {project} --{flag} {value}")]
        };
        match &self.change {
            Change::Quota(raises) => raises.iter().map(|raise| raise.command("quota")).collect(),
            Change::Limit(raises) => raises.iter().map(|raise| raise.command("limit")).collect(),
            Change::Uncordon { node } => Some(vec![format!("elastane node uncordon {node}")]),
            Change::Priority { class, .. } => Some(update("priority", class)),
            Change::Preemptible => Some(update("preemptibility", "preemptible")),
            Change::End { workload } => {
                let Named { name, project } = Named::of(workload);
                Some(vec![format!("runai delete {name} -p {project}")])
            }
            _ => None,
        }
        .unwrap_or_default()
    }

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
            Self::WithoutAffinity { .. } => "without_affinity",
            Self::WithoutPodAffinity => "without_pod_affinity",
            Self::Tolerate { .. } => "tolerate",
            Self::Wait { .. } => "wait",
            Self::End { .. } => "end",
            Self::Quota(_) => "quota",
            Self::Limit(_) => "limit",
            Self::Uncordon { .. } => "uncordon",
            Self::Nodes { .. } => "more_nodes",
        }
    }

    /// The value that is asked for instead, of a change of the request; a taint as
    /// `KEY=VALUE:EFFECT`.
    #[must_use]
    pub fn to(&self) -> Option<String> {
        match self {
            Self::Gpus { gpus } => Some(gpus.to_string()),
            Self::Share { millis } | Self::Cpu { millis } => Some(format_millis(*millis)),
            Self::GpuMemory { bytes } | Self::Memory { bytes } => Some(format_bytes(*bytes)),
            Self::Pods { pods } => Some(pods.to_string()),
            Self::Tolerate { taint } => Some(taint.to_string()),
            _ => None,
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
            Self::Priority { class, .. } => {
                format!("give it the priority {class}, and leave it as preemptible as it is")
            }
            Self::WithoutSelector { key } => format!("do not select the label {key}"),
            Self::WithoutPodAffinity => {
                "do without its required pod affinity and anti-affinity".to_owned()
            }
            Self::WithoutAffinity { demands } => {
                format!("do without its required node affinity: {demands}")
            }
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

impl Raise {
    /// None if no flag sets it.
    fn command(&self, what: &str) -> Option<String> {
        let unit = if self.is_project { "project" } else { "department" };
        let (flag, to) = match self.kind {
            Kind::Gpu => ("gpu", format_millis(self.to)),
            Kind::Cpu => ("cpu", format_millis(self.to)),
            Kind::Memory => ("memory", format_bytes(self.to)),
        };
        let name = self.name.as_ref().filter(|_| self.kind == Kind::Gpu || what == "quota")?;
        let name = name.strip_prefix(model::DEPARTMENT_PREFIX).unwrap_or(name);
        Some(format!("elastane {unit} update {name} --{flag}-{what} {to}"))
    }
}

fn raised(what: &str, raises: &[Raise]) -> String {
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
