//! Images. Owns: finding one, pulling it, and reporting progress. Does not know which run needs
//! it.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::Docker;
use bollard::auth::DockerCredentials;
use bollard::errors::Error as Fault;
use bollard::models::{ContainerCreateBody, CreateImageInfo, ImageConfig};
use bollard::query_parameters::CreateImageOptionsBuilder;
use engine::{Error, PullFailure, RegistryLogin, RunEvent};
use futures_util::StreamExt as _;
use tokio::time::Instant;

use crate::{chain, failed, status};

/// Least time between two progress reports.
const REPORT_PAUSE: Duration = Duration::from_secs(10);
/// The first pause after a failed pull; it doubles with each, as a kubelet's.
pub const PULL_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);
const MIB: i64 = 1 << 20;
/// In Podman's answer about a name that none can have.
const NOT_A_NAME: &str = "normalizing name";

/// Settings of an image for its containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ImageDefaults {
    /// Its user, by number or by name; empty for root.
    pub(crate) user: String,
    entrypoint: Vec<String>,
    cmd: Vec<String>,
    env: Vec<String>,
}

impl ImageDefaults {
    fn of(config: ImageConfig) -> Self {
        Self {
            user: config.user.unwrap_or_default(),
            entrypoint: config.entrypoint.unwrap_or_default(),
            cmd: config.cmd.unwrap_or_default(),
            env: config.env.unwrap_or_default(),
        }
    }

    /// The command of a container, as the daemon puts it together.
    pub(crate) fn command(&self, body: &ContainerCreateBody) -> Vec<String> {
        let own = |words: &Option<Vec<String>>| words.clone().filter(|words| !words.is_empty());
        match (own(&body.entrypoint), own(&body.cmd)) {
            (Some(entrypoint), cmd) => [entrypoint, cmd.unwrap_or_default()].concat(),
            (None, Some(cmd)) => [self.entrypoint.clone(), cmd].concat(),
            (None, None) => [self.entrypoint.clone(), self.cmd.clone()].concat(),
        }
    }

