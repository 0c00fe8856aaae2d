//! The store as its users meet it. Owns: the state directory's lock, and which back end answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use units::Instant;
use uuid::Uuid;

use crate::connection::Reader;
use crate::fault::Fault;
use crate::lock::Lock;
use crate::postgres::{BadUrl, Postgres, PostgresUrl};
use crate::sqlite::Sqlite;
use crate::{Error, archived, kept_deletions, read};
use records::{
    Archived, ArchivedFilter, ArchivedLookup, ArchivedPlace, AuditFilter, AuditRow, Change,
    CredentialRow, EventFilter, EventRow, KeptDeletions, LedgerRow, Log, LogGroup, Past,
    PastFilter, SampleFilter, SampleRow, Snapshot,
};

/// The state directory and the database in it. Clones share it; it is released with the last.
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<StoreInner>,
}

pub(crate) struct StoreInner {
    pub(crate) back: Back,
    _lock: Lock,
}

/// Database for the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Database {
    /// A file in the state directory.
    #[default]
    Sqlite,
    /// A PostgreSQL server.
    Postgres(PostgresUrl),
}

impl std::str::FromStr for Database {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            url => url.parse().map(Self::Postgres),
        }
    }
}

/// Open database.
pub(crate) enum Back {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("database", &self.shared.back.place()).finish_non_exhaustive()
    }
}

impl Store {
    /// Name of its database, for people.
    #[must_use]
    pub fn place(&self) -> String {
        self.shared.back.place()
    }

