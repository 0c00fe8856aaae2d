//! Series and instant values. Values are texts: a number, or its decimal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;

/// What was measured over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetricsResponse {
    /// One for each type, or for each GPU of a type.
    pub measurements: Vec<MeasurementResponse>,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeasurementResponse {
    /// What was measured.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of what: `gpu` and its number on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// The oldest first; empty where nothing was, or can be, measured.
    pub values: Vec<MeasuredValue>,
}

/// What was measured over time, by groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupedMetricsResponse {
    /// One for each type and group.
    pub measurements: Vec<GroupedMeasurementResponse>,
}

/// One series of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupedMeasurementResponse {
    /// What was measured.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// The oldest first; empty where nothing was, or can be, measured.
    pub values: Vec<MeasuredValue>,
    /// The group; missing if groups were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<GroupedMeasurementGroup>>,
}

/// One value of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = GroupedMeasurementResponseValuesInner)]
pub struct MeasuredValue {
    /// A number, in the unit that the type names.
    pub value: String,
    /// When it was measured; of a mean, when the last of it was.
    pub timestamp: Time,
}

/// What a group has in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupedMeasurementGroup {
    /// By what was grouped.
    pub key: String,
    /// Which group.
    pub value: String,
}

/// A value as of now, by groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TelemetryResponse {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// As of when.
    pub timestamp: Time,
    /// One for each group; without groups one, or none where nothing can be measured.
    pub values: Vec<TelemetryValue>,
}

/// The value of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TelemetryResponseValuesInner)]
pub struct TelemetryValue {
    /// A number.
    pub value: String,
    /// The group.
    #[schema(max_items = 2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<TelemetryGroup>>,
}

/// What a group has in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TelemetryResponseValuesInnerGroupsInner)]
pub struct TelemetryGroup {
    /// By what was grouped.
    pub key: String,
    /// Which group: an id.
    pub value: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
