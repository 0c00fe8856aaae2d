//! The store as its users meet it: a temp dir, real files, real faults.

use std::collections::BTreeMap;
use std::fs::OpenOptions;

use sqlx::Connection;
use units::Instant;
use uuid::Uuid;

use super::{FILE_NAME, open};
use crate::store::Back;
use crate::*;

fn project(id: u64, name: &str) -> ProjectRow {
    ProjectRow {
        id,
        name: name.to_owned(),
        body: ProjectBody {
            description: String::new(),
            created_by: "alice".to_owned(),
            updated_by: None,
            created_at_ms: 1,
            updated_at_ms: 2,
            gpu_quota_millis: 2000,
            gpu_limit_millis: Some(u64::MAX),
            over_quota_weight: 2,
            cpu_quota_millis: None,
            memory_quota_bytes: Some(1 << 40),
        },
        deleted_at: None,
    }
}

fn workload(seq: u64, name: &str) -> WorkloadRow {
    WorkloadRow {
        id: Uuid::from_u128(u128::from(seq)),
        seq,
        project_id: 1,
        created_at: Instant(5),
        spec: WorkloadSpecBody {
            name: name.to_owned(),
            kind: "training".to_owned(),
            submitted_by: "bob".to_owned(),
            source: "CLI".to_owned(),
            image: "ubuntu".to_owned(),
            command: Some(vec!["sleep".to_owned(), "it's \"quoted\"\n".to_owned()]),
            args: vec![],
            env: BTreeMap::from([("K".to_owned(), "ü".to_owned())]),
            working_dir: None,
            gpu: GpuBody::Share { devices: 1, millis: 500 },
            cpu_millis: 100,
            memory_bytes: 1 << 20,
            elastic: true,
            priority: 50,
            priority_class: "train".to_owned(),
            preemptible: true,
            backoff_limit: 6,
            restart: "never".to_owned(),
            grace_ms: 30_000,
            command_line: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
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

fn pod(workload: &WorkloadRow) -> PodRow {
    PodRow {
        id: Uuid::from_u128(1000 + u128::from(workload.seq)),
        workload_id: workload.id,
        index: 0,
        generation: 1,
        body: PodBody {
            current: Some(PlacementBody { node: "n1".to_owned(), devices: vec![(0, 500)] }),
            placed_at_ms: Some(7),
            ..PodBody::default()
        },
    }
}

fn event(seq: u64, workload: Option<&WorkloadRow>) -> EventRow {
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

async fn filled(dir: &std::path::Path) -> (Store, Vec<WorkloadRow>) {
    let store = Store::open(dir).await.unwrap();
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

#[tokio::test]
async fn everything_comes_back_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut workloads) = filled(dir.path()).await;
    let cluster = store.load().await.unwrap().cluster;
    workloads[0].state = WorkloadState {
        phase: "Running".to_owned(),
        desired: Desired::Suspend,
        restarts: 3,
        not_before: Some(Instant(9)),
        completed_at: Some(Instant(10)),
        eviction: Some(ReasonBody { code: "E1".to_owned(), message: "x".to_owned(), at_ms: 8 }),
        ..workloads[0].state.clone()
    };
    let changed = Change::WorkloadState(workloads[0].id, workloads[0].state.clone());
    store.apply(&[changed]).await.unwrap();
    drop(store);

    let snapshot = Store::open(dir.path()).await.unwrap().load().await.unwrap();
    assert_eq!(snapshot.cluster, cluster);
    assert_eq!(snapshot.projects, [project(1, "team-a")]);
    assert_eq!(snapshot.pods, workloads.iter().map(pod).collect::<Vec<_>>());
    assert_eq!(snapshot.workloads, workloads);
    assert_eq!(
        (snapshot.last_project_id, snapshot.last_workload_seq, snapshot.last_event_seq),
        (1, 2, 4)
    );
}

#[tokio::test]
async fn deleted_things_are_history_and_their_numbers_stay_used() {
    let dir = tempfile::tempdir().unwrap();
    let (store, workloads) = filled(dir.path()).await;
    let gone = |w: &WorkloadRow| {
        let state = WorkloadState { deleted_at: Some(Instant(20)), ..w.state.clone() };
        Change::WorkloadState(w.id, state)
    };
    let mut changes: Vec<_> = workloads.iter().map(gone).collect();
    let dead = ProjectRow { deleted_at: Some(Instant(20)), ..project(1, "team-a") };
    changes.push(Change::Project(dead));
    // The name is free again in the same transaction.
    changes.push(Change::Project(project(2, "team-a")));
    store.apply(&changes).await.unwrap();

    let snapshot = store.load().await.unwrap();
    assert_eq!(snapshot.projects, [project(2, "team-a")]);
    assert!(snapshot.workloads.is_empty() && snapshot.pods.is_empty());
    assert_eq!((snapshot.last_project_id, snapshot.last_workload_seq), (2, 2));
}

#[tokio::test]
async fn a_batch_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path()).await;
    let before = store.load().await.unwrap();
    let changes = [
        Change::Workload(Box::new(workload(3, "c"))),
        Change::Workload(Box::new(workload(4, "a"))),
    ];
    let error = store.apply(&changes).await.unwrap_err();
    assert!(matches!(error, Error::Database { .. }), "{error}");
    assert_eq!(store.load().await.unwrap(), before);
    store.apply(&changes[..1]).await.unwrap();
    assert_eq!(store.load().await.unwrap().workloads.len(), 3);
}

#[tokio::test]
async fn a_change_of_an_unknown_workload_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (store, workloads) = filled(dir.path()).await;
    let change = Change::WorkloadState(Uuid::nil(), workloads[0].state.clone());
    assert!(store.apply(&[change]).await.is_err());
}

