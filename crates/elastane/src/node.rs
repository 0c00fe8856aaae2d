//! `elastane node …`: settings of nodes, in the words of kubectl.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use api_types::{
    ChangeKind, LabelsOf, NodePatch, NodeScheduling, NodeStatus, QuotaChange, Taint, TaintEffect,
    TaintKey,
};
use clap_complete::engine::ArgValueCandidates;

use super::{complete, quotas};
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::message::Plain;
use cli_kit::output::{Format, OutputOptions, list, show};
use cli_kit::table::Table;

/// `node …`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Node {
    /// List the nodes
    #[command(visible_alias = "ls")]
    List(Format),
    /// Schedule no new pods on a node; its pods stay
    Cordon {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
    },
    /// Schedule pods on a node again, and stop draining it
    Uncordon {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
    },
    /// Cordon a node, and move its pods to other nodes or let them wait
    Drain {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
        /// Drain it even if work on it finds no other place, or other work is stopped for it
        #[arg(short, long)]
        yes: bool,
    },
    /// Add taints to a node, or remove them
    Taint {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
        /// A taint; `-` at its end removes it. The effect is NoSchedule,
        /// PreferNoSchedule or NoExecute
        #[arg(required = true, value_name = "KEY=VALUE:EFFECT|KEY[:EFFECT]-", value_parser = taint)]
        taints: Vec<TaintWord>,
    },
    /// Add labels to a node, or remove them
    Label {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::nodes))]
        node: String,
        /// A label; `-` at the end of its key removes it
        #[arg(required = true, value_name = "KEY=VALUE|KEY-", value_parser = label)]
        labels: Vec<(String, Option<String>)>,
        /// Change them even if the node moves to another node pool and projects then hold more than
        /// their quotas there
        #[arg(short, long)]
        yes: bool,
    },
}

/// A taint to add or to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaintWord {
    /// Taint to add.
    Given(Taint),
    /// Taint to remove.
    Removed(TaintKey),
}

fn effect(text: &str) -> Result<TaintEffect, String> {
    match text {
        "NoSchedule" => Ok(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Ok(TaintEffect::PreferNoSchedule),
        "NoExecute" => Ok(TaintEffect::NoExecute),
        other => {
            Err(format!("effect `{other}`; allowed are NoSchedule, PreferNoSchedule and NoExecute"))
        }
    }
}

fn taint(text: &str) -> Result<TaintWord, String> {
    let form = "write KEY=VALUE:EFFECT or KEY:EFFECT, and KEY- or KEY:EFFECT- to remove one";
    if let Some(removed) = text.strip_suffix('-') {
        let (key, of) = match removed.split_once(':') {
            Some((key, of)) => (key, Some(effect(of)?)),
            None => (removed, None),
        };
        // The value is ignored, as in kubectl.
        let key = key.split_once('=').map_or(key, |(key, _)| key);
        let key = TaintKey { key: key.to_owned(), effect: of };
        return if key.key.is_empty() { Err(form.to_owned()) } else { Ok(TaintWord::Removed(key)) };
    }
    let (label, of) = text.rsplit_once(':').ok_or(form)?;
    let (key, value) = label.split_once('=').unwrap_or((label, ""));
    units::check_label(key, value)?;
    let (key, value) = (key.to_owned(), value.to_owned());
    Ok(TaintWord::Given(Taint { key, value, effect: effect(of)? }))
}

/// A label to set, or to remove if there is no value.
fn label(text: &str) -> Result<(String, Option<String>), String> {
    match (text.split_once('='), text.strip_suffix('-')) {
        (Some((key, value)), _) => {
            units::check_label(key, value)?;
            Ok((key.to_owned(), Some(value.to_owned())))
        }
        (None, Some(key)) if !key.is_empty() => Ok((key.to_owned(), None)),
        (None, _) => Err("write KEY=VALUE, or KEY- to remove it".to_owned()),
    }
}

pub(super) async fn run(state_dir: PathBuf, verb: Node) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let yes = matches!(verb, Node::Label { yes: true, .. } | Node::Drain { yes: true, .. });
    let (node, patch, done) = match changed(verb) {
        Ok(changed) => changed,
        Err(format) => {
            let how = OutputOptions::from(format);
            let name = |node: &NodeStatus| format!("node/{}", node.name);
            let look = async |out: &mut dyn Write| {
                let table = |nodes: &[NodeStatus]| table(nodes, how.is_wide());
                list(&how, client.status().await?.nodes, name, table, out)
            };
            let pulse = ChangeWait::watch(&client, &[ChangeKind::Node], None);
            return show(&how, &mut std::io::stdout(), Some(pulse), look).await;
        }
    };
    units::check_name(&node).map_err(|error| Error::Usage(error.to_string()))?;
    if !patch.labels.is_empty() {
        let labels = LabelsOf { name: node.clone(), labels: patch.labels.clone() };
        let change = QuotaChange { label_node: Some(labels), ..QuotaChange::default() };
        quotas::show_effects(&client, &change, yes).await?;
    }
    if patch.scheduling == Some(NodeScheduling::Draining) {
        let change = QuotaChange { drain_node: Some(node.clone()), ..QuotaChange::default() };
        quotas::show_drain(&client, &change, yes).await?;
    }
    client.change_node(&node, &patch, yes).await?;
    writeln!(Plain(std::io::stdout()), "node {node} {done}")?;
    Ok(())
}

