//! `elastane kubernetes`: the manifests that install the server in a cluster, and the check of a
//! cluster. Needs no server.

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
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "./:@_-".contains(c);
        if image.is_empty() || !image.chars().all(is_allowed) {
            let image = units::shown(&image);
            return Err(Error::Usage(format!(
                "--image: `{image}` is no image; write one such as example.com/elastane:1"
            )));
        }
        Ok(ManifestOptions { namespace, image, schedulers, priority_classes })
    }
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
