//! Writing a backup, while a server runs or not. Owns: that it shows one moment.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, json};
use sha2::{Digest as _, Sha256};
use sqlx::Connection as _;

use super::{BackupError, Contents, End, FORMAT, FileLine, SavedFile, hex};
use crate::connection::{Connection, Row};
use crate::fault::{Fault, Result};
use crate::schema::{self, TABLES};
use crate::statement::{Statement, Value};
use crate::{Database, postgres, sqlite};

/// Writes every row of a database, as of one moment, and these files. A server may use it meanwhile
/// and is not held up.
///
/// # Errors
/// There is no database, it is damaged or newer, or the output cannot be written.
pub async fn backup(
    dir: &Path,
    database: &Database,
    program: &str,
    files: Vec<SavedFile>,
    out: impl Write,
) -> std::result::Result<Contents, BackupError> {
    match database {
        Database::Sqlite => {
            let path = dir.join(sqlite::FILE_NAME);
            if !path.exists() {
                return Err(BackupError::Nothing { database: path.display().to_string() });
            }
            let mut reader = sqlite::reader(&path).await?;
            let named = |fault: Fault| fault.named(&path.display().to_string());
            let begun = reader.begin().await.map_err(Fault::from);
            let mut moment = begun.map_err(named)?;
            write(&mut Connection::Sqlite(&mut moment), program, files, out, named).await
        }
        Database::Postgres(url) => {
            let Some(mut reader) = postgres::reader(url).await? else {
                return Err(BackupError::Nothing { database: url.to_string() });
            };
            let named = |fault: Fault| fault.named(&url.to_string());
            let begin = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let begun = reader.begin_with(begin).await.map_err(Fault::from);
            let mut moment = begun.map_err(named)?;
            write(&mut Connection::Postgres(&mut moment), program, files, out, named).await
        }
    }
}

async fn write(
    db: &mut Connection<'_>,
    program: &str,
    files: Vec<SavedFile>,
    out: impl Write,
    named: impl Fn(Fault) -> crate::Error,
) -> std::result::Result<Contents, BackupError> {
    let mut contents = head(db, program).await.map_err(&named)?;
    let mut out = Digested { out, digest: Sha256::new() };
    out.line(&contents).map_err(BackupError::writing)?;
    for table in TABLES.iter().filter(|table| table.since <= contents.schema) {
        let all = format!("SELECT * FROM {} {} ORDER BY {}", table.name, table.only, table.order);
        let mut failed = None;
        let each = |row: Row| {
            let row: Map<_, _> = row.values()?.into_iter().filter_map(column).collect();
            contents.rows += 1;
            match out.line(&json!({ table.name: row })) {
                Ok(()) => Ok(true),
                Err(cause) => {
                    failed = Some(cause);
                    Ok(false)
                }
            }
        };
        db.each(Statement::new("read", all), each).await.map_err(&named)?;
        if let Some(cause) = failed {
            return Err(BackupError::writing(cause));
        }
    }
    for file in files {
        out.line(&FileLine { file }).map_err(BackupError::writing)?;
        contents.rows += 1;
    }
    let end = End { rows: contents.rows, sha256: hex(out.digest.clone()) };
    out.line(&end).and_then(|()| out.out.flush()).map_err(BackupError::writing)?;
    Ok(contents)
}

async fn head(db: &mut Connection<'_>, program: &str) -> Result<Contents> {
    let version = "SELECT MAX(version) AS n FROM _sqlx_migrations WHERE success";
    let version = db.read(Statement::new("read", version)).await?;
    let version = version.first().map(|row| row.int("n")).transpose()?;
    let meta = db.read(Statement::new("read", "SELECT key, value FROM meta")).await?;
    let value = |key: &str| -> Result<String> {
        for row in &meta {
            if row.text("key")?.as_deref() == Some(key) {
                return Ok(row.text("value")?.unwrap_or_default());
            }
        }
        Err(Fault::Value { row: format!("meta.{key}"), value: "nothing".to_owned() })
    };
    Ok(Contents {
        format: FORMAT.to_owned(),
        program: program.to_owned(),
        schema: version.flatten().unwrap_or(schema::NEWEST),
        cluster: value("cluster_uuid")?,
        created_at: value("created_at")?,
        rows: 0,
    })
}

fn column((name, value): (String, Value<'static>)) -> Option<(String, serde_json::Value)> {
    match value {
        Value::Int(value) => value.map(|value| (name, value.into())),
        Value::Text(value) => value.map(|value| (name, value.into_owned().into())),
    }
}

struct Digested<W> {
    out: W,
    digest: Sha256,
}

impl<W: Write> Digested<W> {
    fn line(&mut self, line: &impl serde::Serialize) -> std::io::Result<()> {
        let line = serde_json::to_string(line)? + "\n";
        self.digest.update(&line);
        self.out.write_all(line.as_bytes())
    }
}
