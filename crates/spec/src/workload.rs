//! Specification of a workload.

mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::document::{Document, Step};
use crate::{
    DistributedSpec, ExposedUrl, Framework, Group, MountSource, PodSet, Priority, RelatedUrl,
    Restart, Revision, SecretUse, Serving, TopologyUse, UsedObject, WorkloadKind,
};

/// Default back-off limit.
pub const BACKOFF_LIMIT_DEFAULT: u32 = 6;

/// Specification of a workload. Complete: equal specifications always have the same meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Name, unique among the living workloads of the project.
    pub name: String,
    /// Kind of the workload.
    pub kind: WorkloadKind,
    /// Name of the submitter.
    pub submitted_by: String,
    /// Permanent id of this principal; names may be used again. Empty where it is not known.
    #[serde(default)]
    pub submitter_id: String,
    /// Origin of the request: `CLI`, `Control-plane`, `Other`.
    pub source: String,
    /// Its pods, or the first set of them.
    #[serde(flatten)]
    pub pods: PodSet,
    /// Further sets of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<PodSet>,
    /// How its pods work together; `None` where each is on its own.
    #[serde(rename = "together", default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<DistributedSpec>,
    /// How it serves requests; `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<Serving>,
    /// Its ports that are opened in a browser.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<ExposedUrl>,
    /// Pages elsewhere that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_urls: Vec<RelatedUrl>,
    /// The inference that it is a revision of; `None` for a submitted workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// True if the number of GPUs may be halved to fit and doubled to use free GPUs.
    pub elastic: bool,
    /// Priority among the workloads of the project.
    #[serde(flatten)]
    pub priority: Priority,
    /// Priority of its pods above the minimum, where it is lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_priority: Option<Priority>,
    /// True if it may be evicted for others.
    pub preemptible: bool,
    /// Maximum number of restarts after failures of a pod.
    pub backoff_limit: u32,
    /// Milliseconds after its end at which it is deleted; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_after_ms: Option<u64>,
    /// True if it is deleted, and not queued again, when it is evicted for others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_when_preempted: bool,
    /// The command line it was submitted with, for users.
    pub command_line: Option<String>,
    /// The objects that values were taken from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<UsedObject>,
    /// Labels, kept and returned.
    pub labels: BTreeMap<String, String>,
    /// Annotations, kept and returned.
    pub annotations: BTreeMap<String, String>,
    /// Names of node pools, the best first; empty for those of its project, or else all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_pools: Vec<String>,
    /// Types of nodes it may run on, which its project may restrict; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_types: Vec<String>,
    /// Topology constraint of its pods. It is resolved when the workload is submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyUse>,
    /// Groups of its sets of pods, parents before their children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// Minimum number of its groups and sets that can run together; `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_min: Option<u32>,
    /// Scheduling gates: the workload is not considered until all are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// Minimum wait before others may be stopped for it, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub preemption_delay_ms: u64,
    /// Maximum runtime at a time, in milliseconds, where its project allows as much; `None` for the
    /// maximum of its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// The manifest it was submitted as, for users; JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Arc<str>>,
}

/// Signature for serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Document for WorkloadSpec {
    const WHAT: &'static str = "specification of a workload";
    const STEPS: &'static [Step] = steps::STEPS;
}

/// Bytes of names and values.
fn bytes_of(texts: &BTreeMap<String, String>) -> u64 {
    texts.iter().map(|(name, text)| (name.len() + text.len()) as u64).sum()
}

impl WorkloadSpec {
    /// A preemptible workload of the default priority that requests no more than these pods, of an
    /// unknown submitter.
    #[must_use]
    pub fn new(name: String, kind: WorkloadKind, pods: PodSet) -> Self {
        Self {
            name,
            kind,
            submitted_by: String::new(),
            submitter_id: String::new(),
            source: "Other".to_owned(),
            pods,
            more: Vec::new(),
            distributed: None,
            serving: None,
            urls: Vec::new(),
            related_urls: Vec::new(),
            revision: None,
            elastic: false,
            priority: Priority::default_of(kind),
            spare_priority: None,
            preemptible: true,
            backoff_limit: BACKOFF_LIMIT_DEFAULT,
            delete_after_ms: None,
            delete_when_preempted: false,
            command_line: None,
            uses: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            node_pools: Vec::new(),
            node_types: Vec::new(),
            topology: None,
            groups: Vec::new(),
            children_min: None,
            gates: Vec::new(),
            preemption_delay_ms: 0,
            time_limit_ms: None,
            manifest: None,
        }
    }

    /// Index of a group by its name.
    #[must_use]
    pub fn group(&self, name: Option<&String>) -> Option<usize> {
        let name = name?;
        self.groups.iter().position(|group| group.name == *name)
    }

