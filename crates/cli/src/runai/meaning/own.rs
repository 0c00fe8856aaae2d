//! From the words about this program itself to what is meant. Pure.

use super::output;
use crate::runai::args::own::{Config, Metrics};
use crate::runai::intent::{Alone, Intent};

const NO_CLUSTER: &str = "there is no cluster of Kubernetes behind this server, whose workloads are processes or containers \
     of one machine, so kubectl has nothing to talk to; `runai describe`, `logs`, `exec` and \
     `port-forward` do what it is used for";
const NO_REPORT: &str = "this program does not measure how it is used, so there is nothing";
const NO_REPORT_SETTING: &str =
    "this program does not measure how it is used, so nothing can be set; leave this command out";

pub(super) fn config(verb: Config) -> Intent {
    match verb {
        Config::Project { name } => Intent::SetProject { name, by_noun: false },
        Config::Cluster { name } => Intent::SetCluster(name),
        Config::Set { cp_url } => Intent::SetServer(cp_url),
        Config::Describe { output: format } => Intent::DescribeSettings(output(format)),
        Config::Generate(typed) => Intent::GenerateSettings(typed.file),
    }
}

pub(super) const fn no_cluster() -> Intent {
    Intent::Alone(Alone::Nothing { why: NO_CLUSTER, done: false })
}

/// To print or forget nothing is done at once; to switch it on would be a lie.
pub(super) const fn report(verb: &Metrics) -> Intent {
    Intent::Alone(match verb {
        Metrics::Output | Metrics::Clear => Alone::Nothing { why: NO_REPORT, done: true },
        Metrics::Config { .. } => Alone::Nothing { why: NO_REPORT_SETTING, done: false },
    })
}
