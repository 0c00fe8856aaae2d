//! Rows for tests, and a store that has some.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use spec::{NodeTypes, Rank, Rules, Serving, ShareChange, WorkloadSpec};
use units::Instant;
use uuid::Uuid;

use records::*;

use crate::*;

fn share() -> ShareChange {
    ShareChange {
        gpu_quota_millis: Some(2000),
        gpu_limit_millis: Some(Some(u64::MAX)),
        over_quota_weight: None,
        cpu_quota_millis: Some(None),
        memory_quota_bytes: Some(Some(1 << 40)),
        cpu_limit_millis: None,
        memory_limit_bytes: Some(Some(1 << 41)),
        cpu_weight: Some(Some(3)),
        memory_weight: Some(None),
        rank: Some(Rank::High),
        preempt_min_runtime_ms: Some(60_000),
        reclaim_min_runtime_ms: Some(120_000),
        summed: spec::SummedQuotas::default(),
    }
}

pub(crate) fn project(id: u64, name: &str) -> ProjectRow {
    ProjectRow {
        id,
        name: name.to_owned(),
        body: ProjectBody {
            namespaces: Vec::new(),
            description: String::new(),
            created_by: "alice".to_owned(),
            updated_by: None,
            created_at_ms: 1,
            updated_at_ms: 2,
            department_id: 1,
            rules: Rules {
                training_run_ms_max: Some(5),
                workspace_idle_ms_max: Some(6),
                ..Rules::default()
            },
            share: share(),
            pool_shares: BTreeMap::from([("a100".to_owned(), share())]),
            default_pools: vec!["fast".to_owned(), "default".to_owned()],
            node_types: NodeTypes {
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
        spec: Arc::new(WorkloadSpec { name: name.to_owned(), serving: serving(), ..full() }),
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

/// Workloads with everything that documents have.
fn documents() -> Vec<WorkloadSpec> {
    serde_json::from_str(include_str!("../../../spec/tests/documents/2.json")).unwrap()
}

fn full() -> WorkloadSpec {
    documents().into_iter().find(|spec| spec.name == "full").unwrap()
}

fn serving() -> Option<Serving> {
    documents().into_iter().find_map(|spec| spec.serving)
}

pub(crate) fn pod(workload: &WorkloadRow) -> PodRow {
    PodRow {
        id: Uuid::from_u128(1000 + u128::from(workload.seq)),
        workload_id: workload.id,
        index: 0,
        generation: 1,
        body: PodBody {
            current: Some(PlacementBody {
                node: "n1".to_owned(),
                devices: vec![(0, 500)],
                instances: Vec::new(),
            }),
            placed_at_ms: Some(7),
            left: true,
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
        owner: workload.map(|_| "ann".to_owned()).unwrap_or_default(),
        beneficiary: workload.filter(|_| seq == 2).map(|of| BeneficiaryBody {
            id: of.id,
            name: "b1".to_owned(),
            project: "team-b".to_owned(),
        }),
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
