//! The connection that writes. Owns: one transaction at a time, on the thread of its caller. With
//! [`sqlx`] each statement is handed to another thread and back, which was half the CPU time of a
//! small transaction.

use std::path::Path;
use std::time::Duration;

use records::Change;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::fault::{Fault, Refusal, Result};
use crate::statement::{Statement, Value};
use crate::write;

/// How long another program may have the database.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The room that is kept within the files: more than the thousand pages after which SQLite takes
/// its log back into the database.
const ROOM_BYTES: u32 = 6 << 20;
/// Different texts of statements: some 40 kinds, many of them with 1, 2, 4, … 64 rows.
const STATEMENTS_KEPT: usize = 256;

/// A connection that writes.
pub(super) struct Writer(pub(super) Connection);

impl Writer {
    /// Opens a database that is there.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // A killed process loses nothing, a power cut at most the last moments, and never
            // leaves half a transaction.
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            Ok(Self(connection))
        };
        open().map_err(Fault::refused("open"))
    }

    /// Makes room within the files, so that transactions go on for a while when the disk is full:
    /// free pages in the database, and a log as long, which stays as long while a connection has it
    /// open.
    pub(super) fn keep_room(&mut self) -> Result<()> {
        let fill = || {
            // In transactions of their own: of pages that come and go in one nothing is written.
            self.0.execute_batch(&format!(
                "DROP TABLE IF EXISTS room;
                 BEGIN IMMEDIATE; CREATE TABLE room (filler BLOB);
                 INSERT INTO room VALUES (zeroblob({ROOM_BYTES})); COMMIT;
                 DROP TABLE room;"
            ))
        };
        fill().map_err(Fault::refused("make room"))
    }

    /// Writes all changes or none.
    pub(super) fn transact(&mut self, changes: &[Change]) -> Result<()> {
        // IMMEDIATE: taking the write lock at once cannot fail half-way as an upgrade can.
        let begun = self.0.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(Fault::refused("begin"))?;
        for statement in write::statements(changes)? {
            run(&transaction, &statement)?;
        }
        transaction.commit().map_err(Fault::refused("commit"))
    }
}

fn run(connection: &Connection, statement: &Statement<'_>) -> Result<()> {
    let changed = execute(connection, statement).map_err(Fault::refused(statement.what))?;
    if statement.must_hit && (changed as u64) < statement.count() {
        let detail = "a row that was to be changed is not there".to_owned();
        return Err(Fault::Refused(statement.what, Refusal { code: 0, detail }));
    }
    Ok(())
}

fn execute(connection: &Connection, statement: &Statement<'_>) -> rusqlite::Result<usize> {
    // `?3` is the third value, wherever it stands; `$3` is a name, which would have to be looked
    // for.
    let mut prepared = connection.prepare_cached(&statement.whole_sql().replace('$', "?"))?;
    for at in 1..=prepared.parameter_count() {
        match statement.values.get(at - 1) {
            Some(Value::Int(value)) => prepared.raw_bind_parameter(at, value)?,
            Some(Value::Text(value)) => prepared.raw_bind_parameter(at, value.as_deref())?,
            None => {
                return Err(rusqlite::Error::InvalidParameterCount(at, statement.values.len()));
            }
        }
    }
    prepared.raw_execute()
}
