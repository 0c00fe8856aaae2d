//! Conversion of ports that are opened in a browser, and of related pages, from and to the wire.
//! Does not know about: the addresses of ports (`urls`).

use std::collections::BTreeSet;

use crate::Origins;
use api_types::{
    ExposedUrl as Wire, ExternalConnection, RelatedUrl as WireRelated,
    ServingPortAccessAuthorizationTypeEnum as Authorization, WorkloadSpec,
};
use axum::http::Uri;
use http_kit::ApiError;
use spec::{ExposedUrl, RelatedUrl};
use view::WorkloadView;

use super::container::port;
use super::pods_shown;
use super::serving::{audience, audience_to_wire};

/// Maximum number of URLs of a workload, of either kind.
const URLS_MAX: usize = 64;
/// Maximum length of the URL of a related page.
const URL_BYTES_MAX: usize = 2048;
/// Tool of a URL without one.
const TOOL: &str = "custom";

/// The ports of a specification that are opened in a browser.
pub(super) fn urls(spec: &WorkloadSpec) -> Result<Vec<ExposedUrl>, ApiError> {
    let wire = spec.exposed_urls.as_deref().unwrap_or_default();
    not_too_many("spec.exposedUrls", wire.len())?;
    let (mut ports, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut urls = Vec::new();
    for (at, wire) in wire.iter().enumerate().filter(|(_, url)| url.exclude != Some(true)) {
        let url = url(&format!("spec.exposedUrls[{at}]"), wire)?;
        let field = |name: &str| format!("spec.exposedUrls[{at}].{name}");
        if !ports.insert(url.port) {
            let why = format!("port {} is there twice; give each once", url.port);
            return Err(ApiError::field(&field("container"), why));
        }
        if let Some(name) = url.name.as_ref().filter(|name| !names.insert((*name).clone())) {
            let why = format!("`{}` is there twice; give each another", units::shown(name));
            return Err(ApiError::field(&field("name"), why));
        }
        urls.push(url);
    }
    Ok(urls)
}

fn lists(names: Option<&Vec<String>>) -> bool {
    names.is_some_and(|names| !names.is_empty())
}

/// Authorization type of a URL, by default: the listed users, else all users of this server. Public
/// access has to be explicit.
pub(super) fn authorization(wire: &Wire) -> Authorization {
    let listed = lists(wire.authorized_users.as_ref()) || lists(wire.authorized_groups.as_ref());
    let usual = if listed {
        Authorization::AuthorizedUsersOrGroups
    } else {
        Authorization::AuthenticatedUsers
    };
    wire.authorization_type.unwrap_or(usual)
}

fn url(at: &str, wire: &Wire) -> Result<ExposedUrl, ApiError> {
    let field = format!("{at}.container");
    let port =
        port(&field, wire.container)?.ok_or_else(|| ApiError::field(&field, "must be set"))?;
    let users = wire.authorized_users.clone().unwrap_or_default();
    let groups = lists(wire.authorized_groups.as_ref());
    let kind = authorization(wire);
    Ok(ExposedUrl {
        port,
        audience: audience(at, kind, users, groups)?,
        name: wire.name.clone().filter(|name| !name.is_empty()),
        tool: (wire.tool_type.clone(), wire.tool_name.clone()),
    })
}

fn not_too_many(field: &str, count: usize) -> Result<(), ApiError> {
    if count <= URLS_MAX {
        return Ok(());
    }
    Err(ApiError::field(field, format!("{count} are too many; at most {URLS_MAX} are allowed")))
}

/// The related pages of a specification.
pub(super) fn related(spec: &WorkloadSpec) -> Result<Vec<RelatedUrl>, ApiError> {
    let wire = spec.related_urls.as_deref().unwrap_or_default();
    not_too_many("spec.relatedUrls", wire.len())?;
    let kept = wire.iter().enumerate().filter(|(_, one)| one.exclude != Some(true));
    let one = |(at, wire): (usize, &WireRelated)| {
        let url = wire.url.clone().unwrap_or_default();
        page(&format!("spec.relatedUrls[{at}].url"), &url)?;
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Ok(RelatedUrl { url, name: said(&wire.name), tool_type: said(&wire.r#type) })
    };
    kept.map(one).collect()
}

/// Refuses a text that is not the URL of a page. Readers of the workload may follow it, so its
/// scheme is that of the web and not, for instance, of a script.
pub fn page(field: &str, url: &str) -> Result<(), ApiError> {
    let web = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    if url.len() <= URL_BYTES_MAX && url.parse().is_ok_and(|uri: Uri| web(&uri)) {
        return Ok(());
    }
    let shown = units::shown(url);
    let what = "an http:// or https:// address";
    let why = format!("`{shown}` is not {what} of at most {URL_BYTES_MAX} bytes");
    Err(ApiError::field(field, why))
}

/// Converts ports that are opened in a browser to the form of a request.
pub(super) fn to_wire(urls: &[ExposedUrl]) -> Option<Vec<Wire>> {
    let one = |url: &ExposedUrl| {
        let (authorization, users) = audience_to_wire(&url.audience);
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

/// Converts related pages to the form of a request.
pub(super) fn related_to_wire(urls: &[RelatedUrl]) -> Option<Vec<WireRelated>> {
    let one = |of: &RelatedUrl| WireRelated {
        url: Some(of.url.clone()),
        r#type: of.tool_type.clone(),
        name: of.name.clone(),
        exclude: None,
    };
    Some(urls.iter().map(one).collect()).filter(|urls: &Vec<_>| !urls.is_empty())
}

fn name_of(url: &ExposedUrl) -> String {
    let (_, tool) = &url.tool;
    url.name.clone().or_else(|| tool.clone()).unwrap_or_else(|| url.port.to_string())
}

fn related_name_of(of: &RelatedUrl) -> String {
    of.name.clone().unwrap_or_else(|| of.url.clone())
}

/// The names of the connections of a workload.
pub(super) fn connection_names(spec: &spec::WorkloadSpec) -> impl Iterator<Item = String> {
    let ports = &pods_shown(spec).pod.container.ports;
    let ports = ports.iter().map(|port| port.container.to_string());
    spec.urls.iter().map(name_of).chain(ports).chain(spec.related_urls.iter().map(related_name_of))
}

/// The connections of a workload. The address of a port that the engine assigns is not known here.
pub(super) fn connections(view: &WorkloadView, origins: &Origins) -> Vec<ExternalConnection> {
    let opened = view.spec.urls.iter().map(|url| {
        let (authorization, users) = audience_to_wire(&url.audience);
        let tool_type = url.tool.0.clone();
        ExternalConnection {
            name: name_of(url),
            tool_type: tool_type.unwrap_or_else(|| TOOL.to_owned()),
            connection_type: "ExternalUrl".to_owned(),
            url: origins.of_page(view, url.port),
            authorization_type: Some(authorization),
            authorized_users: users,
            container_port: Some(url.port),
        }
    });
    let ports = pods_shown(&view.spec).pod.container.ports.iter().map(|port| ExternalConnection {
        name: port.container.to_string(),
        tool_type: TOOL.to_owned(),
        connection_type: "NodePort".to_owned(),
        container_port: Some(port.container),
        ..ExternalConnection::default()
    });
    let elsewhere = view.spec.related_urls.iter().map(|of| ExternalConnection {
        name: related_name_of(of),
        tool_type: of.tool_type.clone().unwrap_or_else(|| TOOL.to_owned()),
        connection_type: "RelatedUrl".to_owned(),
        url: Some(of.url.clone()),
        ..ExternalConnection::default()
    });
    opened.chain(ports).chain(elsewhere).collect()
}
