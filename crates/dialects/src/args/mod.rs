//! The command line of `runai`: one command tree that holds both dialects. Owns words, flags and
//! their help. Does not know the meaning of a command (see `intent`).

pub(crate) mod deferred;
pub(crate) mod deprecated;
mod elsewhere;
pub(crate) mod login;
mod normalize;
pub(crate) mod object_values;
pub(crate) mod objects;
pub(crate) mod pod_flags;
pub(crate) mod program;
pub(crate) mod unsupported_flags;
pub(crate) mod v1;
pub(crate) mod v2;
pub(crate) mod values;
pub(crate) mod workers;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{
    ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
};
use clap_complete::engine::ArgValueCandidates;

use crate::complete::{pools, projects, workloads};
use crate::intent::{Toleration, WaitCondition};
use cli_kit::parse_number::whole;
use deferred::Deferred;
use values::{LabelValues, port_pair};

/// Submits, watches and stops work on shared GPUs.
#[derive(Debug, Parser)]
#[command(name = "runai", version, arg_required_else_help = true, term_width = 80)]
#[command(after_help = "Both command lines work: `runai submit …` and `runai training submit …`.")]
pub(crate) struct Cli {
    /// Flags every command takes.
    #[command(flatten)]
    pub(crate) global: Global,
    /// Command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Project to work in, in place of the default one
    #[arg(short, long, global = true, value_name = "NAME", add = ArgValueCandidates::new(projects))]
    pub project: Option<String>,
    /// Folder of the local files [default: ~/.runai]
    #[arg(long, global = true, value_name = "DIR")]
    #[arg(env = "RUNAI_CLI_CONFIG_PATH", hide_env_values = true)]
    pub config_path: Option<PathBuf>,
    /// Name of the settings file in that folder [default: config.json]
    #[arg(long, global = true, value_name = "NAME")]
    #[arg(env = "RUNAI_CLI_CONFIG_FILE", hide_env_values = true)]
    pub config_file: Option<String>,
    /// Log requests and their results to standard error
    #[arg(short, long, global = true)]
    pub debug: bool,
    /// Alias of `--debug`
    #[arg(long, global = true, hide = true)]
    pub verbose: bool,
    /// Print results and errors only, no hints and notes
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When states have colors: at a terminal (auto), always or never
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    #[arg(default_value_t, hide_possible_values = true, hide_default_value = true)]
    pub color: Color,
    /// Deprecated spelling: debug or error; others have no effect
    #[arg(long, global = true, hide = true, value_name = "LEVEL")]
    pub loglevel: Option<String>,
}

impl Global {
    /// True if requests are logged.
    #[must_use]
    pub fn tells_requests(&self) -> bool {
        self.debug || self.verbose || self.loglevel.as_deref() == Some("debug")
    }

    /// True if hints and notes are left out.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet || self.loglevel.as_deref() == Some("error")
    }
}

