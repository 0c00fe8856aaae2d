//! The second dialect (`runai training submit`, `runai workload list`, …): its nouns and verbs.

mod distributed;
mod inference;
mod submit;
mod update;

use std::path::PathBuf;

use clap::ArgAction::Set;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

pub(crate) use distributed::{Distributed, Master, Mpi, OfFramework, PyTorch};
pub(crate) use inference::{Inference, Serving, Update};
pub(crate) use submit::{
    Ending, GpuRequestType, Named as Identity, Preemptibility, Training, What, Workspace,
};
pub(crate) use update::Change;

use super::deferred::Deferred;
use super::program::IgnoredWords;
use super::values::{count, seconds};
use super::{
    Attach, BACK_OFFS, Deletion, Exec, Filter, Format, Logs, Named, Names, One, Open, PHASES,
    PortForward, Wait, v1,
};
use crate::complete::{priorities, projects, workloads};
use cli_kit::parse_number::whole;

/// `training …`.
#[derive(Debug, Subcommand)]
pub(crate) enum OfTraining {
    /// Trainings of one pod, unless the verb is about existing ones.
    #[command(flatten)]
    Any(Verb<Training>),
    /// Trainings of one pod
    #[command(subcommand)]
    Standard(Verb<Training>),
    /// Distributed trainings with PyTorch
    #[command(subcommand)]
    Pytorch(Verb<PyTorch>),
    /// Distributed trainings with MPI
    #[command(subcommand)]
    Mpi(Verb<Mpi>),
    /// Distributed trainings with TensorFlow
    #[command(subcommand, visible_alias = "tf")]
    Tensorflow(Verb<Distributed>),
    /// Distributed trainings with XGBoost
    #[command(subcommand)]
    Xgboost(Verb<Distributed>),
    /// Distributed trainings with JAX
    #[command(subcommand)]
    Jax(Verb<Distributed>),
}

/// Verbs of trainings and workspaces; what is submitted differs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb<S: Args> {
    /// Submit a workload
    Submit(Deferred<S>),
    /// Verbs that every kind has.
    #[command(flatten)]
    Any(AnyVerb),
    /// Stop some and free their GPUs; `resume` queues them again
    Suspend(Filtered<Names>),
    /// Queue suspended ones again
    Resume(Filtered<Names>),
    /// Change the priority, labels and limits of one
    Update(Filtered<Change>),
}

/// Verbs of `inference`.
#[derive(Debug, Subcommand)]
pub(crate) enum OfInference {
    /// Submit a workload
    Submit(Deferred<Inference>),
    /// Change the values of one without an interruption
    Update(Deferred<Update>),
    /// Verbs that every kind has.
    #[command(flatten)]
    Any(AnyVerb),
    /// Refused: without replicas it holds nothing
    #[command(hide = true, alias = "resume")]
    Suspend(IgnoredWords),
    /// Refused: a replica is one pod
    #[command(hide = true)]
    Distributed(IgnoredWords),
    /// Refused: there is no catalogue of models
    #[command(hide = true)]
    Nim(IgnoredWords),
}

/// Verbs of `workload`.
#[derive(Debug, Subcommand)]
pub(crate) enum OfWorkload {
    /// Submit a Kubernetes manifest
    Submit(Box<Manifest>),
    /// Verbs that every kind has.
    #[command(flatten)]
    Any(AnyVerb),
    /// Stop some and free their GPUs; `resume` queues them again
    Suspend(Filtered<Names>),
    /// Queue suspended ones again
    Resume(Filtered<Names>),
    /// Change the priority, labels and limits of one
    Update(Filtered<Change>),
}

