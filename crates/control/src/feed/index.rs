//! The newest version of every object. Owns: that there is one entry for an object, with its
//! newest version, and how many deletions are kept. Both bound the memory, whatever readers do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use view::{View, WorkloadView};

use super::difference::{Archived, Difference, Kind, keys};
use super::key::{Key, Place};

/// The newest version of an object.
#[derive(Debug)]
pub struct Entry {
    /// Which object.
    pub key: Key,
    /// Version of the entry; each change of any object takes the next number.
    pub version: u64,
    /// Present or last place of the object.
    pub place: Place,
    /// True if this version is a deletion.
    pub deleted: bool,
    /// The workload as it was last, of an archived one and its pods: no view has them.
    pub archived: Option<Arc<WorkloadView>>,
    /// The text of it, as long as it is kept.
    text: Mutex<Option<Weak<str>>>,
}

/// The texts of entries: each is made once for all readers, and kept up to a number of bytes.
#[derive(Debug, Default)]
pub(super) struct Texts {
    kept: VecDeque<Arc<str>>,
    bytes: usize,
}

impl Texts {
    fn keep(&mut self, text: Arc<str>, bytes_max: usize) {
        self.bytes += text.len();
        self.kept.push_back(text);
        while self.bytes > bytes_max
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }
}

impl Entry {
    /// Text of this version: the stored one of another reader, or the result of `make`.
    pub(super) fn text(
        &self,
        texts: &Mutex<Texts>,
        bytes_max: usize,
        make: impl FnOnce() -> Option<String>,
    ) -> Option<Arc<str>> {
        let mut own = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = own.as_ref().and_then(Weak::upgrade) {
            return Some(made);
        }
        let made: Arc<str> = make()?.into();
        *own = Some(Arc::downgrade(&made));
        let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.keep(made.clone(), bytes_max);
        Some(made)
    }
}

/// Part of the changes behind a version.
#[derive(Debug)]
pub struct Read {
    /// Entries in the order of their versions.
    pub entries: Vec<Arc<Entry>>,
    /// View with these entries. A newer view may lack an object whose last version is still to
    /// come.
    pub view: Arc<View>,
    /// Version up to which all changes have been read.
    pub reached: u64,
    /// Version up to which objects that left the view may have been forgotten.
    pub forgotten: u64,
}

/// Every object with its newest version.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_version: BTreeMap<u64, Arc<Entry>>,
    by_key: BTreeMap<Key, u64>,
    view: Arc<View>,
    /// Versions of deleted and archived objects, the oldest first. Some objects may have come back
    /// since.
    left: VecDeque<u64>,
    forgotten: u64,
    newest: u64,
}

impl Index {
    /// The newest version of all.
    pub(super) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Gives each object that differs in the next view the next version, and keeps archived
    /// objects.
    pub(super) fn apply(
        &mut self,
        view: Arc<View>,
        changes: Vec<Difference>,
        archived: &Archived,
        left_max: usize,
    ) {
        self.view = view;
        for Difference { key, place, kind } in changes {
            let before = self.by_key.get(&key).and_then(|version| self.by_version.remove(version));
            let deleted = kind != Kind::Changed;
            // A deletion of an object that was never shown, or that is deleted already, is no
            // change.
            let is_no_change = match &before {
                None => kind == Kind::Deleted,
                Some(before) => deleted && before.deleted,
            };
            if is_no_change {
                if let Some(before) = before {
                    self.by_version.insert(before.version, before);
                }
                continue;
            }
            self.newest += 1;
            let version = self.newest;
            self.by_key.insert(key.clone(), version);
            let (archived, text) = (None, Mutex::default());
            let entry = Entry { key, version, place, deleted, archived, text };
            self.by_version.insert(version, Arc::new(entry));
            if deleted {
                self.left.push_back(version);
            }
        }
        archived.values().for_each(|workload| self.keep(workload));
        self.forget(left_max);
    }

    /// Keeps the last version of a workload that was archived, and of its pods.
    fn keep(&mut self, workload: &Arc<WorkloadView>) {
        for version in keys(workload).filter_map(|key| self.by_key.get(&key)) {
            let Some(entry) = self.by_version.get_mut(version) else { continue };
            *entry = Arc::new(Entry {
                key: entry.key.clone(),
                archived: Some(workload.clone()),
                text: Mutex::default(),
                ..**entry
            });
            self.left.push_back(*version);
        }
    }

