//! A workload as cells of the published tables. Owns the words and the order of both lists.

use api_types::{GpuRequestType, Workload, WorkloadExtras, WorkloadPhase};

use cli_kit::table::{Table, age, two_decimals};
use dialects::intent::{Framework, Noun};

/// Columns of the wide table (2020‑08 to 2.x).
pub(super) const V1_COLUMNS: [&str; 11] = [
    "NAME",
    "STATUS",
    "AGE",
    "NODE",
    "IMAGE",
    "TYPE",
    "PROJECT",
    "USER",
    "GPUs Allocated (Requested)",
    "PODs Running (Pending)",
    "SERVICE URL(S)",
];
/// Columns of the short table.
pub(super) const V2_COLUMNS: [&str; 6] =
    ["Workload", "Type", "Status", "Project", "Running/Req. Pods", "GPU Alloc."];

/// Columns that the wide table can do without, the least important first.
pub(super) const V1_DROPPED_FIRST: [&str; 8] =
    ["IMAGE", "SERVICE URL(S)", "USER", "TYPE", "NODE", "PODs Running (Pending)", "AGE", "PROJECT"];
/// Columns that the short table can do without, the least important first.
pub(super) const V2_DROPPED_FIRST: [&str; 3] = ["Type", "Running/Req. Pods", "Project"];

/// The wide table; with `more` the number of restarts of each workload.
pub(super) fn table_v1(workloads: &[Workload], now_ms: u64, more: bool) -> Table {
    let mut table = Table::new(&V1_COLUMNS);
    workloads.iter().for_each(|workload| table.row(v1_row(workload, now_ms)));
    if more {
        table.column_of("RESTARTS", workloads.iter().map(restarts));
        samples(&mut table, "SAMPLES/S", workloads);
    }
    table
}

/// The short table; with `more` the further columns of the wide one.
pub(super) fn table_v2(
    workloads: &[Workload],
    show_request: bool,
    now_ms: u64,
    more: bool,
) -> Table {
    let mut table = Table::new(&V2_COLUMNS);
    workloads.iter().for_each(|workload| table.row(v2_row(workload, show_request && !more)));
    if more {
        let age = |one: &Workload| age(now_ms.saturating_sub(one.created_at.0.0));
        table.column_of("GPU Request", workloads.iter().map(gpus_requested));
        table.column_of("Restarts", workloads.iter().map(restarts));
        table.column_of("Age", workloads.iter().map(age));
        table.column_of("Node", workloads.iter().map(node));
        table.column_of("User", workloads.iter().map(|one| one.submitted_by.clone()));
        samples(&mut table, "Samples/s", workloads);
    }
    table
}

/// Adds the throughput of elastic trainings, if the list has any.
fn samples(table: &mut Table, title: &str, workloads: &[Workload]) {
    let rate =
        |one: &Workload| one.additional_fields.training.as_ref().map(|of| of.samples_per_second);
    if workloads.iter().any(|one| rate(one).is_some()) {
        let shown = workloads.iter().map(|one| rate(one).map(|rate| rate.to_string()));
        table.column_of(title, shown.map(Option::unwrap_or_default));
    }
}

fn restarts(workload: &Workload) -> String {
    workload.additional_fields.restarts.to_string()
}

/// A row of the wide table.
pub(super) fn v1_row(workload: &Workload, now_ms: u64) -> [String; 11] {
    [
        workload.name.clone(),
        status_v1(workload).to_owned(),
        age(now_ms.saturating_sub(workload.created_at.0.0)),
        node(workload),
        workload.images.join(","),
        type_v1(workload).to_owned(),
        workload.project_name.clone(),
        workload.submitted_by.clone(),
        gpus_v1(workload),
        format!("{} ({})", workload.running_pods, pending_pods(workload)),
        workload.urls.join(","),
    ]
}

/// A row of the short table. `show_request` prints the requested GPUs of a workload that is shown
/// as pending in place of the allocated ones, as the published sample does (reference Z.2).
pub(super) fn v2_row(workload: &Workload, show_request: bool) -> [String; 6] {
    let status = status_v2(workload);
    let gpu_millis = if status == PENDING && show_request {
        workload.additional_fields.requested_gpus.0
    } else {
        workload.allocated_resources.gpu.0
    };
    [
        workload.name.clone(),
        workload.kind.clone(),
        status.to_owned(),
        workload.project_name.clone(),
        format!("{}/{}", workload.running_pods, workload.requested_pods.number),
        two_decimals(gpu_millis),
    ]
}

