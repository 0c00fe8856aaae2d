//! What can be typed after `elastane simulate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use cli_kit::number::whole;

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
    /// What if this were submitted: the words of `runai submit` in quotes, or a workload as in a
    /// scenario file: '{name: x, project: team-a, gpu: 2, pods: 4}'
    #[arg(long, value_name = "WORDS", requires = "from", allow_hyphen_values = true)]
    pub(crate) submit: Vec<String>,
    /// Decide on a generated state
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
    /// Random histories, each with the next seed, with every invariant checked after each step
    #[arg(long, value_name = "N", group = "what")]
    #[arg(value_parser = whole(1_u64..=1_000_000))]
    pub(crate) seeds: Option<u64>,
    /// Steps of each random history
    #[arg(long, value_name = "N", default_value_t = 60, requires = "seeds")]
    #[arg(value_parser = whole(1_u32..=100_000))]
    pub(crate) steps: u32,
    /// A knob of the scheduler, such as placement=spread
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) policy: Vec<String>,
    /// Print every decision and the state after it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw GPUs and queues over time
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Drills on a running server: only simulated GPUs fail like that.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum Drill {
    /// Make a simulated GPU of the running server fail; what runs on it goes elsewhere
    GpuFail {
        /// Name of the node
        node: String,
        /// Number of the GPU, from 0
        #[arg(value_parser = whole(0..=u32::MAX))]
        gpu: u32,
    },
    /// Make it work again
    GpuHeal {
        /// Name of the node
        node: String,
        /// Number of the GPU, from 0
        #[arg(value_parser = whole(0..=u32::MAX))]
        gpu: u32,
    },
}
