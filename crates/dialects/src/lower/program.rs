//! Lowers the commands about this program itself. Pure.

use std::borrow::Cow;

use super::output;
use crate::args::program::{Config, IgnoredWords, Metrics};
use crate::intent::{Intent, LocalCommand, OutputFormat};

pub(super) const NO_CLUSTER: &str = "there is no cluster of Kubernetes behind this server, whose workloads are processes or containers \
     of one machine, so kubectl has nothing to talk to; `runai describe`, `logs`, `exec` and \
     `port-forward` do what it is used for";
const NO_REPORT: &str = "this program collects no usage data, so there is nothing to do";
const NO_REPORT_SETTING: &str =
    "this program collects no usage data, so nothing can be set; leave this command out";

pub(super) const NO_OWN_CREDENTIAL: &str = "users have no credentials of their own: a credential belongs to a project, a department or the \
     installation; `runai credential list` shows those that your project can use, with --env-secret \
     and --secret-volume";
pub(super) const NO_SUSPENSION: &str = "an inference cannot be suspended; `runai inference update NAME --min-replicas 0` scales it to \
     zero while there are no requests, and the next request starts a replica";
pub(super) const NO_REPLICA_OF_SEVERAL: &str = "a replica of an inference is one pod here, on one machine; use `runai inference submit NAME \
     --serving-port PORT -g N` with the GPUs that it needs";
pub(super) const NO_NIM: &str = "there is no operator for NIM here; submit its image as any other: `runai inference submit NAME -i \
     IMAGE --serving-port 8000`";

pub(super) const NO_PROJECT_CHANGE: &str = "an administrator creates, changes and deletes projects, at the server: `elastane project create \
     NAME --gpu-quota N`, `elastane project delete NAME`";

/// All texts, for review.
#[cfg(test)]
pub(crate) const TEXTS: [&str; 8] = [
    NO_PROJECT_CHANGE,
    NO_CLUSTER,
    NO_REPORT,
    NO_REPORT_SETTING,
    NO_OWN_CREDENTIAL,
    NO_SUSPENSION,
    NO_REPLICA_OF_SEVERAL,
    NO_NIM,
];

pub(super) fn config(verb: Config) -> Intent {
    match verb {
        Config::Project { name } => Intent::SetProject { name, by_noun: false },
        Config::Cluster { name } => Intent::SetCluster(name),
        Config::Set { cp_url } => Intent::SetServer(cp_url),
        Config::Describe { output: format, json } => {
            Intent::DescribeSettings(if json { OutputFormat::Json } else { output(format) })
        }
        Config::Generate(typed) => Intent::GenerateSettings(typed.file),
    }
}

/// Refuses a command that has nothing to act on; the text says what to type instead.
pub(super) const fn refused(why: &'static str) -> Intent {
    Intent::LocalCommand(LocalCommand::Nothing { why: Cow::Borrowed(why), done: false })
}

/// Refuses a command for an inference; the text has the name that was typed.
pub(super) fn no_suspension(typed: &IgnoredWords) -> Intent {
    let Some(name) = typed.name() else { return refused(NO_SUSPENSION) };
    let why = NO_SUSPENSION.replace("NAME", &units::shown(name));
    Intent::LocalCommand(LocalCommand::Nothing { why: why.into(), done: false })
}

const fn nothing(why: &'static str, done: bool) -> LocalCommand {
    LocalCommand::Nothing { why: Cow::Borrowed(why), done }
}

/// Printing or clearing measurements succeeds, as there are none; enabling them is refused.
pub(super) fn report(verb: &Metrics) -> Intent {
    Intent::LocalCommand(match verb {
        Metrics::Output | Metrics::Clear => nothing(NO_REPORT, true),
        Metrics::Config(_) => nothing(NO_REPORT_SETTING, false),
    })
}
