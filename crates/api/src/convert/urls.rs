//! Wire to command and back: ports that are opened in a browser. Refuses to know: their addresses
//! (`urls`).

use std::collections::BTreeSet;

use api_types::{
    ExposedUrl as Wire, ServingPortAccessAuthorizationTypeEnum as Authorization, WorkloadSpec,
};
use control::ExposedUrl;

use super::container::port;
use super::serving::{audience, told_audience};
use crate::edge::Fault;

/// Most of a workload.
const URLS_MAX: usize = 64;

/// The ports that a specification opens.
pub(super) fn urls(spec: &WorkloadSpec) -> Result<Vec<ExposedUrl>, Fault> {
    let wire = spec.exposed_urls.as_deref().unwrap_or_default();
    if wire.len() > URLS_MAX {
        let why = format!("{} are too many; at most {URLS_MAX} are allowed", wire.len());
        return Err(Fault::field("spec.exposedUrls", why));
    }
    let (mut ports, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut urls = Vec::new();
    for (at, wire) in wire.iter().enumerate().filter(|(_, url)| url.exclude != Some(true)) {
        let url = url(&format!("spec.exposedUrls[{at}]"), wire)?;
        let field = |name: &str| format!("spec.exposedUrls[{at}].{name}");
        if !ports.insert(url.port) {
            let why = format!("port {} is there twice; give each once", url.port);
            return Err(Fault::field(&field("container"), why));
        }
        if let Some(name) = url.name.as_ref().filter(|name| !names.insert((*name).clone())) {
            let why = format!("`{}` is there twice; give each another", units::shown(name));
            return Err(Fault::field(&field("name"), why));
        }
        urls.push(url);
    }
    Ok(urls)
}

fn url(at: &str, wire: &Wire) -> Result<ExposedUrl, Fault> {
    let field = format!("{at}.container");
    let port = port(&field, wire.container)?.ok_or_else(|| Fault::field(&field, "must be set"))?;
    let users = wire.authorized_users.clone().unwrap_or_default();
    let groups = wire.authorized_groups.as_ref().is_some_and(|groups| !groups.is_empty());
    // Whoever lists somebody means nobody else.
    let usual = match (users.is_empty(), groups) {
        (true, false) => Authorization::Public,
        _ => Authorization::AuthorizedUsersOrGroups,
    };
    let kind = wire.authorization_type.unwrap_or(usual);
    Ok(ExposedUrl {
        port,
        audience: audience(at, kind, users, groups)?,
        name: wire.name.clone().filter(|name| !name.is_empty()),
        tool: (wire.tool_type.clone(), wire.tool_name.clone()),
    })
}

/// As they could have been asked for.
pub(super) fn told(urls: &[ExposedUrl]) -> Option<Vec<Wire>> {
    let one = |url: &ExposedUrl| {
        let (authorization, users) = told_audience(&url.audience);
        let (tool_type, tool_name) = url.tool.clone();
        Wire {
            container: Some(url.port.into()),
            authorization_type: Some(authorization),
            authorized_users: users,
            tool_type,
            tool_name,
            name: url.name.clone(),
            ..Wire::default()
        }
    };
    Some(urls.iter().map(one).collect()).filter(|urls: &Vec<_>| !urls.is_empty())
}
