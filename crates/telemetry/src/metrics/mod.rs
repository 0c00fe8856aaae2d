//! Measurements as the interface shows them. Owns: the published types of series and of current
//! values, and the formula of each. Does not know how anything is measured, and who may see it.

mod formula;
mod query;
mod series;

pub(crate) use formula::{
    OfCluster, OfInference, OfNode, OfNodePool, OfOrgUnit, OfPod, OfReplica, OfWorkload,
};
pub(crate) use query::{MetricsQuery, TelemetryFamily, TelemetryQuery};
pub(crate) use series::{Points, measurements, together};
