//! The flags of the second dialect (`runai training submit`, `runai workload list`, …), as typed.

use clap::{Args, Subcommand, ValueEnum};

use super::{Exec, Format, Logs, Named, Names, cpu, key_value, retries, seconds, size, v1};

/// Verbs of `training` and `workspace`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Submit one
    Submit(Box<Submit>),
    /// List them
    List(List),
    /// Show everything about one, and why it waits
    Describe(Describe),
    /// Say why one waits, who holds what it needs and what would let it start
    Explain(v1::Explain),
    /// Print what it wrote
    Logs(Logs),
    /// Stop some and free their GPUs; `resume` queues them again
    Suspend(Names),
    /// Queue suspended ones again
    Resume(Names),
    /// Delete some
    Delete(Names),
    /// Open a shell that sees what it sees
    Bash(Named),
    /// Run a command that sees what it sees
    Exec(Exec),
}

/// Verbs of `workload`.
#[derive(Debug, Subcommand)]
pub(crate) enum AnyVerb {
    /// List them
    List(List),
    /// Show everything about one, and why it waits
    Describe(Describe),
    /// Say why one waits, who holds what it needs and what would let it start
    Explain(v1::Explain),
    /// Print what it wrote
    Logs(Logs),
    /// Stop some and free their GPUs; `resume` queues them again
    Suspend(Names),
    /// Queue suspended ones again
    Resume(Names),
    /// Delete some
    Delete(Names),
    /// Run a command that sees what it sees
    Exec(Exec),
}

/// Verbs of `project` and `cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum OrgVerb {
    /// List them
    List(Format),
    /// Choose one
    Set {
        /// Name
        name: String,
    },
}

/// Verbs of `node`.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeVerb {
    /// List them
    List(Format),
}

/// `submit`.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Name
    #[arg(value_name = "NAME", required_unless_present = "name_prefix")]
    pub(crate) name: Option<String>,
    /// Number it: PREFIX-0, PREFIX-1, …
    #[arg(long, value_name = "PREFIX", conflicts_with = "name")]
    pub(crate) name_prefix: Option<String>,
    /// Container image
    #[arg(short, long)]
    pub(crate) image: Option<String>,
    /// GPU devices, a whole number
    #[arg(short, long, visible_alias = "gpu-devices", value_name = "N")]
    #[arg(value_parser = devices, allow_negative_numbers = true)]
    pub(crate) gpu_devices_request: Option<u32>,
    /// What is asked of each device
    #[arg(long, value_enum)]
    pub(crate) gpu_request_type: Option<GpuRequestType>,
    /// Share of each device, such as 0.5
    #[arg(long, value_name = "SHARE", value_parser = portion, allow_negative_numbers = true)]
    #[arg(conflicts_with = "gpu_memory_request")]
    pub(crate) gpu_portion_request: Option<u64>,
    /// Memory of each device, such as 8G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu_memory_request: Option<String>,
    /// CPU cores, such as 0.5
    #[arg(long, value_name = "CORES", value_parser = cpu, allow_negative_numbers = true)]
    pub(crate) cpu_core_request: Option<u64>,
    /// Memory, such as 1G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) cpu_memory_request: Option<String>,
    /// Let it run on fewer GPUs, or more, as they come free
    #[arg(long)]
    pub(crate) elastic: bool,
    /// The words after `--` replace the image's command
    #[arg(short, long)]
    pub(crate) command: bool,
    /// Environment variable
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = key_value)]
    pub(crate) environment_variable: Vec<(String, String)>,
    /// Environment variable, as older versions spell it
    #[arg(long, hide = true, value_name = "NAME=VALUE", value_parser = old_environment)]
    pub(crate) environment: Vec<(String, String)>,
    /// Working directory
    #[arg(long, value_name = "DIR")]
    pub(crate) working_dir: Option<String>,
    /// How often it is started again after a failure [default: 6]
    #[arg(long, value_name = "N", value_parser = retries, allow_negative_numbers = true)]
    pub(crate) backoff_limit: Option<u32>,
    /// What happens when the process ends
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) restart_policy: Option<RestartPolicy>,
    /// Time between SIGTERM and SIGKILL, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) termination_grace_period: Option<u64>,
    /// Priority inside the project: very-low, low, medium-low, medium, medium-high, high, very-high
    #[arg(long, value_name = "NAME")]
    pub(crate) priority: Option<String>,
    /// Whether it may be evicted for others
    #[arg(long, value_enum)]
    pub(crate) preemptibility: Option<Preemptibility>,
    /// Let it be evicted for others (older spelling)
    #[arg(long, hide = true, conflicts_with = "preemptibility")]
    pub(crate) preemptible: bool,
    /// Label
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) label: Vec<(String, String)>,
    /// Annotation
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) annotation: Vec<(String, String)>,
    /// Arguments, or with --command the command
    #[arg(last = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

/// What a GPU request counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GpuRequestType {
    /// A share of each device.
    Portion,
    /// Memory on each device.
    Memory,
}

/// What happens when the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum RestartPolicy {
    /// It is started again, however it ended.
    #[value(alias = "always")]
    Always,
    /// A success ends the workload; a failure is a new try.
    #[value(alias = "never")]
    Never,
    /// It is started again after a failure.
    #[value(alias = "onfailure")]
    OnFailure,
}

/// Whether a workload may be evicted for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preemptibility {
    /// It may.
    Preemptible,
    /// It may not, and so stays within the quota.
    NonPreemptible,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Of all projects
    #[arg(short = 'A', long)]
    pub(crate) all: bool,
    /// Only those in this phase, such as Running
    #[arg(long, value_name = "PHASE")]
    pub(crate) status: Option<String>,
    /// Which.
    #[command(flatten)]
    pub(crate) only: Only,
    /// Rows to print at most
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) limit: usize,
    /// Rows to leave out first
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) offset: usize,
    /// Print every row
    #[arg(long, conflicts_with_all = ["limit", "offset"])]
    pub(crate) no_pagination: bool,
    /// How to print.
    #[command(flatten)]
    pub(crate) format: Format,
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
    pub(crate) name: String,
    /// Print json or yaml in place of text
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<v1::Output>,
    /// Most events to show
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) event_limit: usize,
    /// Which.
    #[command(flatten)]
    pub(crate) only: Only,
}

fn devices(text: &str) -> Result<u32, String> {
    match units::parse_gpu_millis(text) {
        Ok(millis) if millis % 1000 == 0 => {
            u32::try_from(millis / 1000).map_err(|_| format!("`{text}` is too large"))
        }
        Ok(_) => Err(format!(
            "devices are whole here; for a share of one GPU write \
             `-g 1 --gpu-request-type portion --gpu-portion-request {text}`"
        )),
        Err(error) => Err(error.to_string()),
    }
}

fn portion(text: &str) -> Result<u64, String> {
    match units::parse_gpu_millis(text) {
        Ok(millis @ 1..=1000) => Ok(millis),
        Ok(_) => Err("a share is above 0 and at most 1".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Until 2.19 `--environment` was a variable, then an asset; the `=` tells which is meant.
fn old_environment(text: &str) -> Result<(String, String), String> {
    key_value(text).map_err(|_| {
        "environment assets are not supported yet; for a variable write NAME=VALUE".to_owned()
    })
}
