//! The libraries that are linked into the programs, with the notices that their licences require.
//! Owns: the list of them, from Cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::text as output_of;

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    /// Source of the crate; `None` for the crates of this workspace.
    source: Option<String>,
    manifest_path: std::path::PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
struct Kind {
    /// Kind of the dependency; `None` for linked ones, else `dev` or `build`.
    kind: Option<String>,
}

/// The list, then each notice once, with the names of the libraries it is of.
pub(super) fn text(source: &Path) -> Result<String> {
    let host = std::env::consts::ARCH;
    let json = output_of(
        Command::new("cargo")
            .current_dir(source)
            .args(["metadata", "--locked", "--format-version=1"])
            .arg(format!("--filter-platform={host}-unknown-linux-gnu")),
    )?;
    let metadata: Metadata = serde_json::from_str(&json)?;
    let linked = linked(&metadata)?;
    let mut text = "Libraries that are linked into elastane and runai:\n\n".to_owned();
    let mut notices: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata.packages.iter().filter(|it| linked.contains(it.id.as_str())) {
        let Package { name, version, license, repository, .. } = package;
        let licence = license.as_deref().unwrap_or("see its notice");
        let from = repository.as_deref().unwrap_or("crates.io");
        writeln!(text, "{name} {version}: {licence}; {from}")?;
        let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
        for notice in notices_in(folder)? {
            notices.entry(notice).or_default().insert(format!("{name} {version}"));
        }
    }
    for (notice, of) in notices {
        let of: Vec<_> = of.into_iter().collect();
        write!(text, "\n{}\n{}\n\n{}\n", "-".repeat(72), of.join(", "), notice.trim())?;
    }
    Ok(text)
}

/// The ids of all libraries of others that are part of `elastane-cli`.
fn linked(metadata: &Metadata) -> Result<BTreeSet<&str>> {
    let nodes: BTreeMap<_, _> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let product = metadata.packages.iter().find(|package| package.name == "elastane-cli");
    let mut next = vec![product.context("there is no crate elastane-cli")?.id.as_str()];
    let mut seen = BTreeSet::new();
    while let Some(id) = next.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = nodes.get(id).with_context(|| format!("{id} is not resolved"))?;
        let of_program =
            |dependency: &&Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
        next.extend(node.deps.iter().filter(of_program).map(|it| it.pkg.as_str()));
    }
    let own = metadata.packages.iter().filter(|package| package.source.is_none());
    let own: BTreeSet<_> = own.map(|package| package.id.as_str()).collect();
    Ok(seen.into_iter().filter(|id| !own.contains(id)).collect())
}

fn notices_in(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let file = file?;
        let name = file.file_name().to_string_lossy().to_uppercase();
        let is_notice = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"]
            .iter()
            .any(|word| name.starts_with(word));
        if is_notice && file.file_type()?.is_file() {
            found.push(String::from_utf8_lossy(&fs::read(file.path())?).replace("\r\n", "\n"));
        }
    }
    Ok(found)
}
