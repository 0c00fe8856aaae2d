//! What can be asked of the dispatcher. Owns: the shape of requests after authentication and
//! conversion from the wire. Validation of values happens in `admission`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Engine;
use uuid::Uuid;

use crate::objects::{Edited, NewObject, Object};
use crate::pools::{PoolChange, PoolSpec};
use crate::serving::{ExposedUrl, Readiness, RelatedUrl, Revision, Serving};
use crate::spec::{PodSet, Together, TopologyUse};
use crate::update::WorkloadChange;
use crate::view::{NodeTypes, Rank, Rules, Share, WorkloadKind};
use crate::{Error, admission};

/// What to change of a project or a department, or how one begins. What is left out keeps the value it
/// has when the change is made, so that two changes of different values at once both count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrgChange {
    /// Name.
    pub name: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Quota, limit, weight in node pools, by their ids.
    pub shares: BTreeMap<String, ShareChange>,
    /// Whether nothing is kept of the shares it was given before.
    pub shares_anew: bool,
    /// How long workloads may run: all rules anew.
    pub rules: Option<Rules>,
    /// Names of the node pools of workloads that name none, the best first: all anew.
    pub default_pools: Option<Vec<String>>,
    /// Which nodes workloads may go to: all anew.
    pub node_types: Option<NodeTypes>,
}

/// What to change of a share, or what of it was given. An inner `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShareChange {
    /// Deserved GPUs, in thousandths.
    pub gpu_quota_millis: Option<u64>,
    /// Most GPUs it may hold, in thousandths.
    pub gpu_limit_millis: Option<Option<u64>>,
    /// Weight when left-over capacity is divided.
    pub over_quota_weight: Option<u64>,
    /// Deserved CPU thousandths.
    pub cpu_quota_millis: Option<Option<u64>>,
    /// Deserved bytes of memory.
    pub memory_quota_bytes: Option<Option<u64>>,
    /// Most CPU thousandths it may hold.
    pub cpu_limit_millis: Option<Option<u64>>,
    /// Most bytes of memory it may hold.
    pub memory_limit_bytes: Option<Option<u64>>,
    /// Weight for CPU; an inner `None` is that of the GPUs.
    pub cpu_weight: Option<Option<u64>>,
    /// Weight for memory; an inner `None` is that of the GPUs.
    pub memory_weight: Option<Option<u64>>,
    /// Who is served first among siblings.
    pub rank: Option<Rank>,
}

impl ShareChange {
    /// The share with this change made.
    #[must_use]
    pub fn made_to(&self, share: Share) -> Share {
        Share {
            gpu_quota_millis: self.gpu_quota_millis.unwrap_or(share.gpu_quota_millis),
            gpu_limit_millis: self.gpu_limit_millis.unwrap_or(share.gpu_limit_millis),
            over_quota_weight: self.over_quota_weight.unwrap_or(share.over_quota_weight),
            cpu_quota_millis: self.cpu_quota_millis.unwrap_or(share.cpu_quota_millis),
            memory_quota_bytes: self.memory_quota_bytes.unwrap_or(share.memory_quota_bytes),
            cpu_limit_millis: self.cpu_limit_millis.unwrap_or(share.cpu_limit_millis),
            memory_limit_bytes: self.memory_limit_bytes.unwrap_or(share.memory_limit_bytes),
            cpu_weight: self.cpu_weight.unwrap_or(share.cpu_weight),
            memory_weight: self.memory_weight.unwrap_or(share.memory_weight),
            rank: self.rank.unwrap_or(share.rank),
        }
    }

    /// This change, and then that one.
    #[must_use]
    pub fn and(self, then: Self) -> Self {
        Self {
            gpu_quota_millis: then.gpu_quota_millis.or(self.gpu_quota_millis),
            gpu_limit_millis: then.gpu_limit_millis.or(self.gpu_limit_millis),
            over_quota_weight: then.over_quota_weight.or(self.over_quota_weight),
            cpu_quota_millis: then.cpu_quota_millis.or(self.cpu_quota_millis),
            memory_quota_bytes: then.memory_quota_bytes.or(self.memory_quota_bytes),
            cpu_limit_millis: then.cpu_limit_millis.or(self.cpu_limit_millis),
            memory_limit_bytes: then.memory_limit_bytes.or(self.memory_limit_bytes),
            cpu_weight: then.cpu_weight.or(self.cpu_weight),
            memory_weight: then.memory_weight.or(self.memory_weight),
            rank: then.rank.or(self.rank),
        }
    }
}