/// The first word.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Submit a job
    Submit(Deferred<v1::Submit>),
    /// Submit a distributed job
    #[command(subcommand)]
    SubmitDist(v1::SubmitDist),
    /// Submit an MPI job, by its number of processes
    #[command(visible_alias = "mj")]
    SubmitMpi(Deferred<v1::SubmitMpi>),
    /// List jobs, projects, nodes, clusters or templates
    List(v1::List),
    /// Show everything about a job or a node, and why it waits
    Describe(v1::Describe),
    /// Oldest spelling of `describe`
    #[command(hide = true)]
    Get(v1::Describe),
    /// Say why a job waits, who holds what it needs and what would let it start
    Explain(v1::Explain),
    /// Wait until jobs have ended, run or are deleted
    Wait(Wait),
    /// Show GPUs, queues and jobs as they change, or what nodes or jobs use
    Top {
        /// Only what they use, as a table
        #[command(subcommand)]
        what: Option<v1::Top>,
    },
    /// Print what a job wrote
    Logs(Logs),
    /// Delete jobs: `delete NAME…` or `delete job NAME…`
    Delete(Deletion),
    /// Stop jobs and free their GPUs; `resume` queues them again
    Suspend(Names),
    /// Queue suspended jobs again
    Resume(Names),
    /// Open a shell in a pod of a job
    Bash(Named),
    /// Run a command in a pod of a job
    Exec(Exec),
    /// Attach to the output and input of a job
    Attach(Attach),
    /// Open a port of a job in a browser
    Open(Open),
    /// Forward ports of this machine to a job
    PortForward(PortForward),
    /// Manage trainings
    #[command(subcommand, visible_alias = "trainings")]
    Training(v2::OfTraining),
    /// Manage workspaces
    #[command(subcommand, visible_alias = "workspaces")]
    Workspace(v2::Verb<v2::Workspace>),
    /// Manage inferences
    #[command(subcommand, visible_alias = "inferences")]
    Inference(v2::OfInference),
    /// Alias of `training pytorch`
    #[command(subcommand, hide = true)]
    Pytorch(v2::Verb<v2::PyTorch>),
    /// Alias of `training mpi`
    #[command(subcommand, hide = true)]
    Mpi(v2::Verb<v2::Mpi>),
    /// Alias of `training tensorflow`
    #[command(subcommand, hide = true, alias = "tf")]
    Tensorflow(v2::Verb<v2::Distributed>),
    /// Alias of `training xgboost`
    #[command(subcommand, hide = true)]
    Xgboost(v2::Verb<v2::Distributed>),
    /// Alias of `training jax`
    #[command(subcommand, hide = true)]
    Jax(v2::Verb<v2::Distributed>),
    /// Manage distributed trainings, as older versions do
    #[command(subcommand, hide = true)]
    Distributed(v2::Verb<v2::OfFramework>),
    /// Manage workloads of any type
    #[command(subcommand, visible_alias = "workloads")]
    Workload(v2::OfWorkload),
    /// List projects, choose one
    #[command(subcommand, visible_alias = "projects")]
    Project(v2::ProjectVerb),
    /// List clusters, choose one
    #[command(subcommand, visible_alias = "clusters")]
    Cluster(v2::ClusterVerb),
    /// List nodes
    #[command(subcommand, visible_alias = "nodes")]
    Node(v2::NodeVerb),
    /// Objects that are kept beside workloads.
    #[command(flatten)]
    Objects(objects::OfObjects),
    /// Refused: users have no credentials of their own
    #[command(hide = true)]
    MyCredential(program::IgnoredWords),
    /// Set the default project, the cluster and the address of the server
    #[command(subcommand)]
    Config(program::Config),
    /// Log in; by default in a browser at the login provider
    Login(login::Login),
    /// Log out, here and at the server
    Logout,
    /// Print your user name at the server, and how you logged in
    Whoami(One),
    /// Print the token that requests are sent with
    #[command(subcommand)]
    Auth(program::Auth),
    /// Print versions, settings and reachability for a bug report; no secrets
    Diagnostics(program::Diagnostics),
    /// Replace this program by the version of the server
    #[command(visible_alias = "update")]
    Upgrade {
        /// Words of an `update` of a workload
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Refused: there is no cluster of Kubernetes behind the server
    #[command(subcommand, hide = true)]
    Kubeconfig(program::Kubeconfig),
    /// Measurements of how this program is used: there are none
    #[command(subcommand, hide = true)]
    Report(program::Report),
    /// Print the script by which a shell completes command lines
    Completion {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the version
    Version {
        /// Only the number
        #[arg(long)]
        short: bool,
    },
}

/// Several workloads by name.
#[derive(Debug, Args)]
pub(crate) struct Names {
    /// Names; a leading word `job` is taken for the kind when more words follow
    #[arg(
        value_name = "NAME",
        required_unless_present = "all",
        add = ArgValueCandidates::new(workloads),
    )]
    pub(crate) names: Vec<String>,
    /// All of the project; -A does not mean all projects here
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(crate) all: bool,
}

/// `delete`.
#[derive(Debug, Args)]
pub(crate) struct Deletion {
    /// Names of the workloads.
    #[command(flatten)]
    pub(crate) of: Names,
    /// Do not ask for confirmation of --all
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// `wait`.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Names
    #[arg(required = true, value_name = "NAME", add = ArgValueCandidates::new(workloads))]
    pub(crate) names: Vec<String>,
    /// Until what
    #[arg(long = "for", value_enum, value_name = "WHAT", default_value = "completed")]
    pub(crate) until: WaitCondition,
    /// Give up after this time, such as 30s or 10m [default: never]
    #[arg(long, value_name = "DURATION", value_parser = values::seconds)]
    pub(crate) timeout: Option<u64>,
}

