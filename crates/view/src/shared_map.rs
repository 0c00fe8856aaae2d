//! An ordered map with cheap copies. Owns: that copies share unchanged parts.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// Maximum number of entries of a part. A change copies one part, and the first change of a copy
/// also copies the list of parts: with 100,000 entries both take some microseconds. A copy without
/// a change costs nothing.
const PART_MAX: usize = 128;

/// The entries of a map, in parts that copies share.
type Parts<K, V> = Vec<Arc<Vec<(K, V)>>>;

/// An ordered map in parts, which copies share until one of them changes: the view is replaced
/// after every decision, at the cost of the change only.
pub struct SharedMap<K, V> {
    /// No part is empty, and all keys of a part are below those of the next.
    parts: Arc<Parts<K, V>>,
    len: usize,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { parts: Arc::default(), len: 0 }
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), len: self.len }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K, V> SharedMap<K, V> {
    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        self.parts.iter().flat_map(|part| part.iter()).map(|(key, value)| (key, value))
    }

    /// Keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.parts.iter().flat_map(|part| part.iter()).map(|(key, _)| key)
    }

    /// Values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.parts.iter().flat_map(|part| part.iter()).map(|(_, value)| value)
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// Index of the part that has a key, or would have it, and the index of the key in it, or of
    /// its successor.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> (usize, Result<usize, usize>)
    where
        K: Borrow<Q>,
    {
        let after = self
            .parts
            .partition_point(|part| part.first().is_some_and(|(first, _)| first.borrow() <= key));
        let at = after.saturating_sub(1);
        let found = self
            .parts
            .get(at)
            .map_or(Err(0), |part| part.binary_search_by(|(there, _)| there.borrow().cmp(key)));
        (at, found)
    }

    /// The value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (at, found) = self.place(key);
        Some(&self.parts.get(at)?.get(found.ok()?)?.1)
    }

    /// True if a key has a value.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).1.is_ok()
    }
}

impl<K: Ord, V: PartialEq> SharedMap<K, V> {
    /// The keys whose values differ between two maps, in order, with the value before and the value
    /// now. Parts that the maps share are skipped, so the cost depends on the changes since the
    /// copy.
    pub fn diff<'a>(
        before: &'a Self,
        now: &'a Self,
    ) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
        let (mut old, mut new) = (Cursor::new(&before.parts), Cursor::new(&now.parts));
        if Arc::ptr_eq(&before.parts, &now.parts) {
            (old.parts, new.parts) = (&[], &[]);
        }
        std::iter::from_fn(move || {
            loop {
                // All keys below a shared part are read in both maps before either enters it.
                if old.shared_part(&new) {
                    old.skip_part();
                    new.skip_part();
                    continue;
                }
                let order = match (old.entry(), new.entry()) {
                    (None, None) => return None,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some((left, _)), Some((right, _))) => left.cmp(right),
                };
                let was = if order.is_le() { old.take() } else { None };
                let is = if order.is_ge() { new.take() } else { None };
                match (was, is) {
                    (Some((_, was)), Some((_, is))) if was == is => {}
                    (Some((key, was)), is) => return Some((key, Some(was), is.map(|(_, is)| is))),
                    (None, Some((key, is))) => return Some((key, None, Some(is))),
                    (None, None) => return None,
                }
            }
        })
    }
}

/// A position in the entries of a map.
struct Cursor<'a, K, V> {
    parts: &'a [Arc<Vec<(K, V)>>],
    /// Index of the next entry in the first part.
    number: usize,
}

impl<'a, K, V> Cursor<'a, K, V> {
    const fn new(parts: &'a Parts<K, V>) -> Self {
        Self { parts: parts.as_slice(), number: 0 }
    }

    /// The next entry.
    fn entry(&self) -> Option<&'a (K, V)> {
        self.parts.first()?.get(self.number)
    }

    /// The next entry; advances the position.
    fn take(&mut self) -> Option<(&'a K, &'a V)> {
        let part = self.parts.first()?;
        let (key, value) = part.get(self.number)?;
        self.number += 1;
        if self.number == part.len() {
            self.skip_part();
        }
        Some((key, value))
    }

    /// True if both are at the start of a part that both maps share.
    fn shared_part(&self, other: &Self) -> bool {
        let both = self.parts.first().zip(other.parts.first());
        self.number == 0
            && other.number == 0
            && both.is_some_and(|(own, other)| Arc::ptr_eq(own, other))
    }

    const fn skip_part(&mut self) {
        if let Some((_, rest)) = self.parts.split_first() {
            self.parts = rest;
        }
        self.number = 0;
    }
}

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for SharedMap<K, V> {
    type Output = V;

    /// # Panics
    /// There is no entry for the key, as with any map.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("an entry for the key")
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Sets the value of a key; returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (at, found) = self.place(&key);
        let parts = Arc::make_mut(&mut self.parts);
        let is_last = at + 1 == parts.len();
        let Some(part) = parts.get_mut(at) else {
            parts.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let number = match found {
            Ok(number) => {
                let entry = Arc::make_mut(part).get_mut(number);
                return entry.map(|(_, there)| std::mem::replace(there, value));
            }
            Err(number) => number,
        };
        self.len += 1;
        if part.len() < PART_MAX {
            Arc::make_mut(part).insert(number, (key, value));
        } else if is_last && number == PART_MAX {
            // Ascending keys, as those of workloads, leave full parts behind.
            parts.push(Arc::new(vec![(key, value)]));
        } else {
            let part = Arc::make_mut(part);
            part.insert(number, (key, value));
            let upper = part.split_off(PART_MAX / 2);
            parts.insert(at + 1, Arc::new(upper));
        }
        None
    }

    /// The value of a key, mutable.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (at, found) = self.place(key);
        let number = found.ok()?;
        let part = Arc::make_mut(&mut self.parts).get_mut(at)?;
        Some(&mut Arc::make_mut(part).get_mut(number)?.1)
    }

    /// Removes a key; returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (at, found) = self.place(key);
        let number = found.ok()?;
        let parts = Arc::make_mut(&mut self.parts);
        let part = parts.get_mut(at)?;
        let part = Arc::make_mut(part);
        let (_, value) = part.remove(number);
        self.len -= 1;
        if part.is_empty() {
            parts.remove(at);
        }
        Some(value)
    }
}

