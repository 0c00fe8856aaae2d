//! Commands about this program itself: its settings, its login, its version.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use super::Output;
use crate::complete::projects;

/// `config …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Make a project the default one
    Project {
        /// Name of the project
        #[arg(add = ArgValueCandidates::new(projects))]
        name: String,
    },
    /// Make a cluster the current one
    Cluster {
        /// Name or id of the cluster
        name: String,
    },
    /// Set the address of the server
    Set {
        /// Address of the server, such as https://gpu.example.org:7070
        #[arg(long, visible_alias = "control-plane-url", value_name = "URL")]
        cp_url: String,
    },
    /// Show the settings and their origin
    #[command(alias = "show")]
    Describe {
        /// Print json or yaml in place of text
        #[arg(short, long, value_enum, value_name = "FORMAT")]
        output: Option<Output>,
        /// Alias of -o json
        #[arg(long, conflicts_with = "output")]
        json: bool,
    },
    /// Print settings for other users of the same server
    Generate(Generate),
}

/// `config generate`.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Write them to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Accepted for scripts written for other versions: settings are JSON
    #[arg(long, hide = true)]
    pub(crate) json: bool,
}

/// `auth …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Print the token that requests are sent with
    #[command(visible_alias = "get-token")]
    Token {
        /// Print json or yaml in place of text
        #[arg(short, long, value_enum, value_name = "FORMAT")]
        output: Option<Output>,
    },
}

/// `diagnostics`.
#[derive(Debug, Args)]
pub(crate) struct Diagnostics {
    /// Accepted as the published verb: there is one thing to collect
    #[arg(hide = true, value_parser = ["collect-logs"])]
    verb: Option<String>,
    /// Print json or yaml in place of text
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    /// Write to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `kubeconfig …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Kubeconfig {
    /// Refused: there is no cluster of Kubernetes behind the server
    Set,
}

/// `report …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Report {
    /// Measurements of how this program is used: there are none
    #[command(subcommand)]
    Metrics(Metrics),
}

/// `report metrics …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Metrics {
    /// Print them
    Output,
    /// Forget them
    Clear,
    /// Refused: nothing can be set
    Config(IgnoredWords),
}

/// Words behind a word that is refused.
#[derive(Debug, Args)]
pub(crate) struct IgnoredWords {
    /// Words that were typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

impl IgnoredWords {
    /// The first word that is no flag and no project.
    pub(crate) fn name(&self) -> Option<&str> {
        let mut words = self.words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "-p" | "--project" => drop(words.next()),
                flag if flag.starts_with('-') => {}
                name => return Some(name),
            }
        }
        None
    }
}
