//! Objects of a new installation: its first start creates them, and no later one.

use records::AuditFilter;
use store::Database;
use store::testing::PgServer;

use crate::world::World;

fn names(w: &World) -> Vec<String> {
    w.handle.view().objects.all("asset").iter().map(|object| object.name.clone()).collect()
}

async fn a_new_database_gets_the_sample_once(database: Database) {
    let mut w = World::with_sample(database).await;
    w.restart().await;
    assert_eq!(names(&w), ["sample"]);
    let sample = w.handle.view().objects.all("asset").remove(0);
    assert_eq!((&*sample.created_by, &*sample.updated_by), ("elastane", "elastane"));
    let log = w.handle.audit(&AuditFilter { limit: 9, ..AuditFilter::default() }).await.unwrap();
    let (_, row) = log.iter().find(|(_, row)| row.what == "asset.create").unwrap();
    let of = (&*row.who, &*row.target, &*row.detail.target_id, row.detail.by_program);
    assert_eq!((of, &*row.result), (("elastane", "sample", &*sample.id, true), "ok"));

    w.handle.delete_object("ann", "asset", &sample.id).await.unwrap();
    w.restart().await;
    w.restart().await;
    assert_eq!(names(&w), [""; 0]);
}

#[tokio::test]
async fn a_sample_that_was_deleted_stays_away() {
    a_new_database_gets_the_sample_once(Database::Sqlite).await;
}

#[tokio::test]
async fn a_sample_that_was_deleted_stays_away_in_postgres() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database().await;
    a_new_database_gets_the_sample_once(Database::Postgres(url)).await;
}
