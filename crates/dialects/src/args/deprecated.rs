//! Spellings that newer versions have replaced. They still work. Owns the line that names the new
//! one.

use super::objects::{OfObjects, Verb};
use super::v2::{ClusterVerb, Framework, ProjectVerb, Verb as V2};
use super::{Command, v2};

/// A spelling that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecated {
    verb: &'static str,
    now: &'static str,
    /// True if the spelling is deprecated in the first dialect only.
    only_v1: bool,
}

impl Deprecated {
    /// The deprecation line, for users of the first dialect or of the second.
    #[must_use]
    pub fn line(self, v1: bool) -> Option<String> {
        let Self { verb, now, only_v1 } = self;
        let line =
            || format!("Command \"{verb}\" is deprecated, Please use: 'runai {now}' instead");
        (v1 || !only_v1).then(line)
    }
}

/// The spelling of a command, if it is replaced.
#[must_use]
pub(crate) fn spelling(command: &Command) -> Option<Deprecated> {
    let (verb, now, only_v1) = match command {
        Command::Get(_) => ("get", "describe job", false),
        Command::Objects(OfObjects::Template(Verb::Get(_))) => ("get", "describe template", false),
        Command::Distributed(V2::Submit(typed)) => ("submit", submit(&typed.0), false),
        Command::Objects(OfObjects::Template(Verb::List(_))) => ("list", "list templates", true),
        Command::Project(ProjectVerb::List(_)) => ("list", "list projects", true),
        Command::Project(ProjectVerb::Set { .. }) => ("set", "config project", true),
        Command::Cluster(ClusterVerb::List(_)) => ("list", "list clusters", true),
        Command::Cluster(ClusterVerb::Set(_)) => ("set", "config cluster", true),
        _ => return None,
    };
    Some(Deprecated { verb, now, only_v1 })
}

const fn submit(typed: &v2::OfFramework) -> &'static str {
    match typed.framework {
        Framework::Mpi => "training mpi submit",
        Framework::PyTorch => "training pytorch submit",
        Framework::Tf => "training tensorflow submit",
        Framework::XgBoost => "training xgboost submit",
        Framework::Jax => "training jax submit",
    }
}
