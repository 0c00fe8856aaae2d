//! The flags of submissions of the second dialect, as typed.

use api_types as wire;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use crate::args::object_values::{data_source, secret_files, secret_variable};
use crate::args::values::{count, cpu, key_value, portion, positive, seconds, size};
use crate::args::{Console, DryRunFlags, Place, pod_flags};
use crate::complete::{computes, environments, priorities, templates};
use crate::intent::{DataSource, SecretFiles, Variable};

/// `training submit`.
#[derive(Debug, Args)]
pub(crate) struct Training {
    /// Its name, and what it inherits.
    #[command(flatten)]
    pub(crate) named: Named,
    /// Its specification.
    #[command(flatten)]
    pub(crate) what: What,
    /// Policies for its end.
    #[command(flatten)]
    pub(crate) ending: Ending,
    /// Pods that must succeed
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) runs: Option<u32>,
    /// Number of pods that run at a time [default: 1]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) parallelism: Option<u32>,
    /// Let it run on fewer GPUs, or more, as they come free
    #[arg(long, conflicts_with_all = ["runs", "parallelism"])]
    pub(crate) elastic: bool,
}

/// `workspace submit`.
#[derive(Debug, Args)]
pub(crate) struct Workspace {
    /// Its name, and what it inherits.
    #[command(flatten)]
    pub(crate) named: Named,
    /// Its specification.
    #[command(flatten)]
    pub(crate) what: What,
    /// Policies for its end.
    #[command(flatten)]
    pub(crate) ending: Ending,
}

/// Name of a workload, and what it inherits.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name [default: its kind and a number, such as training-0]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Number it: PREFIX-0, PREFIX-1, …
    #[arg(long, value_name = "PREFIX", conflicts_with = "name")]
    pub(crate) name_prefix: Option<String>,
    /// Template for the values that are not given here
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(templates))]
    pub(crate) template: Option<String>,
    /// Environment asset for the values that are not given here
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(environments))]
    pub(crate) environment: Vec<String>,
    /// Compute asset for the values that are not given here
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(computes))]
    pub(crate) compute: Option<String>,
    /// Data source asset
    #[arg(long, value_name = "type=TYPE,name=NAME", value_parser = data_source)]
    pub(crate) datasource: Vec<DataSource>,
    /// Flags that check the submission: dry run, what-if and strict.
    #[command(flatten)]
    pub(crate) asking: DryRunFlags,
}

/// Specification of a workload: its image, command and resources.
#[derive(Debug, Args)]
pub(crate) struct What {
    /// Container image
    #[arg(short, long)]
    pub(crate) image: Option<String>,
    /// GPU devices, a whole number
    #[arg(short, long, value_name = "N")]
    #[arg(value_parser = devices)]
    pub(crate) gpu_devices_request: Option<u32>,
    /// Unit of the request for each device: portion or memory
    #[arg(long, value_enum, value_name = "TYPE", hide_possible_values = true)]
    pub(crate) gpu_request_type: Option<GpuRequestType>,
    /// Share of each device, such as 0.5
    #[arg(long, value_name = "SHARE", value_parser = portion)]
    #[arg(conflicts_with = "gpu_memory_request")]
    pub(crate) gpu_portion_request: Option<u64>,
    /// Most of each device that may be used while it is free
    #[arg(long, value_name = "SHARE", value_parser = portion)]
    pub gpu_portion_limit: Option<u64>,
    /// Memory of each device, such as 8G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu_memory_request: Option<String>,
    /// Most memory of each device that may be used while it is free
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub gpu_memory_limit: Option<String>,
    /// MIG instances: nvidia.com/mig-1g.10gb=1
    #[arg(long, value_name = "NAME=QUANTITY", value_parser = key_value)]
    pub(crate) extended_resource: Vec<(String, String)>,
    /// CPU cores, such as 0.5
    #[arg(long, value_name = "CORES", value_parser = cpu)]
    pub(crate) cpu_core_request: Option<u64>,
    /// Memory, such as 1G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) cpu_memory_request: Option<String>,
    /// The words after `--` replace the image's command
    #[arg(short, long)]
    pub(crate) command: bool,
    /// Environment variable
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = key_value)]
    pub(crate) environment_variable: Vec<(String, String)>,
    /// Environment variable with a value of a credential
    #[arg(long, value_name = "name=NAME,secret=CREDENTIAL,key=KEY")]
    #[arg(value_parser = secret_variable)]
    pub(crate) env_secret: Vec<(String, Variable)>,
    /// Credential as files in a folder
    #[arg(long, value_name = "name=CREDENTIAL,path=DIR", value_parser = secret_files)]
    pub(crate) secret_volume: Vec<SecretFiles>,
    /// Working directory
    #[arg(long, value_name = "DIR")]
    pub(crate) working_dir: Option<String>,
    /// Time between SIGTERM and SIGKILL, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) termination_grace_period: Option<u64>,
    /// Priority inside the project: very-low, low, medium-low, medium, medium-high, high, very-high
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(priorities))]
    pub(crate) priority: Option<String>,
    /// Preemptibility
    #[arg(long, value_enum, value_name = "WHETHER")]
    pub(crate) preemptibility: Option<Preemptibility>,
    /// Allow preemption (older spelling)
    #[arg(long, hide = true, conflicts_with = "preemptibility")]
    pub(crate) preemptible: Option<bool>,
    /// Constraints on its nodes.
    #[command(flatten)]
    pub(crate) place: Place,
    /// Flags for its pods.
    #[command(flatten)]
    pub(crate) around: pod_flags::V2,
    /// Label
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) label: Vec<(String, String)>,
    /// Annotation
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) annotation: Vec<(String, String)>,
    /// Arguments, or with --command the command
    #[arg(last = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
}

/// Policies for the end of a process, and its connection to this terminal.
#[derive(Debug, Default, Args)]
pub(crate) struct Ending {
    /// Connection to this terminal.
    #[command(flatten)]
    pub(crate) console: Console,
    /// Maximum restarts after a failure [default: 6]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) backoff_limit: Option<u32>,
    /// Restart policy, applied when the process ends
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) restart_policy: Option<RestartPolicy>,
    /// Delete it this long after its end, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) auto_deletion_time_after_completion: Option<u64>,
    /// Its start and its run time.
    #[command(flatten)]
    pub(crate) timing: pod_flags::Timing,
}

/// Type of a GPU request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GpuRequestType {
    /// A share of each device.
    Portion,
    /// Memory on each device.
    Memory,
    /// An instance of a device (older spelling).
    #[value(name = "migProfile", hide = true)]
    MigProfile,
}

/// Restart policy, applied when the process ends.
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

/// Preemptibility of a workload: whether it may be evicted for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preemptibility {
    /// Others may stop it.
    Preemptible,
    /// Others may not stop it, and it stays within the quota.
    NonPreemptible,
}

impl From<RestartPolicy> for wire::RestartPolicy {
    fn from(typed: RestartPolicy) -> Self {
        match typed {
            RestartPolicy::Always => Self::Always,
            RestartPolicy::Never => Self::Never,
            RestartPolicy::OnFailure => Self::OnFailure,
        }
    }
}

impl Preemptibility {
    /// True if it may.
    #[must_use]
    pub(crate) const fn is_preemptible(self) -> bool {
        matches!(self, Self::Preemptible)
    }
}

/// Reads a count of devices.
///
/// # Errors
/// Says what is allowed.
pub(super) fn devices(text: &str) -> Result<u32, String> {
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