    /// Forgets what left first.
    fn forget(&mut self, left_max: usize) {
        while self.left.len() > left_max
            && let Some(version) = self.left.pop_front()
        {
            // An object that came back has a newer version, and then there is none of this.
            if let Some(entry) = self.by_version.remove(&version) {
                self.by_key.remove(&entry.key);
                // An archived object may have had its last version long before.
                self.forgotten = self.forgotten.max(version);
            }
        }
    }

    /// At most `most` changes behind a version, up to `until`.
    pub(super) fn read(&self, after: u64, until: u64, most: usize) -> Read {
        let until = until.min(self.newest);
        let mut entries = Vec::new();
        if after < until {
            let range = self.by_version.range(after + 1..=until);
            entries.extend(range.take(most).map(|(_, entry)| entry.clone()));
        }
        let reached = match entries.last() {
            Some(last) if entries.len() == most => last.version,
            _ => until.max(after),
        };
        Read { entries, view: self.view.clone(), reached, forgotten: self.forgotten }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 3;

    fn change(id: u64, deleted: bool) -> Difference {
        let kind = if deleted { Kind::Deleted } else { Kind::Changed };
        Difference { key: Key::Project(id), place: Place::CLUSTER, kind }
    }

    fn index(changes: &[(u64, bool)]) -> Index {
        let mut index = Index::default();
        changes.iter().for_each(|(id, deleted)| apply(&mut index, change(*id, *deleted)));
        index
    }

    fn apply(index: &mut Index, change: Difference) {
        index.apply(Arc::default(), vec![change], &Archived::new(), MOST);
    }

    /// Versions and ids behind a version; deletions below 0.
    fn read(index: &Index, after: u64) -> Vec<(u64, i64)> {
        let read = index.read(after, u64::MAX, 100);
        let id = |entry: &Entry| match entry.key {
            Key::Project(id) => id.cast_signed(),
            _ => 0,
        };
        let one = |e: &Arc<Entry>| (e.version, if e.deleted { -id(e) } else { id(e) });
        read.entries.iter().map(one).collect()
    }

    #[test]
    fn many_changes_of_one_object_are_one_for_a_later_reader() {
        let index = index(&[(1, false), (2, false), (1, false), (1, false)]);
        assert_eq!(read(&index, 0), [(2, 2), (4, 1)]);
        assert_eq!(read(&index, 2), [(4, 1)]);
        assert_eq!(read(&index, 4), []);
    }

    #[test]
    fn a_deletion_is_read_until_the_object_is_back() {
        let index = index(&[(1, false), (1, true), (1, true), (2, true)]);
        assert_eq!(read(&index, 1), [(2, -1)], "once, and not of what was never there");
        let mut index = index;
        apply(&mut index, change(1, false));
        assert_eq!(read(&index, 1), [(3, 1)]);
    }

    #[test]
    fn only_the_newest_deletions_are_remembered() {
        let all: Vec<_> =
            (1..=6).map(|id| (id, false)).chain((1..=5).map(|id| (id, true))).collect();
        let index = index(&all);
        assert_eq!(read(&index, 0), [(6, 6), (9, -3), (10, -4), (11, -5)]);
        assert_eq!(index.read(7, u64::MAX, 100).forgotten, 8, "a reader at 7 misses it");
        assert_eq!(index.by_key.len(), 4);
    }

    #[test]
    fn a_part_says_how_far_it_goes() {
        let index = index(&[(1, false), (2, false), (1, false), (3, false)]);
        let part = index.read(0, u64::MAX, 2);
        assert_eq!((part.entries.len(), part.reached), (2, 3));
        assert_eq!(index.read(part.reached, u64::MAX, 2).reached, 4);
        assert_eq!(index.read(0, 2, 2).reached, 2);
        assert_eq!(index.read(9, u64::MAX, 2).reached, 9, "a position is never taken back");
    }

    #[test]
    fn texts_are_made_once_and_kept_up_to_a_size() {
        let index = index(&[(1, false), (2, false)]);
        let (texts, entries) = (Mutex::default(), index.read(0, u64::MAX, 9).entries);
        let text = |at: usize, made: &str| {
            entries[at].text(&texts, 5, || Some(made.to_owned())).unwrap().to_string()
        };
        assert_eq!((text(0, "one"), text(0, "two")), ("one".to_owned(), "one".to_owned()));
        assert_eq!((text(1, "six"), text(0, "two")), ("six".to_owned(), "two".to_owned()));
        assert!(texts.lock().unwrap().bytes <= 5);
    }
}
