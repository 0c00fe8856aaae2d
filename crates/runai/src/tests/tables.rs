//! The published tables, from the workloads of the published walk-throughs.

use api_types::{KubernetesEvent, Pod, Workload, WorkloadSpec};
use expect_test::{Expect, expect};
use serde_json::json;

use super::meaning;
use super::samples::{NOW_MS, workload};
use crate::describe::{Page, Sheet};
use crate::{list, rows};
use cli_kit::table::Table;
use dialects::intent::{Describe, Framework, Intent, Noun, Parts, Section};

fn short(lines: &[&str], show_request: bool, want: &Expect) {
    let mut workloads: Vec<_> = lines.iter().map(|line| workload(line)).collect();
    rows::sort_v2(&mut workloads);
    let mut table = Table::new(&rows::V2_COLUMNS);
    workloads.iter().for_each(|workload| table.row(rows::v2_row(workload, show_request)));
    want.assert_eq(&table.ruled());
}

fn wide(lines: &[&str], want: &Expect) {
    let mut workloads: Vec<_> = lines.iter().map(|line| workload(line)).collect();
    workloads.sort_by(|a, b| (&a.project_name, &a.name).cmp(&(&b.project_name, &b.name)));
    let mut table = Table::new(&rows::V1_COLUMNS);
    workloads.iter().for_each(|workload| table.row(rows::v1_row(workload, NOW_MS)));
    want.assert_eq(&table.plain());
}

const PREEMPTED: [&str; 4] = [
    "a1 Training Pending team-a asked=1 age=40",
    "a2 Training Running team-a asked=2 held=2 age=50 on=node1",
    "b1 Training Running team-b asked=1 held=1 age=30 on=node2",
    "b2 Training Running team-b asked=1 held=1 age=5 on=node2",
];

