//! Sessions of a PostgreSQL server. Owns: their settings, the lock that only one server may hold,
//! the checks before a database is used, and its migration.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, PgPool};
use tokio::time::{Instant, sleep, timeout};

use super::PostgresUrl;
use crate::Error;
use crate::connection::Connection;
use crate::fault::{Fault, Result};
use crate::schema::{self, Dialect};
use crate::{read, release};

/// Longest wait for a session.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for the lock of a server that may just have ended.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);
/// Settings of a session. A statement that takes longer is as good as hanging. The server drops a
/// session whose program or network is gone within half a minute, and with it the lock.
const SETTINGS: &str = "SET statement_timeout = '15s'; SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '25s';
    SET client_min_messages = 'warning'; SET standard_conforming_strings = on;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off'";
/// The lock: one server in each schema of a database, for as long as its session lives.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock(1701601651, hashtext(current_schema()))";
const WHO_LOCKED: &str =
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.classid::bigint = 1701601651 AND l.granted
        AND l.objid::bigint = hashtext(current_schema())::bigint & 4294967295
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

fn options(url: &PostgresUrl) -> PgConnectOptions {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // The server cuts a name off at 63 bytes.
    let name = format!("elastane, process {} on {host}", std::process::id());
    url.options().clone().application_name(&name).disable_statement_logging()
}

/// A session that may write: the only one of its kind.
pub(super) async fn writer(url: &PostgresUrl) -> Result<PgConnection> {
    let options = options(url);
    let connect = timeout(CONNECT_WAIT_MAX, options.connect()).await;
    let mut db = connect.map_err(|_| sqlx::Error::PoolTimedOut).flatten()?;
    sqlx::raw_sql(SETTINGS).execute(&mut db).await?;
    if !sqlx::query_scalar(TRY_LOCK).fetch_one(&mut db).await? {
        let holder: Option<String> = sqlx::query_scalar(WHO_LOCKED).fetch_optional(&mut db).await?;
        let holder = holder.unwrap_or_else(|| "another session".to_owned());
        return Err(Fault::InUse { holder });
    }
    Ok(db)
}

/// Sessions that may only read, opened when needed.
pub(super) fn readers(url: &PostgresUrl, count: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(count)
        .acquire_timeout(CONNECT_WAIT_MAX)
        .after_connect(|db, _| {
            Box::pin(async move {
                let read_only = "SET default_transaction_read_only = on";
                sqlx::raw_sql(SETTINGS).execute(&mut *db).await?;
                sqlx::raw_sql(read_only).execute(db).await.map(drop)
            })
        })
        .connect_lazy_with(options(url))
}

/// The first session of a server. The session of a server that was killed a moment ago may still
/// exist.
async fn first(url: &PostgresUrl) -> Result<PgConnection> {
    let deadline = Instant::now() + LOCK_WAIT_MAX;
    loop {
        match writer(url).await {
            Err(Fault::InUse { .. }) if Instant::now() < deadline => {
                sleep(Duration::from_millis(50)).await;
            }
            other => return other,
        }
    }
}

/// Checks the database, then brings it to the newest schema; an empty one becomes ours.
pub(super) async fn prepare(url: &PostgresUrl) -> std::result::Result<PgConnection, Error> {
    let name = url.to_string();
    let mut db = first(url).await.map_err(|fault| fault.named(&name))?;
    check(&mut db, &name).await?;
    let failed = |what| {
        let name = name.clone();
        move |cause| Error::from_sqlx(&name, what, cause)
    };
    migrate(&mut db, &name, schema::NEWEST).await?;
    let mut transaction = db.begin().await.map_err(failed("begin"))?;
    for (key, value) in schema::identity().into_iter().chain([(super::MARK, String::new())]) {
        first_row(&mut transaction, key, value).await.map_err(failed("create"))?;
    }
    let noted = release::note(&mut Connection::Postgres(&mut transaction)).await;
    noted.map_err(|fault| fault.named(&name))?;
    transaction.commit().await.map_err(failed("create"))?;
    Ok(db)
}

async fn migrate(
    db: &mut PgConnection,
    name: &str,
    version: i64,
) -> std::result::Result<(), Error> {
    let failed = |cause| Error::from_sqlx(name, "migrate", cause);
    // Building an index of a large table may take its time.
    sqlx::raw_sql("SET statement_timeout = 0").execute(&mut *db).await.map_err(failed)?;
    schema::migrate(db, Dialect::Postgres, version).await.map_err(failed)?;
    sqlx::raw_sql(SETTINGS).execute(db).await.map(drop).map_err(failed)
}