/// v2: running first, larger allocation first, within quota before over quota, then age; the
/// order of the published sample (reference Z.3). A server sorts lists so by `activity`.
pub(super) fn sort_v2(workloads: &mut [Workload]) {
    workloads.sort_by(|a, b| {
        let key = |w: &Workload| {
            let held = std::cmp::Reverse(w.allocated_resources.gpu.0);
            (rank(w), held, w.additional_fields.over_quota, w.created_at)
        };
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
}

/// The phase "waits for room", as it is shown.
const PENDING: &str = "Pending";
const CRASH_LOOP: &str = "CrashLoopBackOff";
/// Code of the reason "maximum run time reached".
const TIME_LIMIT: &str = "E203";
/// Code of the reason "image cannot be pulled now".
const IMAGE_PULL: &str = "E209";
/// Code of the reason "gang lacks pods".
const PLACES_KEPT: &str = "P309";

fn rank(workload: &Workload) -> u8 {
    use WorkloadPhase as P;
    match workload.phase() {
        P::Running | P::Degraded => 0,
        P::Initializing | P::Updating | P::Stopping | P::Deleting | P::Terminating => 1,
        P::Pending | P::Creating | P::Resuming => 2,
        P::Stopped => 3,
        P::Completed | P::Failed | P::Unknown => 4,
    }
}

/// True if its command has failed and is restarted after a delay.
pub(super) fn crash_loops(workload: &Workload) -> bool {
    let phases = [WorkloadPhase::Pending, WorkloadPhase::Initializing];
    let waits = phases.contains(&workload.phase());
    waits && workload.additional_fields.pods.crash_looping > 0
}

/// The phase, or the Kubernetes word if the command fails repeatedly or the image cannot be pulled.
pub(super) fn status_v2(workload: &Workload) -> &str {
    match crash_loops(workload) {
        true => CRASH_LOOP,
        false => image_pull(workload).unwrap_or(&workload.phase),
    }
}

/// The phase in the words of v1.
pub(super) fn status_v1(workload: &Workload) -> &str {
    let WorkloadExtras { last_eviction, .. } = &workload.additional_fields;
    let timed_out = last_eviction.as_ref().is_some_and(|last| last.code == TIME_LIMIT);
    use WorkloadPhase as P;
    match workload.phase() {
        P::Creating | P::Resuming => PENDING,
        _ if crash_loops(workload) => CRASH_LOOP,
        P::Initializing if has_reason(workload, PLACES_KEPT) => PENDING,
        P::Initializing => image_pull(workload).unwrap_or("ContainerCreating"),
        P::Stopping | P::Deleting => "Terminating",
        P::Stopped if timed_out => "TimedOut",
        P::Stopped => "Suspended",
        P::Completed => "Succeeded",
        _ => &workload.phase,
    }
}

/// True if a workload has one of these statuses: as one of the dialects shows it, or its phase. One
/// in a crash loop is not shown as pending.
pub(super) fn has_status(workload: &Workload, statuses: &[String]) -> bool {
    let phase = Some(workload.phase.as_str()).filter(|phase| *phase != PENDING);
    let shown = [status_v1(workload), status_v2(workload)];
    let mut words = shown.into_iter().chain(phase);
    words.any(|word| statuses.iter().any(|status| status.eq_ignore_ascii_case(word)))
}

/// Kubernetes status of a workload whose image cannot be pulled; `None` for any other.
pub fn image_pull(workload: &Workload) -> Option<&'static str> {
    let fails = workload.phase() == WorkloadPhase::Initializing && has_reason(workload, IMAGE_PULL);
    fails.then_some("ImagePullBackOff")
}

fn has_reason(workload: &Workload, code: &str) -> bool {
    workload.additional_fields.pending_reasons.iter().any(|one| one.code == code)
}

/// The type in the words of v1.
pub(super) fn type_v1(workload: &Workload) -> &str {
    match (workload.kind.as_str(), workload.preemptible) {
        ("Training", _) => "Train",
        ("Workspace", false) => "Interactive",
        ("Workspace", true) => "Interactive-Preemptible",
        ("Distributed", _) => match workload.distributed_framework.as_deref() {
            Some("MPI") => "Mpi",
            Some("PyTorch") => "Pytorch",
            other => other.unwrap_or("Distributed"),
        },
        (other, _) => other,
    }
}

/// The query condition for the workloads of this noun: field and value; `None` = all workloads.
pub(super) const fn condition_of(noun: Noun) -> Option<(&'static str, &'static str)> {
    Some(match noun {
        Noun::Job | Noun::Workload => return None,
        Noun::Training => ("type", "Training|Distributed"),
        Noun::Standard => ("type", "Training"),
        Noun::Distributed => ("type", "Distributed"),
        Noun::Workspace => ("type", "Workspace"),
        Noun::Inference => ("type", "Inference"),
        Noun::Framework(framework) => ("distributedFramework", framework_name(framework)),
    })
}

/// A phase as the server spells it.
pub(super) fn phase_named(typed: &str) -> String {
    let mut phase = typed.to_ascii_lowercase();
    if let Some(first) = phase.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    phase
}

const fn framework_name(framework: Framework) -> &'static str {
    match framework {
        Framework::Mpi => "MPI",
        Framework::PyTorch => "PyTorch",
        Framework::Tf => "TF",
        Framework::XgBoost => "XGBoost",
        Framework::Jax => "JAX",
    }
}

