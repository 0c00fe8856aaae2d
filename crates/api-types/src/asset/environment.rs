//! Environments: an image, what runs in it, and how.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::optional::optional;

optional! {
    /// Image, command and settings of a container. All fields are kept; a workload that needs a
    /// field that this server does not support yet is refused with the name of the field.
    pub struct EnvironmentAssetSpec {
        /// Image.
        pub image: String,
        /// Replaces the entrypoint; split by the rules of the shell.
        pub command: String,
        /// Arguments; split by the rules of the shell.
        pub args: String,
        /// Environment.
        pub environment_variables: Vec<EnvironmentVariableOfAsset>,
        /// Working directory.
        pub working_dir: String,
        /// Tools: their ports are opened, and pages elsewhere are shown.
        pub connections: Vec<Connection>,
        /// Pull policy of the image.
        pub image_pull_policy: crate::ImagePullPolicy,
        /// Probes.
        pub probes: crate::Probes,
        /// True if a home directory is made.
        pub create_home_dir: bool,
        /// True if the input is kept open.
        pub stdin: bool,
        /// True if there is a terminal.
        pub tty: bool,
        /// User.
        pub run_as_uid: i64,
        /// Group.
        pub run_as_gid: i64,
        /// Further groups.
        pub supplemental_groups: String,
        /// Source of the user and the group.
        pub uid_gid_source: String,
        /// True if a workspace may choose user and group.
        pub override_uid_gid_in_workspace: bool,
        /// True if a process may gain rights.
        pub allow_privilege_escalation: bool,
        /// Rights.
        pub capabilities: Vec<String>,
        /// True if the interprocess communication of the node is seen.
        pub host_ipc: bool,
        /// True if the network is the node's.
        pub host_network: bool,
        /// True if the root file system is read-only.
        pub read_only_root_filesystem: bool,
        /// True if root is refused.
        pub run_as_non_root: bool,
        /// System calls that are allowed.
        pub seccomp_profile_type: String,
    }
}

optional! {
    /// A variable of the environment.
    pub struct EnvironmentVariableOfAsset {
        /// Name.
        pub name: String,
        /// Value.
        pub value: String,
        /// Free text.
        pub description: String,
        /// A value of a credential.
        pub credential: EnvironmentVariableCredential,
        /// A value of a config map.
        pub config_map: crate::EnvironmentVariableConfigMap,
        /// A field of the pod.
        pub pod_field_ref: Value,
        /// Takes an inherited one away.
        pub exclude: bool,
    }
}

optional! {
    /// A value of a credential.
    pub struct EnvironmentVariableCredential {
        /// Its id.
        pub asset_id: String,
        /// Key of its value; may be left out if it has only one.
        pub key: String,
    }
}

/// A tool that is reached over a port, or elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connection {
    /// Name.
    pub name: String,
    /// True if it is outside.
    #[serde(default)]
    pub is_external: bool,
    /// One that runs in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_tool_info: Option<InternalToolInfo>,
    /// One that runs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_tool_info: Option<ExternalToolInfo>,
}

/// A tool in the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InternalToolInfo {
    /// Type: `jupyter-notebook`, `tensorboard`, `custom`, ….
    pub tool_type: String,
    /// `LoadBalancer`, `NodePort`, `ExternalUrl` or `ServingPort`.
    pub connection_type: String,
    /// Port it listens on.
    pub container_port: u16,
    /// More about a `NodePort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_port_info: Option<NodePortInfo>,
    /// More about an `ExternalUrl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_url_info: Option<ExternalUrlInfo>,
    /// More about a `ServingPort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving_port_info: Option<ServingPortInfo>,
}

optional! {
    /// More about a `NodePort`.
    pub struct NodePortInfo {
        /// True if each workload says which port of the node it is, in its `ports`.
        pub is_custom_port: bool,
    }
}

optional! {
    /// More about an `ExternalUrl`.
    pub struct ExternalUrlInfo {
        /// True if the address is chosen, which here it never is.
        pub is_custom_url: bool,
        /// Refused: the names of workload and project and the port settle it.
        pub external_url: String,
    }
}

optional! {
    /// More about a `ServingPort`.
    pub struct ServingPortInfo {
        /// `http`.
        pub protocol: crate::ServingPortProtocol,
    }
}

/// A tool elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalToolInfo {
    /// `wandb` or `comet`.
    pub tool_type: String,
    /// Address of the tool.
    pub external_url: String,
}
