//! The project and cluster commands, `whoami`, and the version of this program.

use std::io::Write;

use api_types::Time;
use serde_json::json;
use units::Instant;

use super::context::Context;
use super::session::claims;
use cli_kit::exit::Error;
use cli_kit::output::data;
use cli_kit::settings::{Settings, TableStyle};
use cli_kit::suggest;
use dialects::intent::{OutputFormat, OutputOptions};

pub(super) async fn set_project(
    name: &str,
    by_noun: bool,
    context: &mut Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if context.client.project(name).await?.is_none() {
        return Err(context.no_project(name).await?);
    }
    context.settings.set_project(name)?;
    // `project set` is the old form in v1 and the current one in v2.
    if by_noun && context.settings.table() != Some(TableStyle::V1) {
        writeln!(out, "project {name} configured successfully")?;
    } else {
        writeln!(out, "Project {name} has been set as default project")?;
    }
    Ok(())
}

pub(super) async fn set_cluster(
    name: &str,
    context: &mut Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let clusters = context.client.clusters().await?;
    let Some(cluster) = clusters.iter().find(|one| one.name == name || one.uuid == name) else {
        let near = suggest::hint(name, clusters.iter().map(|one| one.name.as_str()));
        let name = units::shown(name);
        return Err(Error::NotFound(format!("Cluster {name} does not exist{near}")));
    };
    context.settings.set_cluster(&cluster.uuid)?;
    writeln!(out, "Set current cluster to {}", cluster.name)?;
    Ok(())
}

pub(super) fn set_server(
    url: &str,
    settings: &mut Settings,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let url = client::Client::new(url, None, None)?.url().to_owned();
    settings.set_url(&url)?;
    writeln!(out, "The server is {url} from now on")?;
    Ok(())
}

pub(super) async fn whoami(
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    // The server checks the token; what is in it is only worth printing after that.
    context.client.count_own_rules().await?;
    let claims = context.client.token().and_then(claims);
    let claim = |name: &str| claims.as_ref()?.get(name)?.as_str().map(str::to_owned);
    let subject = claim("sub").unwrap_or_else(|| "unknown".to_owned());
    let user = claim("email").unwrap_or_else(|| subject.clone());
    if !how.shown.is_text() {
        let (server, way) = (context.client.url(), context.way());
        let value = json!({"user": user, "id": subject, "loggedInBy": way, "server": server});
        return how.data(&value, &[format!("user/{user}")], out);
    }
    writeln!(out, "User: {user}")?;
    writeln!(out, "Logged in Id: {subject}")?;
    writeln!(out, "Logged in by: {}", context.way())?;
    Ok(())
}

/// Prints the token that requests are sent with, once the server has accepted it.
pub(super) async fn token(
    shown: OutputFormat,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    context.client.count_own_rules().await?;
    let token = context.client.token().unwrap_or_default();
    match shown {
        OutputFormat::Text => Ok(writeln!(out, "{token}")?),
        _ => {
            let ends = expiry(token).map(|end| end.to_string());
            data(&json!({ "accessToken": token, "expiresAt": ends }), &shown, &[], out)
        }
    }
}

/// End of the validity of a token, if the token gives it.
pub(super) fn expiry(token: &str) -> Option<Time> {
    let seconds = claims(token)?.get("exp")?.as_u64()?;
    Some(Instant(seconds.saturating_mul(1000)).into())
}

pub(super) fn version(short: bool, out: &mut dyn Write) -> Result<(), Error> {
    let version = env!("CARGO_PKG_VERSION");
    if short {
        writeln!(out, "{version}")?;
    } else {
        writeln!(out, "Version: {version}")?;
        writeln!(out, "Platform: {}/{}", std::env::consts::OS, std::env::consts::ARCH)?;
    }
    Ok(())
}
