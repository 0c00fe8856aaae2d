//! Behaviour that every database must have; each test runs once for each of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use spec::{WorkloadKind, WorkloadSpec};
use units::Instant;
use uuid::Uuid;

use super::lab::Lab;
use super::samples::{event, object, pod, project, workload};
use records::*;

use crate::*;

pub(super) async fn everything_comes_back_after_reopening(lab: &Lab) {
    let (store, mut workloads) = lab.filled().await;
    let cluster = store.load().await.unwrap().cluster;
    workloads[0].state = WorkloadState {
        phase: "Running".to_owned(),
        desired: Desired::Suspend,
        restarts: 3,
        not_before: Some(Instant(9)),
        completed_at: Some(Instant(10)),
        eviction: Some(ReasonBody {
            code: "E1".to_owned(),
            message: "x".to_owned(),
            at_ms: 8,
            beneficiary: None,
        }),
        ..workloads[0].state.clone()
    };
    Arc::make_mut(&mut workloads[0].spec).priority.class = "high".to_owned();
    let changed = Change::WorkloadState(workloads[0].id, workloads[0].state.clone());
    let asked = Change::WorkloadSpec(workloads[0].id, workloads[0].spec.clone());
    let clock = |ahead_ms| ClockRow { boot: Uuid::from_u128(9), ahead_ms };
    store.apply(&[changed, asked, Change::Clock(clock(1))]).await.unwrap();
    store.apply(&[Change::Clock(clock(-2))]).await.unwrap();
    drop(store);

    let snapshot = lab.open().await.unwrap().load().await.unwrap();
    assert_eq!((snapshot.cluster, snapshot.clock), (cluster, Some(clock(-2))));
    assert_eq!(snapshot.projects, [project(1, "team-a")]);
    assert_eq!(snapshot.pods, workloads.iter().map(pod).collect::<Vec<_>>());
    assert_eq!(snapshot.workloads, workloads);
    assert_eq!(
        (snapshot.last_project_id, snapshot.last_workload_seq, snapshot.last_event_seq),
        (1, 2, 4)
    );
}

