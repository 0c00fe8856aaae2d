//! Rows for tests, and a store that has some.

use std::collections::BTreeMap;
use std::path::Path;

use units::Instant;
use uuid::Uuid;

use crate::*;

fn share() -> ShareBody {
    ShareBody {
        gpu_quota_millis: Some(2000),
        gpu_limit_millis: Some(Some(u64::MAX)),
        over_quota_weight: None,
        cpu_quota_millis: Some(None),
        memory_quota_bytes: Some(Some(1 << 40)),
        cpu_limit_millis: None,
        memory_limit_bytes: Some(Some(1 << 41)),
        cpu_weight: Some(Some(3)),
        memory_weight: Some(None),
        rank: Some("high".to_owned()),
    }
}

pub(crate) fn project(id: u64, name: &str) -> ProjectRow {
    ProjectRow {
        id,
        name: name.to_owned(),
        body: ProjectBody {
            description: String::new(),
            created_by: "alice".to_owned(),
            updated_by: None,
            created_at_ms: 1,
            updated_at_ms: 2,
            department_id: 1,
            rules: RulesBody {
                training_run_ms_max: Some(5),
                workspace_idle_ms_max: Some(6),
                ..RulesBody::default()
            },
            share: share(),
            pool_shares: BTreeMap::from([("a100".to_owned(), share())]),
            default_pools: vec!["fast".to_owned(), "default".to_owned()],
            node_types: NodeTypesBody {
                training: vec!["big".to_owned()],
                workspace: Vec::new(),
                names: BTreeMap::from([("big".to_owned(), "Groß".to_owned())]),
            },
        },
        deleted_at: None,
    }
}

pub(crate) fn workload(seq: u64, name: &str) -> WorkloadRow {
    WorkloadRow {
        id: Uuid::from_u128(u128::from(seq)),
        seq,
        project_id: 1,
        created_at: Instant(5),
        spec: WorkloadSpecBody {
            name: name.to_owned(),
            kind: "training".to_owned(),
            submitted_by: "bob".to_owned(),
            submitter_id: "user/7".to_owned(),
            source: "CLI".to_owned(),
            pods: pods("master", 1),
            more: vec![pods("worker", 2)],
            together: Some(TogetherBody {
                framework: "pytorch".to_owned(),
                slots_per_worker: 1,
                first_waits: true,
                clean: "running".to_owned(),
            }),
            serving: Some(serving()),
            urls: vec![UrlBody {
                port: 8888,
                audience: "users".to_owned(),
                users: vec!["ann@x.org".to_owned()],
                name: Some("jupyter".to_owned()),
                tool_type: None,
                tool_name: None,
            }],
            related_urls: vec![RelatedUrlBody {
                url: "https://wandb.ai/a".to_owned(),
                name: Some("runs".to_owned()),
                tool_type: None,
            }],
            revision: Some(RevisionBody { of: Uuid::from_u128(9), number: 2 }),
            elastic: true,
            priority: 50,
            priority_class: "train".to_owned(),
            preemptible: true,
            backoff_limit: 6,
            delete_after_ms: Some(5000),
            delete_when_preempted: true,
            command_line: None,
            uses: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            node_pools: vec!["fast".to_owned()],
            node_types: vec!["big".to_owned()],
            manifest: Some("{}".to_owned()),
            topology: Some(TopologyUseBody {
                id: "7".to_owned(),
                required: None,
                preferred: Some("rack".to_owned()),
            }),
        },
        state: WorkloadState {
            phase: "Pending".to_owned(),
            phase_since: Instant(5),
            desired: Desired::Run,
            restarts: 0,
            not_before: None,
            completed_at: None,
            waited_ms: 0,
            ran_ms: 0,
            eviction: None,
            deleted_at: None,
        },
    }
}

