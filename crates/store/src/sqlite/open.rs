//! Opening the file: check first, change later. Owns: connection settings, creation, the checks
//! that refuse a damaged or newer database, migrations.

use std::io::Read;
use std::path::{Path, PathBuf};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, SqlitePool};

use super::writer::BUSY_TIMEOUT;
use crate::Error;
use crate::connection::Connection as AnyConnection;
use crate::schema::{self, Dialect};
use crate::{read, release};

/// Up to this size the whole file is checked at every start (about 1 ms per MiB); a larger one is
/// found out when the damaged page is read, which `load` does for everything but history.
const CHECKED_BYTES_MAX: u64 = 32 << 20;

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}

/// A connection that may change the schema.
pub(super) async fn owner(path: &Path) -> Result<SqliteConnection, Error> {
    let options = options(path).journal_mode(SqliteJournalMode::Wal);
    options.connect().await.map_err(|source| Error::from_sqlx(&name(path), "open", source))
}

/// Connections that may only read, opened when needed.
pub(super) fn readers(path: &Path, count: u32) -> SqlitePool {
    SqlitePoolOptions::new().max_connections(count).connect_lazy_with(options(path).read_only(true))
}

/// Creates or checks the database, and brings it to the newest schema.
pub(super) async fn prepare(path: &Path) -> Result<(), Error> {
    let found = match std::fs::metadata(path) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(cause) => {
            return Err(Error::Access { what: "read", path: path.to_owned(), cause });
        }
    };
    match found {
        None => create(path).await?,
        Some(file) if !file.is_file() => {
            let cause = std::io::Error::other("it is not a regular file");
            return Err(Error::Access { what: "open database", path: path.to_owned(), cause });
        }
        Some(file) => check(path, file.len()).await?,
    }
    let mut owner = owner(path).await?;
    migrate(path, &mut owner, schema::NEWEST).await?;
    let noted = release::note(&mut AnyConnection::Sqlite(&mut owner)).await;
    noted.map_err(|fault| fault.named(&name(path)))?;
    owner.close().await.map_err(|cause| Error::from_sqlx(&name(path), "close", cause))
}

/// Makes a new database.
async fn create(path: &Path) -> Result<(), Error> {
    let log = beside(path, "-wal");
    if log.exists() {
        let detail = format!("the file is missing, but its log {} is there", log.display());
        return Err(Error::Damaged { database: name(path), detail });
    }
    build(path, schema::NEWEST, async |fresh| {
        for (key, value) in schema::identity() {
            sqlx::query("INSERT INTO meta (key, value) VALUES (?, ?)")
                .bind(key)
                .bind(value)
                .execute(&mut *fresh)
                .await
                .map_err(|cause| Error::from_sqlx(&name(path), "create", cause))?;
        }
        Ok(())
    })
    .await
    .map(drop)
}

/// Makes a new database under another name, fills it in a transaction, brings it from `version` to
/// the newest schema and moves it into place, so that an existing file is never an unfinished one:
/// an empty or short file is damage, not a beginning. A database that was there is kept beside it;
/// its new name is returned.
pub(crate) async fn build<E: From<Error>>(
    path: &Path,
    version: i64,
    fill: impl AsyncFnOnce(&mut SqliteConnection) -> Result<(), E>,
) -> Result<Option<PathBuf>, E> {
    let fresh = path.with_extension("db.new");
    remove_all(&fresh)?;
    let built = write_fresh(path, &fresh, version, fill).await;
    if built.is_err() {
        // If the removal fails too, the first fault is the one to report.
        let _ = remove_all(&fresh);
    }
    built?;
    let kept = keep(path).await?;
    std::fs::rename(&fresh, path).map_err(access("create", path))?;
    Ok(kept)
}

/// Makes a whole database under a name of its own, and reads it as a server would.
async fn write_fresh<E: From<Error>>(
    path: &Path,
    fresh: &Path,
    version: i64,
    fill: impl AsyncFnOnce(&mut SqliteConnection) -> Result<(), E>,
) -> Result<(), E> {
    // No log or journal file beside this one, and no waiting for the disk at each step: it is one
    // file, which is written through once, before it takes its name. It is removed if a step fails.
    let options = options(fresh)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Memory)
        .synchronous(SqliteSynchronous::Off);
    let failed = |what| move |cause| Error::from_sqlx(&name(path), what, cause);
    let mut connection = options.connect().await.map_err(failed("create"))?;
    migrate(path, &mut connection, version).await?;
    let mut transaction = connection.begin().await.map_err(failed("create"))?;
    fill(&mut transaction).await?;
    transaction.commit().await.map_err(failed("create"))?;
    migrate(path, &mut connection, schema::NEWEST).await?;
    let read = read::load(&mut AnyConnection::Sqlite(&mut connection)).await;
    read.map_err(|fault| fault.named(&name(path)))?;
    connection.close().await.map_err(failed("create"))?;
    let file = std::fs::File::open(fresh).and_then(|file| file.sync_all());
    Ok(file.map_err(access("write", path))?)
}

/// The files of a database.
fn files(path: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-journal"].map(|suffix| beside(path, suffix))
}

fn remove_all(path: &Path) -> Result<(), Error> {
    files(path).iter().try_for_each(|file| remove(file))
}

