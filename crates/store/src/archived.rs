//! Reads ended workloads that left memory (archived). Owns: their orders, and that every question
//! about them has an end: those of one name, a page, a count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use records::{Archived, ArchivedFilter, ArchivedLookup, ArchivedOrder, ArchivedPlace, PodRow};
use units::Instant;
use uuid::Uuid;

use crate::connection::Connection;
use crate::fault::Result;
use crate::read::{read_pod, read_with, read_workload};
use crate::statement::Statement;

/// Most values of a list in one statement.
const VALUES_MAX: usize = 256;
/// The phase of those that failed, as the state writes it.
const FAILED: &str = "failed";
const ARE: &str = "workloads.archived = 1 AND workloads.deleted_at IS NULL";

/// Those that are looked for.
pub(crate) async fn named(db: &mut Connection<'_>, lookups: &[ArchivedLookup]) -> Result<Archived> {
    let (mut ids, mut pods) = (Vec::new(), Vec::new());
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for lookup in lookups {
        match lookup {
            ArchivedLookup::Id(id) => ids.push(id.to_string()),
            ArchivedLookup::Name(project, name) => {
                names.entry(*project).or_default().push(name.clone());
            }
            ArchivedLookup::Pod(id) => pods.push(id.to_string()),
        }
    }
    for pods in pods.chunks(VALUES_MAX) {
        let sql = format!("SELECT workload_id FROM pods WHERE id IN ({})", numbered(1, pods.len()));
        let statement = texts(Statement::new("find archived workloads", sql), pods);
        ids.extend(read_with(db, "pods", statement, |r| r.text("workload_id")).await?);
    }
    for (project, names) in &names {
        for names in names.chunks(VALUES_MAX) {
            // As the index of living names has it, whatever is archived: SQLite would choose another.
            let sql = format!(
                "SELECT id FROM workloads WHERE deleted_at IS NULL AND project_id = $1
                 AND name IN ({})",
                numbered(2, names.len())
            );
            let statement = Statement::new("find archived workloads", sql).int(*project);
            let statement = texts(statement, names);
            ids.extend(read_with(db, "workloads", statement, |r| r.text("id")).await?);
        }
    }
    with_ids(db, &ids, ARE).await
}

/// Those of these for which a condition holds.
async fn with_ids(db: &mut Connection<'_>, ids: &[String], condition: &str) -> Result<Archived> {
    let mut workloads = BTreeMap::new();
    for ids in ids.chunks(VALUES_MAX) {
        let values = numbered(1, ids.len());
        let sql = format!("SELECT * FROM workloads WHERE {condition} AND id IN ({values})");
        let statement = texts(Statement::new("read archived workloads", sql), ids);
        let rows = read_with(db, "workloads", statement, read_workload).await?;
        workloads.extend(rows.into_iter().map(|row| (row.seq, row)));
    }
    let workloads: Vec<_> = workloads.into_values().collect();
    let pods = pods_of(db, workloads.iter().map(|row| row.id)).await?;
    Ok(Archived { workloads, pods })
}

async fn pods_of(
    db: &mut Connection<'_>,
    workloads: impl Iterator<Item = Uuid>,
) -> Result<Vec<PodRow>> {
    let ids: Vec<String> = workloads.map(|id| id.to_string()).collect();
    let mut pods = Vec::new();
    for ids in ids.chunks(VALUES_MAX) {
        let values = numbered(1, ids.len());
        let sql = format!("SELECT * FROM pods WHERE workload_id IN ({values}) ORDER BY pod_index");
        let statement = texts(Statement::new("read pods", sql), ids);
        pods.extend(read_with(db, "pods", statement, read_pod).await?);
    }
    Ok(pods)
}

/// Those of these pods whose workloads are archived.
pub(crate) async fn pods(db: &mut Connection<'_>, pods: &[Uuid]) -> Result<BTreeSet<Uuid>> {
    let mut found = BTreeSet::new();
    for pods in pods.chunks(VALUES_MAX) {
        let sql = format!(
            "SELECT pods.id AS id FROM pods JOIN workloads ON workloads.id = pods.workload_id
             WHERE {ARE} AND pods.id IN ({})",
            numbered(1, pods.len())
        );
        let ids: Vec<String> = pods.iter().map(Uuid::to_string).collect();
        let statement = texts(Statement::new("find archived workloads", sql), &ids);
        found.extend(read_with(db, "pods", statement, |r| r.uuid("id")).await?);
    }
    Ok(found)
}

/// Those of these workloads that were not deleted, archived or not.
pub(crate) async fn not_deleted(db: &mut Connection<'_>, ids: &[Uuid]) -> Result<Archived> {
    let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    with_ids(db, &ids, "deleted_at IS NULL").await
}

/// How many there are.
pub(crate) async fn count(db: &mut Connection<'_>, filter: &ArchivedFilter) -> Result<u64> {
    let select = "SELECT COUNT(*) AS n FROM workloads";
    let statement = filtered("count archived workloads", select, filter, "");
    let rows = read_with(db, "workloads", statement, |r| r.number("n")).await?;
    Ok(rows.into_iter().next().unwrap_or(0))
}

