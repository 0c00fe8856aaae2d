//! Queries the server for the names that complete command lines.

use clap_complete::engine::CompletionCandidate;
use cli_kit::complete::names as candidates;
use cli_kit::exit::Error;
use dialects::{Global, NameKind};

use super::context::Context;
use super::{objects, rows};

/// Names from the server; empty if it does not answer.
pub(super) fn names(of: NameKind, project: Option<String>) -> Vec<CompletionCandidate> {
    let global = Global { project, ..Global::default() };
    let Ok(context) = Context::open(&global, &|name| std::env::var(name).ok()) else {
        return Vec::new();
    };
    candidates(known(of, &context))
}

async fn known(of: NameKind, context: &Context) -> Result<Vec<(String, String)>, Error> {
    let alone = |name| (name, String::new());
    Ok(match of {
        NameKind::Workloads(noun) => {
            let all = context.workloads().await?.into_iter();
            let all = all.filter(|workload| rows::is_a(workload, noun));
            all.map(|workload| (workload.name, workload.phase)).collect()
        }
        NameKind::Objects(of) => {
            objects::names(of, context).await?.into_iter().map(alone).collect()
        }
        NameKind::Projects => {
            let all = context.client.projects().await?.into_iter();
            all.map(|project| alone(project.name)).collect()
        }
    })
}
