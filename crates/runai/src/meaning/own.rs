//! From the words about this program itself to what is meant. Pure.

use super::output;
use crate::args::own::{Config, Metrics};
use crate::intent::{Alone, Intent};

pub(super) const NO_CLUSTER: &str = "there is no cluster of Kubernetes behind this server, whose workloads are processes or containers \
     of one machine, so kubectl has nothing to talk to; `runai describe`, `logs`, `exec` and \
     `port-forward` do what it is used for";
const NO_REPORT: &str = "this program does not measure how it is used, so there is nothing";
const NO_REPORT_SETTING: &str =
    "this program does not measure how it is used, so nothing can be set; leave this command out";

pub(super) const NO_OWN_CREDENTIAL: &str = "credentials belong to scopes here, a project at the narrowest, and are nobody's own; `runai \
     credential list` shows those that your project can use, with --env-secret and --secret-volume";
pub(super) const NO_UPDATE: &str = "a training or a workspace does not change once it is submitted; delete it and submit it again. \
     `runai inference update` is for inferences";
pub(super) const NO_SUSPENSION: &str = "an inference is not suspended: with `runai inference update NAME --min-replicas 0` it has no \
     replica while nobody asks, and one as soon as somebody does";
pub(super) const NO_REPLICA_OF_SEVERAL: &str = "a replica of an inference is one pod here, on one machine; use `runai inference submit NAME \
     --serving-port PORT -g N` with the GPUs that it needs";
pub(super) const NO_NIM: &str = "there is no operator for NIM here; submit its image as any other: `runai inference submit NAME -i \
     IMAGE --serving-port 8000`";

pub(super) fn config(verb: Config) -> Intent {
    match verb {
        Config::Project { name } => Intent::SetProject { name, by_noun: false },
        Config::Cluster { name } => Intent::SetCluster(name),
        Config::Set { cp_url } => Intent::SetServer(cp_url),
        Config::Describe { output: format } => Intent::DescribeSettings(output(format)),
        Config::Generate(typed) => Intent::GenerateSettings(typed.file),
    }
}

/// What there is nothing of, and what to type instead.
pub(super) const fn refused(why: &'static str) -> Intent {
    Intent::Alone(Alone::Nothing { why, done: false })
}

/// To print or forget nothing is done at once; to switch it on would be a lie.
pub(super) const fn report(verb: &Metrics) -> Intent {
    Intent::Alone(match verb {
        Metrics::Output | Metrics::Clear => Alone::Nothing { why: NO_REPORT, done: true },
        Metrics::Config(_) => Alone::Nothing { why: NO_REPORT_SETTING, done: false },
    })
}
