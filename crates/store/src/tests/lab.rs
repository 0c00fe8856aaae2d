//! A place for one test: a state directory, and a database of either kind.

use sqlx::Connection as _;

use super::samples;
use crate::testing::PgServer;
use records::*;

use crate::*;

pub(super) struct Lab {
    pub(super) dir: tempfile::TempDir,
    pub(super) database: Database,
}

impl Lab {
    pub(super) fn sqlite() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), database: Database::Sqlite }
    }

    /// A lab on PostgreSQL; `None` on a machine without it.
    pub(super) async fn postgres() -> Option<Self> {
        let url = PgServer::shared()?.database().await;
        Some(Self { dir: tempfile::tempdir().unwrap(), database: Database::Postgres(url) })
    }

    pub(super) async fn open(&self) -> Result<Store, Error> {
        Store::open_in(self.dir.path(), &self.database).await
    }

    pub(super) async fn filled(&self) -> (Store, Vec<WorkloadRow>) {
        samples::filled(self.dir.path(), &self.database).await
    }

    /// Runs SQL in another session, past the store.
    pub(super) async fn sql(&self, sql: &'static str) -> Result<(), sqlx::Error> {
        match &self.database {
            Database::Sqlite => {
                let file = self.dir.path().join("elastane.db");
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
                let mut db = sqlx::SqliteConnection::connect_with(&options).await?;
                sqlx::raw_sql(sql).execute(&mut db).await?;
                db.close().await
            }
            Database::Postgres(url) => {
                let mut db = sqlx::PgConnection::connect_with(url.options()).await?;
                sqlx::raw_sql(sql).execute(&mut db).await?;
                db.close().await
            }
        }
    }

    /// The first column of what is read.
    pub(super) async fn texts(&self, sql: &'static str) -> Vec<String> {
        match &self.database {
            Database::Sqlite => {
                let file = self.dir.path().join("elastane.db");
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
                let mut db = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
                sqlx::query_scalar(sql).fetch_all(&mut db).await.unwrap()
            }
            Database::Postgres(url) => {
                let mut db = sqlx::PgConnection::connect_with(url.options()).await.unwrap();
                sqlx::query_scalar(sql).fetch_all(&mut db).await.unwrap()
            }
        }
    }
}
