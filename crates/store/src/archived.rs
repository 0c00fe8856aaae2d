//! Reads ended workloads that left memory (archived). Owns: their orders, and a bound on every
//! query about them: those of one name, a page, a count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use records::{Archived, ArchivedFilter, ArchivedLookup, ArchivedOrder, ArchivedPlace, PodRow};
use units::Instant;
use uuid::Uuid;

use crate::connection::Connection;
use crate::fault::Result;
use crate::read::{read_pod, read_workload};
use crate::reading::{Reading, read_with};
use crate::statement::Statement;

/// Most values of a list in one statement.
const VALUES_MAX: usize = 256;
/// Phase of failed workloads, as the state writes it.
const FAILED: &str = "failed";
/// Condition for archived workloads. None of them was deleted: a workload comes back from the
/// archive before its deletion.
const ARE: &str = "workloads.archived = 1";
/// Most projects that are read one by one, each in order of an index, and merged.
const MERGED_MAX: usize = 64;

/// Archived workloads and their pods that the lookups name, by id, by project and name, or by pod.
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
            // As the index of living names has it, whatever is archived: SQLite would choose
            // another.
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

/// Workloads with these ids for which an SQL condition holds, in order of `seq`, and their pods.
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

/// Pods among `pods` whose workloads are archived.
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

/// Pods that are stored, with `true` if the pod's workload was deleted.
pub(crate) async fn deleted_pods(
    db: &mut Connection<'_>,
    pods: &[Uuid],
) -> Result<BTreeMap<Uuid, bool>> {
    let mut found = BTreeMap::new();
    for pods in pods.chunks(VALUES_MAX) {
        let sql = format!(
            "SELECT pods.id AS id, workloads.deleted_at AS deleted_at
             FROM pods JOIN workloads ON workloads.id = pods.workload_id
             WHERE pods.id IN ({})",
            numbered(1, pods.len())
        );
        let ids: Vec<String> = pods.iter().map(Uuid::to_string).collect();
        let statement = texts(Statement::new("find deleted workloads", sql), &ids);
        let read = |r: &Reading<'_>| Ok((r.uuid("id")?, r.maybe_number("deleted_at")?.is_some()));
        found.extend(read_with(db, "pods", statement, read).await?);
    }
    Ok(found)
}

/// Workloads among `ids` that were not deleted, archived or not.
pub(crate) async fn not_deleted(db: &mut Connection<'_>, ids: &[Uuid]) -> Result<Archived> {
    let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    with_ids(db, &ids, "deleted_at IS NULL").await
}

/// Number of archived workloads that a filter selects.
pub(crate) async fn count(db: &mut Connection<'_>, filter: &ArchivedFilter) -> Result<u64> {
    let mut sql = String::from("SELECT COUNT(*) AS n FROM workloads");
    let statement = Statement::new("count archived workloads", "");
    let mut statement = selected(statement, &mut sql, filter, filter.projects.as_deref());
    statement.sql = sql.into();
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
    let of_project = match filter.order {
        ArchivedOrder::ProjectAndName => (
            ", projects.name AS project_name",
            "JOIN projects ON projects.id = workloads.project_id",
        ),
        _ => ("", ""),
    };
    let select = format!(
        "SELECT workloads.id AS id, workloads.seq AS seq, project_id, workloads.name AS name,
            created_at, phase_since, completed_at{} FROM workloads {}",
        of_project.0, of_project.1
    );
    let statement = page(db, "list archived workloads", &select, filter, (skip, limit));
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
    let by_age = ArchivedFilter { order: ArchivedOrder::Seq, ..filter.clone() };
    let select = "SELECT workloads.* FROM workloads";
    let statement = page(db, "read archived workloads", select, &by_age, (0, limit));
    let workloads = read_with(db, "workloads", statement, read_workload).await?;
    let pods = pods_of(db, workloads.iter().map(|row| row.id)).await?;
    Ok(Archived { workloads, pods })
}

/// A page in the order of a filter. An index has the order for all and for one project; of some
/// projects the first of each are merged.
fn page<'a>(
    db: &Connection<'_>,
    what: &'static str,
    select: &str,
    filter: &'a ArchivedFilter,
    (skip, limit): (u64, u64),
) -> Statement<'a> {
    let tail = |columns: &[&str], skip: u64, limit: u64| {
        let order = order(db, columns, filter.descending);
        format!(" ORDER BY {order} LIMIT {limit} OFFSET {skip}")
    };
    let columns = columns(filter.order);
    let (mut statement, mut sql) = (Statement::new(what, ""), String::new());
    match filter.projects.as_deref() {
        Some(projects) if (2..=MERGED_MAX).contains(&projects.len()) => {
            let tail_of_one = tail(columns, 0, skip.saturating_add(limit));
            for (number, project) in projects.iter().enumerate() {
                sql.push_str(if number == 0 { "SELECT * FROM (" } else { " UNION ALL " });
                // Writing to a string cannot fail.
                let _ = write!(sql, "SELECT * FROM ({select}");
                let one = std::slice::from_ref(project);
                statement = selected(statement, &mut sql, filter, Some(one));
                let _ = write!(sql, "{tail_of_one}) AS of_{number}");
            }
            let merged: Vec<_> = columns
                .iter()
                .map(|name| if *name == PROJECT_NAME { "workloads.project_name" } else { name })
                .collect();
            let _ = write!(sql, ") AS workloads{}", tail(&merged, skip, limit));
        }
        projects => {
            sql.push_str(select);
            statement = selected(statement, &mut sql, filter, projects);
            sql.push_str(&tail(columns, skip, limit));
        }
    }
    statement.sql = sql.into();
    statement
}

const PROJECT_NAME: &str = "projects.name";

const fn columns(order: ArchivedOrder) -> &'static [&'static str] {
    match order {
        ArchivedOrder::Seq => &[],
        ArchivedOrder::Name => &["workloads.name"],
        ArchivedOrder::ProjectAndName => &[PROJECT_NAME, "workloads.name"],
        ArchivedOrder::Created => &["created_at"],
        ArchivedOrder::CreatedAndName => &["created_at", "workloads.name"],
        ArchivedOrder::Completed => &["completed_at"],
    }
}

fn order(db: &Connection<'_>, columns: &[&str], descending: bool) -> String {
    let direction = if descending { " DESC" } else { "" };
    let mut order = String::new();
    for column in columns {
        // By bytes, as the rest of the server does.
        let collation = match (db, column.ends_with("name")) {
            (Connection::Postgres(_), true) => " COLLATE \"C\"",
            _ => "",
        };
        // Writing to a string cannot fail.
        let _ = write!(order, "{column}{collation}{direction}, ");
    }
    order + "workloads.seq"
}

/// Adds the conditions of a filter to what selects from `workloads`.
fn selected<'a>(
    mut statement: Statement<'a>,
    sql: &mut String,
    filter: &'a ArchivedFilter,
    projects: Option<&'a [u64]>,
) -> Statement<'a> {
    let ArchivedFilter { kinds, failed, names, users, ids, after_seq, .. } = filter;
    let _ = write!(sql, " WHERE {ARE}");
    // A condition on it has SQLite choose the index of it, and sort for any other order.
    if *after_seq > 0 {
        let _ = write!(sql, " AND workloads.seq > ${}", statement.values.len() + 1);
        statement = statement.int(*after_seq);
    }
    let mut is_one_of = |column: &str, statement: &Statement<'_>, count: usize| {
        let values = numbered(statement.values.len() + 1, count);
        // An empty list selects nothing.
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
