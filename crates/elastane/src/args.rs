//! The command line of `elastane`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use super::complete;
use super::department::{Department, NodePool};
use super::explain::Explain;
use super::iam::args as iam;
use super::kubernetes::Kubernetes;
use super::node::Node;
use super::policy::Policy;
use super::project::Project;
use super::settings::{self, Flags, KeyFile, Server, Storage};
use cli_kit::color::Color;
use cli_kit::complete::Shell;
use cli_kit::output::{Format, One};
use cli_kit::parse_number::whole;
use dialects::key_value;
use engine_channel::NEXT_IN_S_MAX;

/// Heading of the global flags.
const GLOBAL: &str = "Global options";

/// Runs a GPU scheduler on this machine.
#[derive(Debug, Parser)]
#[command(name = "elastane", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Where the server keeps its state
    #[arg(long, global = true, value_name = "DIR", help = settings::help_of("state_dir"), help_heading = GLOBAL)]
    pub(crate) state_dir: Option<PathBuf>,
    /// When states have colors: at a terminal (auto), always or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", help_heading = GLOBAL)]
    #[arg(default_value_t, hide_possible_values = true, hide_default_value = true)]
    pub(crate) color: Color,
    /// Command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The first word.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the server: API, scheduler and engine in one process
    Up(Flags<Server>),
    /// Stop all workloads, then the server; the next `up` runs them again
    #[command(alias = "stop")]
    Down,
    /// Open the web interface in a browser, logged in as the local administrator
    Ui {
        /// Only print the link, which is good once, for ten minutes
        #[arg(long)]
        print: bool,
    },
    /// Show whether the server runs, its nodes, GPUs and workloads
    Status(One),
    /// Explain why a pod of Kubernetes waits, and what would let it start
    #[command(subcommand)]
    Explain(Explain),
    /// Install the server in a Kubernetes cluster, and check a cluster
    #[command(subcommand)]
    Kubernetes(Kubernetes),
    /// Show the settings of the server
    #[command(subcommand)]
    Config(Config),
    /// Create, list, change and delete projects
    #[command(subcommand)]
    Project(Project),
    /// Create, list, change and delete departments: groups of projects
    #[command(subcommand)]
    Department(Department),
    /// Create, list, change and delete node pools
    #[command(subcommand, alias = "nodepool")]
    NodePool(NodePool),
    /// List, cordon, drain, taint and label nodes
    #[command(subcommand)]
    Node(Node),
    /// Set, list, show and delete config maps: texts for the workloads of a project, as
    /// files or variables
    #[command(subcommand)]
    ConfigMap(ConfigMap),
    /// Set and delete credentials: passwords and keys for the workloads of a project
    #[command(subcommand)]
    Credential(Credential),
    /// Create, list and delete users, and reset their passwords
    #[command(subcommand)]
    User(iam::User),
    /// Create, list and delete service accounts, and reset their secrets
    #[command(subcommand)]
    ServiceAccount(iam::ServiceAccount),
    /// List and delete the access keys of users
    #[command(subcommand)]
    AccessKey(iam::AccessKey),
    /// Create, list and delete access rules: roles of users, service accounts and groups
    #[command(subcommand)]
    AccessRule(iam::AccessRule),
    /// Apply, list, get and delete policies: defaults and rules for submissions
    #[command(subcommand)]
    Policy(Policy),
    /// Show how many GPU hours were allocated and used, and what they cost
    Usage(Usage),
    /// Simulate a cluster described in a file: scenarios, what-if questions, traces
    Simulate(Box<super::simulate::Simulate>),
    /// Print what the scheduler sees, as a scenario for `simulate --from`
    Snapshot,
    /// Save a recording of what the server did, without secrets, for a defect report
    Record {
        /// File to write
        file: PathBuf,
    },
    /// Replay a recording: the same decisions, events and reasons, and what-if questions
    Replay(super::replay::Play),
    /// Save the state to a file, while the server runs or not
    Backup(Backup),
    /// Restore the state from a backup, into SQLite or PostgreSQL
    Restore(Restore),
    /// Rotate the keys that credentials are encrypted with
    #[command(subcommand)]
    Keys(Keys),
    /// Write a CDI specification: parts of GPUs for container runtimes, without a server
    Cdi(super::cdi::Cdi),
    /// Report a checkpoint, from within a workload: what stopping it costs counts from then on
    Checkpoint(Checkpoint),
    /// Print a token of the local administrator, valid for at most 15 minutes
    Token {
        /// Revoke all earlier ones first
        #[arg(long)]
        revoke: bool,
    },
    /// Print the completion script of a shell
    Completion {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the version
    Version,
    /// Write the manual pages of both programs
    #[command(hide = true)]
    Man {
        /// Folder to write them to
        dir: PathBuf,
    },
    /// Train a small model on the CPU: the workload of the quick start
    QuickstartWorkload,
}

/// `checkpoint …`.
#[derive(Debug, Args)]
pub(crate) struct Checkpoint {
    /// File that was written, or a folder with such files; the workload must be able to write it
    #[arg(required_unless_present_any = ["next_in", "wanted", "finish"])]
    pub(crate) path: Option<PathBuf>,
    /// Step of the training that it has, which only rises
    #[arg(long, requires = "path", value_parser = whole(0..=u64::MAX))]
    pub(crate) step: Option<u64>,
    /// In how many seconds the next checkpoint will be complete; an eviction waits for one that is at
    /// most 20 s away
    #[arg(long, value_name = "SECONDS", value_parser = seconds_of_a_day)]
    pub(crate) next_in: Option<f64>,
    /// Ask whether a checkpoint is wanted, because the workload is to be stopped, moved or resized: the
    /// exit code is 0 if so, with the seconds that it is waited for, 1 if not, 3 if that is not known
    #[arg(long, conflicts_with_all = ["path", "step", "next_in"])]
    pub(crate) wanted: bool,
    /// Write what a run has left in memory; its supervisor starts this
    #[arg(long, hide = true, value_name = "FOLDER", exclusive = true)]
    pub(crate) finish: Option<PathBuf>,
}

