//! Inheritance: the combination of each part of a specification with that of templates and assets.
//! Owns: the rule of each type that is not simply replaced.

use super::{
    AssetIds, CleanPodPolicy, Compute, ConfigMapInstance, DistributedFramework, EmptyDirInstance,
    EnvironmentVariable, EnvironmentVariableConfigMap, EnvironmentVariableSecret, ExposedUrl,
    GitInstance, GpuRequestType, HostPathInstance, ImagePullPolicy, ImagePullSecret,
    MpiLauncherCreationPolicy, NameValue, NfsInstance, Port, Preemptibility, PvcInstance,
    RelatedUrl, RestartPolicy, S3Instance, SecretVolume, Security, Storage,
};
use crate::inherit::{Inherit, by, by_name};
use crate::node_constraints::{ExtendedResource, NodeAffinityRequired, PodAffinity, Toleration};

impl Inherit for ImagePullPolicy {}
impl Inherit for Preemptibility {}
impl Inherit for RestartPolicy {}
impl Inherit for GpuRequestType {}
impl Inherit for DistributedFramework {}
impl Inherit for CleanPodPolicy {}
impl Inherit for MpiLauncherCreationPolicy {}
impl Inherit for NodeAffinityRequired {}
impl Inherit for PodAffinity {}
impl Inherit for EnvironmentVariableSecret {}
impl Inherit for EnvironmentVariableConfigMap {}
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

impl Inherit for Security {
    fn over(self, mut below: Self) -> Self {
        if self.uid_gid_source.as_deref().is_some_and(|source| source != "custom") {
            // Another source; the inherited numbers belong to the other one.
            (below.run_as_uid, below.run_as_gid, below.supplemental_groups) = (None, None, None);
        }
        Self::over(self, below)
    }
}

/// A mount: in one folder there is at most one of a kind, under any name.
trait Mounted {
    fn name(&self) -> Option<&String>;
    fn folder(&self) -> Option<&String>;

    /// Key among the mounts of its kind: its name, else its folder.
    fn place(&self) -> &str {
        self.name().or(self.folder()).map_or("", String::as_str)
    }
}

macro_rules! mounted {
    ($($of:ident by $folder:ident,)+) => {$(
        impl Mounted for $of {
            fn name(&self) -> Option<&String> {
                self.name.as_ref()
            }

            fn folder(&self) -> Option<&String> {
                self.$folder.as_ref()
            }
        }

        impl Inherit for Vec<$of> {
            fn over(self, below: Self) -> Self {
                by_place(self, below)
            }
        }
    )+};
}

mounted! {
    SecretVolume by mount_path,
    ConfigMapInstance by mount_path,
    EmptyDirInstance by path,
    GitInstance by path,
    HostPathInstance by mount_path,
    NfsInstance by mount_path,
    PvcInstance by path,
    S3Instance by path,
}

fn by_place<T: Mounted>(own: Vec<T>, mut below: Vec<T>) -> Vec<T> {
    let replaced =
        |below: &T| own.iter().any(|own| own.folder().is_some() && own.folder() == below.folder());
    below.retain(|below| !replaced(below));
    by_name(own, below, T::place)
}

impl Inherit for Vec<Port> {
    fn over(self, below: Self) -> Self {
        by(self, below, |port| port.container)
    }
}

impl Inherit for Vec<ExposedUrl> {
    fn over(self, below: Self) -> Self {
        by(self, below, |url| url.container)
    }
}

impl Inherit for Vec<RelatedUrl> {
    fn over(self, below: Self) -> Self {
        by_name(self, below, |one| {
            one.name.as_ref().or(one.url.as_ref()).map_or("", String::as_str)
        })
    }
}

impl Inherit for Vec<ImagePullSecret> {
    fn over(self, below: Self) -> Self {
        by_name(self, below, |secret| secret.name.as_deref().unwrap_or_default())
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
            (below.gpu_portion_limit, below.gpu_memory_limit) = (None, None);
        }
        // A limit belongs to its request.
        if self.gpu_portion_request.is_some() {
            below.gpu_portion_limit = None;
        }
        if self.gpu_memory_request.is_some() {
            below.gpu_memory_limit = None;
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