/// True if a workload is of this noun.
pub(super) fn is_a(workload: &Workload, noun: Noun) -> bool {
    match noun {
        Noun::Job | Noun::Workload => true,
        Noun::Training => matches!(workload.kind.as_str(), "Training" | "Distributed"),
        Noun::Standard => workload.kind == "Training",
        Noun::Distributed => workload.kind == "Distributed",
        Noun::Workspace => workload.kind == "Workspace",
        Noun::Inference => workload.kind == "Inference",
        Noun::Framework(framework) => {
            workload.distributed_framework.as_deref() == Some(framework_name(framework))
        }
    }
}

/// True if an inference has no replica because it has no requests.
pub(super) fn rests(workload: &Workload) -> bool {
    workload.kind == "Inference"
        && workload.phase() == WorkloadPhase::Running
        && workload.running_pods == 0
}

/// Node of the pods: empty, a name, or a text for several nodes.
pub(super) fn node(workload: &Workload) -> String {
    match workload.additional_fields.nodes.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        _ => "<multiple>".to_owned(),
    }
}

/// Number of pods without a process that are waiting or starting.
pub(super) fn pending_pods(workload: &Workload) -> u32 {
    let pods = workload.additional_fields.pods;
    pods.pending + pods.reserved + pods.starting
}

/// Requested GPUs as v1 prints them, or the requested memory of one.
pub(super) fn gpus_requested(workload: &Workload) -> String {
    let requested = &workload.workload_requested_resources;
    match (requested.gpu_request_type, &requested.gpu_memory) {
        (Some(GpuRequestType::Memory), Some(memory)) => memory.request.clone(),
        _ => workload.additional_fields.requested_gpus.to_string(),
    }
}

pub(super) fn gpus_v1(workload: &Workload) -> String {
    let held = workload.allocated_resources.gpu;
    let ended = workload.phase().is_over();
    let requested = gpus_requested(workload);
    if ended && held.0 == 0 { format!("- ({requested})") } else { format!("{held} ({requested})") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples::workload;
    use super::*;

    #[test]
    fn what_v1_knows_beyond_the_phases_is_told_in_its_words() {
        let mut loops = workload("w Workspace Initializing team-a asked=1 held=1");
        assert_eq!(status_v1(&loops), "ContainerCreating");
        let pods = &mut loops.additional_fields.pods;
        (pods.starting, pods.crash_looping) = (1, 1);
        assert_eq!((status_v1(&loops), pending_pods(&loops)), ("CrashLoopBackOff", 1));
        loops.phase = "Pending".to_owned();
        assert_eq!((status_v1(&loops), status_v2(&loops)), (CRASH_LOOP, CRASH_LOOP));
        loops.phase = "Stopping".to_owned();
        assert_eq!((status_v1(&loops), status_v2(&loops)), ("Terminating", "Stopping"));

        let mut pulls = workload("w Workspace Initializing team-a asked=1 held=1");
        pulls.additional_fields.pending_reasons = vec![api_types::Reason {
            code: "E209".to_owned(),
            message: String::new(),
            at: pulls.created_at,
        }];
        assert_eq!(status_v1(&pulls), "ImagePullBackOff");
        assert_eq!(v2_row(&pulls, false)[2], "ImagePullBackOff");
        pulls.additional_fields.pending_reasons[0].code = "P309".to_owned();
        assert_eq!(status_v1(&pulls), "Pending", "a gang that lacks pods");

        let mut stopped = workload("w Workspace Stopped team-a asked=1");
        assert_eq!(status_v1(&stopped), "Suspended");
        for (code, status) in [("E203", "TimedOut"), ("E204", "Suspended"), ("E001", "Suspended")] {
            stopped.additional_fields.last_eviction = Some(api_types::Eviction {
                code: code.to_owned(),
                message: String::new(),
                at: stopped.created_at,
                beneficiary: None,
            });
            assert_eq!(status_v1(&stopped), status, "{code}");
        }
    }
}