pub(super) async fn deleted_things_are_history_and_their_numbers_stay_used(lab: &Lab) {
    let (store, workloads) = lab.filled().await;
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

pub(super) async fn what_was_deleted_is_read_and_forgotten_and_its_number_is_not(lab: &Lab) {
    let (store, workloads) = lab.filled().await;
    let gone = |at: u64, w: &WorkloadRow| {
        let state = WorkloadState { deleted_at: Some(Instant(at)), ..w.state.clone() };
        Change::WorkloadState(w.id, state)
    };
    let pods = [pod(&workloads[0]).id, pod(&workloads[1]).id, Uuid::nil()];
    store.apply(&[gone(20, &workloads[0])]).await.unwrap();
    let deleted = store.deleted_pods(&pods).await.unwrap();
    assert_eq!(deleted, [(pods[0], true), (pods[1], false)].into(), "nothing of what is unknown");
    store.apply(&[gone(30, &workloads[1])]).await.unwrap();
    let read =
        async |since, id| store.past(PastFilter { since: Instant(since), id }).await.unwrap();
    let all = read(20, None).await;
    assert_eq!((all.workloads.len(), all.pods.len()), (2, 2));
    assert_eq!(all.projects, [project(1, "team-a")]);
    let one = read(0, Some(workloads[1].id)).await;
    assert_eq!((one.workloads[0].id, one.pods.len()), (workloads[1].id, 1));
    assert_eq!(
        read(21, Some(workloads[0].id)).await,
        Past { departments: one.departments, ..Past::default() }
    );
    assert_eq!(store.deleted_count().await.unwrap(), 2);
    let forget = async |since, count_max| {
        forget_beyond(&store, since, count_max).await;
        assert_eq!(store.load().await.unwrap().last_workload_seq, 2, "never given again");
        store.deleted_count().await.unwrap()
    };
    assert_eq!(forget(0, u64::MAX).await, 2);
    assert_eq!(forget(20, 1).await, 1);
    let newest = read(0, None).await;
    assert_eq!((newest.workloads[0].id, newest.pods.len()), (workloads[1].id, 1));
    assert_eq!(forget(31, 1).await, 0);
    assert!(read(0, None).await.pods.is_empty());
    assert_eq!(forget(0, 0).await, 0);
}

async fn forget_beyond(store: &Store, since: u64, count_max: u64) {
    let kept = KeptDeletions { since: Instant(since), count_max };
    let gone = store.deleted_beyond(kept, 9).await.unwrap();
    let pods = gone.iter().copied().map(Change::PodsGone);
    let workloads = gone.iter().copied().map(Change::WorkloadGone);
    let changes = [Change::WorkloadSeqGiven].into_iter().chain(pods).chain(workloads);
    store.apply(&changes.collect::<Vec<_>>()).await.unwrap();
}

pub(super) async fn of_deleted_workloads_those_of_the_projects_with_the_most_go(lab: &Lab) {
    let (store, workloads) = lab.filled().await;
    let all = workloads.iter().map(|row| row.id).collect::<Vec<_>>();
    // Three projects with 4, 2 and 1, deleted one second after the other.
    let of = [1, 1, 2, 1, 3, 2, 1];
    let projects = [2, 3].map(|id| Change::Project(project(id, &format!("team-{id}"))));
    store.apply(&projects).await.unwrap();
    let row = |(at, project_id): (u64, u64)| {
        let state = WorkloadState { deleted_at: Some(Instant(at)), ..workloads[0].state.clone() };
        let seq = 100 + at;
        let id = Uuid::from_u128(seq.into());
        let row = WorkloadRow { id, seq, project_id, state, ..workloads[0].clone() };
        Change::Workload(Box::new(row))
    };
    store.apply(&(1..).zip(of).map(row).collect::<Vec<_>>()).await.unwrap();
    for (count_max, left) in [
        (7, vec![1, 2, 3, 4, 5, 6, 7]),
        (6, vec![2, 3, 4, 5, 6, 7]),
        (5, vec![3, 4, 5, 6, 7]),
        (4, vec![4, 5, 6, 7]),
        (3, vec![5, 6, 7]),
        (2, vec![6, 7]),
        (1, vec![7]),
        (0, vec![]),
    ] {
        forget_beyond(&store, 0, count_max).await;
        let found = store.past(PastFilter { since: Instant(0), id: None }).await.unwrap();
        let found: Vec<_> = found.workloads.iter().map(|row| row.seq - 100).collect();
        assert_eq!(found, left, "{count_max}");
    }
    let living = store.load().await.unwrap().workloads;
    assert_eq!(living.iter().map(|row| row.id).collect::<Vec<_>>(), all);
}

pub(super) async fn of_deleted_workloads_of_a_project_those_of_the_users_with_the_most_go(
    lab: &Lab,
) {
    let (store, workloads) = lab.filled().await;
    store.apply(&[Change::Project(project(2, "team-2"))]).await.unwrap();
    let of = [(1, "ann"), (1, "ann"), (1, "ann"), (1, "bob"), (2, "ann"), (1, "ann")];
    for (at, (project_id, user)) in (1..).zip(of) {
        let (seq, id) = (100 + at, Uuid::from_u128(u128::from(at) << 64));
        let spec = Arc::new(WorkloadSpec {
            name: format!("workload-{at}"),
            submitted_by: user.to_owned(),
            ..WorkloadSpec::clone(&workloads[0].spec)
        });
        let row = WorkloadRow { id, seq, project_id, spec, ..workloads[0].clone() };
        let state = WorkloadState { deleted_at: Some(Instant(at)), ..row.state.clone() };
        store.apply(&[Change::Workload(Box::new(row))]).await.unwrap();
        // It may have been archived before it was deleted.
        let archived = Change::WorkloadArchived(id, WorkloadKind::Training, user.to_owned());
        let changes = [archived, Change::WorkloadRestored(id), Change::WorkloadState(id, state)];
        store.apply(&changes[if at % 2 == 0 { 0 } else { 2 }..]).await.unwrap();
    }
    for (count_max, left) in [
        (6, vec![1, 2, 3, 4, 5, 6]),
        (5, vec![2, 3, 4, 5, 6]),
        (4, vec![3, 4, 5, 6]),
        (3, vec![4, 5, 6]),
        (2, vec![5, 6]),
        (1, vec![6]),
    ] {
        forget_beyond(&store, 0, count_max).await;
        let found = store.past(PastFilter { since: Instant(0), id: None }).await.unwrap();
        let found: Vec<_> = found.workloads.iter().map(|row| row.seq - 100).collect();
        assert_eq!(found, left, "{count_max}");
    }
}

pub(super) async fn deleted_objects_leave_nothing_but_the_last_number(lab: &Lab) {
    let store = lab.open().await.unwrap();
    let write = async |row: ObjectRow| {
        store.apply(&[Change::Object(Box::new(row))]).await.unwrap();
    };
    for seq in 1..=4 {
        write(object(seq, &format!("user-{seq}"))).await;
    }
    for seq in [1, 4, 3] {
        let name = format!("user-{seq}");
        write(ObjectRow { deleted_at: Some(Instant(9)), ..object(seq, &name) }).await;
    }
    assert_eq!(lab.texts("SELECT name FROM objects ORDER BY seq").await, ["user-2", "user-4"]);
    let snapshot = store.load().await.unwrap();
    assert_eq!((snapshot.objects.len(), snapshot.last_object_seq), (1, 4));
}

pub(super) async fn archived_workloads_are_no_part_of_a_start_and_are_found_by_what_is_asked(
    lab: &Lab,
) {
    let (store, workloads) = lab.filled().await;
    let (one, pods) = (workloads[0].clone(), vec![pod(&workloads[0])]);
    let gone = Change::WorkloadArchived(one.id, WorkloadKind::Training, "ann".to_owned());
    store.apply(&[gone]).await.unwrap();
    let state = store.load().await.unwrap();
    assert_eq!((state.workloads.len(), state.pods.len(), state.last_workload_seq), (1, 1, 2));
    let key =
        ArchivedKey { project_id: one.project_id, kind: WorkloadKind::Training, failed: false };
    let bytes = lab.texts("SELECT spec FROM workloads WHERE archived = 1").await[0].len() as u64;
    let count = ArchivedCount { key, submitted_by: "ann".to_owned(), count: 1, bytes };
    assert_eq!(state.archived, [count]);
    let pod_id = pods[0].id;
    let found = Archived { workloads: vec![one.clone()], pods };
    for lookup in [
        ArchivedLookup::Id(one.id),
        ArchivedLookup::Name(one.project_id, one.spec.name.clone()),
        ArchivedLookup::Pod(pod_id),
    ] {
        assert_eq!(store.archived(&[lookup.clone(), lookup]).await.unwrap(), found);
    }
    let other = ArchivedLookup::Id(workloads[1].id);
    assert_eq!(store.archived(&[other]).await.unwrap(), Archived::default());
    let both = [pod_id, pod(&workloads[1]).id];
    assert_eq!(store.archived_pods(&both).await.unwrap(), [pod_id].into());
    let ids = [one.id, workloads[1].id, Uuid::nil()];
    let both = store.not_deleted(&ids).await.unwrap().workloads;
    assert_eq!(both.iter().map(|row| row.id).collect::<Vec<_>>(), ids[..2]);

    store.apply(&[Change::WorkloadRestored(one.id)]).await.unwrap();
    let state = store.load().await.unwrap();
    assert_eq!((state.workloads.len(), state.archived.len()), (2, 0));
}

pub(super) async fn archived_workloads_are_listed_in_every_order_and_in_pages(lab: &Lab) {
    use ArchivedOrder::{Completed, Created, CreatedAndName, Name, ProjectAndName, Seq};
    let (store, _) = lab.filled().await;
    // Names, when they were created, and when they ended.
    let rows = [("b", 10, 90), ("B", 10, 80), ("a-1", 30, 70), ("a", 20, 70)];
    let mut changes = Vec::new();
    for (seq, (name, created, ended)) in (3..).zip(rows) {
        let mut row = workload(seq, &format!("x{name}"));
        row.created_at = Instant(created);
        row.state.completed_at = Some(Instant(ended));
        row.state.phase = if name == "a" { "failed" } else { "completed" }.to_owned();
        changes.push(Change::Workload(Box::new(row.clone())));
        let user = if seq < 5 { "ann" } else { "bob" };
        changes.push(Change::WorkloadArchived(row.id, WorkloadKind::Training, user.to_owned()));
    }
    store.apply(&changes).await.unwrap();
    let all = ArchivedFilter::default;
    let names = async |filter: &ArchivedFilter, skip, limit| {
        let places = store.archived_places(filter, skip, limit).await.unwrap();
        places.iter().map(|place| place.name.clone()).collect::<Vec<_>>().join(" ")
    };
    for (order, descending, want) in [
        (Seq, false, "xb xB xa-1 xa"),
        (Name, false, "xB xa xa-1 xb"),
        (Name, true, "xb xa-1 xa xB"),
        (ProjectAndName, false, "xB xa xa-1 xb"),
        (Created, false, "xb xB xa xa-1"),
        (CreatedAndName, false, "xB xb xa xa-1"),
        (CreatedAndName, true, "xa-1 xa xb xB"),
        (Completed, false, "xa-1 xa xB xb"),
        (Completed, true, "xb xB xa-1 xa"),
    ] {
        for projects in [None, Some(vec![1]), Some(vec![9, 1])] {
            let filter = ArchivedFilter { order, descending, projects, ..all() };
            assert_eq!(names(&filter, 0, 9).await, want, "{filter:?}");
            let page = want.split(' ').skip(1).take(2).collect::<Vec<_>>().join(" ");
            assert_eq!(names(&filter, 1, 2).await, page, "{filter:?}");
        }
    }
    for (filter, want) in [
        (ArchivedFilter { users: Some(vec!["bob".into()]), ..all() }, "xa-1 xa"),
        (ArchivedFilter { names: Some(vec!["xa".into(), "xb".into()]), ..all() }, "xb xa"),
        (ArchivedFilter { failed: Some(true), ..all() }, "xa"),
        (ArchivedFilter { failed: Some(false), after_seq: 3, ..all() }, "xB xa-1"),
        (ArchivedFilter { projects: Some(vec![1, 9]), after_seq: 4, ..all() }, "xa-1 xa"),
        (ArchivedFilter { projects: Some(vec![1]), kinds: Some(vec![]), ..all() }, ""),
        (ArchivedFilter { projects: Some(vec![9]), ..all() }, ""),
        (ArchivedFilter { ids: Some(vec![Uuid::nil()]), ..all() }, ""),
    ] {
        assert_eq!(names(&filter, 0, 9).await, want, "{filter:?}");
        let count = want.split(' ').filter(|name| !name.is_empty()).count();
        assert_eq!(store.archived_count(&filter).await.unwrap(), count as u64, "{filter:?}");
        assert_eq!(store.archived_first(&filter, 9).await.unwrap().workloads.len(), count);
    }
}

pub(super) async fn the_past_of_a_workload_is_as_it_was_written_last(lab: &Lab) {
    let (store, workloads) = lab.filled().await;
    let id = workloads[0].id;
    let pod = pod(&workloads[0]);
    let known = store.load().await.unwrap().pasts[&id];
    let placed = pod.body.placed_at_ms.map(Instant);
    assert_eq!((known.last_start, known.restarts), (placed, 0), "what the pod says");
    let first = spec::WorkloadPast { last_start: Some(Instant(8)), restarts: 2, ..known };
    let last = spec::WorkloadPast { stale_since: Some(Instant(9)), last_start: None, ..first };
    store.apply(&[first, last].map(|past| Change::WorkloadPast(id, past))).await.unwrap();
    assert_eq!(store.load().await.unwrap().pasts[&id], last);
    let gone = Change::WorkloadPast(Uuid::nil(), last);
    store.apply(&[gone]).await.unwrap_err();
}

pub(super) async fn a_batch_is_written_whole_or_not_at_all(lab: &Lab) {
    let (store, _) = lab.filled().await;
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

pub(super) async fn of_many_rows_in_a_batch_the_last_word_counts(lab: &Lab) {
    let (store, before) = lab.filled().await;
    let fresh: Vec<_> = (3..=150).map(|seq| workload(seq, &format!("w{seq}"))).collect();
    let state = |w: &WorkloadRow, restarts| WorkloadState { restarts, ..w.state.clone() };
    let ended = WorkloadState { deleted_at: Some(Instant(9)), ..before[0].state.clone() };
    let mut changes = Vec::new();
    for row in &fresh {
        changes.push(Change::Pod(PodRow { generation: 7, ..pod(row) }));
        changes.push(Change::Workload(Box::new(row.clone())));
        changes.push(Change::WorkloadState(row.id, state(row, 1)));
        changes.push(Change::WorkloadState(row.id, state(row, 2)));
        changes.push(Change::Pod(pod(row)));
        changes.push(Change::Event(event(row.seq + 10, Some(row))));
    }
    // A name is given up and taken again.
    changes.push(Change::WorkloadState(before[0].id, ended));
    changes.push(Change::Workload(Box::new(workload(151, "a"))));
    store.apply(&changes).await.unwrap();

    let found = store.load().await.unwrap();
    assert_eq!(found.workloads.len(), 1 + fresh.len() + 1);
    assert!(found.workloads[1..149].iter().all(|row| row.state.restarts == 2));
    assert!(found.pods.iter().all(|pod| pod.generation == 1) && found.pods.len() == 149);
    let events = store.events(&EventFilter { after_seq: Some(12), ..Default::default() }).await;
    assert_eq!(events.unwrap().iter().map(|e| e.seq).collect::<Vec<_>>(), Vec::from_iter(13..=160));
}

pub(super) async fn a_change_of_an_unknown_workload_is_an_error(lab: &Lab) {
    let (store, workloads) = lab.filled().await;
    let (id, row) = (Uuid::nil(), &workloads[0]);
    let state = Change::WorkloadState(id, row.state.clone());
    let spec = Change::WorkloadSpec(id, row.spec.clone());
    for change in [state, spec] {
        assert!(store.apply(&[change]).await.is_err());
    }
}

pub(super) async fn events_are_filtered_and_ordered(lab: &Lab) {
    let (store, workloads) = lab.filled().await;
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
    let named = |name: &str| Some(name.to_owned());
    let by_name = EventFilter { workload_name: named("b"), project: Some(1), ..all.clone() };
    assert_eq!(seqs(by_name.clone()).await, [1, 3]);
    assert_eq!(seqs(EventFilter { skip: 1, limit: Some(1), ..by_name.clone() }).await, [3]);
    let other = EventFilter { workload: Some(workloads[0].id), ..by_name };
    assert_eq!(seqs(other).await, [0_u64; 0]);
    assert_eq!(store.events(&all).await.unwrap()[3], event(4, workloads.first()));
}

pub(super) async fn credentials_and_audit_are_kept(lab: &Lab) {
    let store = lab.open().await.unwrap();
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
    let between = async |from, until, limit| {
        let filter = AuditFilter { from, until, limit, ..AuditFilter::default() };
        let rows = store.audit_log(&filter).await.unwrap();
        rows.into_iter().map(|(seq, row)| (seq, row.what)).collect::<Vec<_>>()
    };
    let (first, second) = ((1, "project.create".to_owned()), (2, "project.delete".to_owned()));
    let newest_first = vec![second.clone(), first];
    assert_eq!(between(None, None, 9).await, newest_first);
    assert_eq!(between(Some(Instant(3)), Some(Instant(4)), 9).await, newest_first);
    assert_eq!(between(Some(Instant(3)), None, 1).await, [second]);
    let second_page = AuditFilter { offset: 1, limit: 9, ..AuditFilter::default() };
    assert_eq!(store.audit_log(&second_page).await.unwrap()[0].0, 1);
    assert_eq!(store.audit_count(&second_page).await.unwrap(), 2);
    let late = AuditFilter { from: Some(Instant(4)), ..second_page };
    assert_eq!(store.audit_count(&late).await.unwrap(), 0);
    assert!(between(Some(Instant(4)), None, 9).await.is_empty());
    assert!(between(None, Some(Instant(3)), 9).await.is_empty());
    assert_eq!(store.audit(1).await.unwrap(), [audit("project.delete")]);
}

pub(super) async fn one_server_owns_a_state_directory(lab: &Lab) {
    let store = lab.open().await.unwrap();
    let error = lab.open().await.unwrap_err();
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(store);
    lab.open().await.unwrap();
}

pub(super) async fn objects_come_back_and_their_names_are_free_after_deletion(lab: &Lab) {
    let store = lab.open().await.unwrap();
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
pub(super) async fn the_event_log_only_grows(lab: &Lab) {
    let (store, _) = lab.filled().await;
    let again = store.apply(&[Change::Event(event(4, None))]).await;
    assert!(again.is_err(), "a position is written once");
    let row = AuditRow {
        at: Instant(3),
        who: "alice".to_owned(),
        what: "project.create".to_owned(),
        target: "team-a".to_owned(),
        result: "ok".to_owned(),
        detail: AuditDetail::default(),
    };
    store.apply(&[Change::Audit(row)]).await.unwrap();
    for sql in [
        "UPDATE events SET message = 'x'",
        "DELETE FROM events WHERE seq = 1",
        "UPDATE audit SET who = 'x'",
        "DELETE FROM audit",
    ] {
        let refused = lab.sql(sql).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("append-only")), "{sql}");
    }
}

pub(super) async fn a_log_forgets_its_oldest_rows_and_never_its_newest(lab: &Lab) {
    let (store, _) = lab.filled().await;
    let row = |at| AuditRow { at: Instant(at), ..AuditRow::default() };
    store.apply(&[Change::Audit(row(1)), Change::Audit(row(2))]).await.unwrap();
    let seqs = async |log| {
        let rows = store.oldest(log, 9).await.unwrap();
        rows.into_iter().map(|(seq, _)| seq).collect::<Vec<_>>()
    };
    let all = seqs(Log::Events).await;
    store
        .apply(&[Change::LogKeptFrom(Log::Events, 2), Change::LogGone(Log::Events)])
        .await
        .unwrap();
    assert_eq!(seqs(Log::Events).await, all[1..]);
    for (log, left) in [(Log::Events, *all.last().unwrap()), (Log::Audit, 2)] {
        store.apply(&[Change::LogKeptFrom(log, 99), Change::LogGone(log)]).await.unwrap();
        assert_eq!(seqs(log).await, [left]);
    }
    store.apply(&[Change::Audit(row(3))]).await.unwrap();
    assert_eq!(seqs(Log::Audit).await, [2, 3], "no position is given out twice");
    assert_eq!(store.newest(Log::Audit).await.unwrap(), 3);
    assert_eq!(store.load().await.unwrap().last_event_seq, *all.last().unwrap());
}

pub(super) async fn a_log_forgets_events_of_a_group_and_no_others(lab: &Lab) {
    let (store, _) = lab.filled().await;
    let row = |seq, project_id, owner: &str| {
        Change::Event(EventRow { project_id, owner: owner.to_owned(), ..event(seq, None) })
    };
    let last = store.newest(Log::Events).await.unwrap();
    let of = [(Some(7), "ann"), (Some(7), "bob"), (None, ""), (Some(7), "ann"), (Some(7), "ann")];
    let rows = (last + 1..).zip(of).map(|(seq, (project, owner))| row(seq, project, owner));
    store.apply(&rows.collect::<Vec<_>>()).await.unwrap();
    let group = |project_id, user: &str| LogGroup { project_id, user: user.to_owned() };
    let (ann, bob, none) = (group(7, "ann"), group(7, "bob"), group(0, ""));
    let counted = async |after, until| {
        let counted = store.log_counts(Log::Events, after, until).await.unwrap();
        counted.into_iter().filter(|(group, _)| group.project_id != 1).collect::<BTreeMap<_, _>>()
    };
    let first = counted(last, last + 4).await;
    assert_eq!(first, [(ann.clone(), 2), (bob.clone(), 1), (none.clone(), 1)].into());
    assert_eq!(counted(0, last + 5).await[&ann], 3, "all of them, by the index");
    let oldest = async |group| {
        let found = store.oldest_of_group(Log::Events, group, 0, 9).await.unwrap();
        found.into_iter().map(|seq| seq - last).collect::<Vec<_>>()
    };
    assert_eq!((oldest(&ann).await, oldest(&none).await), (vec![1, 4, 5], vec![3]));
    let gone = |group: &LogGroup, from, until| {
        Change::LogGroupGone(Log::Events, group.clone(), from, until)
    };
    let kept = |group: &LogGroup, from| Change::LogGroupKeptFrom(Log::Events, group.clone(), from);
    let early = store.apply(&[gone(&ann, 0, last + 3)]).await;
    assert!(early.unwrap_err().to_string().contains("append-only"), "it is not on record");
    for (group, from) in [(&ann, last + 5), (&none, last + 4)] {
        store.apply(&[kept(group, from), gone(group, 0, from)]).await.unwrap();
    }
    assert_eq!((oldest(&ann).await, oldest(&none).await), (vec![5], vec![]));
    assert_eq!(oldest(&bob).await, [2]);
    store.apply(&[kept(&ann, 99), gone(&ann, 0, 99)]).await.unwrap();
    assert_eq!(oldest(&ann).await, [5], "the newest of all stays");
}

pub(super) async fn the_audit_log_forgets_rows_of_a_subject_and_no_others(lab: &Lab) {
    let store = lab.open().await.unwrap();
    let row = |who: &str| {
        Change::Audit(AuditRow { at: Instant(1), who: who.to_owned(), ..AuditRow::default() })
    };
    store.apply(&["ann", "bob", "ann", "ann"].map(row)).await.unwrap();
    let group = |user: &str| LogGroup { project_id: 0, user: user.to_owned() };
    let (ann, bob) = (group("ann"), group("bob"));
    let counted = store.log_counts(Log::Audit, 0, 3).await.unwrap();
    let counted: BTreeMap<_, _> = counted.into_iter().collect();
    assert_eq!(counted, [(ann.clone(), 2), (bob.clone(), 1)].into());
    let oldest = async |group| store.oldest_of_group(Log::Audit, group, 0, 9).await.unwrap();
    let gone = |from, until| Change::LogGroupGone(Log::Audit, ann.clone(), from, until);
    let early = store.apply(&[gone(0, 3)]).await;
    assert!(early.unwrap_err().to_string().contains("append-only"), "it is not on record");
    let kept = Change::LogGroupKeptFrom(Log::Audit, ann.clone(), 99);
    store.apply(&[kept, gone(0, 99)]).await.unwrap();
    assert_eq!((oldest(&ann).await, oldest(&bob).await), (vec![4], vec![2]));
}

pub(super) async fn a_text_with_a_nul_is_kept_without_it(lab: &Lab) {
    let (store, _) = lab.filled().await;
    let row = EventRow { message: "a\0b".to_owned(), ..event(5, None) };
    store.apply(&[Change::Event(row)]).await.unwrap();
    let last = EventFilter { after_seq: Some(4), ..EventFilter::default() };
    assert_eq!(store.events(&last).await.unwrap()[0].message, "a\u{fffd}b");
}

pub(super) async fn a_newer_database_is_refused(lab: &Lab) {
    drop(lab.filled().await);
    lab.sql(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (999, 'future', 1 = 1, '00', 0)",
    )
    .await
    .unwrap();
    let error = lab.open().await.unwrap_err();
    assert!(matches!(error, Error::Newer { found: 999, .. }), "{error}");
}

pub(super) async fn many_writers_take_turns(lab: &Lab) {
    let (store, _) = lab.filled().await;
    let one = async |seq: u64| store.apply(&[Change::Event(event(seq, None))]).await.unwrap();
    tokio::join!(one(5), one(6), one(7), one(8));
    assert_eq!(store.load().await.unwrap().last_event_seq, 8);
    assert_eq!(store.events(&EventFilter::default()).await.unwrap().len(), 8);
}

pub(super) async fn who_gives_up_leaves_the_next_one_a_way(lab: &Lab) {
    let (store, _) = lab.filled().await;
    for seq in (5..200).step_by(10) {
        let changes: Vec<_> = (seq..seq + 10).map(|seq| Change::Event(event(seq, None))).collect();
        let wait = std::time::Duration::from_micros(seq * 20);
        // The batch is written whole or not at all, depending on timing.
        let _ = tokio::time::timeout(wait, store.apply(&changes)).await;
    }
    let after = 1000;
    store.apply(&[Change::Event(event(after, None))]).await.unwrap();
    let seqs: Vec<_> =
        store.events(&EventFilter::default()).await.unwrap().iter().map(|e| e.seq).collect();
    assert_eq!(seqs.last(), Some(&after));
    for batch in (5..200).step_by(10) {
        let there = seqs.iter().filter(|seq| (batch..batch + 10).contains(*seq)).count();
        assert!(there == 0 || there == 10, "{there} of batch {batch}");
    }
}

pub(super) async fn samples_are_read_by_subject_step_and_time(lab: &Lab) {
    let store = lab.open().await.unwrap();
    let sample = |subject: &str, step_ms: u64, at: u64, cpu: u64| {
        let values = [("cpu".to_owned(), cpu)].into();
        SampleRow { subject: subject.to_owned(), step_ms, at: Instant(at), values }
    };
    let all = [
        sample("cluster", 0, 10, 1),
        sample("node/n1", 0, 10, 2),
        sample("cluster", 0, 20, 3),
        sample("cluster", 60, 0, 4),
    ];
    let changes: Vec<_> = all.iter().cloned().map(Change::Sample).collect();
    store.apply(&changes).await.unwrap();
    // Written again, as after a crash: it counts once.
    store.apply(&changes[..1]).await.unwrap();
    drop(store);
    let store = lab.open().await.unwrap();
    let filter = |subject: Option<&str>, step_ms, from, until| SampleFilter {
        subject: subject.map(str::to_owned),
        step_ms,
        from: Instant(from),
        until: Instant(until),
    };
    assert_eq!(store.samples(&filter(None, 0, 0, 20)).await.unwrap(), all[..2]);
    let cluster = store.samples(&filter(Some("cluster"), 0, 0, 21)).await.unwrap();
    assert_eq!(cluster, [all[0].clone(), all[2].clone()]);
    assert_eq!(store.samples(&filter(None, 60, 0, 1)).await.unwrap(), all[3..]);
    let between = async |step_ms, from| {
        let found = store.samples_between(step_ms, Instant(from)).await.unwrap();
        found.map(|(first, last)| (first.0, last.0))
    };
    assert_eq!(between(0, 0).await, Some((10, 20)));
    assert_eq!(between(0, 11).await, Some((20, 20)));
    assert_eq!((between(0, 21).await, between(7, 0).await), (None, None));

    let gone = Change::SamplesGone { step_ms: 0, before: Instant(20) };
    store.apply(&[gone]).await.unwrap();
    assert_eq!(store.samples(&filter(None, 0, 0, 99)).await.unwrap(), all[2..3]);
    assert_eq!(store.samples(&filter(None, 60, 0, 99)).await.unwrap(), all[3..]);
}

pub(super) async fn the_ledger_is_exact_and_adds_up(lab: &Lab) {
    const HOUR: u64 = 3_600_000;
    let store = lab.open().await.unwrap();
    let held = |pod: u128, from: u64, until: Option<u64>, owner: &str, gpu_millis: u64| {
        Change::Allocation(AllocationRow {
            pod_id: Uuid::from_u128(pod),
            started_at: Instant(from),
            ended_at: until.map(Instant),
            project_id: 1,
            project_name: "team-a".to_owned(),
            owner: owner.to_owned(),
            gpu_model: "H100".to_owned(),
            gpu_millis,
        })
    };
    let used = |hour: u64, measured, used| {
        let (owner, gpu_model) = ("ann".to_owned(), "H100".to_owned());
        let hour = Instant(hour * HOUR);
        let (memory_measured, memory_used) = (measured * 10, used * 10);
        Change::GpuUse(GpuUseRow {
            hour,
            project_id: 1,
            owner,
            gpu_model,
            measured,
            used,
            memory_measured,
            memory_used,
        })
    };
    store.apply(&[held(1, 100, None, "ann", 500), held(2, 50, None, "bob", 2000)]).await.unwrap();
    // The allocation ends; another begins at once, and one begins and ends in the same moment.
    let changes = [
        held(1, 100, Some(300), "ann", 500),
        held(1, 300, Some(300), "ann", 9000),
        held(1, 300, None, "ann", 1000),
        used(0, 70, 30),
        used(0, 5, 1),
        used(1, 900, 900),
    ];
    store.apply(&changes).await.unwrap();
    drop(store);
    let store = lab.open().await.unwrap();
    assert_eq!(store.load().await.unwrap().allocations.len(), 2, "those that are held");
    let ledger = async |from, until| -> Vec<(String, u64, u64, u64)> {
        let rows = store.ledger(Instant(from), Instant(until)).await.unwrap();
        let all = rows.into_iter().map(|row| {
            assert_eq!((row.memory_measured, row.memory_used), (row.measured * 10, row.used * 10));
            (row.owner, row.allocated, row.measured, row.used)
        });
        all.collect()
    };
    let row = |owner: &str, held, measured, used| (owner.to_owned(), held, measured, used);
    let ann = 200 * 500 + 100 * 1000;
    assert_eq!(ledger(0, 400).await, [row("ann", ann, 75, 31), row("bob", 350 * 2000, 0, 0)]);
    // Cut at both ends; the hour begins before, so its use is not of this time.
    assert_eq!(ledger(200, 301).await, [row("ann", 51_000, 0, 0), row("bob", 101 * 2000, 0, 0)]);
    assert_eq!(ledger(0, 50).await, [row("ann", 0, 75, 31)], "used by the hour");
    let late = ledger(HOUR, 2 * HOUR).await;
    assert_eq!(late[0], row("ann", HOUR * 1000, 900, 900));

    let gone = [Change::AllocationsGone(Instant(301)), Change::GpuUseGone(Instant(HOUR))];
    store.apply(&gone).await.unwrap();
    assert_eq!(ledger(0, 400).await, [row("ann", 100_000, 0, 0), row("bob", 700_000, 0, 0)]);
}
