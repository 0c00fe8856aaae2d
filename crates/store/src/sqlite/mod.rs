//! The store over SQLite. Owns: one writer connection, a few readers, and how a failed
//! transaction is left behind. The statements are in `read` and `write`.

mod fault;
mod open;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::{Connection, SqliteConnection, SqlitePool};
use tokio::sync::Mutex;

use self::fault::Fault;
use crate::lock::Lock;
use crate::{AuditRow, Change, CredentialRow, Error, EventFilter, EventRow, Snapshot};

/// Name of the database file in the state directory.
pub(crate) const FILE_NAME: &str = "elastane.db";
/// Connections for reading beside the writer.
const READERS: u32 = 3;

/// The state directory and the database in it. Clones share it; it is released with the last.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// One writer: SQLite has one anyway, and waiting here is fair and cannot time out.
    /// None after a failed transaction; the next one opens a fresh connection.
    writer: Mutex<Option<SqliteConnection>>,
    readers: SqlitePool,
    _lock: Lock,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the state directory for this process alone; what is missing is created.
    ///
    /// # Errors
    /// Another server owns it, it cannot be used, its database is damaged or newer. An existing
    /// database is only ever changed by a migration, after it was found whole.
    pub async fn open(dir: &Path) -> Result<Self, Error> {
        let lock = Lock::take(dir)?;
        let path = dir.join(FILE_NAME);
        let writer = open::prepare(&path).await?;
        let readers = open::readers(&path, READERS);
        let writer = Mutex::new(Some(writer));
        Ok(Self { shared: Arc::new(Shared { path, writer, readers, _lock: lock }) })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Writes all changes, in order, in one transaction.
    ///
    /// # Errors
    /// Nothing was written. [`Error::Full`] goes away when there is space.
    pub async fn apply(&self, changes: &[Change]) -> Result<(), Error> {
        let path = &self.shared.path;
        let mut slot = self.shared.writer.lock().await;
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => open::writer(path).await?,
        };
        match transact(&mut writer, changes).await {
            Ok(()) => {
                *slot = Some(writer);
                Ok(())
            }
            Err(fault) => {
                // Whether SQLite has already rolled back depends on the fault; closing always does.
                if let Err(error) = writer.close().await {
                    tracing::warn!(%error, "closing the writer after a failed transaction");
                }
                Err(fault.named(path))
            }
        }
    }

    /// Reads everything needed to go on after a restart.
    ///
    /// # Errors
    /// The database cannot be read, or holds what this program does not understand.
    pub async fn load(&self) -> Result<Snapshot, Error> {
        let mut reader = self.reader().await?;
        read::load(&mut reader).await.map_err(|fault| fault.named(&self.shared.path))
    }

    /// Reads events.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn events(&self, filter: &EventFilter) -> Result<Vec<EventRow>, Error> {
        let mut reader = self.reader().await?;
        read::events(&mut reader, filter).await.map_err(|fault| fault.named(&self.shared.path))
    }

    /// All clients that may ask for tokens.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn credentials(&self) -> Result<Vec<CredentialRow>, Error> {
        let mut reader = self.reader().await?;
        read::credentials(&mut reader).await.map_err(|fault| fault.named(&self.shared.path))
    }

    /// The newest rows of the audit log, newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn audit(&self, limit: u32) -> Result<Vec<AuditRow>, Error> {
        let mut reader = self.reader().await?;
        read::audit(&mut reader, limit).await.map_err(|fault| fault.named(&self.shared.path))
    }

    async fn reader(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Sqlite>, Error> {
        let shared = &self.shared;
        let open = |source| Error::from_sqlx(&shared.path, "open", source);
        shared.readers.acquire().await.map_err(open)
    }
}

/// One transaction, from its beginning to its commit.
async fn transact(writer: &mut SqliteConnection, changes: &[Change]) -> Result<(), Fault> {
    // IMMEDIATE: taking the write lock at once cannot fail half-way as an upgrade can.
    let mut transaction =
        writer.begin_with("BEGIN IMMEDIATE").await.map_err(Fault::during("begin"))?;
    for change in changes {
        write::write(&mut transaction, change).await?;
    }
    transaction.commit().await.map_err(Fault::during("commit"))
}
