//! Commands that were not published: listing jobs, waiting for them and ending them; and the parts
//! of a job, which only the server starts. Owns their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use cli_kit::complete::Shell;
use cli_kit::output::Format;

use crate::pods::names_of_jobs;

/// Flags of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Project to work in, in place of the default one
    #[arg(short, long, global = true, value_name = "NAME")]
    pub project: Option<String>,
    /// Print results and errors only, no hints and notes
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// A command that was not published.
#[derive(Debug, Subcommand)]
pub enum Own {
    /// List the jobs of the project
    Jobs {
        /// How they are printed
        #[command(flatten)]
        format: Format,
    },
    /// Show everything about a job, and why it waits
    Status {
        /// Name of the job
        #[arg(add = ArgValueCandidates::new(names_of_jobs))]
        job: String,
    },
    /// Print what a pod of a job wrote
    Logs {
        /// Name of the job
        #[arg(add = ArgValueCandidates::new(names_of_jobs))]
        job: String,
        /// Pod; without it the master
        #[arg(long, value_name = "NAME")]
        pod: Option<String>,
        /// Print what comes, until the job ends
        #[arg(short, long)]
        follow: bool,
        /// Of the run before the present one
        #[arg(long)]
        previous: bool,
    },
    /// Wait until a job has ended
    Wait {
        /// Name of the job
        #[arg(add = ArgValueCandidates::new(names_of_jobs))]
        job: String,
        /// Longest time
        #[arg(long, value_name = "TIME")]
        timeout: Option<String>,
    },
    /// Draw samples per second, workers and loss of a job over time, as SVG
    Plot {
        /// Name of the job
        #[arg(add = ArgValueCandidates::new(names_of_jobs))]
        job: String,
        /// File of the picture
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Delete jobs
    #[command(visible_alias = "rm")]
    Delete {
        /// Names of the jobs
        #[arg(required = true, value_name = "JOB", add = ArgValueCandidates::new(names_of_jobs))]
        jobs: Vec<String>,
    },
    /// List the pods of jobs, as kubectl does
    Pods {
        /// Only those with these labels, such as elasticdl_job_name=NAME
        #[arg(short = 'l', long, value_name = "LABEL=VALUE")]
        selector: Option<String>,
        /// How they are printed
        #[command(flatten)]
        format: Format,
    },
    /// Print the completion script of a shell
    Completion {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Say what the first form takes
    #[command(hide = true)]
    Flat,
    /// Write manual pages into a folder
    #[command(hide = true)]
    Man {
        /// The folder
        folder: PathBuf,
    },
    /// Run the master of a job
    #[command(hide = true)]
    Master {
        /// Its flags
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<std::ffi::OsString>,
    },
    /// Run a parameter server of a job
    #[command(hide = true)]
    Ps {
        /// Its flags
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<std::ffi::OsString>,
    },
    /// Create the priority classes of a file
    Apply {
        /// A PriorityClass of Kubernetes, in YAML or JSON
        #[arg(short, long, value_name = "FILE")]
        filename: PathBuf,
    },
}
