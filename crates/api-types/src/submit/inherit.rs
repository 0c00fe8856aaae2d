//! How what a specification says goes with what it inherits from templates and assets. Owns: that
//! most values replace the inherited one, and how lists and objects are put together. Refuses to
//! know: where the inherited values come from.

use serde_json::Number;

use super::{
    AssetIds, CleanPodPolicy, Compute, DistributedFramework, EnvironmentVariable,
    EnvironmentVariableSecret, GpuRequestType, MpiLauncherCreationPolicy, NameValue,
    Preemptibility, RestartPolicy, SecretVolume, Storage,
};
use crate::place::{ExtendedResource, NodeAffinityRequired, PodAffinity, Toleration};

/// How a value goes with one that is inherited. Most replace it.
pub(super) trait Inherit: Sized {
    fn over(self, _below: Self) -> Self {
        self
    }
}

/// The own value, put together with the inherited one where there are both.
pub(super) fn inherit<T: Inherit>(own: Option<T>, below: Option<T>) -> Option<T> {
    match (own, below) {
        (Some(own), Some(below)) => Some(own.over(below)),
        (own, below) => own.or(below),
    }
}

impl Inherit for String {}
// An order of preference is one value.
impl Inherit for Vec<String> {}
impl Inherit for Number {}
impl Inherit for bool {}
impl Inherit for u32 {}
impl Inherit for u64 {}
impl Inherit for Preemptibility {}
impl Inherit for RestartPolicy {}
impl Inherit for GpuRequestType {}
impl Inherit for DistributedFramework {}
impl Inherit for CleanPodPolicy {}
impl Inherit for MpiLauncherCreationPolicy {}
impl Inherit for NodeAffinityRequired {}
impl Inherit for PodAffinity {}
impl Inherit for EnvironmentVariableSecret {}
impl Inherit for crate::Probes {}

impl Inherit for Vec<Toleration> {
    fn over(self, below: Self) -> Self {
        by_name(self, below, |one| one.name.as_deref().or(one.key.as_deref()).unwrap_or_default())
    }
}

impl Inherit for Vec<ExtendedResource> {
    fn over(self, below: Self) -> Self {
        by_name(self, below, |one| &one.resource)
    }
}

impl Inherit for Storage {
    fn over(self, below: Self) -> Self {
        Self::over(self, below)
    }
}

impl Inherit for crate::AutoScaling {
    fn over(self, below: Self) -> Self {
        Self::over(self, below)
    }
}

impl Inherit for Vec<SecretVolume> {
    fn over(self, mut below: Self) -> Self {
        // In one folder there is one of them, whatever it is called.
        let folder = |one: &SecretVolume| one.mount_path.clone();
        let replaced = |below: &SecretVolume| {
            self.iter().any(|own| folder(own).is_some() && folder(own) == folder(below))
        };
        below.retain(|below| !replaced(below));
        by_name(self, below, SecretVolume::place)
    }
}

impl Inherit for crate::ServingConfiguration {
    fn over(self, below: Self) -> Self {
        Self::over(self, below)
    }
}

impl Inherit for crate::ServingPort {
    fn over(self, mut below: Self) -> Self {
        if self.authorization_type.is_some() {
            // Another audience; the inherited lists belong to the other one.
            (below.authorized_users, below.authorized_groups) = (None, None);
        }
        Self::over(self, below)
    }
}

impl Inherit for Compute {
    fn over(self, mut below: Self) -> Self {
        if self.gpu_request_type.is_some() {
            // Another way to ask for a share; the inherited one would contradict it.
            (below.gpu_portion_request, below.gpu_memory_request) = (None, None);
        }
        Self::over(self, below)
    }
}

impl Inherit for Vec<EnvironmentVariable> {
    fn over(self, below: Self) -> Self {
        by_name(self, below, |variable| variable.name.as_deref().unwrap_or_default())
    }
}

impl Inherit for Vec<NameValue> {
    fn over(self, below: Self) -> Self {
        by_name(self, below, |pair| &pair.name)
    }
}

impl Inherit for AssetIds {
    fn over(self, below: Self) -> Self {
        let mut datasources = below.datasources.unwrap_or_default();
        datasources
            .retain(|asset| !self.datasources.iter().flatten().any(|own| own.id == asset.id));
        datasources.extend(self.datasources.into_iter().flatten());
        Self {
            environment: self.environment.or(below.environment),
            compute: self.compute.or(below.compute),
            datasources: Some(datasources).filter(|all| !all.is_empty()),
        }
    }
}

/// Inherited items, without those that there are own ones of, and the own ones.
fn by_name<T>(own: Vec<T>, mut below: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    below.retain(|inherited| !own.iter().any(|item| name(item) == name(inherited)));
    below.extend(own);
    below
}
