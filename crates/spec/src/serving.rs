//! Specification of a workload that serves requests.

mod wire;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::invalid::Invalid;
use wire::{AudienceWire, target, tool};

/// Maximum number of replicas of one revision: the state has a record of each, running or not.
pub const REPLICAS_MAX: u32 = 100;

/// Inference and number of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Id of the inference.
    pub of: Uuid,
    /// Counts its revisions from 1.
    pub number: u32,
}

/// Serving settings of an inference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// The requested port. Replicas share one machine, so the actual port of each is in `PORT`.
    pub container_port: u16,
    /// Number of replicas, and how it changes.
    pub scaling: Scaling,
    /// Maximum number of requests at one replica at a time; `None` is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<u32>,
    /// Deadline of the first ready replica of a revision, in milliseconds; a revision without one
    /// by then has failed.
    pub start_ms_max: u64,
    /// Deadline of the first byte of a response, waiting for a replica included, in milliseconds.
    pub request_ms_max: u64,
    /// True if only this machine may send requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local_only: bool,
    /// Users who may send requests.
    #[serde(flatten)]
    pub audience: Audience,
    /// Readiness probe of a replica.
    pub probe: Probe,
    /// True if the only replica of the revision before may stop before one of this is ready, if
    /// there is no room for both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
}

/// Number of replicas, and the rules that change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    /// Minimum; 0 for none while no request arrives.
    pub replicas_min: u32,
    /// Maximum.
    pub replicas_max: u32,
    /// Number of replicas of a new revision.
    pub replicas_initial: u32,
    /// Number of replicas that the first request starts after a scale-down to zero.
    pub replicas_activation: u32,
    /// Target load of one replica; `None` where the only decision is between none and one.
    #[serde(flatten, with = "target")]
    pub target: Option<Target>,
    /// A replica that was not needed for this many milliseconds is scaled down.
    pub window_ms: u64,
    /// Additional time before a replica that is not needed is scaled down, in milliseconds.
    pub down_delay_ms: u64,
    /// Additional time before the last replica is scaled down, at least `down_delay_ms`, in
    /// milliseconds.
    pub zero_retention_ms: u64,
}

/// Target load of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Metric of the load.
    pub metric: Metric,
    /// Requests at a time, requests per second, or milliseconds.
    pub threshold: u32,
    /// Utilization of the threshold that is the target, in thousandths of a percent.
    pub percent_millis: u32,
}

/// Metric by which the number of replicas is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Requests at a time.
    Concurrency,
    /// Requests per second.
    Throughput,
    /// Mean time until a response is complete.
    Latency,
}

impl Metric {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Concurrency => "concurrency",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }
}

/// Users who may send requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AudienceWire", into = "AudienceWire")]
pub enum Audience {
    /// Anyone who can reach the server.
    Everyone,
    /// Anyone with a token of this server.
    Authenticated,
    /// These users and service accounts, by name.
    Users(BTreeSet<String>),
}

/// A port of a workload that is opened in a browser, at an address of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExposedUrl {
    /// The port.
    pub port: u16,
    /// Users who may open it.
    #[serde(flatten)]
    pub audience: Audience,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type and the name of the tool behind it, kept and returned.
    #[serde(flatten, with = "tool")]
    pub tool: (Option<String>, Option<String>),
}

/// A page elsewhere that belongs to a workload, kept and returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelatedUrl {
    /// Its address.
    pub url: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Type of the tool that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_type: Option<String>,
}

/// Readiness probe of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Path that answers a GET with a status of 200 to 399; `None` if accepting connections is
    /// enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Time from the start of its process to the first probe, in milliseconds.
    pub first_ms: u64,
    /// Time between two probes, in milliseconds.
    pub period_ms: u64,
    /// Timeout of a probe, in milliseconds.
    pub wait_ms_max: u64,
    /// Number of successive successes that make it ready.
    pub successes: u32,
    /// Number of successive failures that make it not ready.
    pub failures: u32,
}

/// As in Kubernetes, but more often: a probe is cheap here, and a user waits for it.
impl Default for Probe {
    fn default() -> Self {
        Self {
            path: None,
            first_ms: 0,
            period_ms: 1000,
            wait_ms_max: 1000,
            successes: 1,
            failures: 3,
        }
    }
}

impl Serving {
    /// Checks that the values are consistent.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let Scaling { replicas_min: min, replicas_max: max, .. } = self.scaling;
        let refuse = |field, text: String| Err(Invalid::new(field, text));
        if max == 0 || max > REPLICAS_MAX {
            let text = format!("maxReplicas {max} is not allowed; use 1 to {REPLICAS_MAX}");
            return refuse("maxReplicas", text);
        }
        if min > max {
            let text = format!("minReplicas {min} is above maxReplicas {max}; lower it");
            return refuse("minReplicas", text);
        }
        for (field, count) in [
            ("initialReplicas", self.scaling.replicas_initial),
            ("activationReplicas", self.scaling.replicas_activation),
        ] {
            if !(min..=max).contains(&count) {
                let text = format!("{field} {count} is not allowed; use {min} to {max}");
                return refuse(field, text);
            }
        }
        match self.scaling.target {
            None if min < max && (min, max) != (0, 1) => refuse(
                "metric",
                format!(
                    "{min} to {max} replicas need a metric to decide by; set metric to \
                     concurrency, throughput or latency, and metricThreshold"
                ),
            ),
            Some(Target { threshold: 0, .. }) => {
                refuse("metricThreshold", "metricThreshold 0 is not allowed; use 1 or more".into())
            }
            Some(Target { metric: Metric::Latency, .. }) if min == 0 => refuse(
                "metric",
                "latency cannot tell that no request comes; use concurrency or throughput, or \
                 minReplicas 1"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Number of replicas that a revision begins with when the one before it has `now`.
    #[must_use]
    pub fn begin_with(&self, now: u32) -> u32 {
        let scaling = &self.scaling;
        now.max(scaling.replicas_initial).clamp(scaling.replicas_min, scaling.replicas_max)
    }
}