/// A manifest to submit.
#[derive(Debug, Args)]
pub(crate) struct Manifest {
    /// File with the manifest, in YAML or JSON; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Name in place of that in the manifest
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Number the workload: PREFIX-0, PREFIX-1, …
    #[arg(long, value_name = "PREFIX", conflicts_with = "name")]
    pub(crate) name_prefix: Option<String>,
    /// Category: Build makes a workspace of a pod, Train a training
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// Priority, such as high
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(priorities))]
    pub(crate) priority: Option<String>,
    /// Preemptibility
    #[arg(long, value_enum, value_name = "WORD")]
    pub(crate) preemptibility: Option<Preemptibility>,
    /// Refuse it if it could not start even if all nodes were free; without this it waits, with a
    /// warning
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Verbs of workloads of every kind.
#[derive(Debug, Subcommand)]
pub(crate) enum AnyVerb {
    /// List them
    List(Deferred<List>),
    /// Show everything about one, and why it waits
    Describe(Deferred<Describe>),
    /// Say why one waits, who holds what it needs and what would let it start
    Explain(Filtered<v1::Explain>),
    /// Show what one held and used over time
    Metrics(Filtered<Metrics>),
    /// Wait until they have ended, run or are deleted
    Wait(Filtered<Wait>),
    /// Print what it wrote
    Logs(Filtered<Logs>),
    /// Delete some
    Delete(Filtered<Deletion>),
    /// Open a shell in a pod of one
    Bash(Filtered<Named>),
    /// Run a command in a pod of one
    Exec(Filtered<Exec>),
    /// Attach to the output and input of one
    Attach(Filtered<Attach>),
    /// Open a port of one in a browser
    Open(Filtered<Open>),
    /// Forward ports of this machine to one
    PortForward(Filtered<PortForward>),
}

/// `metrics`.
#[derive(Debug, Args)]
pub(crate) struct Metrics {
    /// Name
    #[arg(add = ArgValueCandidates::new(workloads))]
    pub(crate) name: String,
    /// Period until now, such as 10m or 2h
    #[arg(long, value_name = "DURATION", value_parser = seconds, default_value = "1h")]
    pub(crate) since: u64,
    /// Maximum rows to print
    #[arg(long, value_name = "N", value_parser = whole(1_u32..=1000), default_value_t = 12)]
    pub(crate) samples: u32,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) one: One,
}

/// The flags of a verb, and those that say which workloads it is about: it sees no others.
pub(crate) type Filtered<T> = Deferred<WithFilter<T>>;

/// The flags of a verb, and those that say which workloads it is about.
#[derive(Debug, Args)]
pub(crate) struct WithFilter<T: Args> {
    /// Flags of the verb.
    #[command(flatten)]
    pub(crate) of: T,
    /// Workloads that the verb is about.
    #[command(flatten)]
    pub(crate) only: Only,
}

/// Verbs of `project`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectVerb {
    /// List them
    List(Listing),
    /// Choose the default one
    Set {
        /// Name
        #[arg(add = ArgValueCandidates::new(projects))]
        name: String,
    },
    /// Refused: an administrator makes and changes projects
    #[command(hide = true, aliases = ["update", "delete"])]
    Create(IgnoredWords),
}

/// Verbs of `cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// List them
    List(Listing),
    /// Choose the default one
    Set(Cluster),
}

/// A cluster, by one of what it is called.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Cluster {
    /// Name or id
    #[arg(value_name = "NAME")]
    any: Option<String>,
    /// Its name
    #[arg(long)]
    name: Option<String>,
    /// Its id
    #[arg(long, value_name = "UUID")]
    id: Option<String>,
}

impl Cluster {
    /// Name or id of the cluster, as given; no cluster is named by the id of another.
    #[must_use]
    pub(crate) fn word(self) -> String {
        self.any.or(self.name).or(self.id).unwrap_or_default()
    }
}

/// Verbs of `node`.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeVerb {
    /// List them
    List(Listing),
}

/// `list` of what is in no project.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// Rows to print.
    #[command(flatten)]
    pub(crate) paging: Paging,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) format: Format,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// List those of all projects
    #[arg(short = 'A', long)]
    pub(crate) all: bool,
    /// Only workloads with these statuses, such as Running,Pending
    #[arg(long, value_name = "STATUS,STATUS", value_delimiter = ',', ignore_case = true)]
    #[arg(value_parser = PossibleValuesParser::new(PHASES.iter().chain(&BACK_OFFS).copied()))]
    #[arg(hide_possible_values = true)]
    pub(crate) status: Vec<String>,
    /// Filter of the workloads.
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Workloads to list.
    #[command(flatten)]
    pub(crate) only: Only,
    /// Rows to print.
    #[command(flatten)]
    pub(crate) paging: Paging,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Rows of a list to print.
