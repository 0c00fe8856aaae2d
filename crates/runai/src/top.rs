//! Resource usage of nodes and jobs, as a mean of the last minute. Owns: both published tables. A
//! value that is not measured is `-`, never 0.

use std::collections::BTreeMap;
use std::io::Write;

use api_types::{MetricsResponse, NodeStatus, Time, Workload, WorkloadPhase};
use client::Client;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use units::Instant;

use super::context::{Context, now_ms};
use super::list::named_nodes;
use super::rows;
use cli_kit::exit::Error;
use cli_kit::output::{Style, columns};
use cli_kit::table::{Grouped, Table, age};
use dialects::intent::OutputOptions;

/// Averaging period in milliseconds.
const SPAN_MS: u64 = 60_000;
const MEMORY: &str = "CPU_MEMORY_USAGE_BYTES";
const CORES: &str = "CPU_USAGE_CORES";
const GPUS: &str = "GPU_UTILIZATION";
const GPU_MEMORY: &str = "GPU_MEMORY_USAGE_BYTES";
/// Utilization of each GPU, in percent.
pub(super) const GPU_BUSY: &str = "GPU_UTILIZATION_PER_GPU";
/// Used memory of each GPU, in bytes.
pub(super) const GPU_MEMORY_USED: &str = "GPU_MEMORY_USAGE_BYTES_PER_GPU";
const OF_NODES: [&str; 7] =
    [GPUS, GPU_MEMORY, CORES, MEMORY, GPU_BUSY, GPU_MEMORY_USED, "GPU_IDLE_TIME_SECONDS_PER_GPU"];
const OF_JOBS: [&str; 7] = [
    GPUS,
    GPU_MEMORY,
    "GPU_MEMORY_REQUEST_BYTES",
    CORES,
    "CPU_REQUEST_CORES",
    MEMORY,
    "CPU_MEMORY_REQUEST_BYTES",
];

/// Measured values, by type and, for a value of one GPU, its number.
#[derive(Debug, Default)]
pub(super) struct Used(BTreeMap<(String, Option<String>), f64>);

impl Used {
    pub(super) fn new(answer: MetricsResponse) -> Self {
        let one = |series: api_types::MeasurementResponse| {
            let value = series.values.last()?.value.parse().ok()?;
            let gpu = series.labels.and_then(|mut labels| labels.remove("gpu"));
            Some(((series.kind, gpu), value))
        };
        Self(answer.measurements.into_iter().filter_map(one).collect())
    }

    fn get(&self, kind: &str) -> Option<f64> {
        self.0.get(&(kind.to_owned(), None)).copied()
    }

    pub(super) fn of_gpu(&self, kind: &str, gpu: usize) -> Option<f64> {
        self.0.get(&(kind.to_owned(), Some(gpu.to_string()))).copied()
    }
}

/// Values by type; values of single GPUs by type and number.
impl Serialize for Used {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kinds: BTreeMap<&str, Value> = BTreeMap::new();
        for ((kind, gpu), value) in &self.0 {
            match gpu {
                None => drop(kinds.insert(kind, (*value).into())),
                Some(gpu) => kinds.entry(kind).or_insert_with(|| json!({}))[gpu] = (*value).into(),
            }
        }
        kinds.serialize(serializer)
    }
}

async fn measured(path: &str, types: &[&str], client: &Client) -> Result<Used, Error> {
    let now_ms = now_ms();
    let [start, end] = [now_ms.saturating_sub(SPAN_MS), now_ms].map(|ms| Time(Instant(ms)));
    Ok(Used::new(client.measured(path, types, (start, end)).await?))
}

/// Resource usage of a node.
pub(super) async fn of_node(name: &str, client: &Client) -> Result<Used, Error> {
    measured(&format!("/api/v1/nodes/{name}/metrics"), &OF_NODES, client).await
}