fn pods(role: &str, pods: u32) -> PodSetBody {
    PodSetBody {
        role: role.to_owned(),
        pods,
        pods_min: 1,
        at_once: None,
        image: "ubuntu".to_owned(),
        command: Some(vec!["sleep".to_owned(), "it's \"quoted\"\n".to_owned()]),
        args: vec![],
        env: BTreeMap::from([("K".to_owned(), "ü".to_owned())]),
        secrets: Vec::new(),
        working_dir: None,
        place: PlaceBody { near: Some(("rack".to_owned(), true)), ..PlaceBody::default() },
        gpu: GpuBody::Share { devices: 1, millis: 500 },
        cpu_millis: 100,
        memory_bytes: 1 << 20,
        restart: "never".to_owned(),
        grace_ms: 30_000,
        stdin: true,
        tty: true,
        container: ContainerBody { uid: Some(1000), ..ContainerBody::default() },
    }
}

pub(crate) fn pod(workload: &WorkloadRow) -> PodRow {
    PodRow {
        id: Uuid::from_u128(1000 + u128::from(workload.seq)),
        workload_id: workload.id,
        index: 0,
        generation: 1,
        body: PodBody {
            current: Some(PlacementBody { node: "n1".to_owned(), devices: vec![(0, 500)] }),
            placed_at_ms: Some(7),
            parked: true,
            port: Some(20_000),
            ..PodBody::default()
        },
    }
}

pub(crate) fn event(seq: u64, workload: Option<&WorkloadRow>) -> EventRow {
    EventRow {
        seq,
        at: Instant(seq * 10),
        kind: "Submitted".to_owned(),
        warning: seq.is_multiple_of(2),
        project_id: Some(1),
        project_name: "team-a".to_owned(),
        workload_id: workload.map(|w| w.id),
        workload_name: workload.map(|w| w.spec.name.clone()).unwrap_or_default(),
        pod_name: None,
        code: Some("P001".to_owned()),
        message: format!("event {seq}"),
    }
}

pub(crate) async fn filled(dir: &Path, database: &Database) -> (Store, Vec<WorkloadRow>) {
    let store = Store::open_in(dir, database).await.unwrap();
    let workloads = vec![workload(1, "a"), workload(2, "b")];
    let mut changes = vec![Change::Project(project(1, "team-a"))];
    changes.extend(workloads.iter().map(|w| Change::Workload(Box::new(w.clone()))));
    changes.extend(workloads.iter().map(|w| Change::Pod(pod(w))));
    changes
        .extend((1..=4).map(|seq| {
            Change::Event(event(seq, workloads.get(usize::try_from(seq).unwrap() % 2)))
        }));
    store.apply(&changes).await.unwrap();
    (store, workloads)
}

pub(crate) fn object(seq: u64, name: &str) -> ObjectRow {
    ObjectRow {
        seq,
        kind: "user".to_owned(),
        id: format!("u{seq}"),
        scope: "tenant".to_owned(),
        owner: String::new(),
        name: name.to_owned(),
        body: serde_json::json!({"secrets": {"password": "hush"}, "n": [1, "ü"]}),
        created_at: Instant(1),
        created_by: "ada".to_owned(),
        updated_at: Instant(2),
        updated_by: "bob".to_owned(),
        deleted_at: None,
    }
}

fn serving() -> ServingBody {
    ServingBody {
        container_port: 8000,
        scaling: ScalingBody {
            replicas_min: 0,
            replicas_max: 3,
            replicas_initial: 1,
            replicas_activation: 1,
            metric: Some("concurrency".to_owned()),
            threshold: 10,
            percent_millis: 70_000,
            window_ms: 60_000,
            down_delay_ms: 1000,
            zero_retention_ms: 2000,
        },
        concurrency_max: Some(4),
        start_ms_max: 600_000,
        request_ms_max: 300_000,
        local_only: true,
        audience: "users".to_owned(),
        users: vec!["ada".to_owned()],
        probe: ProbeBody {
            path: Some("/ready".to_owned()),
            first_ms: 0,
            period_ms: 1000,
            wait_ms_max: 1000,
            successes: 1,
            failures: 3,
        },
    }
}
