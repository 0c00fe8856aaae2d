//! The flags of the first dialect (`runai submit`, `runai list`, …), as typed.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use super::deferred::Deferred;
use super::object_values::variable;
use super::values::{count, cpu, key_value, portion, positive, seconds, size};
use super::workers::{Bounds, Slots, Workers};
use super::{BACK_OFFS, Console, DryRunFlags, Filter, Format, One, PHASES, Place, pod_flags};
use crate::complete::{templates, workloads};
use crate::intent::Variable;

/// `submit`.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Job to run.
    #[command(flatten)]
    pub(crate) job: Job,
    /// Let the job run on fewer GPUs, or more, as they come free
    #[arg(long, conflicts_with = "interactive")]
    pub(crate) elastic: bool,
    /// Interactive job: it runs until it is deleted, and is not preempted
    #[arg(long)]
    pub(crate) interactive: bool,
    /// Let an interactive job run over quota; it may then be preempted
    #[arg(long)]
    pub(crate) preemptible: bool,
    /// Pods that must succeed [default: 1]
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "interactive")]
    pub(crate) completions: Option<u32>,
    /// Number of pods that run at a time [default: 1]
    #[arg(long, value_name = "N", value_parser = positive)]
    #[arg(conflicts_with_all = ["interactive", "elastic"])]
    pub(crate) parallelism: Option<u32>,
    /// Run a Jupyter notebook: interactive, with the usual image and port unless others are given
    #[arg(long, conflicts_with_all = ["elastic", "completions", "parallelism"])]
    pub(crate) jupyter: bool,
    /// Run an inference server that answers requests at --port
    #[arg(long, conflicts_with_all = ["interactive", "preemptible", "jupyter", "attach"])]
    #[arg(conflicts_with_all = ["elastic", "completions", "parallelism"])]
    pub(crate) inference: bool,
    /// Number of replicas [default: 1]
    #[arg(long, value_name = "N", value_parser = positive, requires = "inference")]
    pub(crate) replicas: Option<u32>,
}

/// `submit-dist`: by whose rules the pods work together.
#[derive(Debug, Subcommand)]
pub(crate) enum SubmitDist {
    /// MPI: a launcher starts ranks in the workers
    Mpi(Deferred<DistMpi>),
    /// PyTorch
    Pytorch(Deferred<DistPytorch>),
    /// TensorFlow
    Tf(Deferred<Dist>),
    /// XGBoost
    Xgboost(Deferred<Dist>),
}

/// `submit-dist tf`, and what all frameworks have.
#[derive(Debug, Args)]
pub(crate) struct Dist {
    /// Job to run.
    #[command(flatten)]
    pub(crate) job: Job,
    /// Number of workers, and the policy for their pods.
    #[command(flatten)]
    pub(crate) workers: Workers,
}

/// `submit-dist pytorch`.
#[derive(Debug, Args)]
pub(crate) struct DistPytorch {
    /// Flags of all frameworks.
    #[command(flatten)]
    pub(crate) all: Dist,
    /// Bounds on the number of workers.
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// `submit-dist mpi`.
#[derive(Debug, Args)]
pub(crate) struct DistMpi {
    /// Flags of all frameworks.
    #[command(flatten)]
    pub(crate) all: Dist,
    /// Number of ranks.
    #[command(flatten)]
    pub(crate) slots: Slots,
}

/// `submit-mpi`.
#[derive(Debug, Args)]
pub(crate) struct SubmitMpi {
    /// Job to run.
    #[command(flatten)]
    pub(crate) job: Job,
    /// Number of processes, each with the requested GPUs [default: 1]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) processes: Option<u32>,
}

/// Flags of every job of this dialect.
#[derive(Debug, Args)]
pub(crate) struct Job {
    /// Name of the job [default: job-0, job-1, …]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Alias of NAME
    #[arg(long = "name", value_name = "NAME", conflicts_with = "name")]
    pub(crate) name_flag: Option<String>,
    /// Number the job: PREFIX-0, PREFIX-1, …
    #[arg(long, alias = "name-prefix", value_name = "PREFIX")]
    #[arg(conflicts_with_all = ["name", "name_flag"])]
    pub(crate) job_name_prefix: Option<String>,
    /// Template for the values that are not given here
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(templates))]
    pub(crate) template: Option<String>,
    /// Container image
    #[arg(short, long)]
    pub(crate) image: Option<String>,
    /// GPUs: a whole number, or a share of one such as 0.5
    #[arg(short, long, aliases = ["gpu-portion-request", "gpu-devices-request"])]
    #[arg(value_parser = gpu_millis)]
    pub(crate) gpu: Option<u64>,
    /// Most of the GPU that may be used while it is free, with a share
    #[arg(long, value_name = "SHARE", value_parser = portion)]
    #[arg(conflicts_with_all = ["gpu_memory", "gpu_memory_limit"])]
    pub(crate) gpu_portion_limit: Option<u64>,
    /// GPU memory, such as 8G, in place of a share
    #[arg(long, alias = "gpu-memory-request", value_name = "SIZE", value_parser = size)]
    #[arg(conflicts_with = "gpu")]
    pub(crate) gpu_memory: Option<String>,
    /// Most GPU memory that may be used while it is free, with --gpu-memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu_memory_limit: Option<String>,
    /// MIG instance, such as 1g.5gb, in place of a GPU
    #[arg(long, alias = "mig", value_name = "PROFILE")]
    #[arg(conflicts_with_all = ["gpu", "gpu_memory"])]
    pub(crate) mig_profile: Option<String>,
    /// MIG instances: nvidia.com/mig-1g.10gb=1
    #[arg(long, value_name = "NAME=QUANTITY", value_parser = key_value)]
    pub(crate) extended_resource: Vec<(String, String)>,
    /// CPU cores, such as 0.5 or 500m
    #[arg(long, alias = "cpu-core-request", value_name = "CORES", value_parser = cpu)]
    pub(crate) cpu: Option<u64>,
    /// Memory, such as 1G
    #[arg(long, alias = "cpu-memory-request", value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<String>,
    /// The words after `--` replace the image's command
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "OLD-STYLE STRING", hide_possible_values = true)]
    pub(crate) command: Option<String>,
    /// Old style: arguments as one string
    #[arg(long, hide = true, value_name = "STRING")]
    pub(crate) args: Option<String>,
    /// Environment variable: NAME=VALUE or NAME=SECRET:CREDENTIAL,KEY
    #[arg(short, long, alias = "environment-variable", value_parser = variable)]
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) environment: Vec<(String, Variable)>,
    /// Working directory of the job
    #[arg(long, value_name = "DIR")]
    pub(crate) working_dir: Option<String>,
    /// Maximum restarts of a failed training [default: 6]
    #[arg(long, alias = "backoffLimit", value_name = "N")]
    #[arg(value_parser = count)]
    pub(crate) backoff_limit: Option<u32>,
    /// Time between SIGTERM and SIGKILL, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) termination_grace_period: Option<u64>,
    /// Connection to this terminal.
    #[command(flatten)]
    pub(crate) console: Console,
    /// Flags that check the submission: dry run, what-if and strict.
    #[command(flatten)]
    pub(crate) asking: DryRunFlags,
    /// Constraints on its nodes.
    #[command(flatten)]
    pub(crate) place: Place,
    /// Flags for its pods.
    #[command(flatten)]
    pub(crate) around: pod_flags::V1,
    /// Label
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) label: Vec<(String, String)>,
    /// Annotation
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) annotation: Vec<(String, String)>,
    /// Arguments, or with --command the command
    #[arg(last = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
}

