//! Rows of the three panes of the live view: GPUs, queues and workloads. Owns: columns, words and
//! order. Does not know about: keys, and the position of a row on the screen.

use std::collections::BTreeMap;

use api_types::{NodeStatus, Pod, Project, QuotaResource, Status, Workload, WorkloadPhase};

use crate::list;
use crate::rows;
use crate::top::{self, Used};
use cli_kit::table::age;

/// Latest data from the server; each field is updated separately.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    /// Status of the server; `None` before the first answer.
    pub(super) status: Option<Status>,
    /// Queues.
    pub(super) projects: Vec<Project>,
    /// Current workloads.
    pub(super) workloads: Vec<Workload>,
    /// Their pods.
    pub(super) pods: Vec<Pod>,
    /// Resource usage of nodes, by name.
    pub(super) used: BTreeMap<String, Used>,
}

/// One of the panes, from the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    /// GPUs, and the pods that hold them.
    Gpus,
    /// Queues, with quota and fair share.
    Queues,
    /// Workloads, and their pending reasons.
    Workloads,
}

/// Columns of the rows.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Maximum width in screen columns; 0 = the rest of the line.
    pub(super) columns_max: u16,
    /// Without enough room the columns with the highest number are dropped first; 0 = never
    /// dropped.
    pub(super) spared: u8,
}

const fn column(title: &'static str, columns_max: u16, spared: u8) -> Column {
    Column { title, columns_max, spared }
}

const OF_GPUS: &[Column] = &[
    column("NODE", 20, 0),
    column("GPU", 3, 0),
    column("MODEL", 14, 3),
    column("HELD", 5, 0),
    column("UTIL", 4, 1),
    column("MEMORY", 9, 4),
    column("USED", 9, 2),
    column("BY", 0, 0),
];
const OF_QUEUES: &[Column] = &[
    column("PROJECT", 30, 0),
    column("QUOTA", 9, 0),
    column("FAIR SHARE", 10, 1),
    column("HELD", 9, 0),
    column("OVER QUOTA", 10, 2),
    column("WAITS FOR", 9, 0),
    column("DEPARTMENT", 0, 3),
];
const OF_WORKLOADS: &[Column] = &[
    column("WORKLOAD", 30, 0),
    column("PROJECT", 16, 2),
    column("USER", 14, 4),
    column("STATUS", 12, 0),
    column("GPUS", 9, 1),
    column("AGE", 4, 3),
    column("WHERE, OR WHY NOT", 0, 0),
];

impl Pane {
    /// From the top.
    pub(super) const ALL: [Self; 3] = [Self::Gpus, Self::Queues, Self::Workloads];

    pub(super) const fn columns(self) -> &'static [Column] {
        match self {
            Self::Gpus => OF_GPUS,
            Self::Queues => OF_QUEUES,
            Self::Workloads => OF_WORKLOADS,
        }
    }

    /// All rows in their own order; with a project only its rows.
    pub(super) fn rows(self, seen: &ServerState, project: Option<&str>) -> Vec<Row> {
        let of = |name: &str| project.is_none_or(|project| project == name);
        let rows: Vec<Row> = match self {
            Self::Gpus => gpus(seen, project),
            Self::Queues => {
                let found = seen.projects.iter().filter(|one| of(&one.name));
                found.map(queue).collect()
            }
            Self::Workloads => {
                let now_ms = seen.status.as_ref().map_or(0, |status| status.now.0.0);
                let found = seen.workloads.iter().filter(|one| of(&one.project_name));
                found.map(|one| workload(one, now_ms)).collect()
            }
        };
        debug_assert!(rows.iter().all(|row| row.cells.len() == self.columns().len()));
        rows
    }
}

/// State of a row, for its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// No mark.
    Plain,
    /// Running.
    Busy,
    /// Waiting.
    Waits,
    /// Failed.
    Failed,
}

