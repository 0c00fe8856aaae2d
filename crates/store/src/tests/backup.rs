//! Backups: all comes back, from and to either database; what is not whole is refused.

use std::io::Cursor;

use super::lab::Lab;
use super::migrations::left_by;
use super::samples::{event, object, project};
use crate::schema::{NEWEST, TABLES};
use records::*;

use crate::*;

async fn save(lab: &Lab) -> Vec<u8> {
    let mut out = Vec::new();
    backup(lab.dir.path(), &lab.database, "0.1.0", Vec::new(), &mut out).await.unwrap();
    out
}

async fn put(lab: &Lab, bytes: &[u8], replace: bool) -> Result<Contents, BackupError> {
    let input = Cursor::new(bytes);
    let restored = restore(lab.dir.path(), &lab.database, input, replace, |_| Ok(())).await;
    restored.map(|(contents, _)| contents)
}

/// A little of everything, deleted things included.
async fn busy(lab: &Lab) -> Store {
    let (store, workloads) = lab.filled().await;
    let gone = WorkloadState {
        deleted_at: Some(units::Instant(9)),
        eviction: Some(ReasonBody {
            code: "E1".to_owned(),
            message: "x".to_owned(),
            at_ms: 8,
            beneficiary: None,
        }),
        ..workloads[1].state.clone()
    };
    let credential = CredentialRow {
        client_id: "cli".to_owned(),
        secret_sha256: "ab".to_owned(),
        subject: "ann".to_owned(),
        created_at: units::Instant(1),
    };
    let usage = UsageRow {
        step_start: units::Instant(7),
        project_id: Some(1),
        pool: "a100".to_owned(),
        held: units::Resources { gpu_millis: u64::MAX, ..units::Resources::default() },
    };
    let lag = LagRow {
        unit: LagUnit::Department(1),
        pool: "a100".to_owned(),
        value: -7,
        since: units::Instant(8),
        fair_millis: 2000,
        held_millis: 4000,
        turn_since: Some(units::Instant(8)),
    };
    store
        .apply(&[
            Change::WorkloadState(workloads[1].id, gone),
            Change::Project(ProjectRow {
                deleted_at: Some(units::Instant(9)),
                ..project(2, "old")
            }),
            Change::Object(Box::new(object(1, "ann"))),
            Change::Credential(credential),
            Change::Audit(audit("made")),
            Change::Usage(usage),
            Change::Lag(lag),
        ])
        .await
        .unwrap();
    store
}

fn audit(what: &str) -> AuditRow {
    AuditRow {
        at: units::Instant(1),
        who: "ünn \"'\\ \n".to_owned(),
        what: what.to_owned(),
        target: "x".to_owned(),
        result: "ok".to_owned(),
        detail: AuditDetail::default(),
    }
}