/// Statuses that this dialect shows where the phase has another name.
const STATUSES: [&str; 5] =
    ["ContainerCreating", "Terminating", "Suspended", "Succeeded", "TimedOut"];

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Kind to list [default: jobs]
    #[arg(value_enum, hide_possible_values = true)]
    #[arg(value_name = "jobs|projects|nodes|clusters|templates")]
    pub(crate) listed: Option<Listed>,
    /// Only these nodes
    #[arg(value_name = "NODE")]
    pub(crate) names: Vec<String>,
    /// Jobs of all projects
    #[arg(short = 'A', long, alias = "all")]
    pub(crate) all_projects: bool,
    /// Rows to print at most
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) limit: Option<u32>,
    /// Only jobs with these statuses, such as Running,Pending
    #[arg(long, value_name = "STATUS,STATUS", value_delimiter = ',', ignore_case = true)]
    #[arg(value_parser = PossibleValuesParser::new(
        PHASES.iter().chain(&BACK_OFFS).chain(&STATUSES).copied()
    ))]
    #[arg(hide_possible_values = true)]
    pub(crate) status: Vec<String>,
    /// Jobs to list.
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Kinds of objects that can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Workloads.
    #[value(alias = "job")]
    Jobs,
    /// Projects.
    #[value(alias = "project")]
    Projects,
    /// Nodes.
    #[value(alias = "node")]
    Nodes,
    /// Clusters.
    #[value(alias = "cluster")]
    Clusters,
    /// Templates.
    #[value(alias = "template")]
    Templates,
}

/// `describe`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// `job NAME`, `node [NODE…]`, `template NAME`, or just the name of a job
    #[arg(
        required = true,
        value_name = "job|node|template|NAME",
        add = ArgValueCandidates::new(workloads),
    )]
    pub(crate) words: Vec<String>,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) one: One,
    /// Show events (they are always shown)
    #[arg(short, long, hide = true)]
    pub(crate) events: Option<bool>,
}

/// `top`.
#[derive(Debug, Subcommand)]
pub(crate) enum Top {
    /// Show the resource use of nodes
    #[command(visible_alias = "nodes")]
    Node {
        /// Only these
        #[arg(value_name = "NODE")]
        names: Vec<String>,
        /// Show memory of GPUs too, and each GPU
        #[arg(short, long)]
        details: bool,
        /// Log requests and their results to standard error
        // Everywhere else `-d` is this; of the same id, it stands in for it.
        #[arg(long, hide = true)]
        debug: bool,
        /// Form of the output.
        #[command(flatten)]
        format: Format,
    },
    /// Show the resource use of running jobs
    #[command(visible_alias = "jobs")]
    Job {
        /// Jobs of all projects
        #[arg(short = 'A', long, alias = "all")]
        all_projects: bool,
        /// Form of the output.
        #[command(flatten)]
        format: Format,
    },
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// `NAME` or `job NAME`, or `pod NAMESPACE/NAME` of Kubernetes
    #[arg(required = true, value_name = "NAME", add = ArgValueCandidates::new(workloads))]
    pub(crate) words: Vec<String>,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) one: One,
}

fn gpu_millis(text: &str) -> Result<u64, String> {
    units::parse_gpu_millis(text).map_err(|error| error.to_string())
}
