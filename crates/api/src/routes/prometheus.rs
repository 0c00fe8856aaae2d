//! Gauges as of now, as Prometheus reads them (text format 0.0.4). Owns: their names and labels, which stay as
//! they are. Refuses to know: the past; Prometheus keeps its own.

use std::collections::BTreeMap;

use auth::Action::Read;
use auth::Resource;
use axum::body::Body;
use axum::extract::State as FromState;
use axum::http::{HeaderMap, HeaderValue, header};
use control::Trouble;
use control::view::{NodeView, View};
use units::{GPU_MILLIS, format_millis};

use super::Shared;
use crate::access::Where;
use crate::convert::phase_name;
use crate::edge::PlainText;
use crate::openapi::{Route, get};

const MEDIA_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn route() -> Route<Shared> {
    get("/metrics", "get_gauges", "Gauges as of now, for Prometheus", read).needs(
        Read,
        Resource::Nodes,
        Where::Anywhere,
    )
}

async fn read(FromState(state): FromState<Shared>) -> (HeaderMap, PlainText) {
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, MEDIA_TYPE)]);
    (headers, PlainText(Body::from(gauges(&state.control.view()))))
}

/// Labels and a value in thousandths.
type Sample<'a> = (Vec<(&'a str, &'a str)>, u64);

fn gauges(view: &View) -> String {
    let mut text = String::new();
    let of_nodes = |value: fn(&NodeView) -> u64| {
        view.nodes.iter().map(|node| (labels(node), value(node))).collect::<Vec<_>>()
    };
    let all = of_nodes(|node| node.gpu_memory_bytes.len() as u64 * GPU_MILLIS);
    gauge(&mut text, "node_gpus", "GPUs of a node, those out of service included.", all);
    let held = of_nodes(|node| node.gpu_used_millis.iter().sum());
    gauge(&mut text, "node_gpus_allocated", "GPUs of a node that workloads hold.", held);
    let out = view.nodes.iter().flat_map(|node| {
        ["lost", "taken"].map(|reason| {
            let count = node.troubles.values().filter(|trouble| word(trouble) == reason).count();
            (vec![("node", &*node.name), ("reason", reason)], count as u64 * GPU_MILLIS)
        })
    });
    let about = "GPUs of a node that do not work, or that strangers use.";
    gauge(&mut text, "node_gpus_out_of_service", about, out.collect());
    let mut phases: BTreeMap<_, u64> = BTreeMap::new();
    for workload in view.workloads.values() {
        *phases.entry(phase_name(workload.phase)).or_default() += GPU_MILLIS;
    }
    let workloads = phases.into_iter().map(|(phase, count)| (vec![("phase", phase)], count));
    gauge(&mut text, "workloads", "Workloads that are not deleted.", workloads.collect());
    text
}

fn labels(node: &NodeView) -> Vec<(&str, &str)> {
    vec![("node", &*node.name), ("model", &*node.gpu_type)]
}

/// The word of a label for what is the matter with a GPU.
const fn word(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::Lost(_) => "lost",
        Trouble::Taken(_) => "taken",
    }
}

fn gauge(text: &mut String, name: &str, about: &str, samples: Vec<Sample<'_>>) {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut lines = format!("# HELP elastane_{name} {about}\n# TYPE elastane_{name} gauge\n");
    for (labels, value) in samples {
        let labels: Vec<_> =
            labels.iter().map(|(label, of)| format!("{label}=\"{}\"", escaped(of))).collect();
        let (labels, value) = (labels.join(","), format_millis(value));
        lines.push_str(&format!("elastane_{name}{{{labels}}} {value}\n"));
    }
    text.push_str(&lines);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::expect;

    use super::*;

    #[test]
    fn gpus_out_of_service_are_told_by_node_and_reason() {
        let node = NodeView {
            name: "node-1".into(),
            gpu_type: "the \"fast\" one".into(),
            simulated: false,
            gpu_memory_bytes: vec![1 << 30; 4],
            gpu_used_millis: vec![1000, 500, 0, 0],
            troubles: [
                (1, Trouble::Taken(BTreeMap::new())),
                (2, Trouble::Lost("off the bus".into())),
                (3, Trouble::Lost("off the bus".into())),
            ]
            .into(),
            capacity: units::Resources::default(),
            used: units::Resources::default(),
            pool: "default".into(),
            labels: BTreeMap::new(),
            created_at: units::Instant(0),
        };
        let view = View { nodes: vec![Arc::new(node)], ..View::default() };
        expect![[r#"
            # HELP elastane_node_gpus GPUs of a node, those out of service included.
            # TYPE elastane_node_gpus gauge
            elastane_node_gpus{node="node-1",model="the \"fast\" one"} 4
            # HELP elastane_node_gpus_allocated GPUs of a node that workloads hold.
            # TYPE elastane_node_gpus_allocated gauge
            elastane_node_gpus_allocated{node="node-1",model="the \"fast\" one"} 1.5
            # HELP elastane_node_gpus_out_of_service GPUs of a node that do not work, or that strangers use.
            # TYPE elastane_node_gpus_out_of_service gauge
            elastane_node_gpus_out_of_service{node="node-1",reason="lost"} 2
            elastane_node_gpus_out_of_service{node="node-1",reason="taken"} 1
            # HELP elastane_workloads Workloads that are not deleted.
            # TYPE elastane_workloads gauge
        "#]]
        .assert_eq(&gauges(&view));
    }
}
