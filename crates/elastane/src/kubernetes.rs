//! `elastane kubernetes`: the manifests that install the server in a cluster, and the check of a
//! cluster. Needs no server.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use cli_kit::exit::{Error, chain};
use engine_kube::{Check, ManifestOptions, NodeCounts};
use kube_api::Config;
use units::counted;

/// Commands for clusters.
#[derive(Debug, Subcommand)]
pub(crate) enum Kubernetes {
    /// Print the manifests that install this server in a cluster; pipe them to `kubectl apply -f -`
    Manifests(Manifests),
    /// Check a cluster: version, permissions, GPUs
    Check(Cluster),
}

/// Flags of `manifests`.
#[derive(Debug, Args)]
pub(crate) struct Manifests {
    /// Namespace of the server; another than `elastane` must exist
    #[arg(long, value_name = "NAME", default_value = engine_kube::OWN_NAMESPACE)]
    namespace: String,
    /// Image of the server, as `make package` builds it
    #[arg(long, value_name = "IMAGE", default_value = concat!("elastane:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Names that pods give to this scheduler, with commas between them
    #[arg(long, value_name = "NAMES", default_value = "elastane", value_delimiter = ',')]
    scheduler_name: Vec<String>,
    /// Also make the priority classes of Elastane, such as `train`, for all pods of the cluster
    #[arg(long)]
    priority_classes: bool,
}

impl Manifests {
    /// The settings of the manifests, which need no quotes there.
    fn options(self) -> Result<ManifestOptions, Error> {
        let Self { namespace, image, scheduler_name: schedulers, priority_classes } = self;
        let names = std::iter::once(("--namespace", &namespace));
        for (flag, name) in names.chain(schedulers.iter().map(|name| ("--scheduler-name", name))) {
            units::check_name(name).map_err(|error| Error::Usage(format!("{flag}: {error}")))?;
        }
        if schedulers.iter().any(|name| name == "default-scheduler") {
            let why = "default-scheduler is that of Kubernetes, and a pod has one scheduler";
            return Err(Error::Usage(format!("--scheduler-name: {why}; choose another name")));
        }
        if !is_image(&image) {
            let image = units::shown(&image);
            return Err(Error::Usage(format!(
                "--image: `{image}` is no image; write one such as example.com/elastane:1"
            )));
        }
        let schedulers: BTreeSet<_> = schedulers.into_iter().collect();
        let schedulers = schedulers.into_iter().collect();
        Ok(ManifestOptions { namespace, image, schedulers, priority_classes })
    }
}

/// True for the name of an image: a host, a path, and a tag or a digest. None of its characters needs
/// quotes in the manifests.
fn is_image(text: &str) -> bool {
    let is = |part: &str, more: &str, is_letter: fn(&char) -> bool| {
        let mut ends = part.chars().next().into_iter().chain(part.chars().last());
        !part.is_empty()
            && ends.all(|c| c.is_ascii_alphanumeric())
            && part.chars().all(|c| is_letter(&c) || more.contains(c))
    };
    let (name, digest) = text.split_once('@').map_or((text, None), |(name, of)| (name, Some(of)));
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let lower = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut parts = path.split('/').enumerate();
    // A host may have a port.
    let more = |at: usize| if at == 0 && path.contains('/') { "._-:" } else { "._-" };
    let named = parts.all(|(at, part)| is(part, more(at), lower));
    let tagged = tag.is_none_or(|tag| is(tag, "._-", char::is_ascii_alphanumeric));
    let hex = |of: &str| of.len() == 64 && of.chars().all(|c| c.is_ascii_hexdigit());
    named && tagged && digest.is_none_or(|of| of.strip_prefix("sha256:").is_some_and(hex))
}

/// Access to a cluster.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Kubeconfig of the cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

pub(super) async fn run(verb: Kubernetes) -> Result<(), Error> {
    let mut out = std::io::stdout();
    match verb {
        Kubernetes::Manifests(manifests) => {
            write!(out, "{}", engine_kube::manifests(&manifests.options()?))?;
            Ok(out.flush()?)
        }
        Kubernetes::Check(cluster) => check(cluster).await,
    }
}

async fn check(Cluster { kubeconfig, context }: Cluster) -> Result<(), Error> {
    let env = |name: &str| std::env::var(name).ok();
    let config = Config::find(kubeconfig.as_deref(), context.as_deref(), &env)
        .map_err(|error| Error::Usage(chain(&error)))?;
    let server = config.server().to_string();
    let found = engine_kube::check(config, u64::from(std::process::id())).await;
    let found = found.map_err(|error| Error::Failed(chain(&error)))?;
    let mut out = std::io::stdout();
    write!(out, "{}", report(&server, &found))?;
    out.flush()?;
    match found.missing.len() {
        0 => Ok(()),
        missing => {
            let missing = counted(missing as u64, "permission");
            Err(Error::Failed(format!(
                "{missing} missing; `elastane kubernetes manifests` prints a role that has all"
            )))
        }
    }
}

/// The facts, one in a line.
fn report(server: &str, Check { version, permissions, missing, nodes }: &Check) -> String {
    let mut text = format!("API server   {server} ({version})\n");
    let granted = permissions - missing.len();
    let _infallible = writeln!(text, "Permissions  {granted} of {permissions}");
    for rule in missing {
        let _infallible = writeln!(text, "  missing: {rule}");
    }
    let line = match nodes {
        None => "unknown: they may not be listed".to_owned(),
        Some(NodeCounts { nodes, with_gpus, gpus, labeled }) => {
            let (nodes, gpus) = (counted(*nodes as u64, "node"), counted(*gpus as u64, "GPU"));
            let labels = match (*with_gpus, *labeled) {
                (0, _) => "; no device plugin reports nvidia.com/gpu".to_owned(),
                (all, known) if known < all => format!(
                    "; {} of them without labels of GPU feature discovery: product and memory are \
                     unknown there",
                    all - known
                ),
                _ => String::new(),
            };
            format!("{nodes}, {with_gpus} with {gpus} in all{labels}")
        }
    };
    let _infallible = writeln!(text, "Nodes        {line}");
    text
}

#[cfg(test)]
mod tests {
    use super::is_image;

    #[test]
    fn an_image_is_a_path_with_a_tag_or_a_digest() {
        let digest = format!("a/b@sha256:{}", "0".repeat(64));
        for image in ["elastane", "a:1", "example.com/a_b/c-d:V1.2", "localhost:5000/x", &digest] {
            assert!(is_image(image), "{image}");
        }
        for image in [
            "",
            "a b",
            "a:",
            ":1",
            "Foo:bar",
            "a:b:c",
            "https://x/y",
            "a//b",
            "/a",
            "a@sha256:12",
            "a'",
        ] {
            assert!(!is_image(image), "{image}");
        }
    }
}
