//! The command line of `elastane simulate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use clap_complete::engine::ArgValueCandidates;
use cli_kit::parse_number::whole;
use dialects::key_value;

use crate::complete;

/// `simulate`.
#[derive(Debug, Default, Args)]
#[command(after_help = "The format of scenario files: docs/reference/scenario.md")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Simulate {
    /// On the running server instead
    #[command(subcommand)]
    pub(crate) drill: Option<Drill>,
    /// Scenario file, YAML or JSON; `-` reads standard input
    #[arg(value_name = "FILE", group = "what")]
    pub(crate) file: Option<PathBuf>,
    /// Start from what `elastane snapshot` printed
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) from: Option<PathBuf>,
    /// Submission to simulate: the words of `runai submit` in quotes, or a workload as in a
    /// scenario file: '{name: x, project: team-a, gpu: 2, pods: 4}'
    #[arg(long, value_name = "WORDS", requires = "from", allow_hyphen_values = true)]
    pub(crate) submit: Vec<String>,
    /// Decide on one generated state
    #[arg(long, value_name = "NAME", group = "what")]
    #[arg(value_parser = PossibleValuesParser::new(sim::states::State::ALL.map(|s| s.name())))]
    pub(crate) state: Option<String>,
    /// Nodes of the generated state
    #[arg(long, value_name = "N", default_value_t = 500, requires = "state")]
    #[arg(value_parser = whole(1_u32..=20_000))]
    pub(crate) nodes: u32,
    /// Replay a trace: a folder with nodes.csv and lists of pods
    #[arg(long, value_name = "DIR", group = "what")]
    pub(crate) trace: Option<PathBuf>,
    /// Which list of pods of the trace
    #[arg(long, value_name = "FILE", default_value = "pods-default.csv", requires = "trace")]
    pub(crate) pods: PathBuf,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value_t = 42, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Runs over the trace, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, requires = "trace")]
    #[arg(value_parser = whole(1_u64..=1000))]
    pub(crate) runs: u64,
    /// Move pods for one that does not fit, if together they hold no more GPUs than it gets
    #[arg(long, requires = "trace")]
    pub(crate) moves: bool,
    /// Random histories, each with the next seed, with every invariant checked after each step
    #[arg(long, value_name = "N", group = "what")]
    #[arg(value_parser = whole(1_u64..=1_000_000))]
    pub(crate) seeds: Option<u64>,
    /// Steps of each random history
    #[arg(long, value_name = "N", default_value_t = 60, requires = "seeds")]
    #[arg(value_parser = whole(1_u32..=100_000))]
    pub(crate) steps: u32,
    /// Setting of the scheduler, such as placement=spread
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) policy: Vec<String>,
    /// Print every decision and the state after it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw GPUs and queues over time
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Drills on a running server: only simulated GPUs and nodes come and go like that.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum Drill {
    /// Make a simulated GPU of the running server fail; its workloads move, or wait for room
    GpuFail {
        /// Name of the node
        node: String,
        /// Number of the GPU, from 0
        #[arg(value_parser = whole(0..=u32::MAX))]
        gpu: u32,
    },
    /// Add simulated nodes to the running server
    NodeAdd(NewNode),
    /// Remove a simulated node at once; its pods are lost, and start again where there is room
    NodeRemove {
        /// Name of the node
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
    },
    /// Drain a simulated node, as `elastane node drain` does on any server
    Drain {
        /// Name of the node
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
    },
    /// Make a simulated GPU work again
    GpuHeal {
        /// Name of the node
        node: String,
        /// Number of the GPU, from 0
        #[arg(value_parser = whole(0..=u32::MAX))]
        gpu: u32,
    },
}

/// A simulated node.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct NewNode {
    /// Name of the node; several are added at once
    #[arg(required = true, value_name = "NODE")]
    pub(crate) nodes: Vec<String>,
    /// Number of GPUs
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::from(gpu::GPUS_PER_NODE_MAX)))]
    pub(crate) gpus: u64,
    /// Memory of each GPU, such as 80GiB; 16GiB if left out
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu_memory: Option<u64>,
    /// Cores; those of this machine if left out
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub(crate) cpu: Option<u64>,
    /// Memory; that of this machine if left out
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// Label of the node; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) label: Vec<(String, String)>,
}

fn size(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).map_err(|error| error.to_string())
}

fn cores(text: &str) -> Result<u64, String> {
    units::parse_cpu_millis(text).map_err(|error| error.to_string())
}