    /// A variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Settings of a local image for its containers; `None` if it is not local.
pub(crate) async fn find(docker: &Docker, image: &str) -> Result<Option<ImageDefaults>, Error> {
    match docker.inspect_image(image).await {
        Ok(found) => Ok(Some(found.config.map(ImageDefaults::of).unwrap_or_default())),
        Err(fault) if status(&fault) == Some(404) => Ok(None),
        // The daemon's message for an invalid name. Podman calls it a fault of its own.
        Err(fault)
            if status(&fault) == Some(400) || daemon_message(&fault).contains(NOT_A_NAME) =>
        {
            let why = daemon_message(&fault);
            Err(Error::Invalid(format!("`{image}` is not a valid name of an image: {why}")))
        }
        Err(fault) => Err(failed(format!("find the image {image}"), fault)),
    }
}

/// Pulls an image, and reports progress. A pull that may succeed later is retried after
/// `first_pause` and then after doubling pauses, up to [`PAUSE_MAX`], until this is dropped.
///
/// # Errors
/// Why the image cannot be pulled, for people: a retry would not succeed.
pub(crate) async fn pull(
    docker: &Docker,
    image: &str,
    login: Option<&RegistryLogin>,
    first_pause: Duration,
    report: impl Fn(RunEvent),
) -> Result<(), String> {
    let (mut tries, mut pause) = (0, first_pause);
    let progress = |text| report(RunEvent::Preparing(text));
    progress(format!("pulling image `{image}`"));
    loop {
        let Err(fault) = pull_once(docker, image, login, &progress).await else { return Ok(()) };
        let why = daemon_message(&fault);
        if is_final(&fault, &why) {
            return Err(format!(
                "image `{image}` cannot be pulled: {why}; check its name, and that it may be read"
            ));
        }
        tries += 1;
        let again_in_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let why = format!("image `{image}` cannot be pulled: {why}");
        report(RunEvent::PullFailed(PullFailure { why, tries, again_in_ms }));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn pull_once(
    docker: &Docker,
    image: &str,
    login: Option<&RegistryLogin>,
    tell: &impl Fn(String),
) -> Result<(), Fault> {
    let (name, tag) = reference(image);
    let options = CreateImageOptionsBuilder::default().from_image(name).tag(tag).build();
    let credentials = login.map(|of| DockerCredentials {
        username: Some(of.login.user.clone()),
        password: Some(of.login.password.clone()),
        serveraddress: Some(of.registry.clone()),
        ..DockerCredentials::default()
    });
    let mut steps = Box::pin(docker.create_image(Some(options), None, credentials));
    let mut progress = Progress::default();
    let mut told = Instant::now();
    while let Some(step) = steps.next().await {
        progress.take(&step?);
        if told.elapsed() >= REPORT_PAUSE {
            told = Instant::now();
            tell(format!("pulling image `{image}`: {progress}"));
        }
    }
    Ok(())
}

/// True if a retry would change nothing.
fn is_final(fault: &Fault, why: &str) -> bool {
    let refused = [
        "not found",
        "manifest unknown",
        "name unknown",
        "does not exist",
        "denied",
        "unauthorized",
        "invalid reference",
    ];
    matches!(status(fault), Some(400 | 401 | 403 | 404))
        || refused.iter().any(|word| why.contains(word))
}

/// The message of the daemon or registry, without the client's wrapping.
fn daemon_message(fault: &Fault) -> String {
    match fault {
        Fault::DockerResponseServerError { message, .. } => message.clone(),
        Fault::DockerStreamError { error } => error.clone(),
        other => chain(other),
    }
}

/// Name and tag (or digest). Without a tag the daemon would pull all tags.
fn reference(image: &str) -> (&str, &str) {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = match named.rsplit_once(':') {
        // A colon before a slash belongs to the registry's port.
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (named, "latest"),
    };
    (name, digest.unwrap_or(tag))
}

/// Downloaded bytes by layer.
#[derive(Debug, Default)]
struct Progress {
    layers: BTreeMap<String, (i64, i64)>,
}

impl Progress {
    fn take(&mut self, step: &CreateImageInfo) {
        let (Some(layer), Some(status)) = (&step.id, &step.status) else { return };
        let known = self.layers.entry(layer.clone()).or_default();
        let detail = step.progress_detail.as_ref();
        match (status.as_str(), detail.and_then(|of| Some((of.current?, of.total?)))) {
            ("Downloading", Some(both)) => *known = both,
            ("Download complete" | "Pull complete" | "Already exists", _) => known.0 = known.1,
            _ => {}
        }
    }
}

/// In MiB.
impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (here, all) =
            self.layers.values().fold((0, 0), |(here, all), layer| (here + layer.0, all + layer.1));
        write!(f, "{} of {} MiB", here / MIB, all / MIB)
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    #[test]
    fn a_name_has_one_tag_or_a_digest() {
        assert_eq!(reference("ubuntu"), ("ubuntu", "latest"));
        assert_eq!(reference("localhost:5000/x"), ("localhost:5000/x", "latest"));
        assert_eq!(reference("localhost:5000/x:1"), ("localhost:5000/x", "1"));
        assert_eq!(reference("x:1@sha256:0a"), ("x", "sha256:0a"));
    }

    #[test]
    fn progress_is_the_sum_of_layers() {
        let mut progress = Progress::default();
        let mut step = |layer: &str, status: &str, current: Option<i64>, total: Option<i64>| {
            progress.take(&CreateImageInfo {
                id: Some(layer.to_owned()),
                status: Some(status.to_owned()),
                progress_detail: Some(ProgressDetail { current, total }),
                ..CreateImageInfo::default()
            });
        };
        step("a", "Downloading", Some(3 * MIB), Some(10 * MIB));
        step("b", "Downloading", Some(MIB), Some(2 * MIB));
        step("a", "Extracting", Some(MIB), Some(10 * MIB));
        step("b", "Download complete", None, None);
        assert_eq!(progress.to_string(), "5 of 12 MiB");
    }
}
