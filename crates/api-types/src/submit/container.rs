//! Parts of a specification around its image: mounts, ports, user and rights (published as
//! `SupersetSpecAllOfStorage`, `SupersetSpecAllOfSecurity`, `Port`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::optional::optional;
use crate::unsupported::with_unsupported;

/// Declares an item of a list of which all is optional.
macro_rules! item {
    (
        $(#[$meta:meta])* pub struct $name:ident {
            $( $(#[$doc:meta])* pub $field:ident: $kind:ty, )*
        }
    ) => {
        optional! {
            $(#[$meta])* pub struct $name {
                $( $(#[$doc])* pub $field: $kind, )*
                /// Takes an inherited one away.
                pub exclude: bool,
            }
        }
    };
}

with_unsupported! {
    /// Storage of a workload, in its file system (`SupersetSpecAllOfStorage`).
    pub struct Storage {
        /// Credentials as files.
        pub secret_volume: Vec<super::SecretVolume>,
        /// Config maps as files.
        pub config_map_volume: Vec<ConfigMapInstance>,
        /// Empty folders.
        pub empty_dir_volume: Vec<EmptyDirInstance>,
        /// Copies of Git repositories.
        pub git: Vec<GitInstance>,
        /// Copies of S3 buckets.
        pub s3: Vec<S3Instance>,
        /// Folders of the node.
        pub host_path: Vec<HostPathInstance>,
        /// Folders of NFS servers.
        pub nfs: Vec<NfsInstance>,
        /// Volumes that are kept.
        pub pvc: Vec<PvcInstance>,
        ---
        data_volume: "dataVolume",
    }
}

item! {
    /// A config map of the project as files: one for each of its keys, or one file.
    pub struct ConfigMapInstance {
        /// Name among the volumes.
        pub name: String,
        /// Name of the config map.
        pub config_map: String,
        /// Folder in the workload; with `subPath` the file.
        pub mount_path: String,
        /// The one key that is wanted.
        pub sub_path: String,
        /// Permissions of the files, such as `0400`; `0644` if left out.
        pub default_mode: String,
    }
}

item! {
    /// An empty folder; it ends with the run.
    pub struct EmptyDirInstance {
        /// Name among the volumes.
        pub name: String,
        /// Folder in the workload.
        pub path: String,
        /// `Memory`; left out, it lies on the disk.
        pub medium: String,
        /// Most it may hold, such as `10Gi`.
        pub size_limit: String,
    }
}

item! {
    /// A copy of a Git repository, made before each start.
    pub struct GitInstance {
        /// Name among the volumes.
        pub name: String,
        /// Address, over HTTP or the protocol of Git, without a login.
        pub repository: String,
        /// Branch.
        pub branch: String,
        /// Commit or tag.
        pub revision: String,
        /// Folder in the workload.
        pub path: String,
        /// Name or id of a credential that the project can use.
        pub password_secret: String,
        /// Key of the value that is the user; `username` if left out.
        pub secret_key_of_user: String,
        /// Key of the value that is the password; `password` if left out.
        pub secret_key_of_password: String,
    }
}

item! {
    /// A copy of an S3 bucket, made before each start. Files written to it stay in the pod.
    pub struct S3Instance {
        /// Name among the volumes.
        pub name: String,
        /// Bucket.
        pub bucket: String,
        /// Folder in the workload.
        pub path: String,
        /// Server; that of Amazon if left out.
        pub url: String,
        /// Name or id of a credential that the project can use.
        pub access_key_secret: String,
        /// Key of the value that is the id; `AccessKeyId` if left out.
        pub secret_key_of_access_key_id: String,
        /// Key of the value that is the secret; `SecretKey` if left out.
        pub secret_key_of_secret_key: String,
    }
}

item! {
    /// A folder of the node.
    pub struct HostPathInstance {
        /// Name among the volumes.
        pub name: String,
        /// Folder there.
        pub path: String,
        /// True if it can only be read; it is unless this is `false`.
        pub read_only: bool,
        /// Folder in the workload.
        pub mount_path: String,
        /// `None`, `HostToContainer` or `Bidirectional`.
        pub mount_propagation: String,
    }
}

item! {
    /// A folder of an NFS server.
    pub struct NfsInstance {
        /// Name among the volumes.
        pub name: String,
        /// Folder there.
        pub path: String,
        /// True if it can only be read; it is unless this is `false`.
        pub read_only: bool,
        /// Server.
        pub server: String,
        /// Folder in the workload.
        pub mount_path: String,
    }
}

item! {
    /// A volume of the project that is kept from one workload to the next.
    pub struct PvcInstance {
        /// Name among the volumes.
        pub name: String,
        /// Folder in the workload.
        pub path: String,
        /// True if the volume has to be there already.
        pub existing_pvc: bool,
        /// Name of the volume; if left out or empty `name`, or else that of the workload, from the
        /// second on with a number.
        pub claim_name: String,
        /// True if it can only be read.
        pub read_only: bool,
        /// True if it belongs to the pod alone and ends with the workload.
        pub ephemeral: bool,
        /// Request for a new volume. The size is kept and shown, but not enforced.
        pub claim_info: crate::ClaimInfo,
        /// Kept by data sources only.
        pub data_sharing: bool,
    }
}

item! {
    /// A port that is reached from outside.
    pub struct Port {
        /// In the workload.
        pub container: u32,
        /// `NodePort`, `LoadBalancer` or `ClusterIP`, which are the same on one machine.
        pub service_type: PortServiceType,
        /// On the node; left out, one that is free.
        pub external: u32,
        /// For display only.
        pub tool_type: String,
        /// For display only.
        pub tool_name: String,
        /// For display only.
        pub name: String,
    }
}

item! {
    /// A port that is opened in a browser.
    pub struct ExposedUrl {
        /// In the workload.
        pub container: u32,
        /// Its address, which is settled by names and port; left out, or that address.
        pub url: String,
        /// Authorization to open it. If it is left out, the listed users and groups may; if none
        /// are listed, anyone who reaches the server.
        pub authorization_type: crate::ServingPortAccessAuthorizationTypeEnum,
        /// These users and service accounts, by name.
        pub authorized_users: Vec<String>,
        /// These groups.
        pub authorized_groups: Vec<String>,
        /// For display only.
        pub tool_type: String,
        /// For display only.
        pub tool_name: String,
        /// Name, among the ports of the workload.
        pub name: String,
    }
}

item! {
    /// A page elsewhere that belongs to a workload, such as that of its experiment.
    pub struct RelatedUrl {
        /// Its address.
        pub url: String,
        /// Tool of the page, for display only.
        pub r#type: String,
        /// Name of the page.
        pub name: String,
    }
}

/// Type of access to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum PortServiceType {
    /// At the node.
    LoadBalancer,
    /// At the node.
    NodePort,
    /// At the node.
    ClusterIP,
}

with_unsupported! {
    /// User and rights (`SupersetSpecAllOfSecurity`). `privileged` is our own.
    pub struct Security {
        /// True if it may gain rights that its start did not have.
        pub allow_privilege_escalation: bool,
        /// Capabilities beside the usual ones, such as `SYS_PTRACE`.
        pub capabilities: Vec<String>,
        /// True if it shares memory with the node.
        pub host_ipc: bool,
        /// True if its network is the node's.
        pub host_network: bool,
        /// True if it may do all that the node's administrator may.
        pub privileged: bool,
        /// True if it can write only to its mounts.
        pub read_only_root_filesystem: bool,
        /// Group.
        pub run_as_gid: i64,
        /// True if it must not be root.
        pub run_as_non_root: bool,
        /// User.
        pub run_as_uid: i64,
        /// `RuntimeDefault` or `Unconfined`.
        pub seccomp_profile_type: String,
        /// Further groups, numbers with commas between them.
        pub supplemental_groups: String,
        /// `fromTheImage`, or `custom` for `runAsUid` and the like.
        pub uid_gid_source: String,
        ---
    }
}

item! {
    /// A login of an image registry.
    pub struct ImagePullSecret {
        /// Name or id of a credential of type `dockerRegistry` that the project can use.
        pub name: String,
        /// True if the credential is the user's own; there are none.
        pub user_credential: bool,
    }
}

/// Pull policy of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ImagePullPolicy {
    /// Before each start.
    Always,
    /// If it is not there.
    IfNotPresent,
    /// Never.
    Never,
}
