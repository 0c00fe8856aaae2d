//! Dense typed indices and the tables they index. Owns: ids that cost four bytes and cannot be
//! mixed up. Refuses to know what a row is.

use std::fmt;
use std::marker::PhantomData;

/// An index into a [`Table`] of `T`.
pub struct Idx<T>(u32, PhantomData<fn() -> T>);

impl<T> Idx<T> {
    /// The index of row `raw`.
    #[must_use]
    pub const fn new(raw: u32) -> Self {
        Self(raw, PhantomData)
    }

    /// The row number.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }

    fn at(self) -> usize {
        self.0 as usize
    }
}

impl<T> Clone for Idx<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Idx<T> {}
impl<T> PartialEq for Idx<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Idx<T> {}
impl<T> PartialOrd for Idx<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Idx<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<T> std::hash::Hash for Idx<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<T> fmt::Debug for Idx<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A table with dense ids. A removed row's id is given out again, lowest first, so that the same
/// history always yields the same ids.
#[derive(Debug, Clone)]
pub struct Table<T> {
    rows: Vec<Option<T>>,
    free: std::collections::BTreeSet<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), free: std::collections::BTreeSet::new() }
    }
}

impl<T> Table<T> {
    /// Adds a row and returns its id.
    ///
    /// # Panics
    /// When more than `u32::MAX` rows are alive.
    pub fn insert(&mut self, row: T) -> Idx<T> {
        if let Some(raw) = self.free.pop_first() {
            self.rows[raw as usize] = Some(row);
            return Idx::new(raw);
        }
        assert!(self.rows.len() < u32::MAX as usize, "table is full");
        self.rows.push(Some(row));
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        Idx::new((self.rows.len() - 1) as u32)
    }

    /// Removes a row.
    pub fn remove(&mut self, id: Idx<T>) -> Option<T> {
        let row = self.rows.get_mut(id.at())?.take()?;
        self.free.insert(id.raw());
        Some(row)
    }

    /// The row, if it is alive.
    #[must_use]
    pub fn get(&self, id: Idx<T>) -> Option<&T> {
        self.rows.get(id.at())?.as_ref()
    }

    /// The row for change, if it is alive.
    pub fn get_mut(&mut self, id: Idx<T>) -> Option<&mut T> {
        self.rows.get_mut(id.at())?.as_mut()
    }

    /// Living rows in id order.
    pub fn iter(&self) -> impl Iterator<Item = (Idx<T>, &T)> {
        (0..).zip(&self.rows).filter_map(|(i, row)| row.as_ref().map(|row| (Idx::new(i), row)))
    }

    /// Ids of living rows, in order.
    pub fn ids(&self) -> impl Iterator<Item = Idx<T>> + use<'_, T> {
        (0..).zip(&self.rows).filter(|(_, row)| row.is_some()).map(|(i, _)| Idx::new(i))
    }

    /// How many rows are alive.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Whether no row is alive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> std::ops::Index<Idx<T>> for Table<T> {
    type Output = T;
    fn index(&self, id: Idx<T>) -> &T {
        self.get(id).expect("a live id: rows are removed only with everything that refers to them")
    }
}

impl<T> std::ops::IndexMut<Idx<T>> for Table<T> {
    fn index_mut(&mut self, id: Idx<T>) -> &mut T {
        self.get_mut(id)
            .expect("a live id: rows are removed only with everything that refers to them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_free_id_comes_back_first() {
        let mut table = Table::default();
        let ids: Vec<_> = "abc".chars().map(|c| table.insert(c)).collect();
        table.remove(ids[2]);
        table.remove(ids[0]);
        assert_eq!(table.insert('d'), ids[0]);
        assert_eq!(table.iter().map(|(_, c)| *c).collect::<String>(), "db");
        assert_eq!(table.len(), 2);
    }
}
