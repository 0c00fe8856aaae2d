//! What can be asked of the dispatcher. Owns: the shape of requests after authentication and
//! conversion from the wire. Validation of values happens in `admission`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Error;
use crate::documents::{Edited, NewObject};
use crate::nodes::NodeChange;
use crate::pools::PoolChange;
use crate::words::{Word, word};
use spec::{GpuLimit, NodeSpec, NodeTypes, PoolSpec, Priority, Rules, ShareChange, WorkloadSpec};
use view::Object;

/// What to change of a project or a department, or how one begins. What is left out keeps the value
/// it has when the change is made, so that two changes of different values at once both count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrgChange {
    /// Name.
    pub name: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Quota, limit, weight in node pools, by their ids.
    pub shares: BTreeMap<String, ShareChange>,
    /// True if nothing is kept of the shares it was given before.
    pub replaces_shares: bool,
    /// How long workloads may run: replaces all rules.
    pub rules: Option<Rules>,
    /// Names of the node pools of workloads that name none, the best first: replaces all.
    pub default_pools: Option<Vec<String>>,
    /// Which nodes workloads may go to: replaces all.
    pub node_types: Option<NodeTypes>,
}

/// What to change of a workload. What is left out keeps the value it has when the change is made,
/// so that of two changes at once both count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadChange {
    /// Priority and the name it is given by.
    pub priority: Option<Priority>,
    /// True if it may be evicted for others.
    pub preemptible: Option<bool>,
    /// How often a failed pod is started again.
    pub backoff_limit: Option<u32>,
    /// Milliseconds after its end at which it is deleted.
    pub delete_after_ms: Option<u64>,
    /// True if it is deleted, and not queued again, when it is evicted for others.
    pub delete_when_preempted: Option<bool>,
    /// What holds it back from now on: some of what did so before.
    pub gates: Option<Vec<String>>,
    /// Most of each GPU that its pods (of a distributed workload its workers) may use.
    #[serde(default)]
    pub gpu_limit: Option<GpuLimit>,
    /// Labels to set, and to take away where there is no value.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations to set, and to take away where there is no value.
    pub annotations: BTreeMap<String, Option<String>>,
}

/// A specification, and whether the engine could run it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    /// What is asked for.
    pub spec: WorkloadSpec,
    /// What the engine says of it.
    pub runs: Result<(), Error>,
    /// True if it is refused if no node could hold it.
    #[serde(default)]
    pub strict: bool,
}

/// Whether a run of a replica is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// The pod.
    pub pod: Uuid,
    /// Which run of it.
    pub generation: u32,
    /// Why it is not ready; none: it is.
    pub fault: Option<String>,
}

/// Something that is asked for, by whom.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is documented where it is asked for, in the handle")]
pub enum Command {
    CreateDepartment {
        by: String,
        spec: OrgChange,
    },
    UpdateDepartment {
        by: String,
        id: u64,
        change: OrgChange,
    },
    DeleteDepartment {
        by: String,
        id: u64,
    },
    CreateProject {
        by: String,
        department_id: u64,
        spec: OrgChange,
    },
    UpdateProject {
        by: String,
        id: u64,
        change: OrgChange,
    },
    DeleteProject {
        by: String,
        id: u64,
    },
    Submit {
        project_id: u64,
        wanted: Box<Wanted>,
    },
    Delete {
        by: String,
        id: Uuid,
    },
    Suspend {
        by: String,
        id: Uuid,
    },
    Resume {
        by: String,
        id: Uuid,
    },
    UpdateWorkload {
        by: String,
        id: Uuid,
        change: Box<WorkloadChange>,
    },
    UpdateInference {
        by: String,
        id: Uuid,
        from: Uuid,
        wanted: Box<Wanted>,
    },
    Scale {
        revision: Uuid,
        wanted: BTreeSet<u32>,
        why: String,
    },
    Retire {
        revision: Uuid,
    },
    GiveUp {
        revision: Uuid,
        why: String,
    },
    NoteReady(Vec<Readiness>),
    NoteCheckpoint {
        id: Uuid,
        ago_ms: u64,
    },
    NoteHang {
        id: Uuid,
        workers: u32,
        idle_ms: u64,
    },
    NoteParting {
        id: Uuid,
        pods: [String; 2],
        leaves: String,
        for_ms: u64,
    },
    CreatePool {
        by: String,
        spec: PoolSpec,
    },
    UpdatePool {
        by: String,
        id: String,
        change: PoolChange,
    },
    DeletePool {
        by: String,
        id: String,
    },
    ChangeNode {
        by: String,
        node: String,
        change: NodeChange,
    },
    AddNode {
        by: String,
        spec: NodeSpec,
    },
    RemoveNode {
        by: String,
        node: String,
    },
    FailGpu {
        by: String,
        node: String,
        gpu: u32,
    },
    HealGpu {
        by: String,
        node: String,
        gpu: u32,
    },
    StopEverything {
        by: String,
    },
    CreateObject {
        by: String,
        new: NewObject,
    },
    UpdateObject {
        by: String,
        #[serde(deserialize_with = "word")]
        kind: Word,
        id: String,
        edited: Box<Edited>,
    },
    DeleteObject {
        by: String,
        #[serde(deserialize_with = "word")]
        kind: Word,
        id: String,
    },
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
            Self::ChangeNode { node, .. }
            | Self::RemoveNode { node, .. }
            | Self::FailGpu { node, .. }
            | Self::HealGpu { node, .. } => Some(node.clone()),
            Self::CreateDepartment { .. }
            | Self::CreateProject { .. }
            | Self::Submit { .. }
            | Self::CreatePool { .. }
            | Self::AddNode { .. }
            | Self::CreateObject { .. }
            | Self::Scale { .. }
            | Self::Retire { .. }
            | Self::GiveUp { .. }
            | Self::NoteReady(_)
            | Self::NoteCheckpoint { .. }
            | Self::NoteHang { .. }
            | Self::NoteParting { .. }
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
            Self::Workload(id) | Self::Submitted(id, _) => Some(id.to_string()),
            Self::Object(object) => Some(object.id.clone()),
            Self::Nothing | Self::Outdated | Self::Drain => None,
        }
    }
}

/// Something that was refused before it became a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Who asked.
    pub who: String,
    /// For what.
    pub what: String,
    /// About what.
    pub target: String,
    /// Why it was refused.
    pub result: String,
}

/// What a request was about, so that its newest view can be handed back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A department.
    Department(u64),
    /// A project.
    Project(u64),
    /// A workload.
    Workload(Uuid),
    /// A workload that is new, and why no node could hold it, if none could.
    Submitted(Uuid, Option<String>),
    /// An object, as it is now.
    Object(Arc<Object>),
    /// Nothing that has a view.
    Nothing,
    /// The change of an object was made to what it no longer is.
    Outdated,
    /// Everything is being stopped; answered when it is.
    Drain,
}
