//! The flags of distributed trainings in the second dialect, as typed.

use clap::Args;

use super::submit::{Ending, GpuRequestType, Named, RestartPolicy, What, devices};
use crate::args::values::{cpu, key_value, portion, size};
use crate::args::workers::{Bounds, Slots, Workers};

/// `training tensorflow submit`, and what all frameworks have.
#[derive(Debug, Args)]
pub(crate) struct Distributed {
    /// Its name, and what it inherits.
    #[command(flatten)]
    pub(crate) named: Named,
    /// Its specification.
    #[command(flatten)]
    pub(crate) what: What,
    /// Policies for its end.
    #[command(flatten)]
    pub(crate) ending: Ending,
    /// Number of workers, and the policy for their pods.
    #[command(flatten)]
    pub(crate) workers: Workers,
    /// Only workers
    #[arg(long)]
    pub(crate) no_master: bool,
    /// Requests of the master.
    #[command(flatten)]
    pub(crate) master: Master,
}

/// `training pytorch submit`.
#[derive(Debug, Args)]
pub(crate) struct PyTorch {
    /// Flags of all frameworks.
    #[command(flatten)]
    pub(crate) all: Distributed,
    /// Bounds on the number of workers.
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// `training mpi submit`.
#[derive(Debug, Args)]
pub(crate) struct Mpi {
    /// Flags of all frameworks.
    #[command(flatten)]
    pub(crate) all: Distributed,
    /// Number of ranks.
    #[command(flatten)]
    pub(crate) slots: Slots,
}

/// `distributed submit`, the oldest form.
#[derive(Debug, Args)]
#[command(override_usage = "runai distributed submit --framework <NAME> [OPTIONS] [NAME]")]
pub(crate) struct OfFramework {
    /// Framework of the pods
    #[arg(short, long, value_enum, value_name = "NAME", ignore_case = true)]
    pub(crate) framework: super::Framework,
    /// Flags of all frameworks.
    #[command(flatten)]
    pub(crate) all: Distributed,
    /// Bounds on the number of workers.
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    /// Number of ranks.
    #[command(flatten)]
    pub(crate) slots: Slots,
}

/// Flags of the master; what is not given is as with the workers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Master, where it is not like the workers")]
#[group(id = "master", multiple = true, conflicts_with = "no_master")]
pub(crate) struct Master {
    /// Command of the master, as one string
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub(crate) master_command: Option<String>,
    /// Arguments of the master, as one string
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub(crate) master_args: Option<String>,
    /// GPU devices
    #[arg(long, value_name = "N", value_parser = devices)]
    pub(crate) master_gpu_devices_request: Option<u32>,
    /// Unit of the request for each device: portion or memory
    #[arg(long, value_enum, value_name = "TYPE", hide_possible_values = true)]
    pub(crate) master_gpu_request_type: Option<GpuRequestType>,
    /// Share of each device
    #[arg(long, value_name = "SHARE", value_parser = portion)]
    #[arg(conflicts_with = "master_gpu_memory_request")]
    pub(crate) master_gpu_portion_request: Option<u64>,
    /// Most of each device that may be used while it is free
    #[arg(long, value_name = "SHARE", value_parser = portion)]
    pub master_gpu_portion_limit: Option<u64>,
    /// Memory of each device
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) master_gpu_memory_request: Option<String>,
    /// Most memory of each device that may be used while it is free
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub master_gpu_memory_limit: Option<String>,
    /// MIG instances
    #[arg(long, value_name = "NAME=QUANTITY", value_parser = key_value)]
    pub(crate) master_extended_resource: Vec<(String, String)>,
    /// CPU cores
    #[arg(long, value_name = "CORES", value_parser = cpu)]
    pub(crate) master_cpu_core_request: Option<u64>,
    /// Memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) master_cpu_memory_request: Option<String>,
    /// Most CPU cores it may use
    #[arg(long, value_name = "CORES", value_parser = cpu)]
    pub(crate) master_cpu_core_limit: Option<u64>,
    /// Most memory it may use
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) master_cpu_memory_limit: Option<String>,
    /// Environment variable
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_value)]
    pub(crate) master_environment_variable: Vec<(String, String)>,
    /// Restart policy of the master, applied when its process ends
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) master_restart_policy: Option<RestartPolicy>,
    /// Do not mount the volumes of --new-pvc and --existing-pvc in the master
    #[arg(long)]
    pub(crate) master_no_pvcs: bool,
}