#[test]
fn over_quota_reads_as_published() {
    short(
        &[
            "a2 Training Running team-a asked=2 held=2 age=50",
            "a1 Training Running team-a asked=1 held=1 over age=40",
            "b1 Training Running team-b asked=1 held=1 age=30",
        ],
        false,
        &expect![[r#"
            Workload  Type      Status   Project  Running/Req. Pods  GPU Alloc.
            ───────────────────────────────────────────────────────────────────
            a2        Training  Running  team-a   1/1                2.00
            b1        Training  Running  team-b   1/1                1.00
            a1        Training  Running  team-a   1/1                1.00
        "#]],
    );
}

#[test]
fn after_preemption_the_pending_one_is_last_and_holds_nothing() {
    short(
        &PREEMPTED,
        false,
        &expect![[r#"
        Workload  Type      Status   Project  Running/Req. Pods  GPU Alloc.
        ───────────────────────────────────────────────────────────────────
        a2        Training  Running  team-a   1/1                2.00
        b1        Training  Running  team-b   1/1                1.00
        b2        Training  Running  team-b   1/1                1.00
        a1        Training  Pending  team-a   0/1                0.00
    "#]],
    );
}

#[test]
fn the_request_of_a_pending_one_is_shown_when_asked_for() {
    short(
        &PREEMPTED,
        true,
        &expect![[r#"
        Workload  Type      Status   Project  Running/Req. Pods  GPU Alloc.
        ───────────────────────────────────────────────────────────────────
        a2        Training  Running  team-a   1/1                2.00
        b1        Training  Running  team-b   1/1                1.00
        b2        Training  Running  team-b   1/1                1.00
        a1        Training  Pending  team-a   0/1                1.00
    "#]],
    );
}

#[test]
fn the_wide_table_reads_as_published() {
    wide(
        &[
            "filler1 Workspace Running team-a asked=1 held=1 age=7 on=node1",
            "elastic1 Training Running team-a asked=1 held=2 age=61 on=node1",
            "a9 Workspace Pending team-a preemptible asked=0.5 age=3600",
            "done Training Completed team-a asked=1 age=90000",
            "many Training Initializing team-b memory=8G held=0.5 age=1 on=node1,node2",
            "gone Training Stopped team-b asked=0.3 age=2",
            "torch Distributed Running team-b asked=3 held=3 age=9 framework=PyTorch on=node1",
            "svc Inference Running team-b url=http://svc--team-b.h/ age=9",
        ],
        &expect![[r#"
            NAME      STATUS             AGE  NODE        IMAGE                          TYPE                     PROJECT  USER  GPUs Allocated (Requested)  PODs Running (Pending)  SERVICE URL(S)
            a9        Pending            1h               gcr.io/run-ai-demo/quickstart  Interactive-Preemptible  team-a   ann   0 (0.5)                     0 (1)
            done      Succeeded          1d               gcr.io/run-ai-demo/quickstart  Train                    team-a   ann   - (1)                       0 (0)
            elastic1  Running            1m   node1       gcr.io/run-ai-demo/quickstart  Train                    team-a   ann   2 (1)                       1 (0)
            filler1   Running            7s   node1       gcr.io/run-ai-demo/quickstart  Interactive              team-a   ann   1 (1)                       1 (0)
            gone      Suspended          2s               gcr.io/run-ai-demo/quickstart  Train                    team-b   ann   0 (0.3)                     0 (0)
            many      ContainerCreating  1s   <multiple>  gcr.io/run-ai-demo/quickstart  Train                    team-b   ann   0.5 (8G)                    0 (0)
            svc       Running            9s               gcr.io/run-ai-demo/quickstart  Inference                team-b   ann   0 (0)                       1 (0)                   http://svc--team-b.h/
            torch     Running            9s   node1       gcr.io/run-ai-demo/quickstart  Pytorch                  team-b   ann   3 (3)                       1 (0)
        "#]],
    );
}

fn pods() -> Vec<Pod> {
    let at = "2023-11-14T22:13:20.000Z";
    vec![
        serde_json::from_value(json!({
            "id": "p", "name": "train1-0-1", "workloadId": "w", "workloadName": "train1",
            "projectId": "1", "projectName": "team-a", "clusterId": "c", "tenantId": 1,
            "priorityClassName": "low", "nodeName": "node1", "createdAt": at, "updatedAt": at,
            "k8sPhase": "Running", "k8sPhaseUpdatedAt": at, "containers": [],
            "requestedResources": {},
            "allocatedResources": {"gpu": 1.5, "cpu": 0, "cpuMemory": "0"},
            "generation": 1, "gpus": [[1, 500], [0, 1000]], "state": "Running"
        }))
        .unwrap(),
    ]
}

fn events() -> Vec<KubernetesEvent> {
    let event = |id: u32, reason: &str, kind: &str, message: &str| {
        serde_json::from_value(json!({
            "id": id.to_string(), "createdAt": "2023-11-14T22:13:20.000Z", "type": "Normal",
            "clusterId": "c", "message": message, "reason": reason, "source": "scheduler",
            "involvedObject": {"uid": "u", "kind": kind, "name": "train1", "namespace": "n"}
        }))
        .unwrap()
    };
    vec![
        event(1, "Submitted", "Workload", "accepted"),
        event(2, "Scheduled", "Pod", "placed on node1"),
    ]
}

/// A job that was moved once.
fn moved() -> Workload {
    let mut job = workload("train1 Training Running team-a asked=1 held=1 age=100 on=node1");
    // 0.3 of 16 GiB is not a whole number of any unit.
    job.allocated_resources.gpu_memory = Some("5153960755".into());
    job.additional_fields.last_eviction = Some(api_types::Eviction {
        code: "E001".into(),
        message: "moved for a2 of team-b".into(),
        at: api_types::Time(units::Instant(NOW_MS - 60_000)),
        beneficiary: None,
    });
    job
}

#[test]
fn a_job_is_described_in_the_published_order() {
    let (job, pods, events) = (moved(), pods(), events());
    let page = Page {
        workload: &job,
        pods: &pods,
        events: &events,
        output: None,
        fractions: None,
        exact: false,
        now_ms: NOW_MS,
        columns: None,
    };
    expect![[r#"
        NAME: train1
        NAMESPACE: runai-team-a
        TYPE: Train
        STATUS: RUNNING
        TRAINING DURATION: 1m
        GPUS: 1
        TOTAL REQUESTED GPUS: 1
        ALLOCATED GPUS: 1
        ALLOCATED GPUS MEMORY: 4.7GiB
        RUNNING PODS: 1
        PENDING PODS: 0
        PARALLELISM: 1
        COMPLETIONS: 1
        SUCCEEDED PODS: 0
        FAILED PODS: 0
        RESTARTS: 0
        IS DISTRIBUTED WORKLOAD: false
        CREATED BY CLI: true
        SERVICE URL(S):
        COMMAND LINE: runai submit train1

        Reasons:
        CODE  AGE  MESSAGE
        E001  1m   moved for a2 of team-b

        Pods:
        POD         STATUS   TYPE   AGE  NODE                         RESTARTS
        train1-0-1  RUNNING  TRAIN  1m   node1 (GPU 0, 0.5 of GPU 1)  0

        Events: 
        SOURCE           TYPE    AGE  MESSAGE
        ------           ----    ---  -------
        workload/train1  Normal  1m   [Submitted] accepted

        pod/train1       Normal  1m   [Scheduled] placed on node1

    "#]]
    .assert_eq(&page.v1());
}

#[test]
fn the_sections_of_the_second_dialect_tell_the_same() {
    let (job, pods, events) = (moved(), pods(), events());
    let page = Page {
        workload: &job,
        pods: &pods,
        events: &events,
        output: None,
        fractions: None,
        exact: false,
        now_ms: NOW_MS,
        columns: None,
    };
    expect![[r#"
        General
          Name:         train1
          Type:         Training
          Status:       Running
          Project:      team-a
          Created:      1 min ago
          Submitted by: ann
          Priority:     low
          Preemptible:  Yes

        Compute
          GPU Request:  1
          GPU Alloc.:   1.00
          Over Quota:   No
          Elastic:      No

        Reasons
        Code  Age  Message
        ─────────────────────────────────
        E001  1m   moved for a2 of team-b

        Pods
        Pod         Status   Restarts  Node
        ──────────────────────────────────────────────────────────
        train1-0-1  Running  0         node1 (GPU 0, 0.5 of GPU 1)

        Containers
          Image:        gcr.io/run-ai-demo/quickstart

        Events
        Created    Kind/Name        Message
        ───────────────────────────────────────────────────────
        1 min ago  Workload/train1  [Submitted] accepted
        1 min ago  Pod/train1       [Scheduled] placed on node1
    "#]]
    .assert_eq(&Sheet { page, asked: &WorkloadSpec::default(), parts: &Parts::default() }.text());
}

/// A specification with values in each section.
fn much() -> WorkloadSpec {
    serde_json::from_value(json!({
        "numWorkers": 6, "minReplicas": 1, "maxReplicas": 6,
        "labels": [{"name": "experiment", "value": "one"}],
        "annotations": [{"name": "a-note-of-some-length", "value": "two\nlines"}],
        "storage": {
            "hostPath": [{"path": "/data", "mountPath": "/in", "readOnly": true}],
            "nfs": [{"server": "nas", "path": "/x", "mountPath": "/out", "readOnly": false}],
            "pvc": [{"claimName": "models", "path": "/models"}, {"ephemeral": true, "path": "/tmp/x"}],
            "git": [{"repository": "https://h/r.git", "branch": "main", "path": "/code"}],
            "emptyDirVolume": [{"medium": "Memory", "sizeLimit": "1Gi", "path": "/fast"}],
            "secretVolume": [{"secret": "keys", "mountPath": "/keys"}],
        },
    }))
    .unwrap()
}

#[test]
fn what_was_asked_for_is_described_where_there_is_any() {
    let job = workload("d Distributed Pending team-a asked=3 age=100 framework=PyTorch");
    let asked = much();
    let pods: Vec<_> = (0..3).map(|_| pods().remove(0)).collect();
    let left_out = [Section::Networks, Section::Containers].to_vec();
    let parts = Parts { left_out, pods_max: Some(1), newest_first: true };
    let events = events();
    let page = Page {
        workload: &job,
        pods: &pods,
        events: &events,
        output: None,
        fractions: None,
        exact: true,
        now_ms: NOW_MS,
        columns: Some(60),
    };
    expect![[r#"
        General
          Name:         d
          Type:         Distributed
          Framework:    PyTorch
          Workers:      6
          Status:       Pending
          Project:      team-a
          Created:      2023-11-14 22:13:20 +00:00
          Submitted by: ann
          Priority:     low
          Preemptible:  No

        Compute
          GPU Request:  3
          GPU Alloc.:   0.00
          Over Quota:   No
          Elastic:      Yes (1 to 6 workers)

        Pods
        Pod         Status   Restarts  Node
        ──────────────────────────────────────────────────────────
        train1-0-1  Running  0         node1 (GPU 0, 0.5 of GPU 1)
        and 2 more; --pod-limit 3 shows all

        Storage
        Type       Path     Access      Source
        ───────────────────────────────────────────────────────
        Host Path  /in      read-only   /data
        NFS        /out     read-write  nas:/x
        PVC        /models  read-write  models
        PVC        /tmp/x   read-write  ephemeral
        Git        /code    copy        https://h/r.git at main
        Empty Dir  /fast    read-write  Memory, at most 1Gi
        Secret     /keys    read-only   keys

        Labels
          experiment=one

        Annotations
          a-note-of-some-length=two lines

        Events
        Created                     Kind/Name        Message
        ────────────────────────────────────────────────────────────────────────
        2023-11-14 22:13:20 +00:00  Pod/train1       [Scheduled] placed on node1
        2023-11-14 22:13:20 +00:00  Workload/train1  [Submitted] accepted
    "#]]
    .assert_eq(&Sheet { page, asked: &asked, parts: &parts }.text());
}

#[test]
fn who_leaves_every_section_out_is_shown_none() {
    let line = "runai workload describe a --general=false --compute=false --pods=false --networks=false \
                --events=false --storage=false --containers=false";
    let Ok(Intent::Describe(Describe { parts, .. })) = meaning(line) else { panic!("{line}") };
    let (job, pods, events) = (moved(), pods(), events());
    let page = Page {
        workload: &job,
        pods: &pods,
        events: &events,
        output: None,
        fractions: None,
        exact: false,
        now_ms: NOW_MS,
        columns: None,
    };
    let asked = WorkloadSpec::default();
    assert_eq!(Sheet { page, asked: &asked, parts: &parts }.text(), "");
}

#[test]
fn without_pods_and_events_a_description_says_so() {
    let job = workload("train1 Training Pending team-a asked=1 age=100");
    let page = Page {
        workload: &job,
        pods: &[],
        events: &[],
        output: None,
        fractions: None,
        exact: false,
        now_ms: NOW_MS,
        columns: None,
    };
    let text = page.v1();
    assert!(text.contains("STATUS: PENDING\n") && !text.contains("Reasons:"), "{text}");
    assert!(text.ends_with("Events: \nNo events for resources\n"), "{text}");
}

#[test]
fn a_gpu_out_of_service_is_a_condition_and_no_part_of_what_is_free() {
    let nodes = [serde_json::from_value(json!({
        "name": "node1", "pool": "a100", "gpuType": "A100", "simulated": false,
        "gpuMemoryBytes": [1, 1], "gpuUsed": [0.5, 0.5],
        "gpuTroubles": [{"gpu": 1, "code": "E207", "name": "GpuLost", "message": "lost: off"}],
        "cpuMillis": 2000, "cpuUsedMillis": 100, "memoryBytes": 1, "memoryUsedBytes": 1
    }))
    .unwrap()];
    let table = list::nodes_table(&nodes, false).ruled();
    assert!(table.contains("A100      2     1.00       0.50  Ready,GpuLost"), "{table}");
    let row: Vec<_> = list::nodes_v1(&nodes, false)
        .plain()
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        (row[1].as_str(), &row[row.len() - 2..]),
        ("Ready,GpuLost", &["1".to_owned(), "0.5".to_owned()][..])
    );
}

#[test]
fn nodes_show_what_is_free() {
    let nodes = [serde_json::from_value(json!({
        "name": "node1", "pool": "a100", "gpuType": "simulated", "simulated": true,
        "gpuMemoryBytes": [17_179_869_184_u64, 17_179_869_184_u64], "gpuUsed": [1, 0.5],
        "cpuMillis": 2000, "cpuUsedMillis": 100,
        "memoryBytes": 8_589_934_592_u64, "memoryUsedBytes": 104_857_600
    }))
    .unwrap()];
    expect![[r#"
                                           │  CPU                     │  MEMORY                  │  GPU
        NAME   STATUS  IP Address  ROLE    │  ALLOCATABLE  ALLOCATED  │  ALLOCATABLE  ALLOCATED  │  TYPE       ALLOCATABLE  FREE
        ────   ──────  ──────────  ────    │  ───────────  ─────────  │  ───────────  ─────────  │  ────       ───────────  ────
        node1  Ready   -           <none>  │  2            0.1        │  8GiB         100MiB     │  simulated  2            0.5
    "#]].assert_eq(&list::nodes_v1(&nodes, false).plain());
    expect![[r#"
        Name   Node Pool  GPU Type   GPUs  Allocated  Free  Status
        ──────────────────────────────────────────────────────────
        node1  a100       simulated  2     1.50       0.50  Ready
    "#]]
    .assert_eq(&list::nodes_table(&nodes, false).ruled());
}

#[test]
fn a_description_says_what_keeps_a_part_of_a_gpu() {
    let job = workload("half Training Running team-a asked=0.5 held=0.5");
    let kept = api_types::FractionLimit {
        enforcement: "cooperative".to_owned(),
        mechanism: "mps".to_owned(),
        meaning: "it refuses more".to_owned(),
        why: None,
        time_slicing: "fair".to_owned(),
        time_slicing_meaning: String::new(),
        compute_request: Some(api_types::Millis(500)),
        compute_limit: Some(api_types::Millis(1000)),
    };
    let page = Page {
        workload: &job,
        pods: &[],
        events: &[],
        output: None,
        fractions: Some(kept),
        exact: false,
        now_ms: NOW_MS,
        columns: None,
    };
    let text = page.v1();
    assert!(text.contains("\nGPU FRACTIONS: cooperative (mps): it refuses more\n"), "{text}");
    assert!(text.contains("\nGPU COMPUTE: request 0.5, limit 1 (fair)\n"), "{text}");
    let (asked, parts) = (&api_types::WorkloadSpec::default(), &Parts::default());
    let text = Sheet { page, asked, parts }.text();
    assert!(text.contains("\n  GPU Fraction: cooperative (mps): it refuses more\n"), "{text}");
    assert!(text.contains("\n  GPU Compute:  request 0.5, limit 1 (fair)\n"), "{text}");
}

#[test]
fn workloads_of_several_pods_and_of_requests_are_described_as_what_they_are() {
    let describe = |line: &str| {
        let job = workload(line);
        Page {
            workload: &job,
            pods: &[],
            events: &[],
            output: None,
            fractions: None,
            exact: false,
            now_ms: NOW_MS,
            columns: None,
        }
        .v1()
    };
    let torch = describe("d Distributed Running team-a asked=3 framework=PyTorch");
    assert!(torch.contains("TYPE: Pytorch\n"), "{torch}");
    assert!(torch.contains("IS DISTRIBUTED WORKLOAD: true\n"), "{torch}");
    let served = describe("svc Inference Running team-a url=http://svc--team-a.h/");
    assert!(served.contains("SERVICE URL(S): http://svc--team-a.h/\n"), "{served}");
}

#[test]
fn a_noun_finds_its_own() {
    let sees = |noun| {
        let all = [
            "t Training Running p",
            "w Workspace Running p",
            "d Distributed Running p framework=TF",
            "i Inference Running p",
        ];
        let names = all.map(workload).into_iter().filter(|one| rows::is_a(one, noun));
        names.map(|one| one.name).collect::<Vec<_>>().join("")
    };
    for (noun, names) in [
        (Noun::Job, "twdi"),
        (Noun::Workload, "twdi"),
        (Noun::Training, "td"),
        (Noun::Standard, "t"),
        (Noun::Distributed, "d"),
        (Noun::Framework(Framework::Tf), "d"),
        (Noun::Framework(Framework::Mpi), ""),
        (Noun::Workspace, "w"),
        (Noun::Inference, "i"),
    ] {
        assert_eq!(sees(noun), names, "{noun:?}");
    }
}
