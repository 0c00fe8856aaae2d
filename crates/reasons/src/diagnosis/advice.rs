//! Changes that would let a workload start. Owns: the sentence of each, and its commands. Does not
//! know about: how it was found.

use model::Taint;
use units::Instant;

use super::Change;
use crate::WorkloadRef;

/// Steps to follow an advice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HowTo {
    /// Commands in this order; empty if no command makes the change.
    pub commands: Vec<String>,
    /// The role or person with the permission, where the reader lacks it.
    pub ask: Option<String>,
}

impl HowTo {
    /// The sentence of an advice, with the person to ask if there is one.
    #[must_use]
    pub fn sentence(&self, advice: &Advice, now: Instant) -> String {
        let ask = self.ask.as_ref().map_or_else(String::new, |who| format!("; ask {who}"));
        format!("{}{ask}", advice.text(now))
    }

    /// The sentence, and each command on a line of its own.
    pub(super) fn lines(&self, advice: &Advice, now: Instant) -> Vec<String> {
        let commands = self.commands.iter().map(|command| format!("  {command}"));
        std::iter::once(self.sentence(advice, now)).chain(commands).collect()
    }
}

/// A change that lets the workload start, verified by a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The workload that waits.
    pub workload: WorkloadRef,
    /// The change.
    pub change: Change,
    /// Number of workloads that the decision after it would preempt or move.
    pub disturbs: u32,
}

impl Advice {
    /// Commands that make the change, in this order; empty if no command does. The request of a
    /// workload can only be changed by a new submission, whose options are not known here.
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
            Change::Untaint { node, taint: Taint { key, effect, .. } } => {
                Some(vec![format!("elastane node taint {node} {key}:{effect}-")])
            }
            Change::Label { node, key, value } => {
                Some(vec![format!("elastane node label {node} {key}={value}")])
            }
            Change::Priority { class, .. } => Some(update("priority", class)),
            Change::Preemptible => Some(update("preemptibility", "preemptible")),
            Change::Ungate => Some(update("scheduling-gate", "''")),
            Change::End { workload } => {
                let Named { name, project } = Named::of(workload);
                Some(vec![match self.replaces_own_revision() {
                    true => format!("runai inference update {name} -p {project} --recreate"),
                    false => format!("runai delete {name} -p {project}"),
                }])
            }
            _ => None,
        }
        .unwrap_or_default()
    }

    /// Its commands before the workload is submitted: none of them changes the workload.
    #[must_use]
    pub fn commands_before_submission(&self) -> Vec<String> {
        if self.updates_workload() { Vec::new() } else { self.commands() }
    }

    /// True if its command updates the workload itself.
    #[must_use]
    pub const fn updates_workload(&self) -> bool {
        matches!(self.change, Change::Preemptible | Change::Priority { .. } | Change::Ungate)
    }

    /// True if the change ends another revision of the same inference.
    #[must_use]
    pub fn replaces_own_revision(&self) -> bool {
        match &self.change {
            Change::End { workload } => workload.is_other_revision_of(&self.workload),
            _ => false,
        }
    }

    /// Text of the advice in one sentence.
    #[must_use]
    pub fn text(&self, now: Instant) -> String {
        if let Change::End { workload } = &self.change
            && self.replaces_own_revision()
        {
            return format!(
                "that {workload}, another revision of the same inference, ends first: it does not serve \
                 until its successor is ready"
            );
        }
        let disturbs = match self.disturbs {
            0 => String::new(),
            1 => " (stops or moves 1 other)".to_owned(),
            n => format!(" (stops or moves {n} others)"),
        };
        format!("{}{disturbs}", self.change.text(now))
    }
}

/// Name and project of a workload for a command line.
struct Named<'a> {
    name: &'a str,
    project: &'a str,
}

impl<'a> Named<'a> {
    fn of(workload: &'a WorkloadRef) -> Self {
        Self { name: workload.typed_name(), project: &workload.queue }
    }
}
