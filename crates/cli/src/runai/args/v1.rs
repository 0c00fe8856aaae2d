//! The flags of the first dialect (`runai submit`, `runai list`, …), as typed.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::{Format, cpu, key_value, retries, seconds, size};

/// `submit`.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Name of the job [default: job-0, job-1, …]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The same as NAME
    #[arg(long = "name", value_name = "NAME", conflicts_with = "name")]
    pub(crate) name_flag: Option<String>,
    /// Number the job: PREFIX-0, PREFIX-1, …
    #[arg(long, value_name = "PREFIX", conflicts_with_all = ["name", "name_flag"])]
    pub(crate) job_name_prefix: Option<String>,
    /// Container image
    #[arg(short, long)]
    pub(crate) image: Option<String>,
    /// GPUs: a whole number, or a share of one such as 0.5
    #[arg(short, long, value_parser = gpu_millis, allow_negative_numbers = true)]
    pub(crate) gpu: Option<u64>,
    /// GPU memory, such as 8G, in place of a share
    #[arg(long, value_name = "SIZE", conflicts_with = "gpu", value_parser = size)]
    pub(crate) gpu_memory: Option<String>,
    /// CPU cores, such as 0.5 or 500m
    #[arg(long, value_name = "CORES", value_parser = cpu, allow_negative_numbers = true)]
    pub(crate) cpu: Option<u64>,
    /// Memory, such as 1G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<String>,
    /// Let the job run on fewer GPUs, or more, as they come free
    #[arg(long)]
    pub(crate) elastic: bool,
    /// The job is for a person at a terminal: it is not ended, retried or preempted
    #[arg(long)]
    pub(crate) interactive: bool,
    /// Let an interactive job go over quota, at the price of being preempted
    #[arg(long)]
    pub(crate) preemptible: bool,
    /// The words after `--` replace the image's command
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "OLD-STYLE STRING", hide_possible_values = true)]
    pub(crate) command: Option<String>,
    /// Old style: arguments as one string
    #[arg(long, hide = true, value_name = "STRING")]
    pub(crate) args: Option<String>,
    /// Environment variable
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = key_value)]
    pub(crate) environment: Vec<(String, String)>,
    /// Working directory of the job
    #[arg(long, value_name = "DIR")]
    pub(crate) working_dir: Option<String>,
    /// How often a failed training is started again [default: 6]
    #[arg(long, alias = "backoffLimit", value_name = "N")]
    #[arg(value_parser = retries, allow_negative_numbers = true)]
    pub(crate) backoff_limit: Option<u32>,
    /// Time between SIGTERM and SIGKILL, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) termination_grace_period: Option<u64>,
    /// Label
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) label: Vec<(String, String)>,
    /// Annotation
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) annotation: Vec<(String, String)>,
    /// Arguments, or with --command the command
    #[arg(last = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// What to list [default: jobs]
    #[arg(value_enum, hide_possible_values = true)]
    #[arg(value_name = "jobs|projects|nodes|clusters")]
    pub(crate) listed: Option<Listed>,
    /// Only these nodes
    #[arg(value_name = "NODE")]
    pub(crate) names: Vec<String>,
    /// Jobs of all projects
    #[arg(short = 'A', long, alias = "all")]
    pub(crate) all_projects: bool,
    /// How to print.
    #[command(flatten)]
    pub(crate) format: Format,
}

/// What can be listed.
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
}

/// `describe`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// `job NAME`, `node [NODE…]`, or just the name of a job
    #[arg(required = true, value_name = "job|node|NAME")]
    pub(crate) words: Vec<String>,
    /// Print json or yaml in place of text
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    /// Show events (they are always shown)
    #[arg(short, long, hide = true, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true")]
    pub(crate) events: Option<bool>,
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// `NAME` or `job NAME`
    #[arg(required = true, value_name = "NAME")]
    pub(crate) words: Vec<String>,
    /// Print json or yaml in place of text
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
}

/// How a description is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Sections of text.
    #[value(alias = "wide")]
    Table,
    /// The server's object.
    Json,
    /// The same as YAML.
    Yaml,
}

fn gpu_millis(text: &str) -> Result<u64, String> {
    units::parse_gpu_millis(text).map_err(|error| error.to_string())
}

/// Old command lines have no `--` and give `--command` and `--args` a string each. Only then is
/// the word after `--command` its value; it is joined to it, so that one grammar reads both.
#[must_use]
pub(crate) fn join_old_strings(argv: Vec<OsString>) -> Vec<OsString> {
    let first_word = argv.iter().skip(1).find(|word| !word.to_string_lossy().starts_with('-'));
    let submits = first_word.is_some_and(|word| word == "submit" || word == "project");
    if !submits || argv.iter().any(|word| word == "--") {
        return argv;
    }
    let mut joined: Vec<OsString> = Vec::with_capacity(argv.len());
    let mut words = argv.into_iter().peekable();
    while let Some(mut word) = words.next() {
        let takes_next = word == "--command"
            && words.peek().is_some_and(|next| !next.to_string_lossy().starts_with('-'));
        if takes_next && let Some(value) = words.next() {
            word.push("=");
            word.push(value);
        }
        joined.push(word);
    }
    joined
}