/// A name beside a database that nothing has yet: `elastane.db.replaced`, `.replaced-2`, ….
fn unused(path: &Path) -> PathBuf {
    let first = path.with_extension("db.replaced");
    let others = (2_u64..).map(|number| path.with_extension(format!("db.replaced-{number}")));
    let free = |name: &PathBuf| files(name).iter().all(|file| file.symlink_metadata().is_err());
    std::iter::once(first.clone()).chain(others).find(free).unwrap_or(first)
}

/// Gives a database that is about to be replaced a second name, together with its log, if that can
/// be read. Databases kept before stay.
async fn keep(path: &Path) -> Result<Option<PathBuf>, Error> {
    let kept = unused(path);
    if path.exists()
        && let Ok(mut old) = owner(path).await
    {
        // A damaged one is kept as it is; nothing is lost that could be read.
        let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut old).await;
        let _ = old.close().await;
    }
    for suffix in ["", "-wal", "-shm"] {
        let (from, to) = (beside(path, suffix), beside(&kept, suffix));
        // A log without its database goes as well: it would be replayed into the new one.
        if !from.exists() {
            continue;
        }
        match suffix {
            // Under both names until the new one takes the first: there is a database at any
            // moment.
            "" => std::fs::hard_link(&from, &to).map_err(access("keep", &from))?,
            _ => std::fs::rename(&from, &to).map_err(access("keep", &from))?,
        }
    }
    Ok(kept.exists().then_some(kept))
}

fn remove(file: &Path) -> Result<(), Error> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(access("delete", file)(error))
        }
        _ => Ok(()),
    }
}

fn access(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |cause| Error::Access { what, path, cause }
}

/// A connection to read an existing database with, after the check that it is whole.
pub(crate) async fn reader(path: &Path) -> Result<SqliteConnection, Error> {
    let file = std::fs::metadata(path).map_err(access("read", path))?;
    check(path, file.len()).await?;
    let open = |cause| Error::from_sqlx(&name(path), "open", cause);
    options(path).read_only(true).connect().await.map_err(open)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Checks an existing file through a connection that cannot change it.
async fn check(path: &Path, size_bytes: u64) -> Result<(), Error> {
    let damaged = |detail: &str| Error::Damaged { database: name(path), detail: detail.to_owned() };
    check_size(path, size_bytes)?;
    let read = |source| Error::from_sqlx(&name(path), "read", source);
    let mut reader = options(path).read_only(true).connect().await.map_err(read)?;
    let versions = "SELECT COUNT(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'";
    let has_versions: i64 =
        sqlx::query_scalar(versions).fetch_one(&mut reader).await.map_err(read)?;
    let found: Option<i64> = if has_versions == 0 {
        None
    } else {
        let version = "SELECT MAX(version) FROM _sqlx_migrations WHERE success";
        sqlx::query_scalar(version).fetch_one(&mut reader).await.map_err(read)?
    };
    let known = schema::NEWEST;
    match found {
        None => return Err(damaged("it is not a database of elastane")),
        Some(found) if found > known => {
            let noted = release::read(&mut AnyConnection::Sqlite(&mut reader)).await;
            let noted = noted.map_err(|fault| fault.named(&name(path)))?;
            let (database, program) = (name(path), release::name(noted.as_deref()));
            return Err(Error::Newer { database, found, known, program });
        }
        Some(_) => {}
    }
    if size_bytes <= CHECKED_BYTES_MAX {
        let verdict: String = sqlx::query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&mut reader)
            .await
            .map_err(read)?;
        if verdict != "ok" {
            // A headline names the database, of which there is one; the fault stands below it.
            let fault = verdict.lines().find(|line| !line.starts_with("***"));
            return Err(damaged(fault.unwrap_or("its pages contradict each other")));
        }
    }
    reader.close().await.map_err(read)
}

/// Compares the size of the file with the one in its header (SQLite file format, section 1.3):
/// SQLite itself takes a last page cut in half for one filled up with zeros, and an empty file for
/// a new database. With a log to replay the size may be behind the header; SQLite checks then.
fn check_size(path: &Path, size_bytes: u64) -> Result<(), Error> {
    let damaged = |detail: String| Error::Damaged { database: name(path), detail };
    let mut header = [0; 100];
    let read = std::fs::File::open(path).and_then(|mut file| match size_bytes {
        100.. => file.read_exact(&mut header),
        _ => Ok(()),
    });
    read.map_err(|cause| Error::Access { what: "read", path: path.to_owned(), cause })?;
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(damaged(format!("its {size_bytes} bytes do not begin a database")));
    }
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let whole_bytes = page_bytes * u64::from(pages);
    let log_bytes = std::fs::metadata(beside(path, "-wal")).map_or(0, |log| log.len());
    if log_bytes == 0 && size_bytes != whole_bytes {
        return Err(damaged(format!("{size_bytes} bytes of {whole_bytes} are there")));
    }
    Ok(())
}

async fn migrate(
    path: &Path,
    connection: &mut SqliteConnection,
    version: i64,
) -> Result<(), Error> {
    let migrated = schema::migrate(connection, Dialect::Sqlite, version).await;
    migrated.map_err(|cause| Error::from_sqlx(&name(path), "migrate", cause))
}
