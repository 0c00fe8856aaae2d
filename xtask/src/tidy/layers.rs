//! Dependencies allowed between crates. Owns: the table. Does not know about: what the crates do.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::Fault;

/// Dependencies of the product's own packages (tests' dependencies left out), by package.
pub(crate) type Packages = BTreeMap<String, BTreeSet<String>>;

const PREFIX: &str = "elastane-";

/// Crates that each crate may depend on, lower crates first. A crate that is not here may not
/// exist: adding one is a decision.
const MAY_USE: [(&str, &[&str]); 66] = [
    ("units", &[]),
    ("fixture", &[]),
    ("trees", &[]),
    ("skip", &["fixture"]),
    ("api-types", &["units"]),
    ("model", &["units"]),
    ("spec", &["units", "model"]),
    ("records", &["units", "model", "spec"]),
    ("reasons", &["units", "model"]),
    ("shares", &["units", "model"]),
    ("sched", &["units", "model", "reasons", "shares"]),
    ("gpu", &["units"]),
    ("fraction-abi", &[]),
    ("fraction-hook", &["fraction-abi"]),
    ("fraction-sim", &["fraction-abi"]),
    ("fraction-libs", &[]),
    ("fraction-broker", &["fraction-abi"]),
    ("fraction-lease", &["fraction-abi"]),
    ("fraction-agent", &["units", "fraction-abi", "fraction-broker", "fraction-libs"]),
    ("store", &["units", "spec", "records", "fixture", "skip"]),
    ("buckets", &[]),
    ("engine", &["units", "spec", "trees", "buckets"]),
    ("engine-conformance", &["units", "engine"]),
    ("engine-fractions", &["units", "gpu", "engine", "fraction-agent", "fraction-lease"]),
    ("elastic", &["units"]),
    ("engine-channel", &["units", "elastic", "engine"]),
    (
        "engine-local",
        &["units", "model", "trees", "gpu", "engine", "engine-channel", "engine-fractions"],
    ),
    (
        "engine-docker",
        &[
            "units",
            "trees",
            "gpu",
            "engine",
            "engine-channel",
            "engine-fractions",
            "fixture",
            "skip",
        ],
    ),
    ("kube-api", &["fixture", "skip"]),
    ("engine-kube", &["units", "model", "spec", "engine", "kube-api", "adopted"]),
    ("quickstart", &[]),
    ("view", &["units", "spec", "records", "model", "reasons"]),
    ("pod-life", &["units", "spec", "view"]),
    ("command", &["units", "model", "spec", "view"]),
    ("adopted", &["units", "model", "spec", "records", "reasons", "view"]),
    (
        "orchestrator",
        &[
            "units", "spec", "records", "model", "reasons", "sched", "view", "command", "pod-life",
            "adopted",
        ],
    ),
    (
        "recording",
        &["units", "spec", "records", "model", "reasons", "sched", "view", "orchestrator"],
    ),
    (
        "control",
        &[
            "units",
            "spec",
            "records",
            "model",
            "reasons",
            "sched",
            "view",
            "orchestrator",
            "recording",
            "gpu",
            "store",
            "engine",
        ],
    ),
    ("auth", &["units", "records", "store"]),
    ("oidc", &["units"]),
    ("http-kit", &["units", "api-types"]),
    ("ui-dist", &[]),
    ("serving", &["units", "spec", "view", "orchestrator", "engine", "control"]),
    ("training", &["units", "spec", "view", "control", "elastic-proto", "api-types"]),
    (
        "access",
        &[
            "units",
            "spec",
            "records",
            "view",
            "orchestrator",
            "control",
            "auth",
            "http-kit",
            "api-types",
        ],
    ),
    (
        "gateway",
        &[
            "units",
            "spec",
            "view",
            "orchestrator",
            "engine",
            "auth",
            "http-kit",
            "serving",
            "access",
            "convert",
            "api-types",
        ],
    ),
    (
        "convert",
        &[
            "units",
            "model",
            "spec",
            "reasons",
            "view",
            "orchestrator",
            "engine",
            "control",
            "http-kit",
            "access",
            "api-types",
        ],
    ),
    (
        "telemetry",
        &[
            "units",
            "spec",
            "records",
            "view",
            "engine",
            "control",
            "auth",
            "http-kit",
            "access",
            "convert",
            "api-types",
        ],
    ),
    (
        "changes",
        &["units", "view", "control", "auth", "http-kit", "access", "convert", "api-types"],
    ),
    ("iam", &["units", "view", "orchestrator", "auth", "oidc", "http-kit", "access", "api-types"]),
    (
        "assets",
        &[
            "units",
            "spec",
            "view",
            "orchestrator",
            "control",
            "auth",
            "http-kit",
            "access",
            "convert",
            "api-types",
        ],
    ),
    (
        "policy",
        &[
            "units",
            "spec",
            "view",
            "orchestrator",
            "auth",
            "http-kit",
            "access",
            "convert",
            "api-types",
        ],
    ),
    (
        "api",
        &[
            "units",
            "spec",
            "records",
            "view",
            "orchestrator",
            "sim",
            "engine",
            "control",
            "auth",
            "http-kit",
            "serving",
            "training",
            "access",
            "convert",
            "iam",
            "gateway",
            "telemetry",
            "changes",
            "assets",
            "policy",
            "ui-dist",
            "api-types",
        ],
    ),
    ("client", &["units", "api-types"]),
    ("cli-kit", &["units", "api-types", "client"]),
    ("dialects", &["units", "api-types", "client", "cli-kit"]),
    ("runai", &["units", "api-types", "client", "cli-kit", "dialects"]),
    (
        "elastane",
        &[
            "units",
            "model",
            "sched",
            "sim",
            "recording",
            "gpu",
            "store",
            "engine",
            "engine-local",
            "engine-docker",
            "engine-kube",
            "kube-api",
            "engine-channel",
            "engine-fractions",
            "quickstart",
            "spec",
            "view",
            "orchestrator",
            "control",
            "auth",
            "oidc",
            "http-kit",
            "serving",
            "telemetry",
            "training",
            "iam",
            "assets",
            "convert",
            "api",
            "api-types",
            "client",
            "cli-kit",
            "dialects",
            "runai",
        ],
    ),
    (
        "elasticdl",
        &[
            "units",
            "elastic",
            "elastic-master",
            "elastic-proto",
            "elastic-ps",
            "api-types",
            "client",
            "cli-kit",
            "dialects",
            "runai",
        ],
    ),
    ("cli", &["runai", "elastane", "elasticdl"]),
    ("testkit", &["units", "model", "reasons", "sched", "gpu", "store", "engine", "control"]),
    ("sim", &["units", "model", "spec", "records", "reasons", "sched", "view", "orchestrator"]),
    ("benchmarks", &["units", "model", "sched", "sim"]),
    ("elastic-proto", &[]),
    ("elastic-master", &["units", "elastic", "elastic-proto"]),
    ("elastic-ps", &["elastic", "elastic-proto", "buckets"]),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// Reads what `cargo metadata` prints.
pub(crate) fn parse(json: &[u8]) -> Result<Packages> {
    let metadata: Metadata =
        serde_json::from_slice(json).context("failed to read cargo metadata")?;
    let uses = |package: Package| {
        let dependencies = package.dependencies.into_iter();
        let names = dependencies
            .filter(|dependency| dependency.kind.as_deref() != Some("dev"))
            .map(|dependency| dependency.name)
            .collect();
        (package.name, names)
    };
    Ok(metadata.packages.into_iter().map(uses).collect())
}

pub(super) fn check(packages: &Packages) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (package, uses) in packages {
        let Some(name) = package.strip_prefix(PREFIX) else { continue };
        let path = format!("crates/{name}/Cargo.toml");
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            let what = "no room for this crate in the table of xtask/src/tidy/layers.rs";
            faults.push(Fault::new(&path, 0, what));
            continue;
        };
        for used in uses.iter().filter_map(|used| used.strip_prefix(PREFIX)) {
            if !allowed.contains(&used) {
                let what = format!("{name} may not use {used}; it may use {allowed:?}");
                faults.push(Fault::new(&path, 0, what));
            }
        }
    }
    faults
}