    /// Folder of the files of its database; `None` if a database server has them.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.shared.back {
            Back::Sqlite(db) => db.folder(),
            Back::Postgres(_) => None,
        }
    }

    /// Opens the state directory and its database for this process alone; what is missing is
    /// created.
    ///
    /// # Errors
    /// Another server owns it, it cannot be used, its database is damaged or newer. An existing
    /// database is only ever changed by a migration, after it was found whole.
    pub async fn open_in(dir: &Path, database: &Database) -> Result<Self, Error> {
        let lock = Lock::take(dir)?;
        let back = match database {
            Database::Sqlite => Back::Sqlite(Sqlite::open(dir).await?),
            Database::Postgres(url) => Back::Postgres(Postgres::open(url).await?),
        };
        Ok(Self { shared: Arc::new(StoreInner { back, _lock: lock }) })
    }

    /// Opens the store with its rows in a file of the directory.
    ///
    /// # Errors
    /// See [`Self::open_in`].
    pub async fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_in(dir, &Database::Sqlite).await
    }

    /// Writes all changes, in order, in one transaction.
    ///
    /// Nothing was written; with [`Error::InDoubt`] alone that is unknown, and [`Self::load`] shows
    /// the outcome. [`Error::Full`] goes away when there is space.
    pub async fn apply(&self, changes: &[Change]) -> Result<(), Error> {
        match &self.shared.back {
            Back::Sqlite(db) => db.apply(changes).await,
            Back::Postgres(db) => db.apply(changes).await,
        }
    }

    /// Makes room within the files of the database, some MiB, so that transactions go on for a
    /// while when its disk is full. Nothing to do for a database server.
    ///
    /// # Errors
    /// There is no room; the files stay whole.
    pub async fn keep_room(&self) -> Result<(), Error> {
        match &self.shared.back {
            Back::Sqlite(db) => db.keep_room().await,
            Back::Postgres(_) => Ok(()),
        }
    }

    /// Reads everything needed to go on after a restart.
    ///
    /// # Errors
    /// The database cannot be read, or holds what this program does not understand.
    pub async fn load(&self) -> Result<Snapshot, Error> {
        match &self.shared.back {
            Back::Sqlite(db) => db.load().await,
            Back::Postgres(db) => db.load().await,
        }
    }

    /// Reads events.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn events(&self, filter: &EventFilter) -> Result<Vec<EventRow>, Error> {
        let mut reader = self.reader().await?;
        read::events(&mut reader.connection(), filter).await.map_err(|fault| self.named(fault))
    }

    /// Workloads that were deleted.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn past(&self, filter: PastFilter) -> Result<Past, Error> {
        let mut reader = self.reader().await?;
        read::past(&mut reader.connection(), filter).await.map_err(|fault| self.named(fault))
    }

    /// Number of deleted workloads that are kept.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn deleted_count(&self) -> Result<u64, Error> {
        let mut reader = self.reader().await?;
        read::deleted_count(&mut reader.connection()).await.map_err(|fault| self.named(fault))
    }

    /// Some deleted workloads that are not kept; fewer than `limit` are all of them.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn deleted_beyond(
        &self,
        kept: KeptDeletions,
        limit: u32,
    ) -> Result<Vec<Uuid>, Error> {
        let mut reader = self.reader().await?;
        let found = kept_deletions::beyond(&mut reader.connection(), kept, limit).await;
        found.map_err(|fault| self.named(fault))
    }

    /// The archived workloads that are looked for.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn archived(&self, lookups: &[ArchivedLookup]) -> Result<Archived, Error> {
        let mut reader = self.reader().await?;
        let found = archived::named(&mut reader.connection(), lookups).await;
        found.map_err(|fault| self.named(fault))
    }

    /// Pods among `pods` whose workloads are archived.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn archived_pods(&self, pods: &[Uuid]) -> Result<BTreeSet<Uuid>, Error> {
        let mut reader = self.reader().await?;
        let found = archived::pods(&mut reader.connection(), pods).await;
        found.map_err(|fault| self.named(fault))
    }

    /// Pods that are stored, with `true` if the pod's workload was deleted; other pods are left
    /// out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn deleted_pods(&self, pods: &[Uuid]) -> Result<BTreeMap<Uuid, bool>, Error> {
        let mut reader = self.reader().await?;
        let found = archived::deleted_pods(&mut reader.connection(), pods).await;
        found.map_err(|fault| self.named(fault))
    }

    /// Workloads among `ids` that were not deleted, archived or not.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn not_deleted(&self, ids: &[Uuid]) -> Result<Archived, Error> {
        let mut reader = self.reader().await?;
        let found = archived::not_deleted(&mut reader.connection(), ids).await;
        found.map_err(|fault| self.named(fault))
    }

    /// Number of archived workloads that a filter selects.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn archived_count(&self, filter: &ArchivedFilter) -> Result<u64, Error> {
        let mut reader = self.reader().await?;
        let found = archived::count(&mut reader.connection(), filter).await;
        found.map_err(|fault| self.named(fault))
    }

    /// Places of archived workloads in the order of the filter, without the first `skip`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn archived_places(
        &self,
        filter: &ArchivedFilter,
        skip: u64,
        limit: u64,
    ) -> Result<Vec<ArchivedPlace>, Error> {
        let mut reader = self.reader().await?;
        let found = archived::places(&mut reader.connection(), filter, skip, limit).await;
        found.map_err(|fault| self.named(fault))
    }

    /// The first archived workloads that a filter selects, by `seq`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn archived_first(
        &self,
        filter: &ArchivedFilter,
        limit: u64,
    ) -> Result<Archived, Error> {
        let mut reader = self.reader().await?;
        let found = archived::first(&mut reader.connection(), filter, limit).await;
        found.map_err(|fault| self.named(fault))
    }

    /// All clients that may get tokens.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn credentials(&self) -> Result<Vec<CredentialRow>, Error> {
        let mut reader = self.reader().await?;
        read::credentials(&mut reader.connection()).await.map_err(|fault| self.named(fault))
    }

    /// Rows of the audit log with their numbers, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<(u64, AuditRow)>, Error> {
        let mut reader = self.reader().await?;
        read::audit(&mut reader.connection(), filter).await.map_err(|fault| self.named(fault))
    }

    /// Number of rows of the audit log within the times of a filter; its limit and offset are
    /// ignored.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn audit_count(&self, filter: &AuditFilter) -> Result<u64, Error> {
        let mut reader = self.reader().await?;
        read::audit_count(&mut reader.connection(), filter).await.map_err(|fault| self.named(fault))
    }

    /// The oldest rows of a log: their positions and times.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn oldest(&self, log: Log, count: u32) -> Result<Vec<(u64, Instant)>, Error> {
        let mut reader = self.reader().await?;
        let rows = read::oldest(&mut reader.connection(), log, count).await;
        rows.map_err(|fault| self.named(fault))
    }

    /// Number of rows of each group of a log after a position, until the position `until`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn log_counts(
        &self,
        log: Log,
        after: u64,
        until: u64,
    ) -> Result<Vec<(LogGroup, u64)>, Error> {
        let mut reader = self.reader().await?;
        let found = read::log_counts(&mut reader.connection(), log, after, until).await;
        found.map_err(|fault| self.named(fault))
    }

    /// Positions of the oldest rows of a group of a log from a position on.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn oldest_of_group(
        &self,
        log: Log,
        group: &LogGroup,
        from: u64,
        count: u64,
    ) -> Result<Vec<u64>, Error> {
        let mut reader = self.reader().await?;
        let found =
            read::oldest_of_group(&mut reader.connection(), (log, group), from, count).await;
        found.map_err(|fault| self.named(fault))
    }

    /// The position of the newest row of a log; 0 if it is empty.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn newest(&self, log: Log) -> Result<u64, Error> {
        let mut reader = self.reader().await?;
        read::newest(&mut reader.connection(), log).await.map_err(|fault| self.named(fault))
    }

    /// The newest rows of the audit log, newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn audit(&self, limit: u32) -> Result<Vec<AuditRow>, Error> {
        let newest = AuditFilter { limit, ..AuditFilter::default() };
        let rows = self.audit_log(&newest).await?;
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// GPU time held from `from` until `until`, exactly, and measured and used in the hours that
    /// begin in that time; a row for each project, owner and model.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn ledger(&self, from: Instant, until: Instant) -> Result<Vec<LedgerRow>, Error> {
        let mut reader = self.reader().await?;
        let rows = read::ledger(&mut reader.connection(), from, until).await;
        rows.map_err(|fault| self.named(fault))
    }

    /// Samples that a filter selects, the oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn samples(&self, filter: &SampleFilter) -> Result<Vec<SampleRow>, Error> {
        let mut reader = self.reader().await?;
        read::samples(&mut reader.connection(), filter).await.map_err(|fault| self.named(fault))
    }

    /// Start of the first and of the last step of this length, among those that begin at `from` or
    /// later; `None` if there is no such sample.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn samples_between(
        &self,
        step_ms: u64,
        from: Instant,
    ) -> Result<Option<(Instant, Instant)>, Error> {
        let mut reader = self.reader().await?;
        let found = read::samples_between(&mut reader.connection(), step_ms, from).await;
        found.map_err(|fault| self.named(fault))
    }

    async fn reader(&self) -> Result<Reader, Error> {
        let reader = match &self.shared.back {
            Back::Sqlite(db) => db.reader().await,
            Back::Postgres(db) => db.reader().await,
        };
        reader.map_err(|fault| self.named(fault))
    }

    fn named(&self, fault: Fault) -> Error {
        fault.named(&self.shared.back.place())
    }
}

impl Back {
    /// The database, for people.
    fn place(&self) -> String {
        match self {
            Self::Sqlite(db) => db.place(),
            Self::Postgres(db) => db.place(),
        }
    }
}
