//! Scenario files: the wire types, reading and writing. Owns: the format and its version. Does not
//! know about: the model and the scheduler; `build` and `run` interpret the keys.

mod affinity;
pub mod amount;
mod gpus;
mod list;
mod mig;
mod parts;
mod placement;
mod pod_affinity;
mod policy;
mod queue;
mod read;
mod steps;
mod taint;
mod types;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use model::GpuRequest;

pub use affinity::{NodeAffinity, Operator, Preference, Requirement};
pub use gpus::{DEVICES_MAX, GpuAsk};
pub use list::OneOrMany;
pub use mig::{Mig, ProfileName};
pub use parts::{Group, PodSet, Topology, TopologyConstraint};
pub use placement::{Placement, Strategy};
pub use pod_affinity::{PodAffinity, PodTerm, WeightedPodTerm};
pub use policy::{Action, OverQuota, Policy, Profile, RuntimeFrom, UsageWindow, WindowKind};
pub use queue::{Lag, Queue, QueueShare, UsagePpm};
pub use read::At;
pub use steps::{
    Cycles, DecisionKind, Expect, ExpectPool, ExpectQueue, ExpectState, ExpectTask, ExpectWorkload,
    Gone, QuotaChange, Step, Submit,
};
pub use taint::{Effect, Taint, Toleration};
pub use types::{
    Amounts, Evicted, Node, Place, Releasing, Schedule, Task, TaskState, Weights, Workload, World,
};

use crate::Error;

/// Version of the format.
pub const VERSION: u32 = 1;

/// A scenario file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of this format.
    pub version: At<u32>,
    /// Description for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Parameters of the scheduler.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: At<Policy>,
    /// Behaviour of the environment of the scheduler.
    #[serde(default, skip_serializing_if = "is_default")]
    pub world: World,
    /// Network topologies of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topologies: Vec<At<Topology>>,
    /// Node pools that have no node at present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_pools: Vec<String>,
    /// Machines.
    #[serde(default)]
    pub nodes: Vec<At<Node>>,
    /// The queue tree: departments and projects, in order of creation.
    #[serde(default)]
    pub queues: Vec<At<Queue>>,
    /// Initial workloads, in order of creation.
    #[serde(default)]
    pub workloads: Vec<At<Workload>>,
    /// Steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<At<Step>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// State of a workload, or of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Holds its place; a workload is running if all its pods are.
    Running,
    /// Some of its pods hold a place, others do not.
    Partly,
    /// Waits for a place that is being freed.
    Reserved,
    /// Is being stopped.
    Releasing,
    /// Waits for a place.
    Pending,
    /// Does not want a place.
    Suspended,
    /// Has ended with success.
    Finished,
    /// Has failed, after too many failures.
    Failed,
    /// Was deleted, or evicted for good.
    Gone,
}

impl State {
    /// The keyword of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Partly => "partly",
            Self::Reserved => "reserved",
            Self::Releasing => "releasing",
            Self::Pending => "pending",
            Self::Suspended => "suspended",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }
}

impl Step {
    /// Reads one step, YAML or JSON.
    ///
    /// # Errors
    /// The first error.
    pub fn read(text: &str) -> Result<Self, Error> {
        read::read(text)
    }
}

impl Submit {
    /// Reads a workload, or a list of workloads, as a scenario has them.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut submit: Self = read::read(text)?;
        // The positions are not positions in the scenario that the workloads become part of.
        for workload in &mut submit.0 {
            workload.line = 0;
            workload.value.pod_sets.iter_mut().for_each(|set| set.line = 0);
            workload.value.groups.iter_mut().for_each(|group| group.line = 0);
            workload.value.tasks.iter_mut().for_each(|task| task.line = 0);
        }
        Ok(submit)
    }

    /// The project and the name of each of the workloads.
    pub fn names(&self) -> impl Iterator<Item = (String, String)> + use<'_> {
        self.0.iter().flat_map(|workload| {
            let names = crate::play::names(&workload.name, workload.count);
            names.map(|name| (workload.project.clone(), name))
        })
    }
}

impl Scenario {
    /// Reads a scenario, YAML or JSON.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn read(text: &str) -> Result<Self, Error> {
        let scenario: Self = read::read(text)?;
        if scenario.version.value != VERSION {
            return Err(read::wrong_version(&scenario.version));
        }
        Ok(scenario)
    }

    /// Writes the scenario as JSON, which is YAML too. Keys are in a fixed order.
    ///
    /// # Errors
    /// A scenario causes none.
    pub fn to_json(&self) -> Result<String, Error> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::Write { message: error.to_string() })?;
        text.push('\n');
        Ok(text)
    }

    /// Changes parameters of the scheduler, each given as `key=value`.
    ///
    /// # Errors
    /// An unknown key or a wrong value.
    pub fn set_policy(&mut self, pairs: &[String]) -> Result<(), Error> {
        let internal = |error: serde_json::Error| Error::Write { message: error.to_string() };
        for pair in pairs {
            let wrong = |message: String| Error::Scenario { line: 0, column: 0, message };
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong(format!("policy `{pair}` is not of the form KEY=VALUE")))?;
            // A string is read as text typed without quotes; a map is read as YAML.
            let quoted = Value::from(value);
            let plain = if value.bytes().all(|b| b.is_ascii_digit()) || value.starts_with('{') {
                value.into()
            } else {
                quoted.to_string()
            };
            let mut read: Policy = read::read(&format!("{}: {plain}", Value::from(key)))
                .map_err(|error| wrong(format!("policy `{pair}`: {}", error.message())))?;
            let mut pools = std::mem::take(&mut self.policy.value.pool_placement);
            pools.append(&mut read.pool_placement);
            // Values that are not given are not written, so they keep their old value.
            let given = [&self.policy.value, &read].map(serde_json::to_value);
            let given = given.into_iter().collect::<Result<Vec<_>, _>>().map_err(internal)?;
            let given = given.iter().filter_map(Value::as_object).flatten();
            let merged = given.map(|(key, value)| (key.clone(), value.clone())).collect();
            self.policy.value = serde_json::from_value(Value::Object(merged)).map_err(internal)?;
            self.policy.value.pool_placement = pools;
        }
        Ok(())
    }

    /// A scenario without objects.
    #[must_use]
    pub fn empty() -> Self {
        Self { version: VERSION.into(), ..Self::default() }
    }
}
