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
    /// Number of replicas, and the metric that decides it.
    pub struct AutoScaling {
        /// The part of the threshold that is aimed at, 1 to 100; 70 if it is left out.
        #[schema(value_type = Option<f64>)]
        pub metric_threshold_percentage: Number,
        /// Never fewer; 1 if it is left out. 0 = none while no request comes.
        pub min_replicas: u32,
        /// Never more; if it is left out as many as `minReplicas`, at least 1.
        pub max_replicas: u32,
        /// Number of replicas that a new revision begins with; if left out as many as
        /// `minReplicas`, at least 1.
        pub initial_replicas: u32,
        /// Number of replicas that the first request after a rest starts; if left out as many as
        /// `minReplicas`, at least 1.
        pub activation_replicas: u32,
        /// Most requests at a replica at a time; 0 = any number.
        pub concurrency_hard_limit: u32,
        /// Additional time that the last replica stays, 0 to 3600 s.
        pub scale_to_zero_retention_seconds: u32,
        /// Additional time that a replica stays that is no longer needed, 0 to 3600 s.
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
    /// Timeouts of an inference.
    pub struct ServingConfiguration {
        /// Until the first replica is ready; 600 s if it is left out.
        pub initialization_timeout_seconds: u32,
        /// Until an answer begins; 300 s if it is left out.
        pub request_timeout_seconds: u32,
    }
}

optional_values! {
    /// Port of an inference, and the authorization of its requests.
    pub struct ServingPort {
        /// The port of the container. `PORT` names the one that a replica listens on.
        pub container: u16,
        /// `http`.
        pub protocol: ServingPortProtocol,
        /// Authorization of requests; if it is left out, `authorizedUsers` if there are any, else
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
    /// Checks that a replica is ready.
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
        /// Check to make; without it, whether the replica accepts connections.
        pub handler: ProbeHandler,
    }
}

optional_values! {
    /// Check that a probe makes.
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

/// Protocol of a serving port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServingPortProtocol {
    /// HTTP/1.1.
    Http,
    /// gRPC.
    Grpc,
}

/// Authorization of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServingPortAccessAuthorizationTypeEnum {
    /// Anyone who can reach the server.
    Public,
    /// Anyone with a token.
    AuthenticatedUsers,
    /// Users in `authorizedUsers`.
    AuthorizedUsers,
    /// Members of `authorizedGroups`.
    AuthorizedGroups,
    /// One of both lists.
    AuthorizedUsersOrGroups,
}
