//! Series and instant values. Values are texts: a number, or its decimal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;

/// Time series of measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetricsResponse {
    /// One for each type, or for each GPU of a type.
    pub measurements: Vec<MeasurementResponse>,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeasurementResponse {
    /// Type of the measurement.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels of the measured object: `gpu` and its number on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// The oldest first; empty where nothing was, or can be, measured.
    pub values: Vec<MeasuredValue>,
}

/// Time series of measurements, by group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupedMetricsResponse {
    /// One for each type and group.
    pub measurements: Vec<GroupedMeasurementResponse>,
}

/// One series of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupedMeasurementResponse {
    /// Type of the measurement.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels of the measured object.
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
    /// Time of the measurement; for a mean, that of its last measurement.
    pub timestamp: Time,
}

/// Key and value that the members of a group share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupedMeasurementGroup {
    /// Key of the grouping.
    pub key: String,
    /// Value of the group.
    pub value: String,
}

/// A value as of now, by groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TelemetryResponse {
    /// Type of the measurement.
    #[serde(rename = "type")]
    pub kind: String,
    /// Time of the values.
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

/// Key and value that the members of a group share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TelemetryResponseValuesInnerGroupsInner)]
pub struct TelemetryGroup {
    /// Key of the grouping.
    pub key: String,
    /// Id of the group.
    pub value: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
