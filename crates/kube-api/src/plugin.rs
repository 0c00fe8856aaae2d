//! Credential plug-ins: programs that print credentials. Owns: calling one, and reading what it
//! prints. Does not know about: when it is called.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::config::{Config, Exec, Source};
use crate::error::ConfigError;

/// It may ask a server over a slow network.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Most that it may print, in bytes.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// Most of its error output that an error quotes, in bytes.
const QUOTED_BYTES_MAX: usize = 300;

/// Credentials that a plug-in printed.
pub(crate) struct Printed {
    pub(crate) token: Option<String>,
    /// Certificate and key, as PEM.
    pub(crate) certificate: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) expires: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Credential {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

/// Runs a plug-in.
pub(crate) async fn run(exec: &Exec, config: &Config) -> Result<Printed, ConfigError> {
    let failed = |fault: String| {
        let command = exec.command.display().to_string();
        ConfigError::Plugin { command, fault }
    };
    let mut child = Command::new(&exec.command)
        .args(&exec.args)
        .env("KUBERNETES_EXEC_INFO", info(exec, config)?)
        .envs(exec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(with_hint(&error.to_string(), exec)))?;
    let (mut printed, mut said) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        return Err(failed("its output cannot be read".to_owned()));
    };
    let (mut stdout, mut stderr) = (stdout.take(OUTPUT_BYTES_MAX), stderr.take(OUTPUT_BYTES_MAX));
    let all = async {
        let read =
            tokio::try_join!(stdout.read_to_end(&mut printed), stderr.read_to_end(&mut said));
        (read, child.wait().await)
    };
    let (read, ended) = tokio::time::timeout(PLUGIN_TIMEOUT, all)
        .await
        .map_err(|_| failed(format!("it did not end within {} s", PLUGIN_TIMEOUT.as_secs())))?;
    read.map_err(|error| failed(error.to_string()))?;
    let status = ended.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&said[..said.len().min(QUOTED_BYTES_MAX)]);
        return Err(failed(with_hint(&format!("{status}: {}", said.trim()), exec)));
    }
    parse(&printed).map_err(failed)
}

fn with_hint(fault: &str, exec: &Exec) -> String {
    let hint = exec.install_hint.trim();
    if hint.is_empty() { fault.to_owned() } else { format!("{fault}; {hint}") }
}

/// The document about the cluster that it gets in its environment.
fn info(exec: &Exec, config: &Config) -> Result<String, ConfigError> {
    let mut spec = json!({"interactive": false});
    if exec.provides_cluster {
        let authority = config.authority.as_ref().map(Source::read).transpose()?;
        let mut cluster = json!({"server": config.server.to_string()});
        if let Some(authority) = authority {
            cluster["certificate-authority-data"] = BASE64_STANDARD.encode(authority).into();
        }
        if let Some(name) = &config.server_name {
            cluster["tls-server-name"] = name.as_str().into();
        }
        if let Some(proxy) = &config.proxy {
            cluster["proxy-url"] = proxy.to_string().into();
        }
        spec["cluster"] = cluster;
    }
    let info = json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec});
    Ok(info.to_string())
}

fn parse(printed: &[u8]) -> Result<Printed, String> {
    let credential: Credential = serde_json::from_slice(printed)
        .map_err(|error| format!("it printed no ExecCredential: {error}"))?;
    let status = credential.status.ok_or("it printed an ExecCredential without status")?;
    let certificate = match (status.client_certificate_data, status.client_key_data) {
        (Some(certificate), Some(key)) => Some((certificate.into_bytes(), key.into_bytes())),
        (None, None) => None,
        _ => return Err("it printed one of clientCertificateData and clientKeyData".to_owned()),
    };
    if status.token.is_none() && certificate.is_none() {
        return Err("it printed neither a token nor a certificate".to_owned());
    }
    let expires = status.expiration_timestamp.map(|text| {
        text.parse().map_err(|error| format!("its expirationTimestamp `{text}`: {error}"))
    });
    Ok(Printed { token: status.token, certificate, expires: expires.transpose()? })
}