impl<K: Ord + Clone, V: Clone> Extend<(K, V)> for SharedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn is_like(map: &SharedMap<u16, u32>, like: &BTreeMap<u16, u32>) {
        assert!(map.iter().eq(like.iter()) && map.len() == like.len());
        assert!(map.values().rev().eq(like.values().rev()) && map.keys().eq(like.keys()));
        assert!(map.parts.iter().all(|part| (1..=PART_MAX).contains(&part.len())));
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map_and_a_copy_stays_as_it_was(
            first in vec((any::<u16>(), any::<u32>()), 0..600),
            then in vec((0..2000_u16, any::<Option<u32>>()), 0..600),
        ) {
            let before: SharedMap<_, _> = first.iter().copied().collect();
            let like_before: BTreeMap<_, _> = first.into_iter().collect();
            let (mut map, mut like) = (before.clone(), like_before.clone());
            for (key, value) in then {
                prop_assert_eq!(map.get(&key), like.get(&key));
                match (value, map.get_mut(&key)) {
                    (Some(value @ 1..=u32::MAX), Some(there)) if value % 2 == 1 => {
                        *there = value;
                        like.insert(key, value);
                    }
                    (Some(value), _) => {
                        prop_assert_eq!(map.insert(key, value), like.insert(key, value));
                    }
                    (None, _) => prop_assert_eq!(map.remove(&key), like.remove(&key)),
                }
                prop_assert_eq!(map.contains_key(&key), value.is_some());
            }
            is_like(&map, &like);
            is_like(&before, &like_before);
        }
    }

    proptest! {
        #[test]
        fn a_diff_has_what_differs_and_nothing_else(
            first in vec((0..3000_u16, 0..3_u32), 0..900),
            then in vec((0..3000_u16, proptest::option::of(0..3_u32)), 0..300),
        ) {
            let before: SharedMap<_, _> = first.into_iter().collect();
            let mut now = before.clone();
            for (key, value) in then {
                match value {
                    Some(value) => now.insert(key, value),
                    None => now.remove(&key),
                };
            }
            let keys: BTreeSet<u16> = before.keys().chain(now.keys()).copied().collect();
            let both = keys.iter().map(|key| (key, before.get(key), now.get(key)));
            let expected: Vec<_> = both.filter(|(_, was, is)| was != is).collect();
            prop_assert_eq!(SharedMap::diff(&before, &now).collect::<Vec<_>>(), expected);
            let unrelated: SharedMap<_, _> = now.iter().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(SharedMap::diff(&unrelated, &now).count(), 0);
        }
    }

    /// A value that counts its comparisons.
    #[derive(Clone)]
    struct Counted(u32, Arc<AtomicUsize>);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.1.fetch_add(1, Relaxed);
            self.0 == other.0
        }
    }

    #[test]
    fn a_diff_reads_the_parts_that_changed_and_no_other() {
        let compared = Arc::new(AtomicUsize::new(0));
        let value = |n| Counted(n, compared.clone());
        let before: SharedMap<u32, Counted> = (0..100_000).map(|n| (2 * n, value(n))).collect();
        let mut now = before.clone();
        now.insert(100_000, value(7));
        now.insert(20_001, value(7));
        now.remove(&40_000);
        let found: Vec<_> = SharedMap::diff(&before, &now).map(|(key, _, _)| *key).collect();
        assert_eq!(found, [20_001, 40_000, 100_000]);
        assert!(compared.load(Relaxed) <= 3 * PART_MAX, "{compared:?}");
    }

    #[test]
    fn what_did_not_change_is_shared() {
        let map: SharedMap<u32, u32> = (0..10_000).map(|n| (n, n)).collect();
        let mut copy = map.clone();
        copy.insert(5000, 1);
        let shared =
            map.parts.iter().zip(copy.parts.iter()).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!(
            (map.parts.len(), shared),
            (10_000_usize.div_ceil(PART_MAX), map.parts.len() - 1)
        );
    }
}
