//! Request fields of inferences (published as `InferenceSpecSpec`): the number of replicas, the
//! port at which they serve, and for whom. Does not know about: the fields of every workload
//! (`submit`).

use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use crate::optional::optional;

/// Declares a struct of values that may all be left out, and how it goes over another.
macro_rules! optional_values {
    ($(#[$meta:meta])* pub struct $name:ident {
        $( $(#[$doc:meta])* pub $field:ident: $kind:ty, )*
    }) => {
        optional! { $(#[$meta])* pub struct $name { $( $(#[$doc])* pub $field: $kind, )* } }

        impl $name {
            /// These values, and where there is none that of `below`.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                Self { $( $field: self.$field.or(below.$field), )* }
            }
        }
    };
}

optional_values! {
    /// How many replicas, and by what that is decided.
    pub struct AutoScaling {
        /// The part of the threshold that is aimed at, 1 to 100; 70 if it is left out.
        #[schema(value_type = Option<f64>)]
        pub metric_threshold_percentage: Number,
        /// Never fewer; 1 if it is left out. 0 = none while no request comes.
        pub min_replicas: u32,
        /// Never more; if it is left out as many as `minReplicas`, at least 1.
        pub max_replicas: u32,
        /// How many a new revision begins with; as many as `minReplicas`, at least 1.
        pub initial_replicas: u32,
        /// How many the first request after a rest brings up; as many as `minReplicas`, at least 1.
        pub activation_replicas: u32,
        /// Most requests at a replica at a time; 0 = any number.
        pub concurrency_hard_limit: u32,
        /// How much longer the last replica stays, 0 to 3600 s.
        pub scale_to_zero_retention_seconds: u32,
        /// How much longer a replica stays that is no longer needed, 0 to 3600 s.
        pub scale_down_delay_seconds: u32,
        /// The older place of `servingConfiguration.initializationTimeoutSeconds`, which counts
        /// before it.
        pub initialization_timeout_seconds: u32,
        /// `concurrency`, `throughput` or `latency`.
        pub metric: String,
        /// Requests at a time, requests per second, or milliseconds.
        pub metric_threshold: u32,
    }
}

optional_values! {
    /// How long things may take.
    pub struct ServingConfiguration {
        /// Until the first replica is ready; 600 s if it is left out.
        pub initialization_timeout_seconds: u32,
        /// Until an answer begins; 300 s if it is left out.
        pub request_timeout_seconds: u32,
    }
}

optional_values! {
    /// Where an inference serves, and for whom.
    pub struct ServingPort {
        /// The port of the container. `PORT` names the one that a replica listens on.
        pub container: u16,
        /// `http`.
        pub protocol: ServingPortProtocol,
        /// Who may send requests; if it is left out, `authorizedUsers` if there are any, else
        /// `authenticatedUsers`.
        pub authorization_type: ServingPortAccessAuthorizationTypeEnum,
        /// These users and service accounts, by name.
        pub authorized_users: Vec<String>,
        /// These groups.
        pub authorized_groups: Vec<String>,
        /// True if it is reached from inside the cluster only.
        pub cluster_local_access_only: bool,
    }
}

optional_values! {
    /// How a replica shows that it is ready.
    pub struct Probes {
        /// Before this succeeds a replica gets no requests.
        pub readiness: Probe,
    }
}

optional_values! {
    /// A look at a replica.
    pub struct Probe {
        /// Seconds from its start to the first look.
        pub initial_delay_seconds: u32,
        /// Seconds from one look to the next.
        pub period_seconds: u32,
        /// Seconds a look may take.
        pub timeout_seconds: u32,
        /// So many in a row make it ready.
        pub success_threshold: u32,
        /// So many failures in a row make it not ready.
        pub failure_threshold: u32,
        /// What is looked at; without it, whether it accepts connections.
        pub handler: ProbeHandler,
    }
}

optional_values! {
    /// What is looked at.
    pub struct ProbeHandler {
        /// The answer to a GET.
        pub http_get: ProbeHandlerHttpGet,
    }
}

optional_values! {
    /// A GET that is to be answered with a status of 200 to 399.
    pub struct ProbeHandlerHttpGet {
        /// Path; `/` if it is left out.
        pub path: String,
        /// Port; that of `servingPort`.
        pub port: u16,
        /// Host; the replica.
        pub host: String,
        /// `HTTP`.
        pub scheme: String,
    }
}

/// What is spoken at a serving port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServingPortProtocol {
    /// HTTP/1.1.
    Http,
    /// gRPC.
    Grpc,
}

/// Who may send requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServingPortAccessAuthorizationTypeEnum {
    /// Anyone who can reach the server.
    Public,
    /// Anyone with a token.
    AuthenticatedUsers,
    /// Those in `authorizedUsers`.
    AuthorizedUsers,
    /// Those in `authorizedGroups`.
    AuthorizedGroups,
    /// One of both lists.
    AuthorizedUsersOrGroups,
}