async fn comes_back(from: &Lab, to: &Lab) {
    let store = busy(from).await;
    let bytes = save(from).await;
    let contents = put(to, &bytes, false).await.unwrap();
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(usize::try_from(contents.rows).unwrap(), lines - 2);
    assert_eq!(save(to).await, bytes, "{}", String::from_utf8_lossy(&bytes));
    let copy = to.open().await.unwrap();
    assert_eq!(copy.load().await.unwrap(), store.load().await.unwrap());
    assert_eq!(copy.audit(9).await.unwrap(), store.audit(9).await.unwrap());
    // Numbers go on where they were.
    copy.apply(&[Change::Audit(audit("next")), Change::Event(event(5, None))]).await.unwrap();
    assert_eq!(copy.audit(9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn everything_comes_back_and_moves_between_databases() {
    comes_back(&Lab::sqlite(), &Lab::sqlite()).await;
    let Some(postgres) = Lab::postgres().await else { return };
    comes_back(&Lab::sqlite(), &postgres).await;
    comes_back(&Lab::postgres().await.unwrap(), &Lab::sqlite()).await;
}

/// While a server writes, a backup shows one moment: no event without its audit row.
pub(super) async fn a_backup_shows_one_moment(lab: &Lab) {
    let (store, _) = lab.filled().await;
    let writing = tokio::spawn(async move {
        for seq in 5..100 {
            let batch = [Change::Event(event(seq, None)), Change::Audit(audit("x"))];
            store.apply(&batch).await.unwrap();
        }
    });
    let mut backups = Vec::new();
    while !writing.is_finished() {
        backups.push(String::from_utf8(save(lab).await).unwrap());
    }
    writing.await.unwrap();
    for text in backups {
        let count = |table| text.lines().filter(|line| line.starts_with(table)).count();
        assert_eq!(count("{\"events\"") - 4, count("{\"audit\""));
    }
}

pub(super) async fn a_state_is_not_replaced_by_mistake(lab: &Lab) {
    let other = Lab::sqlite();
    drop(busy(&other).await);
    let bytes = save(&other).await;
    let store = lab.open().await.unwrap();
    let error = put(lab, &bytes, true).await.unwrap_err().to_string();
    assert!(error.contains("in use by"), "{error}");
    drop(store);
    let error = put(lab, &bytes, false).await.unwrap_err();
    assert!(matches!(error, BackupError::NotEmpty { .. }), "{error}");
    put(lab, &bytes, true).await.unwrap();
    assert_eq!(save(lab).await, bytes);
}

pub(super) async fn what_is_not_whole_is_refused_and_changes_nothing(lab: &Lab) {
    drop(busy(lab).await);
    let bytes = save(lab).await;
    let text = String::from_utf8(bytes.clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let mut wrong: Vec<String> = (0..lines.len())
        // The backup without a line, and cut before it.
        .flat_map(|at| [[&lines[..at], &lines[at + 1..]].concat(), lines[..at].to_vec()])
        .map(|lines| lines.join("\n") + "\n")
        .collect();
    wrong.push(text.trim_end().to_owned());
    wrong.push(text.replace("team-a", "team-b"));
    wrong.push(text.replace("{\"projects\"", "{\"proyects\""));
    wrong.push("not a backup\n".repeat(10));
    for wrong in &wrong {
        let error = put(lab, wrong.as_bytes(), true).await.unwrap_err();
        assert!(matches!(error, BackupError::Damaged { .. }), "{error}\n{wrong}");
    }
    let newest = format!("\"schema\":{NEWEST}");
    let newer = text.replacen(&newest, "\"schema\":999", 1);
    let error = put(lab, newer.as_bytes(), true).await.unwrap_err();
    assert!(matches!(error, BackupError::Newer { found: 999, .. }), "{error}");
    assert_eq!(save(lab).await, bytes);
}

/// A backup with these lines, as if it had been made so.
fn sealed(body: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    let rows = body.lines().count() - 1;
    format!("{body}{{\"rows\":{rows},\"sha256\":\"{digest}\"}}\n")
}

/// Rows that can be written and not be read are found before anything is replaced.
pub(super) async fn what_no_server_understands_is_not_restored(lab: &Lab) {
    drop(busy(lab).await);
    let bytes = save(lab).await;
    let text = String::from_utf8(bytes.clone()).unwrap();
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let object = body.lines().find(|line| line.starts_with("{\"objects\"")).unwrap();
    let mut row: serde_json::Value = serde_json::from_str(object).unwrap();
    row["objects"]["body"] = "{".into();
    let wrong = sealed(&(body.replace(object, &row.to_string()) + "\n"));
    let error = put(lab, wrong.as_bytes(), true).await.unwrap_err();
    assert!(matches!(error, BackupError::Store(crate::Error::Row { .. })), "{error}");
    assert!(!lab.dir.path().join("elastane.db.new").exists(), "no half of it stays");
    assert_eq!(save(lab).await, bytes);
}

/// A malicious file with a valid digest.
pub(super) async fn names_are_looked_at_closely(lab: &Lab) {
    drop(lab.filled().await);
    let bytes = save(lab).await;
    let head = String::from_utf8(bytes.clone()).unwrap().lines().next().unwrap().to_owned();
    for row in [
        r#"{"meta (key) VALUES ('x'); DROP TABLE pods; --":{"key":"k"}}"#,
        r#"{"meta":{"key) VALUES ('x'); DROP TABLE pods; --":"k"}}"#,
        r#"{"meta":{}}"#,
        r#"{"meta":{"key":["a"]}}"#,
        r#"{"projects":{"id":1.5}}"#,
        r#"{"_sqlx_migrations":{"version":1}}"#,
        r#"{"meta":{"key":"a","value":"b"},"pods":{"id":"c"}}"#,
    ] {
        let file = sealed(&format!("{head}\n{row}\n"));
        let error = put(lab, file.as_bytes(), true).await.unwrap_err();
        assert!(matches!(error, BackupError::Damaged { line: 2, .. }), "{error}: {row}");
    }
    assert_eq!(save(lab).await, bytes);
}

#[tokio::test]
async fn a_backup_of_every_version_comes_up_whole() {
    for version in 1..=usize::try_from(NEWEST).unwrap() {
        let old = Lab::sqlite();
        left_by(&old, version).await;
        let bytes = save(&old).await;
        let new = Lab::sqlite();
        put(&new, &bytes, false).await.unwrap();
        let state = new.open().await.unwrap().load().await.unwrap();
        let last = if version < 17 { 2 } else { 3 };
        assert_eq!((state.workloads.len(), state.last_event_seq), (1, last), "{version}");
        if let Some(new) = Lab::postgres().await {
            put(&new, &bytes, false).await.unwrap();
            assert_eq!(new.open().await.unwrap().load().await.unwrap(), state, "{version}");
        }
    }
}

#[tokio::test]
async fn what_was_replaced_is_kept_beside_it() {
    let (lab, other) = (Lab::sqlite(), Lab::sqlite());
    drop(busy(&lab).await);
    let before = save(&lab).await;
    drop(other.filled().await);
    put(&lab, &save(&other).await, true).await.unwrap();
    let path = |name: &str| lab.dir.path().join(name);
    // The second replacement keeps the database that the first one kept.
    put(&lab, &save(&other).await, true).await.unwrap();
    assert!(path("elastane.db.replaced-2").exists());
    std::fs::rename(path("elastane.db.replaced"), path("elastane.db")).unwrap();
    assert_eq!(save(&lab).await, before);
}

#[tokio::test]
async fn a_log_without_its_database_is_not_taken_into_the_new_one() {
    let (lab, other) = (Lab::sqlite(), Lab::sqlite());
    let path = |name: &str| lab.dir.path().join(name);
    let running = busy(&lab).await;
    std::fs::copy(path("elastane.db-wal"), path("kept")).unwrap();
    drop(running);
    std::fs::remove_file(path("elastane.db")).unwrap();
    std::fs::rename(path("kept"), path("elastane.db-wal")).unwrap();
    drop(other.filled().await);
    let bytes = save(&other).await;
    put(&lab, &bytes, false).await.unwrap();
    assert_eq!(save(&lab).await, bytes);
}

#[tokio::test]
async fn nothing_to_back_up_is_an_error() {
    let labs = [Some(Lab::sqlite()), Lab::postgres().await];
    for lab in labs.into_iter().flatten() {
        let error = backup(lab.dir.path(), &lab.database, "0", vec![], Vec::new()).await;
        let error = error.unwrap_err();
        assert!(matches!(error, BackupError::Nothing { .. }), "{error}");
    }
}

#[tokio::test]
async fn files_of_the_state_come_back_with_the_database_and_no_others() {
    let lab = Lab::sqlite();
    drop(busy(&lab).await);
    let file = |name: &str| SavedFile { name: name.to_owned(), text: "1\n2\n".to_owned() };
    let saved: Vec<_> = FILES.map(file).into();
    let write = async |files: Vec<SavedFile>| {
        let mut out = Vec::new();
        backup(lab.dir.path(), &lab.database, "0", files, &mut out).await.map(|_| out).unwrap()
    };
    let take = async |bytes: &[u8]| {
        let (other, mut got) = (Lab::sqlite(), Vec::new());
        let keep = |files| {
            got = files;
            Ok(())
        };
        let input = Cursor::new(bytes);
        let done = restore(other.dir.path(), &other.database, input, false, keep).await;
        done.map(|_| got)
    };
    assert_eq!(take(&write(saved.clone()).await).await.unwrap(), saved);
    assert_eq!(take(&write(vec![]).await).await.unwrap(), [], "one from before has none");
    let foreign = take(&write(vec![file("../../etc/passwd")]).await).await.unwrap_err();
    assert!(matches!(foreign, BackupError::Damaged { .. }), "{foreign}");
}

#[tokio::test]
async fn no_table_is_left_out() {
    let lab = Lab::sqlite();
    drop(lab.open().await.unwrap());
    let all = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_sqlx%'
        ESCAPE '\\' AND name NOT LIKE 'sqlite%' ORDER BY name";
    let mut known: Vec<_> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    known.sort();
    assert_eq!(lab.texts(all).await, known);
}
