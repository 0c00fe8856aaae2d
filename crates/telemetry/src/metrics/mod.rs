//! What was measured, as the interface shows it. Owns: the published types of series and of values
//! as of now, and what each is made of. Does not know how anything is measured, and who may
//! see it.

mod formula;
mod query;
mod series;

pub(crate) use formula::{
    OfCluster, OfInference, OfNode, OfNodePool, OfOrgUnit, OfPod, OfReplica, OfWorkload,
};
pub(crate) use query::{MetricsQuery, TelemetryFamily, TelemetryQuery};
pub(crate) use series::{Points, measurements, together};
