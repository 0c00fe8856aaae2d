//! Names that complete command lines of `elastane`.

use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;
use client::Client;

use super::env;
use cli_kit::complete::{line, names, value_of};
use cli_kit::exit::Error;

/// Names from the server of the line's state directory; empty if it does not answer.
fn query_names<N: IntoIterator<Item = String>>(
    ask: impl AsyncFnOnce(Client) -> Result<N, client::Error>,
) -> Vec<CompletionCandidate> {
    let dir = value_of(&line(), &["--state-dir"]).map(PathBuf::from);
    let dir = dir.or_else(|| client::state_dir(&env));
    let Ok(found) = client::find(None, None, dir.as_deref(), None) else { return Vec::new() };
    names(async {
        let all = ask(found.client).await.map_err(Error::from)?;
        Ok(all.into_iter().map(|name| (name, String::new())).collect())
    })
}

pub(crate) fn projects() -> Vec<CompletionCandidate> {
    query_names(async |client| Ok(client.projects().await?.into_iter().map(|one| one.name)))
}

pub(crate) fn departments() -> Vec<CompletionCandidate> {
    query_names(async |client| Ok(client.departments().await?.into_iter().map(|one| one.name)))
}

pub(crate) fn pools() -> Vec<CompletionCandidate> {
    query_names(async |client| Ok(client.node_pools().await?.into_iter().map(|one| one.name)))
}

pub(crate) fn nodes() -> Vec<CompletionCandidate> {
    query_names(async |client| Ok(client.status().await?.nodes.into_iter().map(|one| one.name)))
}

pub(crate) fn users() -> Vec<CompletionCandidate> {
    query_names(async |client| Ok(client.users().await?.into_iter().map(|one| one.username)))
}

pub(crate) fn service_accounts() -> Vec<CompletionCandidate> {
    query_names(async |client| Ok(client.service_accounts().await?.into_iter().map(|one| one.name)))
}

/// Config maps of the line's project.
pub(crate) fn config_maps() -> Vec<CompletionCandidate> {
    let project = value_of(&line(), &["-p", "--project"]).unwrap_or_default();
    query_names(async |client| {
        let Some(project) = client.project(&project).await? else { return Ok(Vec::new()) };
        Ok(client.config_maps(&project.id).await?.into_iter().map(|one| one.name).collect())
    })
}
