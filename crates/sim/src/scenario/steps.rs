//! Steps of a scenario, and expectations after them. Owns: names of keys.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::amount::{Count, Span};
use super::list::OneOrMany;
use super::policy::Action;
use super::read::At;
use super::types::{Amounts, Node, Place, Weights, Workload};

/// A step and the expectation after it. At most one of the actions is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// New workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit: Option<At<Submit>>,
    /// Workloads to delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<OneOrMany<String>>,
    /// Workloads whose processes end with success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<OneOrMany<String>>,
    /// Workloads to suspend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<OneOrMany<String>>,
    /// Suspended workloads to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<OneOrMany<String>>,
    /// Gated workloads to release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ungate: Option<OneOrMany<String>>,
    /// Workloads whose first running pod fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<OneOrMany<String>>,
    /// New values of a queue; values that are not given stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaChange>,
    /// Time that passes; the scheduler runs whenever it requested to be woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advance: Option<Span>,
    /// Exact number of decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<At<Cycles>>,
    /// Stopping pods that terminate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<Gone>,
    /// A new node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_node: Option<At<Node>>,
    /// Nodes that accept no new pods from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<OneOrMany<String>>,
    /// Nodes that accept new pods again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncordon: Option<OneOrMany<String>>,
    /// Nodes to drain: they accept no new pods, and their pods leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<OneOrMany<String>>,
    /// Nodes to remove, which must have no pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_node: Option<OneOrMany<String>>,
    /// Nodes that are lost, with all that runs on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lose_node: Option<OneOrMany<String>>,
    /// GPUs that are lost, with all that runs on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lose_gpu: Option<Place>,
    /// GPUs that are in service again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_gpu: Option<Place>,
    /// Expected state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<At<Expect>>,
}

/// New workloads: one, or a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Submit(pub Vec<At<Workload>>);

impl Serialize for Submit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Submit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Submit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a workload or a list of workloads")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Submit, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Submit)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Submit, A::Error> {
                let one = Workload::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Submit(vec![one.into()]))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Step {
    /// The new workloads; a single one has the position of `submit`.
    pub(crate) fn submitted(&self) -> Option<Vec<At<Workload>>> {
        let submit = self.submit.as_ref()?;
        let mut workloads = submit.value.0.clone();
        for workload in workloads.iter_mut().filter(|workload| workload.line == 0) {
            (workload.line, workload.column) = (submit.line, submit.column);
        }
        Some(workloads)
    }
}

/// A number of decisions, each with all actions of the policy or with those given.
#[derive(Debug, Clone, PartialEq)]
pub struct Cycles {
    /// Number of decisions.
    pub count: u32,
    /// Actions of each decision, in order; those of the policy if `None`.
    pub actions: Option<Vec<Action>>,
}

/// The written form with several keys.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CyclesParts {
    #[serde(default = "one_cycle")]
    count: u32,
    #[serde(default)]
    actions: Option<Vec<Action>>,
}

const fn one_cycle() -> u32 {
    1
}

impl Serialize for Cycles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { count, actions } = self;
        match actions {
            None => serializer.serialize_u32(*count),
            actions => {
                CyclesParts { count: *count, actions: actions.clone() }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Cycles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Cycles;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of cycles, or {count, actions}")
            }
            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Cycles, E> {
                let count = u32::try_from(count).map_err(|_| E::custom("too many cycles"))?;
                Ok(Cycles { count, actions: None })
            }
            fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Cycles, E> {
                let count = u64::try_from(count).map_err(|_| E::custom("fewer than 0 cycles"))?;
                self.visit_u64(count)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Cycles, A::Error> {
                let CyclesParts { count, actions } =
                    CyclesParts::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Cycles { count, actions })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Stopping pods that terminate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gone {
    /// All stopping pods.
    All,
    /// The stopping pods of these workloads.
    Of(OneOrMany<String>),
}

/// New values of a queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaChange {
    /// Name of the queue.
    pub project: String,
    /// Node pool; `default` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Quota.
    #[serde(default)]
    pub quota: Amounts,
    /// Limit.
    #[serde(default)]
    pub limit: Amounts,
    /// Weights.
    #[serde(default)]
    pub weight: Weights,
    /// Priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

/// An expected state; a field that is not given may have any value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Occupants of each GPU of a node, in order: `a2 a2 b1:0.5+c1:0.3 .`; `!` marks a pod that is
    /// being stopped.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<String, String>,
    /// Every workload with a pod that waits and has no place, in order of creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Vec<String>>,
    /// Single workloads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workloads: BTreeMap<String, ExpectWorkload>,
    /// Single queues.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<String, ExpectQueue>,
    /// Every workload stopped by the decisions of this step, with the codes of the causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<BTreeMap<String, OneOrMany<String>>>,
    /// Number of decisions of a kind in this step: `bind`, `reserve`, `unreserve`, `evict`, `move`,
    /// `resize`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub decisions: BTreeMap<DecisionKind, u32>,
}

/// A kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionKind {
    /// A pod starts.
    Bind,
    /// A place is reserved for a pod.
    Reserve,
    /// A reserved place is given up.
    Unreserve,
    /// A pod is stopped.
    Evict,
    /// A pod is stopped and starts elsewhere.
    Move,
    /// A pod is stopped and starts with another number of GPUs.
    Resize,
}

impl DecisionKind {
    /// The keyword of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bind => "bind",
            Self::Reserve => "reserve",
            Self::Unreserve => "unreserve",
            Self::Evict => "evict",
            Self::Move => "move",
            Self::Resize => "resize",
        }
    }
}

/// Expected state of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectWorkload {
    /// `running` (all its pods), `partly`, `reserved`, `releasing`, `pending`, `suspended`,
    /// `finished`, `gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<super::State>,
    /// Nodes of its pods, in pod order, each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<OneOrMany<String>>,
    /// Number of GPUs that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Count>,
    /// Number of running pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// Number of pods with a place that is still being freed, whether they run elsewhere or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipelined: Option<u32>,
    /// Number of pods that are being stopped, and have no other place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releasing: Option<u32>,
    /// Single pods, in their order; pods that are not listed may have any state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<ExpectTask>,
    /// Codes of the reasons why it waits, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<OneOrMany<String>>,
}

/// Expected state of a pod; a field that is not given may have any value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectTask {
    /// State.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ExpectState>,
    /// Its current or future node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Number of GPUs that it holds there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Count>,
    /// Indices of these GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Vec<u32>>,
    /// Arbitrary names for these GPUs: equal names mean one GPU, different names different GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<OneOrMany<String>>,
}

/// Expected state of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectState {
    /// Waits for a place.
    Pending,
    /// Holds its place.
    #[serde(alias = "bound", alias = "binding", alias = "allocated")]
    Running,
    /// Has a place that is still being freed, whether it runs elsewhere or not.
    #[serde(alias = "reserved")]
    Pipelined,
    /// Is being stopped, and has no other place.
    Releasing,
    /// Does not want a place.
    #[serde(alias = "suspended", alias = "succeeded", alias = "failed")]
    Ended,
}

impl ExpectState {
    /// The keyword of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Pipelined => "pipelined",
            Self::Releasing => "releasing",
            Self::Ended => "ended",
        }
    }
}

/// Expected state of a queue, in all pools together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectQueue {
    /// Number of GPUs that its workloads hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Count>,
    /// Fair share in GPUs as of the last decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_share: Option<Count>,
    /// Expected state in single node pools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, ExpectPool>,
}

/// Expected state of a queue in one node pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectPool {
    /// Number of GPUs that its workloads hold there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Count>,
    /// Fair share in GPUs there as of the last decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_share: Option<Count>,
}
