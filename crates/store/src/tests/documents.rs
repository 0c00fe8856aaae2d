//! Columns that hold a document with its version.

use std::sync::Arc;

use super::lab::Lab;
use super::samples::object;
use records::*;

use crate::*;

/// First characters of the documents of a database, by table, in words.
const BEGIN: &str = "SELECT 'project ' || substr(body, 1, 20) FROM projects
    UNION ALL SELECT 'department ' || substr(body, 1, 20) FROM departments
    UNION ALL SELECT 'workload ' || substr(spec, 1, 20) FROM workloads
    UNION ALL SELECT 'eviction ' || substr(eviction, 1, 20) FROM workloads
        WHERE eviction IS NOT NULL
    UNION ALL SELECT 'past ' || substr(past, 1, 20) FROM workloads WHERE past IS NOT NULL
    UNION ALL SELECT 'pod ' || substr(body, 1, 20) FROM pods
    UNION ALL SELECT 'object ' || substr(body, 1, 20) FROM objects
    UNION ALL SELECT 'event ' || substr(beneficiary, 1, 20) FROM events
        WHERE beneficiary IS NOT NULL
    UNION ALL SELECT 'audit ' || substr(detail, 1, 20) FROM audit";

/// A store with one document of each kind at least.
async fn one_of_each(lab: &Lab) -> Store {
    let (store, workloads) = lab.filled().await;
    let department = DepartmentBody {
        description: String::new(),
        created_by: "ann".to_owned(),
        created_at_ms: 1,
        updated_by: "ann".to_owned(),
        updated_at_ms: 1,
        share: None,
        rules: Default::default(),
        pool_shares: Default::default(),
        default_pools: Vec::new(),
        node_types: Default::default(),
    };
    let row =
        DepartmentRow { id: 1, name: "research".to_owned(), body: department, deleted_at: None };
    let reason =
        ReasonBody { code: "E1".to_owned(), message: "m".to_owned(), at_ms: 1, beneficiary: None };
    let state = WorkloadState { eviction: Some(reason), ..workloads[0].state.clone() };
    let changes = [
        Change::Department(row),
        Change::WorkloadState(workloads[0].id, state),
        Change::WorkloadPast(workloads[0].id, spec::WorkloadPast::default()),
        Change::Object(Box::new(object(1, "ann"))),
        Change::Audit(AuditRow::default()),
    ];
    store.apply(&changes).await.unwrap();
    store
}

pub(super) async fn every_document_has_a_version(lab: &Lab) {
    let store = one_of_each(lab).await;
    let mut begun = lab.texts(BEGIN).await;
    begun.sort();
    begun.dedup();
    let kinds = [
        "audit",
        "department",
        "event",
        "eviction",
        "object",
        "past",
        "pod",
        "project",
        "workload",
    ];
    assert_eq!(begun, kinds.map(|kind| format!("{kind} {{\"document_version\":")));
    store.load().await.unwrap();
}

macro_rules! newer {
    ($table:literal, $column:literal, $said:literal) => {
        (
            concat!(
                "UPDATE ",
                $table,
                " SET ",
                $column,
                " = replace(",
                $column,
                ", 'document_version\":', 'document_version\":99')"
            ),
            concat!(
                "UPDATE ",
                $table,
                " SET ",
                $column,
                " = replace(",
                $column,
                ", 'document_version\":99', 'document_version\":')"
            ),
            $said,
        )
    };
}

/// Statements that make documents newer and old again, and part of the error message.
const NEWER: [(&str, &str, &str); 6] = [
    newer!("workloads", "spec", "the specification of a workload `a` has"),
    newer!("workloads", "past", "the past of a workload `a` has"),
    newer!("pods", "body", "the state of a pod `00000000-0000-0000-0000-0000000003e9` has"),
    newer!("projects", "body", "the project `team-a` has"),
    newer!("departments", "body", "the department `research` has"),
    newer!("objects", "body", "the object `ann` has"),
];

pub(super) async fn a_newer_document_is_refused_and_left(lab: &Lab) {
    drop(one_of_each(lab).await);
    lab.sql("UPDATE meta SET value = '999.1.0' WHERE key = 'release'").await.unwrap();
    for (newer, old, said) in NEWER {
        lab.sql(newer).await.unwrap();
        let before = lab.texts(BEGIN).await;
        let error = lab.open().await.unwrap().load().await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::NewerDocument { found: 991.., .. }), "{text}");
        assert!(text.contains(said) && text.contains("Start elastane 999.1.0 or"), "{text}");
        assert_eq!(lab.texts(BEGIN).await, before);
        lab.sql(old).await.unwrap();
    }
    lab.open().await.unwrap().load().await.unwrap();
}

pub(super) async fn the_newest_release_that_was_here_is_noted(lab: &Lab) {
    let noted = "SELECT value FROM meta WHERE key = 'release'";
    drop(lab.open().await.unwrap());
    assert_eq!(lab.texts(noted).await, [env!("CARGO_PKG_VERSION")]);
    for (before, after) in [("0.0.1", env!("CARGO_PKG_VERSION")), ("999.1.0", "999.1.0")] {
        let set = match before {
            "0.0.1" => "UPDATE meta SET value = '0.0.1' WHERE key = 'release'",
            _ => "UPDATE meta SET value = '999.1.0' WHERE key = 'release'",
        };
        lab.sql(set).await.unwrap();
        drop(lab.open().await.unwrap());
        assert_eq!(lab.texts(noted).await, [after]);
    }
}

pub(super) async fn columns_that_are_searched_follow_the_document(lab: &Lab) {
    let (store, workloads) = lab.filled().await;
    let renamed = spec::WorkloadSpec { name: "other".to_owned(), ..(*workloads[0].spec).clone() };
    store.apply(&[Change::WorkloadSpec(workloads[0].id, Arc::new(renamed))]).await.unwrap();
    let names = lab.texts("SELECT name FROM workloads ORDER BY seq").await;
    assert_eq!(names, ["other", "b"]);
}
