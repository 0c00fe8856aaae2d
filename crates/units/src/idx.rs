//! Dense typed indices and the tables they index. Owns: ids that cost eight bytes and cannot be
//! confused with those of another table or of a removed row. Does not know about: the rows.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An index into a [`Table`] of `T`: a slot, and the number of rows that were there before.
pub struct Idx<T>(u32, u32, PhantomData<fn() -> T>);

impl<T> Idx<T> {
    /// The index of the first row at slot `raw`.
    #[must_use]
    pub const fn new(raw: u32) -> Self {
        Self(raw, 0, PhantomData)
    }

    /// Number of the slot, which at most one living row has.
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
        (self.0, self.1) == (other.0, other.1)
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
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}
impl<T> std::hash::Hash for Idx<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0, self.1).hash(state);
    }
}
impl<T> Serialize for Idx<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.0, self.1).serialize(to)
    }
}
impl<'de, T> Deserialize<'de> for Idx<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (place, before) = Deserialize::deserialize(from)?;
        Ok(Self(place, before, PhantomData))
    }
}
impl<T> fmt::Debug for Idx<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A table with dense ids. The slot of a removed row is used again, lowest first, so that the same
/// history always yields the same ids; its id is not.
#[derive(Debug, Clone)]
pub struct Table<T> {
    places: Vec<Place<T>>,
    free: std::collections::BTreeSet<u32>,
}

#[derive(Debug, Clone)]
struct Place<T> {
    row: Option<T>,
    /// Number of rows that were here before.
    generation: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: std::collections::BTreeSet::new() }
    }
}

impl<T> Table<T> {
    /// Adds a row and returns its id.
    ///
    /// # Panics
    /// When more than `u32::MAX` rows are alive.
    pub fn insert(&mut self, row: T) -> Idx<T> {
        if let Some(raw) = self.free.pop_first() {
            let place = &mut self.places[raw as usize];
            place.row = Some(row);
            return Idx(raw, place.generation, PhantomData);
        }
        assert!(self.places.len() < u32::MAX as usize, "table is full");
        self.places.push(Place { row: Some(row), generation: 0 });
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        Idx::new((self.places.len() - 1) as u32)
    }

    /// Removes a row.
    pub fn remove(&mut self, id: Idx<T>) -> Option<T> {
        let place = self.places.get_mut(id.at()).filter(|place| place.generation == id.1)?;
        let row = place.row.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.insert(id.raw());
        Some(row)
    }

    /// The row, if it is alive.
    #[must_use]
    pub fn get(&self, id: Idx<T>) -> Option<&T> {
        self.places.get(id.at()).filter(|place| place.generation == id.1)?.row.as_ref()
    }

    /// The row, mutable, if it is alive.
    pub fn get_mut(&mut self, id: Idx<T>) -> Option<&mut T> {
        self.places.get_mut(id.at()).filter(|place| place.generation == id.1)?.row.as_mut()
    }

    /// Living rows in id order.
    pub fn iter(&self) -> impl Iterator<Item = (Idx<T>, &T)> {
        (0..).zip(&self.places).filter_map(|(raw, place)| {
            place.row.as_ref().map(|row| (Idx(raw, place.generation, PhantomData), row))
        })
    }

    /// Ids of living rows, in order.
    pub fn ids(&self) -> impl Iterator<Item = Idx<T>> + use<'_, T> {
        let places = (0..).zip(&self.places).filter(|(_, place)| place.row.is_some());
        places.map(|(raw, place)| Idx(raw, place.generation, PhantomData))
    }

    /// Number of living rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// True if no row is alive.
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
    fn the_lowest_free_place_is_used_first_and_no_id_twice() {
        let mut table = Table::default();
        let ids: Vec<_> = "abc".chars().map(|c| table.insert(c)).collect();
        table.remove(ids[2]);
        table.remove(ids[0]);
        let again = table.insert('d');
        assert_eq!((again.raw(), table.remove(ids[0])), (0, None));
        assert!(again != ids[0] && table.get(ids[0]).is_none());
        assert_eq!(table.iter().map(|(_, c)| *c).collect::<String>(), "db");
        assert_eq!((table.len(), table[again]), (2, 'd'));
    }
}