    /// The sets of its pods, mutable.
    pub fn sets_mut(&mut self) -> impl Iterator<Item = &mut PodSet> {
        std::iter::once(&mut self.pods).chain(&mut self.more)
    }

    /// The sets of its pods, in order; the pods are numbered in this order.
    pub fn sets(&self) -> impl Iterator<Item = &PodSet> + Clone {
        std::iter::once(&self.pods).chain(&self.more)
    }

    /// References of its pods to credentials.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretUse> {
        self.sets().flat_map(|set| &set.pod.secrets)
    }

    /// Bytes of the environment variables of all roles, names and values. Groups of pods have the
    /// same variables.
    #[must_use]
    pub fn environment_bytes(&self) -> u64 {
        let of_set = |set: &PodSet| (set.role.clone(), bytes_of(&set.pod.env));
        self.sets().map(of_set).collect::<BTreeMap<_, _>>().into_values().sum()
    }

    /// Bytes of the labels and annotations, names and values.
    #[must_use]
    pub fn labels_bytes(&self) -> u64 {
        bytes_of(&self.labels) + bytes_of(&self.annotations)
    }

    /// Length as JSON, in bytes: about its size in memory and in the database.
    #[must_use]
    pub fn json_bytes(&self) -> u64 {
        // A specification that has no form as JSON is not stored either.
        serde_json::to_vec(self).map_or(0, |text| text.len() as u64)
    }

    /// The set of the pod with this number, and its number in the set.
    #[must_use]
    pub fn set_of(&self, number: usize) -> (&PodSet, usize) {
        let (mut at, mut left) = (&self.pods, number);
        for set in self.sets() {
            at = set;
            match left.checked_sub(set.pods as usize) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        (at, left)
    }

    /// Number of a pod in its role.
    #[must_use]
    pub fn number_in_role(&self, number: usize) -> u32 {
        let (set, mut own) = self.set_of(number);
        let before = self.sets().take_while(|other| !std::ptr::eq(*other, set));
        own +=
            before.filter(|other| other.role == set.role).map(|o| o.pods as usize).sum::<usize>();
        u32::try_from(own).unwrap_or(u32::MAX)
    }

    /// True if its pods are groups, each of a leader and workers.
    #[must_use]
    pub fn is_of_groups(&self) -> bool {
        self.distributed.is_some_and(|together| together.framework == Framework::Lws)
    }

    /// Numbers of the pods that start and restart together: those of each group, or all.
    #[must_use]
    pub fn gangs(&self) -> Vec<Vec<usize>> {
        if !self.is_of_groups() {
            return vec![(0..self.pod_count() as usize).collect()];
        }
        let mut gangs = vec![Vec::new(); self.groups.len()];
        let mut next = 0;
        for set in self.sets() {
            let pods = next..next + set.pods as usize;
            next = pods.end;
            if let Some(gang) = self.group(set.group.as_ref()).and_then(|at| gangs.get_mut(at)) {
                gang.extend(pods);
            }
        }
        gangs
    }

    /// Numbers of the pods that start and restart with this pod, itself included.
    #[must_use]
    pub fn gang_with(&self, number: usize) -> Vec<usize> {
        let group = self.set_of(number).0.group.as_ref().filter(|_| self.is_of_groups());
        let (mut gang, mut next) = (Vec::new(), 0);
        for set in self.sets() {
            let pods = next..next + set.pods as usize;
            next = pods.end;
            if group.is_none_or(|group| set.group.as_ref() == Some(group)) {
                gang.extend(pods);
            }
        }
        gang
    }

    /// Number of pods.
    #[must_use]
    pub fn pod_count(&self) -> u32 {
        self.sets().map(|set| set.pods).fold(0, u32::saturating_add)
    }

    /// The set of this role, if there is one.
    #[must_use]
    pub fn set_named(&self, role: &str) -> Option<&PodSet> {
        self.sets().find(|set| set.role == role)
    }

    /// True if its pods belong to its revisions.
    #[must_use]
    pub const fn has_revisions(&self) -> bool {
        self.serving.is_some() && self.revision.is_none()
    }

    /// Names of the project volumes that it mounts.
    pub fn volumes(&self) -> impl Iterator<Item = &str> {
        let mounts = self.sets().flat_map(|set| &set.pod.container.mounts);
        mounts.filter_map(|mount| match &mount.from {
            MountSource::Volume { name, ephemeral: false } => Some(name.as_str()),
            _ => None,
        })
    }

    /// True if as many failures as its back-off limit end it. A workspace that restarts in place
    /// keeps its node for its user (reference A.5), and a pod that always restarts has no failure.
    #[must_use]
    pub fn gives_up(&self, restart: Restart) -> bool {
        match restart {
            Restart::Never => true,
            Restart::OnFailure => self.kind != WorkloadKind::Workspace,
            Restart::Always => false,
        }
    }
}