/// One line of a pane.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Identity of the row, stable across updates.
    pub(super) key: String,
    /// A text for each column.
    pub(super) cells: Vec<Cell>,
    pub(super) mark: Mark,
    /// Description of the row as a sentence.
    pub(super) sentence: String,
}

/// A text, and its sort key: the largest number first, then the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    rank: std::cmp::Reverse<u64>,
    pub(super) text: String,
}

fn text(text: impl Into<String>) -> Cell {
    Cell { rank: std::cmp::Reverse(0), text: text.into() }
}

fn number(rank: u64, text: impl Into<String>) -> Cell {
    Cell { rank: std::cmp::Reverse(rank), text: text.into() }
}

fn gpu_millis(millis: u64) -> Cell {
    number(millis, units::format_millis(millis))
}

/// Pods that hold each GPU, by the key of its row, with thousandths of the GPU.
pub(super) type Holders<'a> = BTreeMap<String, Vec<(&'a Pod, u64)>>;

fn key_of(node: &str, gpu: u32) -> String {
    format!("{node}/{gpu}")
}

/// Pods that hold each GPU. A waiting pod with a reserved place holds nothing.
pub(super) fn holders(seen: &ServerState) -> Holders<'_> {
    let mut holders = Holders::new();
    for pod in seen.pods.iter().filter(|pod| pod.allocated_resources.gpu.0 > 0) {
        let Some(node) = &pod.node_name else { continue };
        for (gpu, millis) in &pod.gpus {
            holders.entry(key_of(node, *gpu)).or_default().push((pod, *millis));
        }
    }
    holders
}

fn gpus(seen: &ServerState, project: Option<&str>) -> Vec<Row> {
    let mut holders = holders(seen);
    let nodes = seen.status.iter().flat_map(|status| &status.nodes);
    let all = nodes.flat_map(|node| (0..).zip(&node.gpu_used).map(move |(gpu, _)| (node, gpu)));
    let of = |holders: &[(&Pod, u64)]| {
        project.is_none_or(|name| holders.iter().any(|(pod, _)| pod.project_name == name))
    };
    all.filter_map(|(node, index)| {
        let holders = holders.remove(&key_of(&node.name, index)).unwrap_or_default();
        of(&holders).then(|| gpu(node, index, &holders, seen.used.get(&node.name)))
    })
    .collect()
}

/// Names of the holders of a GPU; holders that this login does not see are counted together.
fn held_by(holders: &[(&Pod, u64)], held_millis: u64) -> String {
    let share = |millis| match millis {
        1000 => String::new(),
        part => format!(" {}", units::format_millis(part)),
    };
    let mut by: Vec<String> =
        holders.iter().map(|(pod, millis)| pod.workload_name.clone() + &share(*millis)).collect();
    // GPU share held by projects that this login does not see.
    let seen_millis: u64 = holders.iter().map(|(_, millis)| millis).sum();
    let others = held_millis.saturating_sub(seen_millis);
    if others > 0 {
        by.push(format!("others{}", share(others)));
    }
    by.join(", ")
}

fn gpu(node: &NodeStatus, gpu: u32, holders: &[(&Pod, u64)], used: Option<&Used>) -> Row {
    let index = gpu as usize;
    let held_millis = node.gpu_used[index].0;
    let size_bytes = node.gpu_memory_bytes.get(index).copied().unwrap_or(0);
    let measured = |kind| used.and_then(|used| used.of_gpu(kind, index));
    let percent = measured(top::GPU_BUSY).map_or_else(top::none, |share| format!("{share:.0}%"));
    let memory = measured(top::GPU_MEMORY_USED);
    let by = held_by(holders, held_millis);
    let fault = list::fault(node, gpu);
    let state = match (fault, by.as_str()) {
        (None, "") => "free".to_owned(),
        (None, by) => format!("held by {by}"),
        (Some(it), "") => format!("out of service: {} {}", it.code, it.message),
        (Some(it), by) => format!("out of service, held by {by}: {} {}", it.code, it.message),
    };
    let name = fault.map(|it| it.name.clone());
    let by: Vec<String> = name.into_iter().chain(Some(by).filter(|by| !by.is_empty())).collect();
    let model = if node.simulated { "simulated" } else { &node.gpu_type };
    Row {
        key: key_of(&node.name, gpu),
        sentence: format!("GPU {gpu} of {} is {state}", node.name),
        mark: match (fault, held_millis) {
            (Some(_), _) => Mark::Failed,
            (None, 1..) => Mark::Busy,
            (None, 0) => Mark::Plain,
        },
        cells: vec![
            text(&*node.name),
            // The first is 0.
            number(u64::MAX - u64::from(gpu), gpu.to_string()),
            text(model),
            gpu_millis(held_millis),
            number(measured(top::GPU_BUSY).map_or(0, top::whole), percent),
            number(size_bytes, units::format_bytes(size_bytes)),
            number(memory.map_or(0, top::whole), memory.map_or_else(top::none, top::bytes)),
            text(by.join(", ")),
        ],
    }
}

