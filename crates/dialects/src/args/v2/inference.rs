//! The flags of inferences, as typed in the second dialect.

use api_types::{ServingPort, ServingPortAccessAuthorizationTypeEnum, ServingPortProtocol};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use super::submit::{Named, What};
use crate::args::values::{Fields, count, port, positive};
use crate::complete::workloads;
use cli_kit::parse_number::whole;

/// `inference submit`.
#[derive(Debug, Args)]
pub(crate) struct Inference {
    /// Its name, and what it inherits.
    #[command(flatten)]
    pub(crate) named: Named,
    /// Its specification.
    #[command(flatten)]
    pub(crate) what: What,
    /// Its port and its replicas.
    #[command(flatten)]
    pub(crate) serving: Serving,
}

/// `inference update`.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Name
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(workloads))]
    pub(crate) name: String,
    /// Its new specification.
    #[command(flatten)]
    pub(crate) what: What,
    /// Stop its only replica first if there is no room for another beside it
    #[arg(long)]
    pub(crate) recreate: bool,
    /// Change the values of this revision instead of those of the newest; without other flags go
    /// back to it
    #[arg(long, value_name = "NUMBER", value_parser = positive)]
    pub(crate) from_revision: Option<u32>,
    /// Its new port and replicas.
    #[command(flatten)]
    pub(crate) serving: Serving,
}

/// Port and number of replicas of an inference.
#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct Serving {
    /// Port that it serves at: PORT, or container=PORT with a comma and any of protocol=http,
    /// authorization-type=TYPE (public opens it to everyone), authorized-users=A:B,
    /// cluster-local-access-only
    #[arg(long, value_name = "PORT", value_parser = serving_port)]
    pub(crate) serving_port: Option<ServingPort>,
    /// Minimum number of replicas; 0 scales to zero while there are no requests [default: 1]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) min_replicas: Option<u32>,
    /// Maximum number of replicas [default: the minimum]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) max_replicas: Option<u32>,
    /// Initial number of replicas
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) initial_replicas: Option<u32>,
    /// Number of replicas that the first request after scale to zero starts
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) activation_replicas: Option<u32>,
    /// Metric to scale on: concurrency, throughput or latency
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Option<String>,
    /// Target of the metric for one replica: requests, requests per second, or milliseconds
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) metric_threshold: Option<u32>,
    /// Share of that target to aim at, in percent [default: 70]
    #[arg(long, value_name = "N", value_parser = whole(1_u32..=100))]
    pub(crate) metric_threshold_percentage: Option<u32>,
    /// Maximum number of concurrent requests at a replica; 0 = no limit [default: 0]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) concurrency_hard_limit: Option<u32>,
    /// How long a replica stays after it is no longer needed [default: 0]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) scale_down_delay_seconds: Option<u32>,
    /// How long the last replica stays after it is no longer needed [default: 0]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) scale_to_zero_retention_seconds: Option<u32>,
    /// How long the first replica may take to be ready [default: 600]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) initialization_timeout_seconds: Option<u32>,
}

/// Protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// HTTP.
    Http,
    /// gRPC.
    Grpc,
}

/// Authorization of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
enum Authorization {
    /// Anyone who reaches the server.
    Public,
    /// Anyone with a token.
    AuthenticatedUsers,
    /// Some users.
    AuthorizedUsers,
    /// Some groups.
    AuthorizedGroups,
    /// Some users and groups.
    AuthorizedUsersOrGroups,
}

impl From<Protocol> for ServingPortProtocol {
    fn from(typed: Protocol) -> Self {
        match typed {
            Protocol::Http => Self::Http,
            Protocol::Grpc => Self::Grpc,
        }
    }
}

impl From<Authorization> for ServingPortAccessAuthorizationTypeEnum {
    fn from(typed: Authorization) -> Self {
        match typed {
            Authorization::Public => Self::Public,
            Authorization::AuthenticatedUsers => Self::AuthenticatedUsers,
            Authorization::AuthorizedUsers => Self::AuthorizedUsers,
            Authorization::AuthorizedGroups => Self::AuthorizedGroups,
            Authorization::AuthorizedUsersOrGroups => Self::AuthorizedUsersOrGroups,
        }
    }
}

/// Reads `PORT`, or `container=PORT` and more.
///
/// # Errors
/// Says what is allowed.
fn serving_port(text: &str) -> Result<ServingPort, String> {
    if !text.contains('=') {
        return Ok(ServingPort { container: Some(port(text)?), ..ServingPort::default() });
    }
    let fields = Fields::read(
        text,
        &[
            "container",
            "protocol",
            "authorization-type",
            "authorized-users",
            "authorized-groups",
            "cluster-local-access-only",
        ],
    )?;
    let names = |key| fields.get(key).map(|all| all.split(':').map(str::to_owned).collect());
    Ok(ServingPort {
        container: fields.get("container").as_deref().map(port).transpose()?,
        protocol: word::<Protocol>(&fields, "protocol")?.map(Into::into),
        authorization_type: word::<Authorization>(&fields, "authorization-type")?.map(Into::into),
        authorized_users: names("authorized-users"),
        authorized_groups: names("authorized-groups"),
        cluster_local_access_only: fields.flag("cluster-local-access-only")?,
    })
}

/// One of the words that a key may have.
fn word<T: ValueEnum>(fields: &Fields<'_>, key: &str) -> Result<Option<T>, String> {
    let Some(text) = fields.get(key) else { return Ok(None) };
    T::from_str(&text, true).map(Some).map_err(|_| {
        let names = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<_> = names.map(|value| value.get_name().to_owned()).collect();
        format!("{key} `{text}`; allowed are {}", names.join(", "))
    })
}