pub(super) async fn nodes(
    names: &[String],
    details: bool,
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut all = Vec::new();
    for node in named_nodes(names, how, context, out).await? {
        let used = of_node(&node.name, &context.client).await?;
        all.push((node, used));
    }
    let all = how.order(all, keys_of_nodes)?;
    if !how.shown.is_text() {
        let each: Vec<_> = all.iter().map(|(of, used)| Measured { of, measured: used }).collect();
        let names = all.iter().map(|(node, _)| format!("node/{}", node.name)).collect::<Vec<_>>();
        return how.data(&each, &names, out);
    }
    let table = nodes_table(&all, details, names.is_empty());
    out.write_all(grouped(table, how, &[]).as_bytes())?;
    for (node, used) in all.iter().filter(|(node, _)| details && !node.gpu_used.is_empty()) {
        let gpus = how.text(gpus_table(node, used), Style::Plain, &[]);
        write!(out, "\nGPUs of {}:\n{gpus}", node.name)?;
    }
    Ok(())
}

/// A table of groups as text: as wide as the terminal, if it goes to one.
fn grouped(table: Grouped, how: &OutputOptions, drop_first: &[&str]) -> String {
    let table = if how.is_wide() { table } else { table.fitted(columns(), drop_first) };
    if how.no_headers { table.headless().plain() } else { table.plain() }
}

/// An object with its measured values, as data.
#[derive(Debug, Serialize)]
struct Measured<'a, T> {
    #[serde(flatten)]
    of: &'a T,
    measured: &'a Used,
}

/// Sort keys of the list of nodes.
fn keys_of_nodes(all: &[(NodeStatus, Used)]) -> Table {
    let titles = ["Name", "Status", "GPU", "GPU Utilization", "CPU", "CPU Utilization"];
    let mut table = Table::new(&[&titles[..], &["Memory", "Memory Usage"]].concat());
    let number = |value: Option<f64>| value.map_or_else(none, |value| value.to_string());
    for (node, used) in all {
        let NodeUsage { gpus, cores, memory, .. } = NodeUsage::of(node, used);
        table.row([
            node.name.clone(),
            node.conditions(),
            number(Some(gpus.all)),
            number(gpus.used),
            number(Some(cores.all)),
            number(cores.used),
            number(Some(memory.all)),
            number(memory.used),
        ]);
    }
    table
}

/// Sort keys of the list of jobs.
fn keys_of_jobs(all: &[(Workload, Used)]) -> Table {
    let titles = ["Name", "Project", "User", "Type", "Duration", "Node", "GPU", "GPU Util"];
    let mut table = Table::new(&[&titles[..], &["GPU Memory", "CPU", "CPU Memory"]].concat());
    let number = |value: Option<f64>| value.map_or_else(none, |value| value.to_string());
    for (workload, used) in all {
        table.row([
            workload.name.clone(),
            workload.project_name.clone(),
            workload.submitted_by.clone(),
            rows::type_v1(workload).to_owned(),
            workload.total_running_time_seconds.to_string(),
            rows::node(workload),
            workload.allocated_resources.gpu.0.to_string(),
            number(used.get(GPUS)),
            number(used.get(GPU_MEMORY)),
            number(used.get(CORES)),
            number(used.get(MEMORY)),
        ]);
    }
    table
}

/// A row for each node, and with `total` one for their sum.
pub(super) fn nodes_table(all: &[(NodeStatus, Used)], details: bool, total: bool) -> Grouped {
    // This column is shown only if there are unhealthy GPUs, as published.
    let unhealthy = all.iter().any(|(node, _)| !node.gpu_faults.is_empty());
    let gpu: &[&str] = match unhealthy {
        true => &["CAPACITY", "UTILIZATION", "UNHEALTHY"],
        false => &["CAPACITY", "UTILIZATION"],
    };
    let mut table = if details {
        Grouped::new(&[
            ("", &["NAME", "STATUS"]),
            ("GPU", gpu),
            ("GPU MEMORY", &["CAPACITY", "USAGE", "UTILIZATION"]),
            ("CPU", &["CAPACITY", "USAGE", "UTILIZATION"]),
            ("MEMORY", &["CAPACITY", "USAGE", "UTILIZATION"]),
        ])
    } else {
        Grouped::new(&[
            ("", &["NAME", "STATUS"]),
            ("GPU", gpu),
            ("CPU", &["CAPACITY", "UTILIZATION"]),
            ("MEMORY", &["CAPACITY", "USAGE"]),
        ])
    };
    let each: Vec<_> = all.iter().map(|(node, used)| NodeUsage::of(node, used)).collect();
    for ((node, _), line) in all.iter().zip(&each) {
        table.row(line.cells(&node.name, &node.conditions(), details, unhealthy));
    }
    if total && each.len() > 1 {
        table.row(NodeUsage::sum(&each).cells("TOTAL", "", details, unhealthy));
    }
    table
}

