//! SQLite, a file in the state directory. Owns: one writer connection, a few readers, and how a
//! failed transaction is left behind. The statements are in `crate::read` and `crate::write`.

mod open;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};

pub(crate) use self::open::{build, reader};

use records::{Change, Snapshot};
use sqlx::{Connection as _, SqlitePool};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Mutex;

use self::writer::Writer;
use crate::connection::{Connection, Reader};
use crate::fault::Fault;
use crate::{Error, read};

/// Name of the database file in the state directory.
pub(crate) const FILE_NAME: &str = "elastane.db";
/// Connections for reading beside the writer.
const READERS: u32 = 3;

pub(crate) struct Sqlite {
    path: PathBuf,
    /// One writer: SQLite has one anyway, and waiting here is fair and cannot time out.
    /// None after a failed transaction; the next one opens a fresh connection.
    writer: Mutex<Option<Writer>>,
    readers: SqlitePool,
}

impl Sqlite {
    /// Opens the database of a state directory, which the caller owns; makes one if there is none.
    pub(crate) async fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE_NAME);
        open::prepare(&path).await?;
        let named = |fault: Fault| fault.named(&path.display().to_string());
        let writer = Writer::open(&path).map_err(named)?;
        let readers = open::readers(&path, READERS);
        Ok(Self { path, writer: Mutex::new(Some(writer)), readers })
    }

    pub(crate) fn place(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.path.parent()
    }

    pub(crate) async fn apply(&self, changes: &[Change]) -> Result<(), Error> {
        self.with_writer(|writer| writer.transact(changes)).await
    }

    /// Makes room within the files for when the disk is full; see [`Writer::keep_room`].
    pub(crate) async fn keep_room(&self) -> Result<(), Error> {
        self.with_writer(Writer::keep_room).await
    }

    async fn with_writer(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<(), Fault>,
    ) -> Result<(), Error> {
        let mut slot = self.writer.lock().await;
        // A writer that failed is closed: whether SQLite has already rolled back depends on the
        // fault; closing always does. The next one is opened before, since the last to close takes
        // the log away, and with it its room.
        let transact = || {
            let mut writer = slot.take().map_or_else(|| Writer::open(&self.path), Ok)?;
            let done = work(&mut writer);
            *slot = if done.is_ok() { Some(writer) } else { Writer::open(&self.path).ok() };
            done
        };
        // The dispatcher has a thread of its own; other tasks share theirs.
        let done = match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => tokio::task::block_in_place(transact),
            _ => transact(),
        };
        done.map_err(|fault: Fault| fault.named(&self.place()))
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
