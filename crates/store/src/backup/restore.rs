//! Making a database from a backup. Owns: that it is all of it or nothing, and that no state is
//! lost by mistake.

use std::io::{BufRead, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use sqlx::{PgConnection, SqliteConnection};

use super::{BackupError, Contents, End, FILES, FileLine, Lines, SavedFile, contents};
use crate::connection::Connection;
use crate::fault::Fault;
use crate::lock::Lock;
use crate::schema::TABLES;
use crate::statement::Statement;
use crate::{Database, postgres, sqlite};

/// Puts the rows of a backup into a database, which no server may use meanwhile. With `replace` an
/// existing state may be replaced. `beside` puts the files of the state directory in place, before
/// any server may start. Returns the header of the backup, and where an existing database is kept.
///
/// # Errors
/// The file is not a whole backup or a newer one, there is a state already, a server runs, or the
/// database failed; then nothing has changed.
pub async fn restore(
    dir: &Path,
    database: &Database,
    mut file: impl BufRead + Seek,
    replace: bool,
    beside: impl FnOnce(Vec<SavedFile>) -> std::io::Result<()>,
) -> Result<(Contents, Option<PathBuf>), BackupError> {
    let (found, files) = verify(&mut file)?;
    file.seek(SeekFrom::Start(0)).map_err(|cause| BackupError::File { what: "read", cause })?;
    let _lock = Lock::take(dir)?;
    let kept = match database {
        Database::Sqlite => {
            let path = dir.join(sqlite::FILE_NAME);
            if path.exists() && !replace {
                return Err(BackupError::NotEmpty { database: path.display().to_string() });
            }
            let place = path.display().to_string();
            let named = |fault: Fault| fault.named(&place);
            let fill = async |db: &mut SqliteConnection| {
                fill(&mut Connection::Sqlite(db), &mut file, &named).await
            };
            sqlite::build(&path, found.schema, fill).await?
        }
        Database::Postgres(url) => {
            let place = url.to_string();
            let named = |fault: Fault| fault.named(&place);
            let fill = async |db: &mut PgConnection| {
                fill(&mut Connection::Postgres(db), &mut file, &named).await
            };
            if !postgres::build(url, found.schema, replace, fill).await? {
                return Err(BackupError::NotEmpty { database: place });
            }
            None
        }
    };
    beside(files).map_err(|cause| BackupError::Beside { cause })?;
    Ok((found, kept))
}

/// Reads the whole backup once; returns its header and its files.
fn verify(file: impl BufRead) -> Result<(Contents, Vec<SavedFile>), BackupError> {
    let mut lines = Lines::new(file);
    let (mut found, mut files) = (contents(&mut lines)?, Vec::new());
    loop {
        let (line, before) = lines.next()?;
        if let Ok(end) = serde_json::from_str::<End>(&line) {
            return match end == (End { rows: found.rows, sha256: before }) {
                true => Ok((found, files)),
                false => Err(lines.fault("its content was changed after it was made")),
            };
        }
        match serde_json::from_str::<FileLine>(&line) {
            Ok(FileLine { file }) if FILES.contains(&file.name.as_str()) => files.push(file),
            Ok(FileLine { file }) => {
                let name = units::shown(&file.name);
                return Err(lines.fault(format!("there is no file `{name}` of a state")));
            }
            Err(_) => drop(row(&line).map_err(|fault| lines.fault(fault))?),
        }
        found.rows += 1;
    }
}

/// Writes every row. The caller has verified the backup.
async fn fill(
    db: &mut Connection<'_>,
    file: impl BufRead,
    named: &dyn Fn(Fault) -> crate::Error,
) -> Result<(), BackupError> {
    let mut lines = Lines::new(file);
    contents(&mut lines)?;
    loop {
        let (line, _) = lines.next()?;
        if serde_json::from_str::<End>(&line).is_ok() {
            return Ok(());
        }
        if serde_json::from_str::<FileLine>(&line).is_ok() {
            continue;
        }
        let statement = row(&line).map_err(|fault| lines.fault(fault))?;
        db.write(statement).await.map_err(named)?;
    }
}

/// The statement that writes the row of a line. Names go into its text, so they are looked at
/// closely.
fn row(line: &str) -> Result<Statement<'static>, String> {
    let line: Map<String, Json> =
        serde_json::from_str(line).map_err(|error| format!("it is no row: {error}"))?;
    let mut tables = line.into_iter();
    let (Some((table, Json::Object(columns))), None) = (tables.next(), tables.next()) else {
        return Err("it is no row of one table".to_owned());
    };
    let known = TABLES.iter().find(|known| known.name == table);
    let known = known.ok_or_else(|| format!("there is no table `{table}`"))?;
    let plain = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte))
    };
    if columns.is_empty() || !columns.keys().all(|name| plain(name)) {
        return Err(format!("it is no row of `{table}`"));
    }
    let names: Vec<_> = columns.keys().map(String::as_str).collect();
    let places: Vec<_> = (1..=names.len()).map(|place| format!("${place}")).collect();
    let sql =
        format!("INSERT INTO {} ({}) VALUES ({})", known.name, names.join(", "), places.join(", "));
    let mut statement = Statement::new("restore a row", sql);
    for (name, value) in columns {
        statement = match value {
            Json::String(text) => statement.text(text),
            Json::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => statement.int(number),
                (None, Some(number)) => statement.signed(number),
                (None, None) => return Err(format!("`{name}` holds {number}")),
            },
            _ => return Err(format!("`{name}` holds neither a number nor a text")),
        };
    }
    Ok(statement)
}
