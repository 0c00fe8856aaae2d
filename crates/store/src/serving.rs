//! How a workload that serves requests looks on disk, for good: a field may be added with a
//! default, never renamed. Refuses to know: the types of the rest of the house.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How an inference serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServingBody {
    /// The port that was asked for.
    pub container_port: u16,
    /// How many replicas.
    pub scaling: ScalingBody,
    /// Most requests at a replica at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<u32>,
    /// Until the first replica is ready.
    pub start_ms_max: u64,
    /// Until an answer begins.
    pub request_ms_max: u64,
    /// Whether only this machine may send requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local_only: bool,
    /// Who may send requests: `everyone`, `authenticated` or `users`.
    pub audience: String,
    /// Which users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// How a replica shows that it is ready.
    pub probe: ProbeBody,
}

/// How many replicas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingBody {
    /// Never fewer.
    pub replicas_min: u32,
    /// Never more.
    pub replicas_max: u32,
    /// To begin with.
    pub replicas_initial: u32,
    /// After a rest.
    pub replicas_activation: u32,
    /// What is measured: `concurrency`, `throughput` or `latency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// What one replica can take of it.
    #[serde(default)]
    pub threshold: u32,
    /// The part of it that is aimed at, thousandths of a percent.
    #[serde(default)]
    pub percent_millis: u32,
    /// What was not needed for so long is given up.
    pub window_ms: u64,
    /// Delay of that.
    pub down_delay_ms: u64,
    /// The same for the last replica.
    pub zero_retention_ms: u64,
}

/// How a replica shows that it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeBody {
    /// A path that answers a GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// To the first look.
    pub first_ms: u64,
    /// From look to look.
    pub period_ms: u64,
    /// Longest time of a look.
    pub wait_ms_max: u64,
    /// So many make it ready.
    pub successes: u32,
    /// So many failures make it not ready.
    pub failures: u32,
}

/// A port that is opened in a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlBody {
    /// The port.
    pub port: u16,
    /// Who may open it: `everyone`, `authenticated` or `users`.
    pub audience: String,
    /// Which users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Type of the tool behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_type: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
}

/// A page elsewhere that belongs to a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelatedUrlBody {
    /// Its address.
    pub url: String,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of which tool it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_type: Option<String>,
}

/// Whose revision a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionBody {
    /// The inference.
    pub of: Uuid,
    /// Counts its revisions from 1.
    pub number: u32,
}
