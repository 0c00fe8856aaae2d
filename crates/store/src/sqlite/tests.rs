//! Faults that only a file can have: cut, overwritten, other content; a full disk.

use std::fs::OpenOptions;

use super::{FILE_NAME, open};
use crate::store::Back;
use crate::tests::samples::{event, filled};
use records::*;

use crate::*;

fn path(store: &Store) -> std::path::PathBuf {
    let Back::Sqlite(db) = &store.shared.back else { unreachable!() };
    db.path.clone()
}

/// Closes a store with everything in its main file and nothing in the log.
async fn close_whole(store: Store) {
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut open::owner(&path(&store)).await.unwrap())
        .await
        .unwrap();
    let back = std::sync::Arc::into_inner(store.shared).unwrap().back;
    let Back::Sqlite(mut db) = back else { unreachable!() };
    drop(db.writer.get_mut().take());
    db.readers.close().await;
}

#[tokio::test]
async fn a_file_cut_short_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path(), &Database::Sqlite).await;
    let path = path(&store);
    // All data moves into the main file, so that cutting it loses some.
    close_whole(store).await;
    let whole = std::fs::read(&path).unwrap();
    for length in [whole.len() - 100, whole.len() / 2, 4096, 100, 50, 1, 0] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = Store::open(dir.path()).await.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{length}: {error}");
        let text = error.to_string();
        assert!(text.contains(FILE_NAME) && text.contains("backup"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), whole[..length], "{length}: file was changed");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(Store::open(dir.path()).await.unwrap().load().await.unwrap().workloads.len(), 2);
}

#[tokio::test]
async fn overwritten_pages_are_told_by_what_is_wrong_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path(), &Database::Sqlite).await;
    close_whole(store).await;
    let path = dir.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    // Overwrite the later pages; the first ones list the tables.
    let behind = bytes.len() / 2;
    bytes[behind..].fill(0x5a);
    std::fs::write(&path, &bytes).unwrap();
    let error = Store::open(dir.path()).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(!text.contains("***"), "{text}");
}

#[tokio::test]
async fn other_files_are_refused() {
    for content in [&b"not a database, but quite long text".repeat(200)[..], b"x"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), content).unwrap();
        let error = Store::open(dir.path()).await.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(FILE_NAME)).unwrap();
    let error = Store::open(dir.path()).await.unwrap_err();
    assert!(matches!(error, Error::Access { .. }), "{error}");
    let file = dir.path().join("file");
    OpenOptions::new().create(true).write(true).truncate(true).open(&file).unwrap();
    let error = Store::open(&file.join("state")).await.unwrap_err();
    assert!(matches!(error, Error::Access { .. }), "{error}");
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_passes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path(), &Database::Sqlite).await;
    let before = store.load().await.unwrap();
    // SQLITE_FULL, the error of a full disk, without filling one.
    let Back::Sqlite(db) = &store.shared.back else { unreachable!() };
    let mut slot = db.writer.lock().await;
    slot.as_mut().unwrap().0.pragma_update(None, "max_page_count", 1).unwrap();
    drop(slot);
    let many: Vec<_> = (5..2000).map(|seq| Change::Event(event(seq, None))).collect();
    let error = store.apply(&many).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }) && error.is_outage(), "{error}");
    assert_eq!(store.load().await.unwrap(), before);
    store.apply(&many).await.unwrap();
    assert_eq!(store.load().await.unwrap().last_event_seq, 1999);
}
