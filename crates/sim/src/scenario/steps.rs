//! What happens in a scenario, and what is expected after it. Owns: names of keys.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::amount::{Count, Span};
use super::list::OneOrMany;
use super::read::At;
use super::types::{Amounts, Node, Weights, Workload};

/// One thing that happens, and what is expected then. At most one of the actions is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// New workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit: Option<At<Submit>>,
    /// Workloads that are taken away, with what is left of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<OneOrMany<String>>,
    /// Workloads whose processes end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<OneOrMany<String>>,
    /// Workloads that are stopped and kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<OneOrMany<String>>,
    /// Suspended workloads that want to run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<OneOrMany<String>>,
    /// New numbers of a queue; what is not given stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaChange>,
    /// Time passes; the scheduler runs whenever it asked to be woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advance: Option<Span>,
    /// So many decisions, and no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u32>,
    /// What was being stopped is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<Gone>,
    /// A new machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_node: Option<At<Node>>,
    /// Machines to which no new pods may come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<OneOrMany<String>>,
    /// Machines to which pods may come again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncordon: Option<OneOrMany<String>>,
    /// Machines that are lost, with all that runs on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lose_node: Option<OneOrMany<String>>,
    /// What is expected now.
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
    /// The new workloads; a single one stands where the step says `submit`.
    pub(crate) fn submitted(&self) -> Option<Vec<At<Workload>>> {
        let submit = self.submit.as_ref()?;
        let mut workloads = submit.value.0.clone();
        for workload in workloads.iter_mut().filter(|workload| workload.line == 0) {
            (workload.line, workload.column) = (submit.line, submit.column);
        }
        Some(workloads)
    }
}

/// Which of the pods that are being stopped are gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gone {
    /// All.
    All,
    /// Those of these workloads.
    Of(OneOrMany<String>),
}

/// New numbers of a queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaChange {
    /// Which queue.
    pub project: String,
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

/// What is expected; what is not given may be anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// What each GPU of a node holds, in order: `a2 a2 b1:0.5+c1:0.3 .`; `!` marks what is being stopped.
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
    /// Every workload that was stopped by this step's decisions, with the codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<BTreeMap<String, OneOrMany<String>>>,
}

/// What is expected of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectWorkload {
    /// `running` (all its pods), `partly`, `reserved`, `releasing`, `pending`, `suspended`,
    /// `finished`, `gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<super::State>,
    /// The nodes its pods are on, in pod order, each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<OneOrMany<String>>,
    /// GPUs it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Count>,
    /// Pods that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// Codes of why it waits, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<OneOrMany<String>>,
}

/// What is expected of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectQueue {
    /// GPUs its workloads hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Count>,
    /// GPUs it is entitled to, as of the last decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_share: Option<Count>,
}