/// Capacity and usage of one or several nodes.
struct NodeUsage {
    gpus: Amount,
    /// GPUs that are out of service.
    unhealthy: usize,
    gpu_memory: Amount,
    cores: Amount,
    memory: Amount,
}

/// Capacity, and the used part of it; `None` if not measured.
#[derive(Debug, Clone, Copy)]
struct Amount {
    all: f64,
    used: Option<f64>,
}

impl Amount {
    /// Sum of several amounts; its usage is known if each is.
    fn sum(amounts: impl Iterator<Item = Self>) -> Self {
        let none = Self { all: 0.0, used: Some(0.0) };
        amounts.filter(|one| one.all > 0.0).fold(none, |sum, one| Self {
            all: sum.all + one.all,
            used: sum.used.zip(one.used).map(|(a, b)| a + b),
        })
    }

    fn percent(self) -> String {
        let share = self.used.filter(|_| self.all > 0.0).map(|used| used / self.all * 100.0);
        share.map_or_else(none, |share| format!("{share:.0}%"))
    }

    /// Usage, and its percentage of the capacity.
    fn used(self, shown: impl Fn(f64) -> String) -> String {
        match (self.used, self.percent()) {
            (None, _) => none(),
            (Some(used), percent) if percent == "-" => shown(used),
            (Some(used), percent) => format!("{} ({percent})", shown(used)),
        }
    }
}

impl NodeUsage {
    #[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
    fn of(node: &NodeStatus, used: &Used) -> Self {
        let gpus = node.gpu_used.len() as f64;
        let gpu_memory = node.gpu_memory_bytes.iter().sum::<u64>() as f64;
        let utilization = used.get(GPUS).map(|percent| percent / 100.0 * gpus);
        Self {
            gpus: Amount { all: gpus, used: utilization },
            unhealthy: node.gpu_faults.len(),
            gpu_memory: Amount { all: gpu_memory, used: used.get(GPU_MEMORY) },
            cores: Amount { all: node.cpu_millis as f64 / 1000.0, used: used.get(CORES) },
            memory: Amount { all: node.memory_bytes as f64, used: used.get(MEMORY) },
        }
    }

    fn sum(lines: &[Self]) -> Self {
        Self {
            gpus: Amount::sum(lines.iter().map(|line| line.gpus)),
            unhealthy: lines.iter().map(|line| line.unhealthy).sum(),
            gpu_memory: Amount::sum(lines.iter().map(|line| line.gpu_memory)),
            cores: Amount::sum(lines.iter().map(|line| line.cores)),
            memory: Amount::sum(lines.iter().map(|line| line.memory)),
        }
    }

    fn cells(&self, name: &str, status: &str, details: bool, health: bool) -> Vec<Vec<String>> {
        let Self { gpus, unhealthy, gpu_memory, cores, memory } = *self;
        let named = vec![name.to_owned(), status.to_owned()];
        let mut gpus = vec![decimal(gpus.all), gpus.percent()];
        gpus.extend(health.then(|| unhealthy.to_string()));
        if !details {
            return vec![
                named,
                gpus,
                vec![decimal(cores.all), cores.percent()],
                vec![bytes(memory.all), memory.used(bytes)],
            ];
        }
        let whole = |amount: Amount, shown: fn(f64) -> String| {
            let used = amount.used.map_or_else(none, shown);
            vec![shown(amount.all), used, amount.percent()]
        };
        vec![named, gpus, whole(gpu_memory, bytes), whole(cores, decimal), whole(memory, bytes)]
    }
}

