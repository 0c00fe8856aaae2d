//! What a change is about. Owns: the identity of every kind of object, and where an object lies for
//! those who check who may see it.

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
    /// What a class of workloads waits for.
    Reason(ClassId),
    /// A workload, with what it waits for.
    Workload(Uuid),
    /// A workload, without what it waits for together with others: readers of rows get that once,
    /// however many wait for it.
    Row(Uuid),
    /// A pod, after its workload.
    Pod(Uuid, Uuid),
}

/// Where an object lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub scope: Scope,
    /// The department around it. Kept here because a deleted project no longer has one.
    pub department: Option<u64>,
}

impl Place {
    /// What belongs to the cluster as a whole.
    pub const CLUSTER: Self = Self { scope: Scope::Cluster, department: None };

    /// The project it lies in.
    #[must_use]
    pub const fn project(&self) -> Option<u64> {
        match self.scope {
            Scope::Project(id) => Some(id),
            _ => None,
        }
    }
}