/// What a workload asks for. Complete: the same specification always means the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Name, unique among the living workloads of the project.
    pub name: String,
    /// What it is for.
    pub kind: WorkloadKind,
    /// Who asked.
    pub submitted_by: String,
    /// Which principal that was, for good; names may be used again. Empty where it is not known.
    pub submitter_id: String,
    /// From where: `CLI`, `Control-plane`, `Other`.
    pub source: String,
    /// Its pods, or the first set of them.
    pub pods: PodSet,
    /// Further sets of pods.
    pub more: Vec<PodSet>,
    /// How its pods work together; none where each is on its own.
    pub together: Option<Together>,
    /// How it serves requests; none if it does not.
    pub serving: Option<Serving>,
    /// Its ports that are opened in a browser.
    pub urls: Vec<ExposedUrl>,
    /// Pages elsewhere that belong to it.
    pub related_urls: Vec<RelatedUrl>,
    /// Whose revision it is; none for what people submit.
    pub revision: Option<Revision>,
    /// Whether the number of GPUs may be halved to fit and doubled to fill.
    pub elastic: bool,
    /// Priority; higher goes first inside the project.
    pub priority: u32,
    /// Name the priority was given by.
    pub priority_class: String,
    /// Whether it may be evicted for others.
    pub preemptible: bool,
    /// How often a failed pod is started again.
    pub backoff_limit: u32,
    /// Milliseconds after its end at which it is deleted; none = never.
    pub delete_after_ms: Option<u64>,
    /// Whether it is deleted, and not queued again, when it is evicted for others.
    pub delete_when_preempted: bool,
    /// The command line it was submitted with, for people.
    pub command_line: Option<String>,
    /// The objects that values were taken from, `<kind>/<id>`.
    pub uses: Vec<String>,
    /// Labels, kept and returned.
    pub labels: BTreeMap<String, String>,
    /// Annotations, kept and returned.
    pub annotations: BTreeMap<String, String>,
    /// Names of node pools, the best first; empty = those of its project, or else all.
    pub node_pools: Vec<String>,
    /// Types of nodes it may go to, which its project may restrict; empty = all.
    pub node_types: Vec<String>,
    /// How close together its pods are to be. It is settled when it is submitted.
    pub topology: Option<TopologyUse>,
    /// The manifest it was submitted as, for people; JSON.
    pub manifest: Option<Arc<str>>,
}

/// A specification, and whether the engine could run it.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) spec: WorkloadSpec,
    pub(crate) runs: Result<(), Error>,
}

impl Wanted {
    pub(crate) fn on(engine: &dyn Engine, spec: WorkloadSpec) -> Box<Self> {
        let runs = admission::runs_on(engine, &spec);
        Box::new(Self { spec, runs })
    }
}

/// A request to the dispatcher.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    CreateDepartment { by: String, spec: OrgChange },
    UpdateDepartment { by: String, id: u64, change: OrgChange },
    DeleteDepartment { by: String, id: u64 },
    CreateProject { by: String, department_id: u64, spec: OrgChange },
    UpdateProject { by: String, id: u64, change: OrgChange },
    DeleteProject { by: String, id: u64 },
    Submit { project_id: u64, wanted: Box<Wanted> },
    Delete { by: String, id: Uuid },
    Suspend { by: String, id: Uuid },
    Resume { by: String, id: Uuid },
    UpdateWorkload { by: String, id: Uuid, change: Box<WorkloadChange> },
    UpdateInference { by: String, id: Uuid, from: Uuid, wanted: Box<Wanted> },
    Scale { revision: Uuid, wanted: BTreeSet<u32>, why: String },
    Retire { revision: Uuid },
    GiveUp { revision: Uuid, why: String },
    NoteReady(Vec<Readiness>),
    CreatePool { by: String, spec: PoolSpec },
    UpdatePool { by: String, id: String, change: PoolChange },
    DeletePool { by: String, id: String },
    LabelNode { by: String, node: String, labels: BTreeMap<String, String> },
    FailGpu { by: String, node: String, gpu: u32 },
    HealGpu { by: String, node: String, gpu: u32 },
    StopEverything { by: String },
    CreateObject { by: String, new: NewObject },
    UpdateObject { by: String, kind: &'static str, id: String, edited: Box<Edited> },
    DeleteObject { by: String, kind: &'static str, id: String },
    Record(Record),
}

impl Command {
    /// Id of what is changed, if it is there already.
    pub(crate) fn target_id(&self) -> Option<String> {
        match self {
            Self::UpdateDepartment { id, .. }
            | Self::DeleteDepartment { id, .. }
            | Self::UpdateProject { id, .. }
            | Self::DeleteProject { id, .. } => Some(id.to_string()),
            Self::Delete { id, .. }
            | Self::Suspend { id, .. }
            | Self::Resume { id, .. }
            | Self::UpdateWorkload { id, .. }
            | Self::UpdateInference { id, .. } => Some(id.to_string()),
            Self::UpdatePool { id, .. }
            | Self::DeletePool { id, .. }
            | Self::UpdateObject { id, .. }
            | Self::DeleteObject { id, .. } => Some(id.clone()),
            Self::LabelNode { node, .. }
            | Self::FailGpu { node, .. }
            | Self::HealGpu { node, .. } => Some(node.clone()),
            Self::CreateDepartment { .. }
            | Self::CreateProject { .. }
            | Self::Submit { .. }
            | Self::CreatePool { .. }
            | Self::CreateObject { .. }
            | Self::Scale { .. }
            | Self::Retire { .. }
            | Self::GiveUp { .. }
            | Self::NoteReady(_)
            | Self::StopEverything { .. }
            | Self::Record(_) => None,
        }
    }
}

impl Subject {
    /// Its id, if it has one.
    pub(crate) fn id(&self) -> Option<String> {
        match self {
            Self::Department(id) | Self::Project(id) => Some(id.to_string()),
            Self::Workload(id) => Some(id.to_string()),
            Self::Object(object) => Some(object.id.clone()),
            Self::Nothing | Self::Outdated | Self::Drain => None,
        }
    }
}

/// Something that was refused before it became a command.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) who: String,
    pub(crate) what: String,
    pub(crate) target: String,
    pub(crate) result: String,
}

/// What a request was about, so that its newest view can be handed back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Department(u64),
    Project(u64),
    Workload(Uuid),
    Object(Arc<Object>),
    Nothing,
    /// The change of an object was made to what it no longer is.
    Outdated,
    /// Everything is being stopped; answered when it is.
    Drain,
}