/// The node to change, the change, and the message afterwards; or the output format of a list.
pub(super) fn changed(verb: Node) -> Result<(String, NodePatch, &'static str), Format> {
    let schedule = |scheduling| NodePatch { scheduling: Some(scheduling), ..NodePatch::default() };
    Ok(match verb {
        Node::List(format) => return Err(format),
        Node::Cordon { node } => (node, schedule(NodeScheduling::Disabled), "cordoned"),
        Node::Uncordon { node } => (node, schedule(NodeScheduling::Enabled), "uncordoned"),
        Node::Drain { node, .. } => {
            let done = "cordoned; its pods move to other nodes or wait";
            (node, schedule(NodeScheduling::Draining), done)
        }
        Node::Taint { node, taints } => {
            let done = match taints.iter().all(|taint| matches!(taint, TaintWord::Removed(_))) {
                true => "no longer has that taint",
                false => "tainted",
            };
            (node, tainted(taints), done)
        }
        Node::Label { node, labels, .. } => {
            let labels: BTreeMap<_, _> = labels.into_iter().collect();
            let done = match labels.values().all(Option::is_none) {
                true => "no longer has that label",
                false => "labeled",
            };
            (node, NodePatch { labels, ..NodePatch::default() }, done)
        }
    })
}

fn tainted(words: Vec<TaintWord>) -> NodePatch {
    let mut patch = NodePatch::default();
    for word in words {
        match word {
            TaintWord::Given(taint) => patch.taints.push(taint),
            TaintWord::Removed(key) => patch.removed_taints.push(key),
        }
    }
    patch
}

/// Columns that only the wide list has.
const WIDE: [&str; 1] = ["Labels"];

fn table(nodes: &[NodeStatus], is_wide: bool) -> Table {
    let short = ["Node", "Status", "Node Pool", "GPU Type", "GPUs", "Taints"];
    let mut table = Table::new(&match is_wide {
        true => [&short[..], &WIDE].concat(),
        false => short.to_vec(),
    });
    for node in nodes {
        let taints: Vec<_> = node.taints.iter().map(ToString::to_string).collect();
        let labels = node.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let labels: Vec<_> = labels.filter(|_| is_wide).collect();
        let of = |all: Vec<String>| if all.is_empty() { "-".to_owned() } else { all.join(",") };
        let short = [
            node.name.clone(),
            node.conditions(),
            node.pool.clone(),
            node.gpu_type.clone(),
            node.gpu_used.len().to_string(),
            of(taints),
        ];
        table.cells(short.into_iter().chain(is_wide.then(|| of(labels))));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_and_labels_are_read_as_kubectl_reads_them() {
        let given = |key: &str, value: &str, effect| {
            TaintWord::Given(Taint { key: key.into(), value: value.into(), effect })
        };
        let removed = |key: &str, effect| TaintWord::Removed(TaintKey { key: key.into(), effect });
        for (text, read) in [
            ("team=a:NoSchedule", given("team", "a", TaintEffect::NoSchedule)),
            ("slow:PreferNoSchedule", given("slow", "", TaintEffect::PreferNoSchedule)),
            ("team-", removed("team", None)),
            ("team:NoExecute-", removed("team", Some(TaintEffect::NoExecute))),
            ("team=a:NoExecute-", removed("team", Some(TaintEffect::NoExecute))),
        ] {
            assert_eq!(taint(text), Ok(read), "{text}");
        }
        for wrong in ["team", "team=a", "-", "team:Never", "te am=a:NoSchedule", ":NoSchedule"] {
            assert!(taint(wrong).is_err(), "{wrong}");
        }
        assert_eq!(label("zone=a"), Ok(("zone".to_owned(), Some("a".to_owned()))));
        assert_eq!(label("zone-"), Ok(("zone".to_owned(), None)));
        assert!(label("zone").is_err() && label("-").is_err() && label("a b=c").is_err());
    }
}
