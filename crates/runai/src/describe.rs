//! Everything about one workload or node, in the layouts of both dialects.

mod sheet;
mod storage;
pub(super) mod training;

use std::io::Write;

use api_types::{FractionLimit, Gpu, KubernetesEvent, Millis, Pod, Time, Workload, WorkloadPhase};
use client::{Client, WorkloadKind};
use serde_json::{Value, json};

use super::context::{Context, now_ms};
use super::last_output::{self, LastOutput};
use super::list::{gpus_in_service, named_nodes, node_names};
use super::rows;
use cli_kit::exit::Error;
use cli_kit::local_time::exact;
use cli_kit::output::columns;
use cli_kit::table::{Table, age, ago, wrapped};
use dialects::intent::{Describe, Dialect, OutputOptions, Section};
pub(super) use sheet::Sheet;

pub(super) async fn workload(
    describe: &Describe,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(&describe.of).await?;
    let (client, id) = (&context.client, &workload.id);
    let pods = client.pods(id).await?;
    let dialect = describe.of.noun.dialect();
    let how = &describe.how;
    let name = [format!("{}/{}", workload.kind.to_lowercase(), workload.name)];
    match dialect {
        _ if how.shown.is_text() => {}
        Dialect::V1 => return how.data(&object_v1(&workload, &pods, now_ms()), &name, out),
        Dialect::V2 => return how.data(&workload, &name, out),
    }
    let parts = &describe.parts;
    let events = match describe.events_max {
        0 => Vec::new(),
        _ if parts.left_out.contains(&Section::Events) => Vec::new(),
        max => client.events(id, max).await?,
    };
    let (workload, pods, events) = (&workload, &*pods, &*events);
    let output = last_output::of(workload, pods, client).await?;
    let output = output.as_ref();
    let exact = how.is_wide();
    let columns = columns().filter(|_| !exact);
    let fractions = fractions(workload, client).await?;
    let now_ms = now_ms();
    let page = Page { workload, pods, events, output, fractions, now_ms, exact, columns };
    let text = match dialect {
        Dialect::V1 => page.v1(),
        Dialect::V2 => {
            let asked = client.asked_for(kind(workload), id).await?;
            Sheet { page, asked: &asked.spec, parts }.text()
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Enforcement of the workload's GPU fractions; `None` if it runs without GPUs.
async fn fractions(workload: &Workload, client: &Client) -> Result<Option<FractionLimit>, Error> {
    let has_gpus = workload.workload_requested_resources.gpu_request_type.is_some();
    if !has_gpus || workload.running_pods == 0 {
        return Ok(None);
    }
    Ok(client.explain(&workload.id).await?.fractions)
}

fn kind(workload: &Workload) -> WorkloadKind {
    match workload.kind.as_str() {
        "Workspace" => WorkloadKind::Workspace,
        "Distributed" => WorkloadKind::Distributed,
        "Inference" => WorkloadKind::Inference,
        _ => WorkloadKind::Training,
    }
}

/// Guaranteed and maximum share of the compute time of each GPU, in one line.
pub(super) fn compute_share(kept: &FractionLimit) -> Option<String> {
    let (request, limit) = (kept.compute_request?, kept.compute_limit?);
    Some(format!("request {request}, limit {limit} ({})", kept.time_slicing))
}

/// Data of a description.
pub(super) struct Page<'a> {
    pub(super) workload: &'a Workload,
    pub(super) pods: &'a [Pod],
    pub(super) events: &'a [KubernetesEvent],
    /// Last output of the failed run, if the workload has failed.
    pub(super) output: Option<&'a LastOutput>,
    /// Enforcement of its GPU fractions; `None` if it runs without GPUs.
    pub(super) fractions: Option<FractionLimit>,
    pub(super) now_ms: u64,
    /// True if times are printed as dates, not as ages.
    pub(super) exact: bool,
    /// Maximum width of lines in columns; `None` = no limit.
    pub(super) columns: Option<usize>,
}

impl Page<'_> {
    /// The layout of reference A.4, with our section of reasons after the fields.
    pub(super) fn v1(&self) -> String {
        let mut text = String::new();
        let fractions = self.fractions().map(|kept| ("GPU FRACTIONS", kept));
        let compute = self.compute().map(|share| ("GPU COMPUTE", share));
        for (key, value) in self.fields_v1().into_iter().chain(fractions).chain(compute) {
            text.push_str(format!("{key}: {value}").trim_end());
            text.push('\n');
        }
        if let Some(reasons) = self.reasons(["CODE", "AGE", "MESSAGE"]) {
            text.push_str("\nReasons:\n");
            text.push_str(&reasons.within(self.columns).plain());
        }
        text.push_str("\nPods:\n");
        let pods = self.pods_table(["POD", "STATUS", "TYPE", "AGE", "NODE", "RESTARTS"]);
        text.push_str(&pods.within(self.columns).plain());
        if let Some(training) =
            training::text(self, ["WORKER", "RANK", "TASKS", "VERSION", "SAMPLES/S"])
        {
            text.push_str(&format!("\nTraining:\n{training}"));
        }
        if let Some(output) = self.output {
            text.push_str(&format!("\n{}:\n{}", output.title(), output.indented()));
        }
        text.push_str("\nEvents: \n");
        text.push_str(&self.events_v1());
        text
    }

    /// Enforcement of its GPU fractions, in one line.
    fn fractions(&self) -> Option<String> {
        let FractionLimit { enforcement, mechanism, meaning, .. } = self.fractions.as_ref()?;
        Some(format!("{enforcement} ({mechanism}): {meaning}"))
    }

    /// Its share of the compute time of each GPU, if that is divided.
    fn compute(&self) -> Option<String> {
        self.fractions.as_ref().and_then(compute_share)
    }

    fn fields_v1(&self) -> Vec<(&'static str, String)> {
        let workload = self.workload;
        let extras = &workload.additional_fields;
        let held = &workload.allocated_resources;
        let status =
            if workload.phase() == WorkloadPhase::Running && rows::pending_pods(workload) > 0 {
                "PENDING".to_owned()
            } else {
                rows::status_v1(workload).to_uppercase()
            };
        let requested = rows::gpus_requested(workload);
        let pods = workload.requested_pods;
        let count = |of: Option<u64>| of.unwrap_or(pods.number).to_string();
        vec![
            ("NAME", workload.name.clone()),
            ("NAMESPACE", workload.namespace.clone()),
            ("TYPE", rows::type_v1(workload).to_owned()),
            ("STATUS", status),
            ("TRAINING DURATION", age(workload.total_running_time_seconds.saturating_mul(1000))),
            ("GPUS", requested.clone()),
            ("TOTAL REQUESTED GPUS", requested),
            ("ALLOCATED GPUS", held.gpu.to_string()),
            (
                "ALLOCATED GPUS MEMORY",
                held.gpu_memory.as_deref().map_or_else(|| "-".to_owned(), readable),
            ),
            ("RUNNING PODS", workload.running_pods.to_string()),
            ("PENDING PODS", rows::pending_pods(workload).to_string()),
            ("PARALLELISM", count(pods.parallelism)),
            ("COMPLETIONS", count(pods.completions)),
            ("SUCCEEDED PODS", extras.pods.succeeded.to_string()),
            ("FAILED PODS", extras.pods.failed.to_string()),
            ("RESTARTS", extras.restarts.to_string()),
            ("IS DISTRIBUTED WORKLOAD", (workload.kind == "Distributed").to_string()),
            ("CREATED BY CLI", (workload.source == "CLI").to_string()),
            ("SERVICE URL(S)", workload.urls.join(",")),
            ("COMMAND LINE", extras.command_line.clone().unwrap_or_else(|| "N/A".to_owned())),
        ]
    }

    /// Pending reasons and last events; `None` if there are none.
    fn reasons(&self, columns: [&str; 3]) -> Option<Table> {
        let extras = &self.workload.additional_fields;
        let mut table = Table::new(&columns);
        let mut any = false;
        let mut row = |code: &String, at: Time, message: &String| {
            any = true;
            table.row([code.clone(), self.age(at.0.0), message.clone()]);
        };
        extras.pending_reasons.iter().for_each(|one| row(&one.code, one.at, &one.message));
        extras.last_eviction.iter().for_each(|one| row(&one.code, one.at, &one.message));
        any.then_some(table)
    }

    fn pods_table(&self, columns: [&str; 6]) -> Table {
        let mut table = Table::new(&columns);
        for pod in self.pods {
            table.row([
                pod.name.clone(),
                pod_status(pod).to_uppercase(),
                rows::type_v1(self.workload).to_uppercase(),
                self.age(pod.created_at.0.0),
                pod_place(pod),
                pod_restarts(pod).to_string(),
            ]);
        }
        table
    }

    fn events_v1(&self) -> String {
        if self.events.is_empty() {
            return "No events for resources\n".to_owned();
        }
        let columns = ["SOURCE", "TYPE", "AGE", "MESSAGE"];
        let mut table = Table::new(&columns);
        table.row(columns.map(|title| "-".repeat(title.len())));
        for event in self.events {
            let object = &event.involved_object;
            table.row([
                format!("{}/{}", object.kind.to_lowercase(), object.name),
                event.kind.clone(),
                self.age(event.created_at.0.0),
                format!("[{}] {}", event.reason, event.message),
            ]);
            table.row(columns.map(|_| String::new()));
        }
        table.within(self.columns).plain()
    }

    /// A time, as a date or an age.
    fn moment(&self, at: Time) -> String {
        if self.exact { exact(at.0.0) } else { ago(self.now_ms.saturating_sub(at.0.0)) }
    }

    fn age(&self, at_ms: u64) -> String {
        age(self.now_ms.saturating_sub(at_ms))
    }
}

/// A quantity of bytes in the form of other sizes; any other text stays as it is.
fn readable(quantity: &str) -> String {
    units::parse_bytes(quantity).map_or_else(|_| quantity.to_owned(), units::format_bytes)
}

pub(super) fn pod_status(pod: &Pod) -> &str {
    match pod.state.as_str() {
        "" => &pod.k8s_phase,
        "Starting" => "ContainerCreating",
        "Reserved" => "Pending",
        state => state,
    }
}

/// Number of restarts of its command, for any reason.
pub(super) fn pod_restarts(pod: &Pod) -> u32 {
    pod.generation.saturating_sub(1)
}

/// Node and the GPUs on it: `node1 (GPU 0, 0.5 of GPU 1)`.
pub(super) fn pod_place(pod: &Pod) -> String {
    let Some(node) = &pod.node_name else { return "N/A".to_owned() };
    if pod.gpus.is_empty() {
        return node.clone();
    }
    let gpu = |(index, millis): &(u32, u64)| match millis {
        1000 => format!("GPU {index}"),
        share => format!("{} of GPU {index}", units::format_millis(*share)),
    };
    let mut gpus = pod.gpus.clone();
    gpus.sort_unstable();
    format!("{node} ({})", gpus.iter().map(gpu).collect::<Vec<_>>().join(", "))
}

/// `-o json` of v1 (reference A.4).
fn object_v1(workload: &Workload, pods: &[Pod], now_ms: u64) -> Value {
    let instance = |pod: &Pod| {
        json!({
            "name": pod.name,
            "status": pod_status(pod),
            "age": age(now_ms.saturating_sub(pod.created_at.0.0)),
            "node": pod.node_name,
            "chief": pods.first().is_some_and(|first| first.id == pod.id),
        })
    };
    json!({
        "name": workload.name,
        "namespace": workload.namespace,
        "duration": age(workload.total_running_time_seconds.saturating_mul(1000)),
        "status": rows::status_v1(workload),
        "trainer": rows::type_v1(workload),
        "priority": workload.priority_class_name,
        "chiefName": pods.first().map(|pod| pod.name.as_str()),
        "instances": pods.iter().map(instance).collect::<Vec<_>>(),
        "commandLine": workload.additional_fields.command_line,
    })
}

pub(super) async fn nodes(
    names: &[String],
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let nodes = named_nodes(names, how, context, out).await?;
    if !how.shown.is_text() {
        return how.data(&nodes, &node_names(&nodes), out);
    }
    let gpus = match &*nodes {
        [node] => context.client.gpus(Some(&node.name)).await?,
        _ => context.client.gpus(None).await?,
    };
    for node in nodes {
        writeln!(out, "NAME: {}", node.name)?;
        writeln!(out, "STATUS: {}", node.conditions())?;
        if !node.taints.is_empty() {
            let taints: Vec<_> = node.taints.iter().map(ToString::to_string).collect();
            writeln!(out, "TAINTS: {}", taints.join(","))?;
        }
        if !node.labels.is_empty() {
            let labels = node.labels.iter().map(|(key, value)| format!("{key}={value}"));
            writeln!(out, "LABELS: {}", labels.collect::<Vec<_>>().join(","))?;
        }
        writeln!(out, "ROLE: <none>")?;
        writeln!(out, "CPU ALLOCATABLE: {}", units::format_millis(node.cpu_millis))?;
        writeln!(out, "CPU ALLOCATED: {}", units::format_millis(node.cpu_used_millis))?;
        writeln!(out, "MEMORY ALLOCATABLE: {}", units::format_bytes(node.memory_bytes))?;
        writeln!(out, "MEMORY ALLOCATED: {}", units::format_bytes(node.memory_used_bytes))?;
        writeln!(out, "GPU TYPE: {}", node.gpu_type)?;
        writeln!(out, "GPU ALLOCATABLE: {}", gpus_in_service(&node))?;
        if let Some(instances) = api_types::MigInstance::summary(&node.mig_instances) {
            writeln!(out, "MIG INSTANCES: {instances}")?;
        }
        if let Some(fractions) = &node.fractions {
            let api_types::FractionLimit { enforcement, mechanism, meaning, why, .. } = fractions;
            let line = format!("GPU FRACTIONS: {enforcement} ({mechanism}): {meaning}");
            writeln!(out, "{}", wrapped(&line))?;
            if let Some(why) = why {
                writeln!(out, "{}", wrapped(&format!("    {why}")))?;
            }
            // Servers of earlier versions do not send it.
            if !fractions.time_slicing.is_empty() {
                let (mode, meaning) = (&fractions.time_slicing, &fractions.time_slicing_meaning);
                let line = format!("GPU TIME SLICING: {mode}: {meaning}");
                writeln!(out, "{}", wrapped(&line))?;
            }
        }
        writeln!(out, "\nNODE GPUs INFO")?;
        let own: Vec<_> = gpus.iter().filter(|gpu| gpu.node_name == node.name).collect();
        writeln!(out, "{}", gpus_table(&own).plain())?;
    }
    Ok(())
}

/// The GPUs of a node and the pods on them.
pub(super) fn gpus_table(gpus: &[&Gpu]) -> Table {
    let mut table = Table::new(&["GPU", "ALLOCATED", "MEMORY", "HEALTH", "PODS"]);
    for gpu in gpus {
        let health = gpu
            .fault
            .as_ref()
            .map_or_else(|| "ok".to_owned(), |fault| format!("{} {}", fault.code, fault.message));
        table.row([
            gpu.index.to_string(),
            gpu.allocated.to_string(),
            units::format_bytes(gpu.memory_bytes),
            health,
            gpu_pods(gpu),
        ]);
    }
    table
}

/// The pods on a GPU, each with its share: `train-0-1 (0.5), of others (0.25)`.
fn gpu_pods(gpu: &Gpu) -> String {
    let shown = |name: &str, share: Millis| match share {
        Millis(1000) => name.to_owned(),
        share => format!("{name} ({share})"),
    };
    let seen: u64 = gpu.pods.iter().map(|pod| pod.share.0).sum();
    let mut pods: Vec<_> = gpu.pods.iter().map(|pod| shown(&pod.name, pod.share)).collect();
    if gpu.allocated.0 > seen {
        pods.push(shown("of others", Millis(gpu.allocated.0 - seen)));
    }
    if pods.is_empty() { "-".to_owned() } else { pods.join(", ") }
}