fn queue(project: &Project) -> Row {
    let quota = project.total_resources.gpu_quota.0;
    let held = project.status.quota_status.allocated.gpu.0;
    let waits = project.status.quota_status.requested.gpu.0.saturating_sub(held);
    let fair_share = project.status.additional_status_data.get("fairShare");
    let fair_share = fair_share.and_then(|of| serde_json::from_value(of.clone()).ok());
    let fair_share = fair_share.map(|of: QuotaResource| of.gpu.0);
    let gpus = units::format_millis;
    let shown = fair_share.map_or_else(top::none, gpus);
    Row {
        key: project.name.clone(),
        sentence: format!(
            "{} holds {}, of a quota of {} and a fair share of {shown}, and waits for {}",
            project.name,
            units::gpus(held),
            gpus(quota),
            gpus(waits)
        ),
        mark: match (held, waits) {
            (_, 1..) => Mark::Waits,
            (1.., 0) => Mark::Busy,
            (0, 0) => Mark::Plain,
        },
        cells: vec![
            text(&*project.name),
            gpu_millis(quota),
            number(fair_share.unwrap_or(0), shown),
            gpu_millis(held),
            gpu_millis(held.saturating_sub(quota)),
            gpu_millis(waits),
            text(&*project.parent.name),
        ],
    }
}

fn workload(workload: &Workload, now_ms: u64) -> Row {
    let age_ms = now_ms.saturating_sub(workload.created_at.0.0);
    let why = why(workload);
    Row {
        key: workload.id.clone(),
        sentence: if why.is_empty() {
            format!("{} is {}", workload.name, workload.phase)
        } else {
            format!("{} is {}: {why}", workload.name, workload.phase)
        },
        mark: mark(workload),
        cells: vec![
            text(&*workload.name),
            text(&*workload.project_name),
            text(&*workload.submitted_by),
            text(&*workload.phase),
            number(workload.allocated_resources.gpu.0, rows::gpus_v1(workload)),
            number(age_ms, age(age_ms)),
            text(why),
        ],
    }
}

/// Mark of a workload.
pub(super) fn mark(workload: &Workload) -> Mark {
    match workload.phase() {
        WorkloadPhase::Running | WorkloadPhase::Degraded => Mark::Busy,
        WorkloadPhase::Pending => Mark::Waits,
        WorkloadPhase::Failed => Mark::Failed,
        _ => Mark::Plain,
    }
}

/// Place, pending reason, or end of a workload.
fn why(workload: &Workload) -> String {
    let extras = &workload.additional_fields;
    if let Some(reason) = extras.pending_reasons.first() {
        return format!("{} {}", reason.code, reason.message);
    }
    let over = if extras.over_quota { ", over quota" } else { "" };
    match (extras.nodes.as_slice(), &extras.last_exit) {
        ([], Some(exit)) => exit.clone(),
        ([], None) => workload.phase_message.clone().unwrap_or_default(),
        ([one], _) => format!("on {one}{over}"),
        (all, _) => format!("on {}{over}", all.join(", ")),
    }
}
