//! *What if*, and when a workload may start. Own routes, under `/elastane/v1`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ChangeFor, CreationRequest, Time};

/// A way to make room that did not help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Search {
    /// Stable code; `docs/reference/codes/<code>.md` explains it.
    pub code: String,
    /// One sentence with the numbers.
    pub message: String,
}

/// Body of `POST /elastane/v1/what-if`: first the steps, then the changes, then what is submitted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WhatIf {
    /// Trainings, as they would be posted.
    pub trainings: Vec<CreationRequest>,
    /// Workspaces, as they would be posted.
    pub workspaces: Vec<CreationRequest>,
    /// Distributed workloads, as they would be posted.
    pub distributed: Vec<CreationRequest>,
    /// Inferences, as they would be posted; each with the replicas that it begins with, one at
    /// least.
    pub inferences: Vec<CreationRequest>,
    /// Steps of a scenario: `{"quota": {…}}`, `{"add_node": {…}}`, `{"delete": "a"}`, ….
    #[schema(value_type = Vec<Object>)]
    pub steps: Vec<serde_json::Value>,
    /// Changes for waiting workloads, as the advice of a diagnosis has them.
    pub changes: Vec<ChangeFor>,
}

/// Effects of the steps and submissions. They are not carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WouldHappen {
    /// The moment whose state it was asked of.
    pub as_of: Time,
    /// Outcome of each submitted pod.
    pub pods: Vec<PodFate>,
    /// Submitted workloads that would wait, with their reasons.
    pub waiting: Vec<WouldWait>,
    /// Decisions of the scheduler, in order; those for others included.
    pub decisions: Vec<WouldDo>,
}

/// Outcome of a submitted pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodFate {
    /// Project.
    pub project_name: String,
    /// Workload.
    pub workload_name: String,
    /// Number of the pod.
    pub pod: u32,
    /// `start`, `reserve` (its place is being freed) or `wait`.
    pub fate: String,
    /// Place it would get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A workload that would wait, and the reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WouldWait {
    /// Project.
    pub project_name: String,
    /// Workload.
    pub workload_name: String,
    /// Codes and sentences.
    pub reasons: Vec<Search>,
    /// Changes that would help, and holders of what is missing: lines for people.
    pub lines: Vec<String>,
}

/// Something the scheduler would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WouldDo {
    /// `bind`, `reserve`, `unreserve`, `evict`, `move` or `resize`.
    pub kind: String,
    /// Project.
    pub project_name: String,
    /// Workload.
    pub workload_name: String,
    /// Number of the pod.
    pub pod: u32,
    /// Place before the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Place after the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Code of the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The cause, with its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Workload that would get what is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneficiary: Option<String>,
}

/// Estimated start of a workload that waits, if nothing else is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartEstimate {
    /// Not before; none: never, as things stand, or not known if there are `unknownEnds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Time>,
    /// Not after; none: that cannot be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Time>,
    /// If it starts earlier when they end: those whose end is not known, because they have no time
    /// limit and too few like them completed. `project/name`; the first ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_ends: Vec<String>,
    /// Assumption about the run times of workloads.
    pub assumption: String,
}