/// Workloads that a list shows.
#[derive(Debug, Default, Args)]
pub(crate) struct Filter {
    /// Only those with a pod on one of these nodes
    #[arg(long, value_name = "NODE,NODE", value_delimiter = ',')]
    pub(crate) node: Vec<String>,
    /// Only those that one of these users submitted
    #[arg(long, value_name = "USER,USER", value_delimiter = ',')]
    pub(crate) user: Vec<String>,
    /// Only those with this label; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::key_value)]
    pub(crate) label: Vec<(String, String)>,
}

/// One workload by name.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name
    #[arg(add = ArgValueCandidates::new(workloads))]
    pub(crate) name: String,
    /// Pod of the workload [default: the first that runs]
    #[arg(long)]
    pub(crate) pod: Option<String>,
}

/// A workload to attach to.
#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The workload.
    #[command(flatten)]
    pub(crate) of: Named,
    /// Do not send input
    #[arg(long)]
    pub(crate) no_stdin: bool,
    /// Leave this terminal as it is
    #[arg(long)]
    pub(crate) no_tty: bool,
}

/// `open`.
#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Name
    #[arg(add = ArgValueCandidates::new(workloads))]
    pub(crate) name: String,
    /// Port to open [default: the only one]
    #[arg(long, value_name = "NAME|PORT")]
    pub(crate) url: Option<String>,
    /// Only print the address; a ticket in it is good once, for a minute
    #[arg(long)]
    pub(crate) print: bool,
}

/// Ports of a workload.
#[derive(Debug, Args)]
pub(crate) struct PortForward {
    /// The workload.
    #[command(flatten)]
    pub(crate) of: Named,
    /// LOCAL:REMOTE, port here and port of the pod; one number stands for both
    #[arg(long, required = true, value_name = "L:R", value_parser = port_pair)]
    pub(crate) port: Vec<(u16, u16)>,
    /// Local address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "localhost")]
    pub(crate) address: String,
    /// Accepted for scripts written for other versions: a name is one job's here
    #[arg(long, hide = true)]
    pub(crate) mpi: bool,
    /// As above
    #[arg(long, hide = true)]
    pub(crate) interactive: bool,
    /// As above
    #[arg(long, hide = true)]
    pub(crate) pytorch: bool,
    /// As above
    #[arg(long, hide = true)]
    pub(crate) tf: bool,
    /// As above
    #[arg(long, hide = true)]
    pub(crate) train: bool,
}

/// Flags that check the submission: dry run, what-if and strict.
#[derive(Debug, Default, Args)]
pub(crate) struct DryRunFlags {
    /// Validate and print what would be submitted; submit nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print whether it would start, what would be stopped for it or why it would wait; submit
    /// nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) what_if: bool,
    /// Refuse it if it could not start even if all nodes were free; without this it waits, with a
    /// warning
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Connection between the main process and this terminal.
#[derive(Debug, Default, Args)]
pub(crate) struct Console {
    /// Keep standard input open for those who attach
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Allocate a terminal; use with --stdin
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// Attach once it runs; implies --stdin --tty
    #[arg(long)]
    pub(crate) attach: bool,
    /// How long --attach waits for it to run, such as 10m [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = values::seconds, requires = "attach")]
    pub(crate) pod_running_timeout: Option<u64>,
}

/// Output to print.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Name
    #[arg(add = ArgValueCandidates::new(workloads))]
    pub(crate) name: String,
    /// Follow the output until the job ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last N lines; -1 for all
    #[arg(short, long, value_name = "N", default_value_t = -1)]
    #[arg(value_parser = whole(-1..=i64::MAX))]
    pub(crate) tail: i64,
    /// Only output newer than this, such as 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = values::seconds)]
    #[arg(conflicts_with = "since_time")]
    pub(crate) since: Option<u64>,
    /// Only output since this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since_time: Option<api_types::Time>,
    /// Print the time of each line before it
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// Print the output of the previous run: the one that was preempted, failed or suspended
    #[arg(long)]
    pub(crate) previous: bool,
    /// Pod of the workload [default: the first]
    #[arg(long)]
    pub(crate) pod: Option<String>,
}

/// A command to run in a pod.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The workload.
    #[command(flatten)]
    pub(crate) of: Named,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Pass it standard input
    #[arg(short = 'i', long)]
    pub(crate) stdin: bool,
    /// Allocate a terminal
    #[arg(short = 't', long)]
    pub(crate) tty: bool,
}

