//! PostgreSQL. Owns: the one session that writes, the outcome of a transaction whose session broke,
//! and a few sessions that read. The statements are in `crate::read` and `crate::write`.
//!
//! When a session breaks while it commits, the outcome is unknown. So each batch leaves a unique
//! mark, in its own transaction. In a new session the mark shows if the batch is there; if it is
//! not, it is written again. The caller notices only the wait.

mod session;
mod url;

use std::time::Duration;

use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

pub(crate) use self::session::{build, reader};
pub use self::url::{BadUrl, PostgresUrl};
use crate::connection::{Connection, Reader};
use crate::fault::{Fault, Result};
use crate::statement::Statement;
use crate::{Error, read, write};
use records::{Change, Snapshot};

/// Key of the row of `meta` with the owner and number of the last batch.
const MARK: &str = "last_batch";
/// Sessions for reading beside the writer.
const READERS: u32 = 3;
/// Longest try. A network that swallows everything looks like a server that thinks.
const TRY_MAX: Duration = Duration::from_secs(20);
/// Wait between two tries, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Wait before reading is tried again: the server drops a broken session in that time.
const RELOAD_WAIT: Duration = Duration::from_millis(250);

pub(crate) struct Postgres {
    url: PostgresUrl,
    /// Owner written with each batch, to recognise our own batches; new in each process.
    owner: Uuid,
    writer: Mutex<Writer>,
    readers: PgPool,
}

struct Writer {
    /// Session that writes; `None` after it broke.
    session: Option<PgConnection>,
    /// Number of batches begun.
    batches: u64,
    /// The mark in the database when the state was read.
    loaded: String,
}

impl Postgres {
    /// Opens a database for this process alone; makes its tables if it is empty.
    pub(crate) async fn open(url: &PostgresUrl) -> std::result::Result<Self, Error> {
        let mut session = session::prepare(url).await?;
        let loaded =
            read_mark(&mut session).await.map_err(|fault| fault.named(&url.to_string()))?;
        let writer = Writer { session: Some(session), batches: 0, loaded };
        let readers = session::readers(url, READERS);
        Ok(Self { url: url.clone(), owner: Uuid::new_v4(), writer: Mutex::new(writer), readers })
    }

    pub(crate) fn place(&self) -> String {
        self.url.to_string()
    }

    pub(crate) async fn apply(&self, changes: &[Change]) -> std::result::Result<(), Error> {
        let mut writer = self.writer.lock().await;
        writer.batches += 1;
        let mark = format!("{}/{}", self.owner, writer.batches);
        let deadline = Instant::now() + self.url.patience();
        let mut wait = RETRY.0;
        loop {
            let tried = timeout(TRY_MAX, self.try_apply(&mut writer, changes, &mark)).await;
            let fault = match tried.unwrap_or(Err(Fault::Sql("write", sqlx::Error::PoolTimedOut))) {
                Ok(()) => return Ok(()),
                Err(fault) => fault,
            };
            match (fault.may_pass(), Instant::now() < deadline) {
                (true, true) => {
                    let error = fault.named(&self.place());
                    tracing::warn!(%error, "writing failed; it is tried again");
                }
                (true, false) => return Err(fault.in_doubt(&self.place())),
                (false, _) => return Err(fault.named(&self.place())),
            }
            sleep(wait).await;
            wait = (wait * 2).min(RETRY.1);
        }
    }

    /// One try. The session is put back only if it is known to be in order.
    async fn try_apply(&self, writer: &mut Writer, changes: &[Change], mark: &str) -> Result<()> {
        let mut session = match writer.session.take() {
            Some(session) => session,
            None => {
                let mut session = session::writer(&self.url).await?;
                let found = read_mark(&mut session).await?;
                if found == mark {
                    writer.session = Some(session);
                    return Ok(());
                }
                // Ours, or what was there when the state was read; else another server has been
                // at work, and what this one knows is no longer true.
                if found != writer.loaded && !found.starts_with(&self.owner.to_string()) {
                    return Err(Fault::Overtaken);
                }
                session
            }
        };
        let mut transaction = session.begin().await.map_err(Fault::during("begin"))?;
        let mut db = Connection::Postgres(&mut transaction);
        let written = match write_all(&mut db, changes).await {
            Ok(()) => db.write(set_mark(mark)).await,
            Err(fault) => Err(fault),
        };
        match written {
            Ok(()) => transaction.commit().await.map_err(Fault::during("commit"))?,
            Err(fault) => {
                // If this fails, the session is closed, and its transaction ends.
                if transaction.rollback().await.is_ok() {
                    writer.session = Some(session);
                }
                return Err(fault);
            }
        }
        writer.session = Some(session);
        Ok(())
    }

    /// Reads in the session that writes: while it holds the lock, no other session changes
    /// anything.
    pub(crate) async fn load(&self) -> std::result::Result<Snapshot, Error> {
        let mut writer = self.writer.lock().await;
        let mut loaded = self.try_load(&mut writer).await;
        if loaded.as_ref().is_err_and(Fault::may_pass) {
            // The session was an old one, and broken since.
            sleep(RELOAD_WAIT).await;
            loaded = self.try_load(&mut writer).await;
        }
        loaded.map_err(|fault| fault.named(&self.place()))
    }

    async fn try_load(&self, writer: &mut Writer) -> Result<Snapshot> {
        let load = async {
            let mut session = match writer.session.take() {
                Some(session) => session,
                None => session::writer(&self.url).await?,
            };
            let mark = read_mark(&mut session).await?;
            let mut moment = session.begin().await?;
            let snapshot = read::load(&mut Connection::Postgres(&mut moment)).await?;
            moment.rollback().await?;
            writer.loaded = mark;
            writer.session = Some(session);
            Ok(snapshot)
        };
        let loaded = timeout(2 * TRY_MAX, load).await;
        loaded.unwrap_or(Err(Fault::Sql("read", sqlx::Error::PoolTimedOut)))
    }

    pub(crate) async fn reader(&self) -> Result<Reader> {
        let reader = self.readers.acquire().await;
        reader.map(Reader::Postgres).map_err(Fault::during("open"))
    }
}

/// Writes all changes over a connection that is in a transaction.
async fn write_all(db: &mut Connection<'_>, changes: &[Change]) -> Result<()> {
    for statement in write::statements(changes)? {
        db.write(statement).await?;
    }
    Ok(())
}

fn set_mark(mark: &str) -> Statement<'_> {
    Statement::new("mark a batch", "UPDATE meta SET value = $2 WHERE key = $1")
        .text(MARK)
        .text(mark)
        .must_hit()
}

async fn read_mark(session: &mut PgConnection) -> Result<String> {
    let mark = Statement::new("read", "SELECT value FROM meta WHERE key = $1").text(MARK);
    let rows = Connection::Postgres(session).read(mark).await?;
    let mark = rows.first().map(|row| row.text("value")).transpose()?;
    Ok(mark.flatten().unwrap_or_default())
}