#[derive(Debug, Args)]
pub(crate) struct Paging {
    /// Rows to print at most
    #[arg(long, alias = "max-items", default_value_t = 50, value_name = "N")]
    #[arg(value_parser = count)]
    pub(crate) limit: u32,
    /// Number of rows to skip
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = count)]
    pub(crate) offset: u32,
    /// Print every row
    #[arg(long, conflicts_with_all = ["limit", "offset"])]
    pub(crate) no_pagination: bool,
}

/// Flags that say which workloads are meant.
#[derive(Debug, Args)]
pub(crate) struct Only {
    /// Only of this type
    #[arg(long, value_enum, value_name = "TYPE", ignore_case = true)]
    pub(crate) r#type: Option<Type>,
    /// Only distributed trainings of this framework
    #[arg(long, value_enum, value_name = "FRAMEWORK", ignore_case = true)]
    pub(crate) framework: Option<Framework>,
}

/// Frameworks of distributed trainings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub(crate) enum Framework {
    /// MPI.
    Mpi,
    /// PyTorch.
    PyTorch,
    /// TensorFlow.
    #[value(alias = "tensorflow")]
    Tf,
    /// XGBoost.
    XgBoost,
    /// JAX.
    Jax,
}

/// Types of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Type {
    /// Trainings of one pod.
    Training,
    /// For a person at a terminal.
    Workspace,
    /// Trainings of several pods that work together.
    Distributed,
    /// Programs that answer requests.
    Inference,
}

/// `describe`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Name
    #[arg(add = ArgValueCandidates::new(workloads))]
    pub(crate) name: String,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) one: One,
    /// Most events to show
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = whole(0..=usize::MAX))]
    pub(crate) event_limit: usize,
    /// Most pods to show
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = whole(0..=usize::MAX))]
    pub(crate) pod_limit: usize,
    /// Show the oldest event first, or the newest
    #[arg(long = "sortEvents", alias = "sort-events", value_enum, value_name = "ORDER")]
    #[arg(default_value_t = Order::Asc, ignore_case = true)]
    pub(crate) sort_events: Order,
    /// Sections to show.
    #[command(flatten)]
    pub(crate) sections: Sections,
    /// Workload to describe.
    #[command(flatten)]
    pub(crate) only: Only,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// The oldest first.
    Asc,
    /// The newest first.
    Desc,
}

/// Parts of a description, each with a switch.
#[derive(Debug, Args)]
pub(crate) struct Sections {
    /// Show what it is, why it waits, and its labels
    #[arg(long, value_name = "BOOL", default_value_t = true, hide_possible_values = true)]
    #[arg(action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) general: bool,
    /// Show what it asks for and holds
    #[arg(long, value_name = "BOOL", default_value_t = true, hide_possible_values = true)]
    #[arg(action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) compute: bool,
    /// Show its pods
    #[arg(long, value_name = "BOOL", default_value_t = true, hide_possible_values = true)]
    #[arg(action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) pods: bool,
    /// Show what happened
    #[arg(long, value_name = "BOOL", default_value_t = true, hide_possible_values = true)]
    #[arg(action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) events: bool,
    /// Show its addresses
    #[arg(long, value_name = "BOOL", default_value_t = true, hide_possible_values = true)]
    #[arg(action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) networks: bool,
    /// Show what is mounted
    #[arg(long, value_name = "BOOL", default_value_t = true, hide_possible_values = true)]
    #[arg(action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) storage: bool,
    /// Show what its containers run
    #[arg(long, value_name = "BOOL", default_value_t = true, hide_possible_values = true)]
    #[arg(action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) containers: bool,
}