async fn first_row(
    db: &mut PgConnection,
    key: &str,
    value: String,
) -> std::result::Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING")
        .bind(key)
        .bind(value)
        .execute(db)
        .await
        .map(drop)
}

/// A session to read a database with; `None` if the database is empty.
pub(crate) async fn reader(url: &PostgresUrl) -> std::result::Result<Option<PgConnection>, Error> {
    let name = url.to_string();
    let open = |cause| Error::from_sqlx(&name, "open", cause);
    let connect = timeout(CONNECT_WAIT_MAX, options(url).connect()).await;
    let mut db = connect.map_err(|_| sqlx::Error::PoolTimedOut).flatten().map_err(open)?;
    let ours = check(&mut db, &name).await?;
    Ok(ours.then_some(db))
}

/// Makes the tables of a version, fills them, and brings them to the newest schema, all in one
/// transaction. Existing tables are dropped with `replace`; without it nothing is done, and the
/// result is `false`.
pub(crate) async fn build<E: From<Error>>(
    url: &PostgresUrl,
    version: i64,
    replace: bool,
    fill: impl AsyncFnOnce(&mut PgConnection) -> std::result::Result<(), E>,
) -> std::result::Result<bool, E> {
    let name = url.to_string();
    let mut db = first(url).await.map_err(|fault| fault.named(&name))?;
    let failed = |cause| Error::from_sqlx(&name, "restore", cause);
    let ours = check(&mut db, &name).await?;
    if ours && !replace {
        return Ok(false);
    }
    let mut fresh = db.begin().await.map_err(failed)?;
    if ours {
        let tables = schema::TABLES.iter().map(|table| table.name);
        let tables: Vec<_> = tables.chain(["_sqlx_migrations"]).collect();
        let drop = format!("DROP TABLE IF EXISTS {} CASCADE", tables.join(", "));
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut *fresh).await.map_err(failed)?;
        let drop = "DROP FUNCTION IF EXISTS elastane_append_only(), elastane_kept(),
            elastane_event_kept(), elastane_audit_kept(), elastane_count_archived(),
            elastane_objects_gone()";
        sqlx::raw_sql(drop).execute(&mut *fresh).await.map_err(failed)?;
    }
    migrate(&mut fresh, &name, version).await?;
    fill(&mut fresh).await?;
    first_row(&mut fresh, super::MARK, String::new()).await.map_err(failed)?;
    // Numbers go on after the highest that came with the rows.
    let next = "SELECT setval(pg_get_serial_sequence('audit', 'seq'),
        (SELECT COALESCE(MAX(seq), 0) + 1 FROM audit), false)";
    sqlx::raw_sql(next).execute(&mut *fresh).await.map_err(failed)?;
    migrate(&mut fresh, &name, schema::NEWEST).await?;
    // Reads like a server, so that rows it cannot understand are found now.
    let read = read::load(&mut Connection::Postgres(&mut fresh)).await;
    read.map_err(|fault| fault.named(&name))?;
    fresh.commit().await.map_err(failed)?;
    Ok(true)
}

/// Refuses what is not ours. False: it is empty.
async fn check(db: &mut PgConnection, name: &str) -> std::result::Result<bool, Error> {
    let read = |cause| Error::from_sqlx(name, "read", cause);
    let foreign =
        |detail: &str| Error::Foreign { database: name.to_owned(), detail: detail.to_owned() };
    let encoding: String =
        sqlx::query_scalar("SHOW server_encoding").fetch_one(&mut *db).await.map_err(read)?;
    if encoding != "UTF8" {
        return Err(foreign(&format!("its encoding is {encoding}, not UTF8")));
    }
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *db).await.map_err(read)?;
    let has = |table: &str| tables.iter().any(|known| known == table);
    match (has("_sqlx_migrations"), has("meta")) {
        (true, true) => {}
        _ if tables.is_empty() => return Ok(false),
        // An empty list of migrations and nothing else: the first migration was cut off.
        (true, false) if tables.len() == 1 => return Ok(false),
        _ => return Err(foreign("it has tables of another program")),
    }
    let version = "SELECT MAX(version) FROM _sqlx_migrations WHERE success";
    let found: Option<i64> = sqlx::query_scalar(version).fetch_one(&mut *db).await.map_err(read)?;
    match found {
        Some(found) if found > schema::NEWEST => {
            let noted = release::read(&mut Connection::Postgres(db)).await;
            let noted = noted.map_err(|fault| fault.named(name))?;
            let (database, program) = (name.to_owned(), release::name(noted.as_deref()));
            Err(Error::Newer { database, found, known: schema::NEWEST, program })
        }
        _ => Ok(true),
    }
}
