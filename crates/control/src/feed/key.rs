//! Identity of the object that a change is about. Owns: the identity of every kind of object, and
//! the place of an object for checks of who may see it.

use std::sync::Arc;

use reasons::ClassId;
use uuid::Uuid;

use view::Scope;

/// The identity of an object. Lists are sent in the order of the variants, so that an object comes
/// after those it lies in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A department, by id.
    Department(u64),
    /// A project, by id.
    Project(u64),
    /// A node pool, by id.
    Pool(Arc<str>),
    /// A node, by name.
    Node(Arc<str>),
    /// A GPU, by the name of its node and its number there.
    Gpu(Arc<str>, u32),
    /// A document that the scheduler does not need, by its stored kind and its id.
    Object(Arc<str>, Arc<str>),
    /// Pending reason of a class of workloads.
    Reason(ClassId),
    /// A workload, with its pending reason.
    Workload(Uuid),
    /// A workload, without the pending reason that it shares with others: readers of rows get the
    /// reason once, for any number of workloads.
    Row(Uuid),
    /// A pod, after its workload.
    Pod(Uuid, Uuid),
}

/// Place of an object in the organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Owner of the object.
    pub scope: Scope,
    /// Department of the project. Kept here because a deleted project no longer has one.
    pub department: Option<u64>,
}

impl Place {
    /// Place of objects of the cluster as a whole.
    pub const CLUSTER: Self = Self { scope: Scope::Cluster, department: None };

    /// Project of the place, if any.
    #[must_use]
    pub const fn project(&self) -> Option<u64> {
        match self.scope {
            Scope::Project(id) => Some(id),
            _ => None,
        }
    }
}
