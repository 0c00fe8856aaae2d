//! SQLite, a file in the state directory. Owns: one writer connection, a few readers, and how a
//! failed transaction is left behind. The statements are in `crate::read` and `crate::write`.

mod open;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub(crate) use self::open::{build, reader};

use sqlx::{Connection as _, SqliteConnection, SqlitePool};
use tokio::sync::Mutex;

use crate::connection::{Connection, Reader};
use crate::fault::Fault;
use crate::store::write_all;
use crate::{Error, read};
use records::{Change, Snapshot};

/// Name of the database file in the state directory.
pub(crate) const FILE_NAME: &str = "elastane.db";
/// Connections for reading beside the writer.
const READERS: u32 = 3;

pub(crate) struct Sqlite {
    path: PathBuf,
    /// One writer: SQLite has one anyway, and waiting here is fair and cannot time out.
    /// None after a failed transaction; the next one opens a fresh connection.
    writer: Mutex<Option<SqliteConnection>>,
    readers: SqlitePool,
}

impl Sqlite {
    /// Opens the database of a state directory, which the caller owns; makes one if there is none.
    pub(crate) async fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE_NAME);
        let writer = open::prepare(&path).await?;
        let readers = open::readers(&path, READERS);
        Ok(Self { path, writer: Mutex::new(Some(writer)), readers })
    }

    pub(crate) fn place(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) async fn apply(&self, changes: &[Change]) -> Result<(), Error> {
        let mut slot = self.writer.lock().await;
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => open::writer(&self.path).await?,
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
                Err(fault.named(&self.place()))
            }
        }
    }

    pub(crate) async fn load(&self) -> Result<Snapshot, Error> {
        let load = async {
            let mut reader = self.readers.acquire().await?;
            let mut moment = reader.begin().await?;
            read::load(&mut Connection::Sqlite(&mut moment)).await
        };
        load.await.map_err(|fault: Fault| fault.named(&self.place()))
    }

    pub(crate) async fn reader(&self) -> Result<Reader, Fault> {
        let reader = self.readers.acquire().await;
        reader.map(Reader::Sqlite).map_err(Fault::during("open"))
    }
}

/// One transaction, from its beginning to its commit.
async fn transact(writer: &mut SqliteConnection, changes: &[Change]) -> Result<(), Fault> {
    // IMMEDIATE: taking the write lock at once cannot fail half-way as an upgrade can.
    let mut transaction =
        writer.begin_with("BEGIN IMMEDIATE").await.map_err(Fault::during("begin"))?;
    write_all(&mut Connection::Sqlite(&mut transaction), changes).await?;
    transaction.commit().await.map_err(Fault::during("commit"))
}