#[tokio::test]
async fn events_are_filtered_and_ordered() {
    let dir = tempfile::tempdir().unwrap();
    let (store, workloads) = filled(dir.path()).await;
    let seqs = async |filter: EventFilter| -> Vec<u64> {
        store.events(&filter).await.unwrap().iter().map(|e| e.seq).collect()
    };
    let all = EventFilter::default();
    assert_eq!(seqs(all.clone()).await, [1, 2, 3, 4]);
    assert_eq!(seqs(EventFilter { after_seq: Some(2), ..all.clone() }).await, [3, 4]);
    let newest = EventFilter { newest_first: true, limit: Some(2), ..all.clone() };
    assert_eq!(seqs(newest.clone()).await, [4, 3]);
    assert_eq!(seqs(EventFilter { skip: 1, ..newest }).await, [3, 2]);
    assert_eq!(seqs(EventFilter { skip: 3, ..all.clone() }).await, [4]);
    assert_eq!(seqs(EventFilter { skip: u64::MAX, ..all.clone() }).await, [0_u64; 0]);
    let of_b = EventFilter { workload: Some(workloads[1].id), ..all.clone() };
    assert_eq!(seqs(of_b).await, [1, 3]);
    assert_eq!(seqs(EventFilter { project: Some(2), ..all.clone() }).await, [0_u64; 0]);
    assert_eq!(store.events(&all).await.unwrap()[3], event(4, workloads.first()));
}

#[tokio::test]
async fn the_event_log_only_grows() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path()).await;
    let again = store.apply(&[Change::Event(event(4, None))]).await;
    assert!(again.is_err(), "a position is written once");
    let mut other = open::writer(&path(&store)).await.unwrap();
    for sql in ["UPDATE events SET message = 'x'", "DELETE FROM events WHERE seq = 1"] {
        let error = sqlx::query(sql).execute(&mut other).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

#[tokio::test]
async fn credentials_and_audit_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let credential = |client: &str, secret: &str| CredentialRow {
        client_id: client.to_owned(),
        secret_sha256: secret.to_owned(),
        subject: "admin".to_owned(),
        created_at: Instant(1),
    };
    let audit = |what: &str| AuditRow {
        at: Instant(3),
        who: "alice".to_owned(),
        what: what.to_owned(),
        target: "team-a".to_owned(),
        result: "ok".to_owned(),
        detail: AuditDetail { source_ip: "10.0.0.1".to_owned(), ..AuditDetail::default() },
    };
    store
        .apply(&[
            Change::Credential(credential("cli", "old")),
            Change::Credential(credential("ui", "x")),
            Change::Credential(credential("cli", "new")),
            Change::CredentialGone("ui".to_owned()),
            Change::Audit(audit("project.create")),
            Change::Audit(audit("project.delete")),
        ])
        .await
        .unwrap();
    assert_eq!(store.credentials().await.unwrap(), [credential("cli", "new")]);
    assert_eq!(store.audit(1).await.unwrap(), [audit("project.delete")]);
}

