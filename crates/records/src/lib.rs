//! Rows of the store, and the changes of them that form one transaction. Owns: their shape. Does
//! not know how a database keeps them, nor what they mean.

pub mod clock_shift;
mod eviction;
mod kept_deletions;
mod ledger;
mod log_group;
mod moment;
mod past;
mod rows;
mod snapshot;

pub use eviction::{BeneficiaryBody, ReasonBody};
pub use kept_deletions::KeptDeletions;
pub use ledger::{AllocationRow, GpuUseRow, LagRow, LagUnit, LedgerRow};
pub use log_group::LogGroup;
pub use moment::{Ids, Moment, STEP_MS_MIN, Settled, Step, settle};
pub use past::{
    Archived, ArchivedCount, ArchivedFilter, ArchivedKey, ArchivedLookup, ArchivedOrder,
    ArchivedPlace, Past, PastFilter,
};
pub use rows::{
    AuditDetail, AuditFilter, AuditRow, Change, ClockRow, ClusterRow, CredentialRow,
    DepartmentBody, DepartmentRow, Desired, EventFilter, EventRow, Log, ObjectRow, PlacementBody,
    PodBody, PodRow, ProjectBody, ProjectRow, Relaunch, SampleFilter, SampleRow, UsageRow,
    WorkloadRow, WorkloadState,
};
pub use snapshot::Snapshot;
