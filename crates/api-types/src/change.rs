//! The stream of changes, `GET /elastane/v1/changes`: the body of each event.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A kind of objects in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// As in `GET /api/v1/org-unit/departments`.
    Department,
    /// As in `GET /api/v1/org-unit/projects`.
    Project,
    /// As in `GET /api/v1/node-pools`.
    NodePool,
    /// As in `GET /api/v1/nodes`, with its GPUs.
    Node,
    /// As in `GET /elastane/v1/gpus`.
    Gpu,
    /// Data sources, environments, compute resources and credentials, as in the lists below
    /// `/api/v1/asset`.
    Asset,
    /// As in `GET /api/v1/workload-templates`.
    Template,
    /// As in `GET /api/v1/users`.
    User,
    /// Reasons that waiting workloads share; only with `shape=row`.
    Reason,
    /// The server itself; only with `shape=row`.
    Server,
    /// Events from now on, as in `GET /elastane/v1/events`; only with `shape=row`.
    Event,
    /// As in `GET /api/v1/workloads`, or a row of it.
    Workload,
    /// As in `GET /api/v1/workloads/pods`.
    Pod,
}

impl ChangeKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Department,
        Self::Project,
        Self::NodePool,
        Self::Node,
        Self::Gpu,
        Self::Asset,
        Self::Template,
        Self::User,
        Self::Reason,
        Self::Server,
        Self::Event,
        Self::Workload,
        Self::Pod,
    ];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Department => "department",
            Self::Project => "project",
            Self::NodePool => "node-pool",
            Self::Node => "node",
            Self::Gpu => "gpu",
            Self::Asset => "asset",
            Self::Template => "template",
            Self::User => "user",
            Self::Reason => "reason",
            Self::Server => "server",
            Self::Event => "event",
            Self::Workload => "workload",
            Self::Pod => "pod",
        }
    }
}

/// An event of the stream of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ChangeFrame<T = Value> {
    /// Data read before is void. Everything follows, then `synced`.
    Reset(ChangeReset),
    /// An object is new or another; this is all of it.
    Changed(Change<T>),
    /// An object is gone.
    Deleted(Change<T>),
    /// All that happened up to this position has been read.
    Synced(ChangePosition),
}

/// Reason for sending everything again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResetReason {
    /// No position was given: this is the first list.
    Start,
    /// The position is of another start of the server, or of before a time without readers.
    OtherEpoch,
    /// Deletions that came after the position have been forgotten.
    TooOld,
    /// The caller may see more, or less, than before.
    Access,
}

/// See [`ChangeFrame::Reset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeReset {
    /// Reason for the reset.
    pub reason: ResetReason,
}

/// See [`ChangeFrame::Synced`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePosition {
    /// For `after`, to go on from here.
    pub position: String,
}

/// The newest version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change<T = Value> {
    /// Kind of the object.
    pub kind: ChangeKind,
    /// Its id, unique in its kind; for a node, its name.
    pub id: String,
    /// Its version: the later of two changes has the larger one, also of different objects.
    pub version: u64,
    /// The project it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The department it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub department_id: Option<String>,
    /// All of it, as its list shows it; none of a deleted one.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub object: Option<T>,
}

const fn nothing<T>() -> Option<T> {
    None
}
