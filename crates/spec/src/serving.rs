//! What a workload that serves requests asks for.

mod wire;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::invalid::Invalid;
use wire::{AudienceWire, target, tool};

/// Most replicas of one revision: the state has a record of each, running or not.
pub const REPLICAS_MAX: u32 = 100;

/// Whose revision a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The inference.
    pub of: Uuid,
    /// Counts its revisions from 1.
    pub number: u32,
}

/// How an inference serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// The requested port. Replicas share one machine, so each gets another one in
    /// `PORT`.
    pub container_port: u16,
    /// How many replicas.
    pub scaling: Scaling,
    /// Most requests at one replica at a time; none = any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<u32>,
    /// The first replica of a revision is ready in this time, or the revision has failed.
    pub start_ms_max: u64,
    /// An answer begins in this time, waiting for a replica included.
    pub request_ms_max: u64,
    /// True if only this machine may send requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local_only: bool,
    /// Who may send requests.
    #[serde(flatten)]
    pub audience: Audience,
    /// How a replica shows that it is ready.
    pub probe: Probe,
    /// True if the only replica of the revision before may go before one of this is ready, if there is
    /// no room for both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
}

/// How many replicas, and by what that is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    /// Never fewer; 0 = none while no request comes.
    pub replicas_min: u32,
    /// Never more.
    pub replicas_max: u32,
    /// How many a new revision begins with.
    pub replicas_initial: u32,
    /// How many the first request after a rest brings up.
    pub replicas_activation: u32,
    /// What one replica can take; none if there is nothing to decide but whether there is one.
    #[serde(flatten, with = "target")]
    pub target: Option<Target>,
    /// What was not needed for so long is given up.
    pub window_ms: u64,
    /// How much longer than `window_ms` what is no longer needed stays.
    pub down_delay_ms: u64,
    /// The same for the last replica.
    pub zero_retention_ms: u64,
}

/// What one replica can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// What is measured.
    pub metric: Metric,
    /// Requests at a time, requests per second, or milliseconds.
    pub threshold: u32,
    /// The part of the threshold that is aimed at, thousandths of a percent.
    pub percent_millis: u32,
}

/// What is measured to decide about replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Requests at a time.
    Concurrency,
    /// Requests per second.
    Throughput,
    /// Mean time until a request is answered whole.
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

/// Who may send requests.
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
    /// Who may open it.
    #[serde(flatten)]
    pub audience: Audience,
    /// What it is called.
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
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of which tool it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_type: Option<String>,
}

/// How a replica shows that it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// A path that answers a GET with a status of 200 to 399; none = it accepts connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// From the start of its process to the first look.
    pub first_ms: u64,
    /// From one look to the next.
    pub period_ms: u64,
    /// Longest time a look may take.
    pub wait_ms_max: u64,
    /// So many looks in a row make it ready.
    pub successes: u32,
    /// So many failures in a row make it not ready any more.
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
    /// Checks that the values go together.
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

    /// How many replicas a revision begins with when the one before it has so many.
    #[must_use]
    pub fn begin_with(&self, now: u32) -> u32 {
        let scaling = &self.scaling;
        now.max(scaling.replicas_initial).clamp(scaling.replicas_min, scaling.replicas_max)
    }
}