/// Constraints on the nodes that a workload may run on.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Node pools it may run in, the best first
    #[arg(long, alias = "node-pool", value_name = "NAME,NAME", value_parser = values::names)]
    #[arg(add = ArgValueCandidates::new(pools))]
    pub(crate) node_pools: Vec<Pools>,
    /// Type of node it runs on
    #[arg(long, value_name = "TYPE")]
    pub(crate) node_type: Option<String>,
    /// Label that its nodes must have, with one of these values; repeatable
    #[arg(long, value_name = "LABEL=VALUE,VALUE", value_parser = values::label_values)]
    pub(crate) node_affinity: Vec<LabelValues>,
    /// Nodes it does not run on
    #[arg(long, value_name = "NODE,NODE", value_delimiter = ',')]
    pub(crate) exclude_node: Vec<String>,
    /// Taint of nodes that it tolerates
    #[arg(long, value_parser = object_values::toleration)]
    #[arg(value_name = "operator=Equal|Exists,key=KEY,value=VALUE,effect=EFFECT")]
    pub(crate) toleration: Vec<Toleration>,
    /// Prefer nodes with the same value of this label for all its pods
    #[arg(long, value_name = "LABEL", conflicts_with = "required_pod_topology_key")]
    pub(crate) preferred_pod_topology_key: Option<String>,
    /// Require nodes with the same value of this label for all its pods
    #[arg(long, value_name = "LABEL")]
    pub(crate) required_pod_topology_key: Option<String>,
}

/// Form of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Sections of text.
    #[value(aliases = ["wide", "plaintext"])]
    Table,
    /// The server's object.
    Json,
    /// The server's object as YAML.
    Yaml,
}

/// The phases of workloads.
pub(crate) const PHASES: [&str; 11] = [
    "Pending",
    "Initializing",
    "Running",
    "Degraded",
    "Updating",
    "Stopping",
    "Stopped",
    "Resuming",
    "Deleting",
    "Completed",
    "Failed",
];

/// Statuses that both dialects show in place of a phase.
pub(crate) const BACK_OFFS: [&str; 2] = ["CrashLoopBackOff", "ImagePullBackOff"];

/// Names of one flag. A name of its own, so that the parser does not take it for a repeated flag.
pub(crate) type Pools = Vec<String>;

use cli_kit::color::Color;
use cli_kit::complete::Shell;
pub(crate) use cli_kit::output::{Format, One};
pub(crate) use elsewhere::SAME;

/// All commands and their flags.
#[must_use]
pub fn tree() -> clap::Command {
    prepared(Cli::command(), &[], None)
}

/// Normalizes the flags of a command and adds its unsupported ones, also in the commands below it.
/// When a line is parsed, only the command that it names is prepared: there are some thousand
/// flags, and each costs time.
fn prepared(command: clap::Command, path: &[&str], typed: Option<&[String]>) -> clap::Command {
    let command = unsupported_flags::add_to(normalize::patient(command), path);
    let below: Vec<String> = match typed {
        Some(words) => words.iter().take(1).cloned().collect(),
        None => command.get_subcommands().map(|below| below.get_name().to_owned()).collect(),
    };
    below.iter().fold(command, |command, word| {
        let path = [path, &[word]].concat();
        let typed = typed.and_then(|words| words.get(1..));
        command.mut_subcommand(word, |inner| prepared(inner, &path, typed))
    })
}

/// Parses a command line, the program's name included. Returns also the command that was named, for
/// errors about combinations of words, and the note on flags without effect.
///
/// # Errors
/// A parse error with the nearest correct word, or a help page.
pub(crate) fn parse<I: IntoIterator<Item = OsString>>(
    argv: I,
) -> Result<(Cli, clap::Command, Option<String>), clap::Error> {
    let argv = argv.into_iter().collect::<Vec<_>>();
    let tree = deferred::grammar_of(&argv);
    let typed = normalize::named(&tree, &argv);
    let mut tree = prepared(tree, &[], Some(&typed));
    let argv = normalize::read(&tree, argv);
    let matches = tree
        .try_get_matches_from_mut(&argv)
        .map_err(|error| normalize::with_advice(cli_kit::exit::without_tip(error), &tree, &argv))?;
    let note = unsupported_flags::refuse(&tree, &matches)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut tree))?;
    Ok((cli, command_of(&tree, &matches).clone(), note))
}

/// The last command that was named, below the first.
fn command_of<'a>(tree: &'a clap::Command, matches: &ArgMatches) -> &'a clap::Command {
    let below =
        matches.subcommand().and_then(|(word, below)| Some((tree.find_subcommand(word)?, below)));
    below.map_or(tree, |(tree, below)| command_of(tree, below))
}