#[tokio::test]
async fn one_server_owns_a_state_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let error = Store::open(dir.path()).await.unwrap_err();
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(store);
    Store::open(dir.path()).await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path()).await;
    let mut writer = open::writer(&path(&store)).await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (999, 'future', 1, x'00', 0)",
    )
    .execute(&mut writer)
    .await
    .unwrap();
    writer.close().await.unwrap();
    drop(store);
    let error = Store::open(dir.path()).await.unwrap_err();
    assert!(matches!(error, Error::Newer { found: 999, .. }), "{error}");
}

fn path(store: &Store) -> std::path::PathBuf {
    let Back::Sqlite(db) = &store.shared.back;
    db.path.clone()
}

/// Closes a store with everything in its main file and nothing in the log.
async fn close_whole(store: Store) {
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut open::writer(&path(&store)).await.unwrap())
        .await
        .unwrap();
    let Back::Sqlite(mut db) = std::sync::Arc::into_inner(store.shared).unwrap().back;
    db.writer.get_mut().take().unwrap().close().await.unwrap();
    db.readers.close().await;
}

#[tokio::test]
async fn a_file_cut_short_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path()).await;
    let path = path(&store);
    // Everything into the main file, so that cutting it loses something.
    close_whole(store).await;
    let whole = std::fs::read(&path).unwrap();
    for length in [whole.len() - 100, whole.len() / 2, 4096, 100, 50, 1, 0] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = Store::open(dir.path()).await.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{length}: {error}");
        let text = error.to_string();
        assert!(text.contains(FILE_NAME) && text.contains("backup"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), whole[..length], "{length}: file was changed");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(Store::open(dir.path()).await.unwrap().load().await.unwrap().workloads.len(), 2);
}

#[tokio::test]
async fn overwritten_pages_are_told_by_what_is_wrong_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path()).await;
    close_whole(store).await;
    let path = dir.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    // The later pages; the first ones say which tables there are.
    let behind = bytes.len() / 2;
    bytes[behind..].fill(0x5a);
    std::fs::write(&path, &bytes).unwrap();
    let error = Store::open(dir.path()).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(!text.contains("***"), "{text}");
}

#[tokio::test]
async fn other_files_are_refused() {
    for content in [&b"not a database, but quite long text".repeat(200)[..], b"x"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), content).unwrap();
        let error = Store::open(dir.path()).await.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(FILE_NAME)).unwrap();
    let error = Store::open(dir.path()).await.unwrap_err();
    assert!(matches!(error, Error::Access { .. }), "{error}");
    let file = dir.path().join("file");
    OpenOptions::new().create(true).write(true).truncate(true).open(&file).unwrap();
    let error = Store::open(&file.join("state")).await.unwrap_err();
    assert!(matches!(error, Error::Access { .. }), "{error}");
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_passes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path()).await;
    let before = store.load().await.unwrap();
    // The same fault as a full disk (SQLITE_FULL), without filling one.
    let Back::Sqlite(db) = &store.shared.back;
    let mut slot = db.writer.lock().await;
    sqlx::query("PRAGMA max_page_count = 1").execute(slot.as_mut().unwrap()).await.unwrap();
    drop(slot);
    let many: Vec<_> = (5..2000).map(|seq| Change::Event(event(seq, None))).collect();
    let error = store.apply(&many).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(store.load().await.unwrap(), before);
    store.apply(&many).await.unwrap();
    assert_eq!(store.load().await.unwrap().last_event_seq, 1999);
}

fn object(seq: u64, name: &str) -> ObjectRow {
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

#[tokio::test]
async fn objects_come_back_and_their_names_are_free_after_deletion() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let write = async |row: ObjectRow| store.apply(&[Change::Object(Box::new(row))]).await;
    write(object(1, "ann")).await.unwrap();
    assert!(write(object(2, "ann")).await.is_err(), "the name is taken");
    let of_owner = ObjectRow { owner: "user/u1".to_owned(), ..object(2, "ann") };
    write(of_owner.clone()).await.unwrap();
    write(ObjectRow { deleted_at: Some(Instant(3)), ..object(1, "ann") }).await.unwrap();
    write(object(3, "ann")).await.unwrap();
    let snapshot = store.load().await.unwrap();
    assert_eq!(snapshot.objects, [of_owner, object(3, "ann")]);
    assert_eq!(snapshot.last_object_seq, 3);
    assert!(!format!("{:?}", snapshot.objects).contains("hush"));
}