/// A row for each GPU of a node.
#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
pub(super) fn gpus_table(node: &NodeStatus, used: &Used) -> Table {
    let mut table = Table::new(&["GPU", "UTILIZATION", "MEMORY", "MEMORY USAGE", "IDLE TIME"]);
    for (gpu, size) in node.gpu_memory_bytes.iter().enumerate() {
        let busy = used.of_gpu(GPU_BUSY, gpu);
        let memory = Amount { all: *size as f64, used: used.of_gpu(GPU_MEMORY_USED, gpu) };
        let idle = used.of_gpu("GPU_IDLE_TIME_SECONDS_PER_GPU", gpu);
        table.row([
            gpu.to_string(),
            busy.map_or_else(none, |percent| format!("{percent:.0}%")),
            bytes(memory.all),
            memory.used(bytes),
            idle.map_or_else(none, |seconds| age(whole(seconds) * 1000)),
        ]);
    }
    table
}

pub(super) async fn jobs(
    all_projects: bool,
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut found = if all_projects {
        context.client.workloads(None).await?
    } else {
        context.workloads().await?
    };
    let runs = [WorkloadPhase::Running, WorkloadPhase::Degraded, WorkloadPhase::Updating];
    found.retain(|workload| runs.contains(&workload.phase()));
    let held = |workload: &Workload| workload.allocated_resources.gpu;
    found.sort_by(|a, b| held(b).cmp(&held(a)).then_with(|| a.name.cmp(&b.name)));
    let mut all = Vec::new();
    for workload in found {
        let path = format!("/api/v1/workloads/{}/metrics", workload.id);
        let used = measured(&path, &OF_JOBS, &context.client).await?;
        all.push((workload, used));
    }
    let all = how.order(all, keys_of_jobs)?;
    if !how.shown.is_text() {
        let each: Vec<_> = all.iter().map(|(of, used)| Measured { of, measured: used }).collect();
        let name = |one: &Workload| format!("{}/{}", one.kind.to_lowercase(), one.name);
        let names = all.iter().map(|(workload, _)| name(workload)).collect::<Vec<_>>();
        return how.data(&each, &names, out);
    }
    if !all_projects && !how.no_headers {
        let project = context.project()?;
        writeln!(out, "Showing jobs with status Running for project {project}")?;
    }
    // The last columns are the least important, but those of GPUs matter most.
    let drop_first = ["NODE", "TYPE", "USER"];
    Ok(out.write_all(grouped(jobs_table(&all), how, &drop_first).as_bytes())?)
}

pub(super) fn jobs_table(all: &[(Workload, Used)]) -> Grouped {
    let mut table = Grouped::new(&[
        ("", &["NAME", "PROJECT", "USER", "TYPE", "DURATION", "NODE"]),
        ("GPU", &["Allocated", "Util"]),
        ("GPU MEMORY", &["Allocated", "Usage"]),
        ("CPU", &["Allocated", "Usage"]),
        ("CPU MEMORY", &["Allocated", "Usage"]),
    ]);
    for (workload, used) in all {
        let of = |asked: &str, used_as: &str, shown: fn(f64) -> String| {
            let amount = Amount { all: used.get(asked).unwrap_or(0.0), used: used.get(used_as) };
            let all = used.get(asked).map_or_else(none, shown);
            vec![all, amount.used(shown)]
        };
        table.row(vec![
            vec![
                workload.name.clone(),
                workload.project_name.clone(),
                workload.submitted_by.clone(),
                rows::type_v1(workload).to_owned(),
                age(workload.total_running_time_seconds.saturating_mul(1000)),
                rows::node(workload),
            ],
            vec![
                workload.allocated_resources.gpu.to_string(),
                used.get(GPUS).map_or_else(none, |percent| format!("{percent:.0}%")),
            ],
            of("GPU_MEMORY_REQUEST_BYTES", GPU_MEMORY, bytes),
            of("CPU_REQUEST_CORES", CORES, millicores),
            of("CPU_MEMORY_REQUEST_BYTES", MEMORY, bytes),
        ]);
    }
    table
}

pub(super) fn none() -> String {
    "-".to_owned()
}

/// A number with at most one decimal.
fn decimal(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn millicores(cores: f64) -> String {
    format!("{}m", whole(cores * 1000.0))
}

pub(super) fn bytes(number: f64) -> String {
    units::format_bytes(whole(number))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nothing that is measured is negative, nor too much for 64 bits"
)]
pub(super) fn whole(number: f64) -> u64 {
    number.round() as u64
}