/// A page of them in their order: what they are ordered by.
pub(crate) async fn places(
    db: &mut Connection<'_>,
    filter: &ArchivedFilter,
    skip: u64,
    limit: u64,
) -> Result<Vec<ArchivedPlace>> {
    let select = "SELECT workloads.id AS id, workloads.seq AS seq, project_id,
            workloads.name AS name, created_at, phase_since, completed_at
        FROM workloads JOIN projects ON projects.id = workloads.project_id";
    let columns: &[&str] = match filter.order {
        ArchivedOrder::Seq => &[],
        ArchivedOrder::Name => &["workloads.name"],
        ArchivedOrder::ProjectAndName => &["projects.name", "workloads.name"],
        ArchivedOrder::Created => &["created_at"],
        ArchivedOrder::CreatedAndName => &["created_at", "workloads.name"],
        ArchivedOrder::Completed => &["completed_at"],
        ArchivedOrder::PhaseSince => &["phase_since"],
    };
    let direction = if filter.descending { " DESC" } else { "" };
    let mut order = String::from(" ORDER BY ");
    for column in columns {
        // By bytes, as the rest of the server does.
        let collation = match (&db, column.ends_with(".name")) {
            (Connection::Postgres(_), true) => " COLLATE \"C\"",
            _ => "",
        };
        // Writing to a string cannot fail.
        let _ = write!(order, "{column}{collation}{direction}, ");
    }
    let page = format!("{order}workloads.seq LIMIT {limit} OFFSET {skip}");
    let statement = filtered("list archived workloads", select, filter, &page);
    read_with(db, "workloads", statement, |r| {
        Ok(ArchivedPlace {
            id: r.uuid("id")?,
            seq: r.number("seq")?,
            project_id: r.number("project_id")?,
            name: r.text("name")?,
            created_at: Instant(r.number("created_at")?),
            phase_since: Instant(r.number("phase_since")?),
            completed_at: Instant(r.number("completed_at")?),
        })
    })
    .await
}

/// The first of them by `seq`, whatever the order.
pub(crate) async fn first(
    db: &mut Connection<'_>,
    filter: &ArchivedFilter,
    limit: u64,
) -> Result<Archived> {
    let page = format!(" ORDER BY workloads.seq LIMIT {limit}");
    let select = "SELECT * FROM workloads";
    let statement = filtered("read archived workloads", select, filter, &page);
    let workloads = read_with(db, "workloads", statement, read_workload).await?;
    let pods = pods_of(db, workloads.iter().map(|row| row.id)).await?;
    Ok(Archived { workloads, pods })
}

fn filtered<'a>(
    what: &'static str,
    select: &str,
    filter: &'a ArchivedFilter,
    tail: &str,
) -> Statement<'a> {
    let ArchivedFilter { projects, kinds, failed, names, users, ids, after_seq, .. } = filter;
    let mut sql = format!("{select} WHERE {ARE}");
    let mut statement = Statement::new(what, "");
    // A condition on it has SQLite choose the index of it, and sort for any other order.
    if *after_seq > 0 {
        sql.push_str(" AND workloads.seq > $1");
        statement = statement.int(*after_seq);
    }
    let mut is_one_of = |column: &str, statement: &Statement<'_>, count: usize| {
        let values = numbered(statement.values.len() + 1, count);
        // Nothing is one of none.
        let test =
            if count == 0 { " AND 1 = 0".into() } else { format!(" AND {column} IN ({values})") };
        sql.push_str(&test);
    };
    if let Some(projects) = projects {
        is_one_of("workloads.project_id", &statement, projects.len());
        statement = projects.iter().fold(statement, |all, id| all.int(*id));
    }
    if let Some(kinds) = kinds {
        is_one_of("workloads.kind", &statement, kinds.len());
        statement = kinds.iter().fold(statement, |all, kind| all.text(kind.name()));
    }
    for (column, values) in [("workloads.name", names), ("workloads.submitted_by", users)] {
        if let Some(values) = values {
            is_one_of(column, &statement, values.len());
            statement = texts(statement, values);
        }
    }
    if let Some(ids) = ids {
        is_one_of("workloads.id", &statement, ids.len());
        statement = ids.iter().fold(statement, |all, id| all.text(id.to_string()));
    }
    if let Some(failed) = failed {
        let sign = if *failed { "=" } else { "<>" };
        let _ = write!(sql, " AND workloads.phase {sign} ${}", statement.values.len() + 1);
        statement = statement.text(FAILED);
    }
    sql.push_str(tail);
    statement.sql = sql.into();
    statement
}

fn texts<'a>(statement: Statement<'a>, values: &'a [String]) -> Statement<'a> {
    values.iter().fold(statement, |all, value| all.text(value.as_str()))
}

/// `$3, $4, $5`.
fn numbered(first: usize, count: usize) -> String {
    let names = (first..first + count).map(|number| format!("${number}"));
    names.collect::<Vec<_>>().join(", ")
}
