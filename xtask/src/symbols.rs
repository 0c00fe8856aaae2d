//! The functions of the newest CUDA driver interface that a package ships, beside what the
//! libraries of fractions know. Owns: fetching headers, and telling which functions are new. Prints
//! and fails nothing: what is new has to be read by a person. Does not know about: what the
//! functions do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Headers whose functions were all looked at, and the package of the newest ones.
const LOOKED_AT: &str = "nvidia-cuda-runtime==13.5.37";
const NEWEST: &str = "nvidia-cuda-runtime";

/// Parts of the names of functions that may take memory, show it or launch.
const SUSPECTS: [&str; 13] = [
    "Alloc",
    "Array",
    "Create",
    "Free",
    "Graph",
    "Import",
    "Launch",
    "Location",
    "Mem",
    "Multicast",
    "Pool",
    "Prefetch",
    "Release",
];

/// Prints the functions that are new since those which were looked at.
pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = root.join("target/symbols");
    let [known, newest] = [("known", LOOKED_AT), ("newest", NEWEST)]
        .map(|(name, package)| functions(&folder.join(name), package));
    let ((known, known_from), (newest, newest_from)) = (known?, newest?);
    let hooks = hooks(&root.join("crates/fraction-hook/src"))?;
    let text = report(&known, &newest, &hooks);
    let mut out = std::io::stdout();
    writeln!(out, "{newest_from} beside {known_from}:\n{text}").context("failed to print")
}

fn report(known: &BTreeSet<String>, newest: &BTreeSet<String>, hooks: &BTreeSet<String>) -> String {
    let bases: BTreeSet<_> = hooks.iter().map(|name| base(name)).collect();
    let new = newest.difference(known).filter(|name| !hooks.contains(*name));
    let (forms, new): (Vec<_>, Vec<_>) = new.partition(|name| bases.contains(base(name)));
    let (look, others): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|name| SUSPECTS.iter().any(|part| name.contains(part)));
    let lost: Vec<_> = hooks.iter().filter(|name| known.contains(*name)).collect();
    let lost: Vec<_> = lost.into_iter().filter(|name| !newest.contains(*name)).collect();
    let mut text = String::new();
    for (what, names) in [
        ("are new forms of functions that are kept or called here: look at each", forms),
        ("may take memory, show it or launch: look at each", look),
        ("other new ones", others),
        ("known here, and gone", lost),
    ] {
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "{} {what}", names.len());
        for name in names {
            let _infallible = writeln!(text, "  {name}");
        }
    }
    text
}

/// The functions of the headers in a package, and which package it is.
fn functions(folder: &Path, package: &str) -> Result<(BTreeSet<String>, String)> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    let python = |words: &[&str]| {
        let mut command = Command::new("python3");
        let status = command.arg("-m").args(words).current_dir(folder).status();
        let status = status.context("failed to start python3")?;
        ensure!(status.success(), "python3 -m {} failed", words.join(" "));
        Ok(())
    };
    python(&["pip", "download", "--no-deps", "--quiet", package])?;
    let mut wheel = None;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".whl") {
            wheel = Some(name);
        }
    }
    let wheel = wheel.with_context(|| format!("{package} is no wheel"))?;
    python(&["zipfile", "-e", &wheel, "."])?;
    let header = find(folder, "cuda.h")?;
    let header = header.with_context(|| format!("{wheel} has no cuda.h"))?;
    let name = wheel.split('-').take(2).collect::<Vec<_>>().join(" ");
    Ok((symbols(&std::fs::read_to_string(header)?), name))
}

fn find(folder: &Path, name: &str) -> Result<Option<std::path::PathBuf>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = find(&path, name)? {
                return Ok(Some(found));
            }
        } else if path.file_name().is_some_and(|own| own == name) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The functions that a driver of this header offers, in all their forms: declared functions, and
/// the targets of macros.
fn symbols(header: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for line in header.lines() {
        let mut words = words(line).filter(|word| word.starts_with("cu"));
        if line.starts_with("#define cu") {
            let Some(name) = words.nth(1) else { continue };
            for stream in ["_PTSZ", "_PTDS"] {
                if line.contains(&format!("__CUDA_API{stream}(")) {
                    all.insert(format!("{name}{}", stream.to_lowercase()));
                }
            }
            all.insert(name.to_owned());
        } else if line.contains("CUDAAPI cu") {
            all.extend(words.next().map(ToOwned::to_owned));
        }
    }
    all
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The functions that the libraries know.
fn hooks(folder: &Path) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let text = std::fs::read_to_string(entry?.path())?;
        all.extend(words(&text).filter(|word| word.starts_with("cu")).map(ToOwned::to_owned));
    }
    Ok(all)
}

/// The name without its version and kind of streams.
fn base(name: &str) -> &str {
    let name = name.strip_suffix("_ptsz").or(name.strip_suffix("_ptds")).unwrap_or(name);
    let plain = name.rsplit_once("_v").filter(|(_, version)| version.parse::<u8>().is_ok());
    plain.map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_and_what_is_hooked_is_not() {
        let header = "#define cuMemAlloc cuMemAlloc_v2\n\
                      #define cuMemAllocAsync   __CUDA_API_PTSZ(cuMemAllocAsync)\n\
                      CUresult CUDAAPI cuMemAlloc_v3(CUdeviceptr *dptr);\n\
                      CUresult CUDAAPI cuNewMemThing(void);\n\
                      /* see cuOther */\n\
                      CUresult CUDAAPI cuTell(void);";
        let newest = symbols(header);
        let names: Vec<_> = newest.iter().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "cuMemAllocAsync",
                "cuMemAllocAsync_ptsz",
                "cuMemAlloc_v2",
                "cuMemAlloc_v3",
                "cuNewMemThing",
                "cuTell"
            ]
        );
        assert_eq!(base("cuMemAllocAsync_ptsz"), "cuMemAllocAsync");
        assert_eq!(base("cuMemFree_v2"), "cuMemFree");
        let of = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let hooks = ["cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocAsync_ptsz", "cuOld"];
        let text = report(&of(&["cuMemAlloc_v2", "cuOld"]), &newest, &of(&hooks));
        assert_eq!(
            text,
            "1 are new forms of functions that are kept or called here: look at each\n\
             \x20 cuMemAlloc_v3\n\
             1 may take memory, show it or launch: look at each\n  cuNewMemThing\n\
             1 other new ones\n  cuTell\n1 known here, and gone\n  cuOld\n"
        );
    }
}
