//! Commands of the dispatcher. Owns: the shape of requests after authentication and conversion from
//! the wire. Validation of values happens in `admission`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Edited, Error, NewObject, NodeChange, PoolChange};
use spec::words::{Word, word};
use spec::{GpuLimit, NodeSpec, NodeTypes, PoolSpec, Priority, Rules, ShareChange, WorkloadSpec};
use view::Object;

/// Changes of a project or a department, or its initial settings. A field without a value keeps the
/// value at the time of the change, so that two concurrent changes of different fields both count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrgChange {
    /// Name.
    pub name: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Quota, limit and weight in node pools, by their ids.
    pub shares: BTreeMap<String, ShareChange>,
    /// True if all earlier shares are removed.
    pub replaces_shares: bool,
    /// Time limits of workloads; replaces all rules.
    pub rules: Option<Rules>,
    /// Names of the default node pools, the best first; replaces all.
    pub default_pools: Option<Vec<String>>,
    /// Node types for workloads; replaces all.
    pub node_types: Option<NodeTypes>,
    /// Further namespaces of a project in a Kubernetes cluster; replaces all.
    #[serde(default)]
    pub namespaces: Option<Vec<String>>,
}

/// Changes of a workload. A field without a value keeps the value at the time of the change, so
/// that two concurrent changes both count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadChange {
    /// Priority with the name of its class.
    pub priority: Option<Priority>,
    /// True if it may be evicted for others.
    pub preemptible: Option<bool>,
    /// Maximum number of restarts after failures of a pod.
    pub backoff_limit: Option<u32>,
    /// Milliseconds after its end at which it is deleted.
    pub delete_after_ms: Option<u64>,
    /// True if it is deleted, and not queued again, when it is evicted for others.
    pub delete_when_preempted: Option<bool>,
    /// Remaining gates: a subset of the present ones.
    pub gates: Option<Vec<String>>,
    /// Maximum of each GPU that its pods (the workers of a distributed workload) may use.
    #[serde(default)]
    pub gpu_limit: Option<GpuLimit>,
    /// Labels to set; a label without a value is removed.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations to set; an annotation without a value is removed.
    pub annotations: BTreeMap<String, Option<String>>,
}

/// A specification, with the engine's check of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    /// Specification of the workload.
    pub spec: WorkloadSpec,
    /// Result of the engine's check.
    pub runs: Result<(), Error>,
    /// True if it is refused when no node could hold it.
    #[serde(default)]
    pub strict: bool,
}

/// Readiness of a run of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// The pod.
    pub pod: Uuid,
    /// Generation of its run.
    pub generation: u32,
    /// Cause why it is not ready; `None` if it is.
    pub fault: Option<String>,
}

/// A request to the dispatcher, with its author.
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
        /// Further nodes, added at once with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        more: Vec<NodeSpec>,
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
    /// Id of the object to change, if it already exists.
    #[must_use]
    pub fn target_id(&self) -> Option<String> {
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
    #[must_use]
    pub fn id(&self) -> Option<String> {
        match self {
            Self::Department(id) | Self::Project(id) => Some(id.to_string()),
            Self::Workload(id) | Self::Submitted(id, _) => Some(id.to_string()),
            Self::Object(object) => Some(object.id.clone()),
            Self::Nothing | Self::Outdated | Self::Drain => None,
        }
    }
}

/// A request that was refused before it became a command, for the audit log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Name of the author.
    pub who: String,
    /// Requested action.
    pub what: String,
    /// Name of its object.
    pub target: String,
    /// Cause of the refusal.
    pub result: String,
}

/// Object of a request, so that its newest view can be returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A department.
    Department(u64),
    /// A project.
    Project(u64),
    /// A workload.
    Workload(Uuid),
    /// A new workload, and the cause why no node could hold it, if there is one.
    Submitted(Uuid, Option<String>),
    /// An object, as it is now.
    Object(Arc<Object>),
    /// No object with a view.
    Nothing,
    /// A change of an object that is no longer as the change expects.
    Outdated,
    /// All workloads; answered when they have stopped.
    Drain,
}
