//! Objects other than workloads, as nouns of the second dialect; all have the same verbs.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use super::v2::Paging;
use super::{Format, One};
use crate::complete::named_objects;

/// The nouns.
#[derive(Debug, Subcommand)]
pub(crate) enum OfObjects {
    /// List templates of workloads, show one
    #[command(subcommand, visible_alias = "templates")]
    Template(Verb),
    /// List environments, show one
    #[command(subcommand, visible_alias = "environments")]
    Environment(Verb),
    /// List compute resources, show one
    #[command(subcommand)]
    Compute(Verb),
    /// List data sources, show one
    #[command(subcommand, visible_alias = "datasources")]
    Datasource(Verb),
    /// List data sources that are volume claims, show one
    #[command(subcommand, visible_alias = "pvcs")]
    Pvc(Verb),
    /// List data volumes
    #[command(subcommand, hide = true, alias = "datavolumes")]
    Datavolume(Verb),
    /// List credentials, show one; secret values are never shown
    #[command(subcommand, visible_alias = "credentials")]
    Credential(Verb),
    /// List departments, show one
    #[command(subcommand, visible_alias = "departments")]
    Department(Verb),
    /// List node pools, show one
    #[command(subcommand, visible_alias = "nodepools")]
    Nodepool(Verb),
    /// List types of workloads, show one
    #[command(subcommand, visible_alias = "workload-types")]
    WorkloadType(Verb),
}

/// Actions on them.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List them
    List(List),
    /// Show everything about one
    Describe(Describe),
    /// Spelling of `describe` in the first dialect, for templates
    #[command(hide = true)]
    Get(Describe),
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// All of them, not only those that the project can use
    #[arg(short = 'A', long)]
    pub(crate) all: bool,
    /// Rows to print.
    #[command(flatten)]
    pub(crate) paging: Paging,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) format: Format,
}

/// `describe`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Name
    #[arg(add = ArgValueCandidates::new(named_objects))]
    pub(crate) name: String,
    /// Form of the output; a list where several have the name.
    #[command(flatten)]
    pub(crate) one: One,
}