/// A number of seconds within a day.
fn seconds_of_a_day(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=NEXT_IN_S_MAX).contains(seconds));
    seconds.ok_or_else(|| format!("write a number of seconds from 0 to {NEXT_IN_S_MAX}"))
}

/// `config …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every setting that `elastane up` would use now, its value and its origin
    Show {
        /// Values that `up` would be given
        #[command(flatten)]
        settings: Flags<Server>,
        /// Form of the output.
        #[command(flatten)]
        format: Format,
    },
    /// Print the tables of the documentation
    #[command(hide = true)]
    Reference,
}

/// `backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// File to write
    pub(crate) file: PathBuf,
    /// Database to back up
    #[command(flatten)]
    pub(crate) place: Flags<Storage>,
}

/// `keys …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Create a new key; after a restart the server encrypts all secrets with it
    Rotate {
        /// File of the keys
        #[command(flatten)]
        place: Flags<KeyFile>,
    },
}

/// `usage`.
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// From this day or time on, such as 2026-01-31 [default: 30 days before the end]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Until this day or time [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Group rows by project, user, model, or several of them [default: project]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<String>,
    /// Print CSV
    #[arg(long, conflicts_with_all = ["output", "json", "yaml", "table", "sort", "watch"])]
    pub(crate) csv: bool,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) format: Format,
}

/// `restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A file made by `elastane backup`
    pub(crate) file: PathBuf,
    /// Replace the state that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// Into which database
    #[command(flatten)]
    pub(crate) place: Flags<Storage>,
}

/// `config-map …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigMap {
    /// Create a config map, or replace its content
    #[command(group = clap::ArgGroup::new("texts").required(true).multiple(true))]
    Set {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::config_maps))]
        name: String,
        /// A text from a file, under its name or another
        #[arg(long, value_name = "[KEY=]FILE", value_parser = keyed_file, group = "texts")]
        from_file: Vec<(Option<String>, PathBuf)>,
        /// A text
        #[arg(long, value_name = "KEY=TEXT", value_parser = key_value, group = "texts")]
        from_literal: Vec<(String, String)>,
        /// Project
        #[arg(short, long, add = ArgValueCandidates::new(complete::projects))]
        project: String,
    },
    /// List the config maps of a project
    #[command(visible_alias = "ls")]
    List {
        /// Project
        #[arg(short, long, add = ArgValueCandidates::new(complete::projects))]
        project: String,
        /// Form of the output.
        #[command(flatten)]
        format: Format,
    },
    /// Show the content of a config map
    Show {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::config_maps))]
        name: String,
        /// Show the text under this key, as it is
        #[arg(long)]
        key: Option<String>,
        /// Project
        #[arg(short, long, add = ArgValueCandidates::new(complete::projects))]
        project: String,
    },
    /// Delete a config map; workloads that run keep their files
    Delete {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::config_maps))]
        name: String,
        /// Project
        #[arg(short, long, add = ArgValueCandidates::new(complete::projects))]
        project: String,
    },
}

impl ConfigMap {
    /// Project of the config map.
    pub(crate) fn project(&self) -> &str {
        match self {
            Self::Set { project, .. }
            | Self::List { project, .. }
            | Self::Show { project, .. }
            | Self::Delete { project, .. } => project,
        }
    }
}

/// `credential …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Credential {
    /// Create a credential, or replace its values; `runai credential list` lists them
    #[command(group = clap::ArgGroup::new("values").required(true).multiple(true))]
    Set {
        /// Name
        name: String,
        /// Type of the credential
        #[arg(long = "type", value_enum, value_name = "TYPE")]
        kind: CredentialType,
        /// A value from a file; - is standard input
        #[arg(long, value_name = "KEY=FILE", value_parser = key_file, group = "values")]
        from_file: Vec<(String, PathBuf)>,
        /// A value that is no secret, such as user or url
        #[arg(long, value_name = "KEY=TEXT", value_parser = key_value, group = "values")]
        from_literal: Vec<(String, String)>,
        /// Project
        #[arg(short, long, add = ArgValueCandidates::new(complete::projects))]
        project: String,
    },
    /// Delete a credential that no workload uses
    Delete {
        /// Name
        name: String,
        /// Project
        #[arg(short, long, add = ArgValueCandidates::new(complete::projects))]
        project: String,
    },
}

/// Types of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CredentialType {
    /// user and password, of a repository
    Password,
    /// accessKeyId and secretAccessKey, of a bucket
    AccessKey,
    /// url, user and password, of an image registry
    DockerRegistry,
    /// `ngc_api_key`
    NgcApiKey,
    /// Any keys
    GenericSecret,
}

impl CredentialType {
    /// All types.
    pub(crate) const ALL: [Self; 5] = [
        Self::Password,
        Self::AccessKey,
        Self::DockerRegistry,
        Self::NgcApiKey,
        Self::GenericSecret,
    ];
}

fn key_file(text: &str) -> Result<(String, PathBuf), String> {
    let (key, file) = text.split_once('=').ok_or("write KEY=FILE, or KEY=- for standard input")?;
    Ok((key.to_owned(), file.into()))
}

fn keyed_file(text: &str) -> Result<(Option<String>, PathBuf), String> {
    Ok(match text.split_once('=') {
        Some((key, file)) => (Some(key.to_owned()), file.into()),
        None => (None, text.into()),
    })
}
