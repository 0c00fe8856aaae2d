//! A command line that repeats a submission with one value changed. Owns: the flag of each dialect
//! for each kind of advice.

use std::ffi::OsString;

use super::args::SAME;
use super::{args, lower};
use crate::intent::{Dialect, Distributed, Gpu, Intent, Kind, Submit};

/// The command line that repeats a submission with the change of an advice of this kind, in its
/// dialect and its project; `None` if no flag expresses it.
#[must_use]
pub fn again(line: &str, project: &str, kind: &str, to: Option<&str>) -> Option<String> {
    let mut words = shell_words::split(line).ok()?;
    let (submit, has_project) = parsed(&words)?;
    let by_processes = words.iter().any(|word| word == "submit-mpi" || word == "mj");
    let workers = if by_processes { "--processes" } else { "--workers" };
    let Flag { without, with } = flag(&submit, workers, kind, to)?;
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let tail = words.split_off(end);
    let mut words = left_out(words, &without);
    words.extend(with);
    if !has_project {
        words.extend(["-p".to_owned(), project.to_owned()]);
    }
    words.extend(tail);
    parsed(&words)?;
    Some(shell_words::join(words))
}

/// The submission of a command line, and true if the line names its project.
fn parsed(words: &[String]) -> Option<(Submit, bool)> {
    let (cli, ..) = args::parse(words.iter().map(OsString::from)).ok()?;
    let has_project = cli.global.project.is_some();
    let Ok(Intent::Submit(submit)) = lower::intent(cli.command, words) else { return None };
    Some((*submit, has_project))
}

/// Flags to remove, and words to add.
struct Flag {
    without: Vec<&'static str>,
    with: Vec<String>,
}

fn flag(submit: &Submit, of_workers: &'static str, kind: &str, to: Option<&str>) -> Option<Flag> {
    let with = |words: &[&str]| {
        let with = words.iter().map(|&word| word.to_owned()).collect();
        Some(Flag { without: Vec::new(), with })
    };
    let without = |flags: &[&'static str]| Some(Flag { without: flags.to_vec(), with: Vec::new() });
    if kind == "smaller_share" && !matches!(submit.spec.gpu, Some(Gpu::Portion { .. })) {
        return None;
    }
    if let Some(same) = SAME.iter().find(|same| same.kind == kind) {
        let of = if submit.dialect == Dialect::V1 { same.v1 } else { same.v2 };
        let with = vec![(*of.first()?).to_owned(), to?.to_owned()];
        return Some(Flag { without: of.to_vec(), with });
    }
    match kind {
        "fewer_pods" => {
            let workers = workers(submit, to?)?.to_string();
            Some(Flag { without: vec![of_workers], with: vec![of_workers.to_owned(), workers] })
        }
        "part_of_gpu" => {
            let flag = match submit.dialect {
                Dialect::V1 => "--gpu-memory",
                Dialect::V2 => "--gpu-memory-request",
            };
            let without = vec!["--mig-profile", "--mig", "--extended-resource"];
            Some(Flag { without, with: vec![flag.to_owned(), to?.to_owned()] })
        }
        "elastic" => with(&["--elastic"]),
        "tolerate" => with(&["--toleration", &toleration(to?)]),
        "node_pool" => {
            let pools = ["--node-pools", "--node-pool"];
            let with = vec![pools[0].to_owned(), to?.to_owned()];
            Some(Flag { without: pools.to_vec(), with })
        }
        "without_affinity" => without(&["--node-affinity", "--node-type", "--exclude-node"]),
        "without_pod_affinity" => without(&["--required-pod-topology-key"]),
        _ => None,
    }
}

/// Number of workers in a pod set of this size: a master is a pod set of its own, even one with the
/// specification of the workers.
fn workers(submit: &Submit, pods: &str) -> Option<u32> {
    let Kind::Distributed(distributed) = &submit.kind else { return None };
    let Distributed { workers_min: None, workers_max: None, .. } = &**distributed else {
        return None;
    };
    pods.parse::<u32>().ok().filter(|workers| *workers > 0)
}

/// `KEY=VALUE:EFFECT` as the flag has it.
fn toleration(taint: &str) -> String {
    let (name, effect) = taint.rsplit_once(':').unwrap_or((taint, ""));
    let effect = if effect.is_empty() { String::new() } else { format!(",effect={effect}") };
    match name.split_once('=') {
        Some((key, value)) => format!("operator=Equal,key={key},value={value}{effect}"),
        None => format!("operator=Exists,key={name}{effect}"),
    }
}

/// Words without these flags and their values.
fn left_out(words: Vec<String>, flags: &[&str]) -> Vec<String> {
    let mut left = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let has_value = |flag: &&&str| {
            let value = word.strip_prefix(**flag).unwrap_or_default();
            value.starts_with('=') || (!flag.starts_with("--") && !value.is_empty())
        };
        if flags.contains(&word.as_str()) {
            words.next();
        } else if !flags.iter().any(|flag| has_value(&flag)) {
            left.push(word);
        }
    }
    left
}
