//! The part of an embedding table that a server has: the rows whose id modulo the number of servers
//! is its index. Owns: rows and their optimizer slots, and the initial values of a row. Does not
//! know about: which gradients count, other variables.
//!
//! A row is stored when it gets its first gradient. Until then its numbers follow from the name of
//! the table, the id and the initializer alone, so they do not depend on the order of the pulls, on
//! the number of servers, or on a restart; and a pull stores nothing.

use std::collections::{BTreeMap, VecDeque};
use std::f64::consts::TAU;

use elastic_proto::floats;
use elastic_proto::v1::row_initializer::Distribution;
use elastic_proto::v1::{EmbeddingTable, Optimizer, RowInitializer, Rows, SavedTable};
use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::model_error::ModelError;
use crate::optimizer;
use crate::place::{Place, has_row, server_of_row};

/// The longest row.
const DIM_MAX: u32 = 65_536;
/// The most slots of a rule: those of AMSGrad.
const SLOTS_MAX: usize = 3;

/// Rows of a push: rising ids, each with `dim` numbers.
#[derive(Debug, Clone)]
pub(crate) struct RowGradients {
    dim: usize,
    ids: Vec<u64>,
    values: Vec<f32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    info: EmbeddingTable,
    dim: usize,
    name_hash: u64,
    /// Optimizer slots of a number, before its first update.
    slots: Vec<f32>,
    /// The numbers of the row, then those of each slot.
    rows: BTreeMap<u64, Box<[f32]>>,
    /// Rows that updates have changed since the oldest version that is still read, oldest first.
    past: VecDeque<Past>,
}

/// Rows that an update has changed.
#[derive(Debug, Clone)]
struct Past {
    /// The version before the update.
    version: u64,
    /// Numbers of the rows in it, without slots; `None` for a row that was not stored.
    rows: BTreeMap<u64, Option<Box<[f32]>>>,
}

impl RowGradients {
    pub(crate) fn read(rows: &Rows) -> Result<Self, ModelError> {
        let table = &rows.table;
        let ids = ids(table, &rows.ids)?;
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(ModelError::Ids { table: table.clone(), first: pair[0], second: pair[1] });
        }
        let values = floats(&rows.values);
        let dim = rows.dim as usize;
        if dim == 0 || values.len() != ids.len() * dim || !rows.values.len().is_multiple_of(4) {
            let (rows, dim, bytes) = (ids.len(), rows.dim, rows.values.len());
            return Err(ModelError::Rows { table: table.clone(), rows, dim, bytes });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (id, value) = (ids[at / dim], values[at]);
            return Err(ModelError::NotFinite { table: table.clone(), id, value });
        }
        Ok(Self { dim, ids, values })
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &[f32])> {
        self.ids.iter().copied().zip(self.values.chunks_exact(self.dim))
    }

    /// The sum of these by id.
    fn sum(all: &[&Self]) -> BTreeMap<u64, Vec<f32>> {
        let mut sums: BTreeMap<u64, Vec<f32>> = BTreeMap::new();
        for (id, row) in all.iter().flat_map(|one| one.iter()) {
            match sums.get_mut(&id) {
                Some(sum) => sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value),
                None => drop(sums.insert(id, row.to_vec())),
            }
        }
        sums
    }
}

/// Ids of a message.
pub(crate) fn ids(table: &str, bytes: &[u8]) -> Result<Vec<u64>, ModelError> {
    let (ids, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(ModelError::IdBytes { table: table.to_owned(), bytes: bytes.len() });
    }
    Ok(ids.iter().map(|id| u64::from_le_bytes(*id)).collect())
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(info: EmbeddingTable, optimizer: &Optimizer) -> Result<Self, ModelError> {
        let refused = |what: String| ModelError::Table { table: info.name.clone(), what };
        if info.name.is_empty() {
            return Err(refused("name is empty".to_owned()));
        }
        if info.dim == 0 || info.dim > DIM_MAX {
            return Err(refused(format!("dim {}; it is 1 to {DIM_MAX}", info.dim)));
        }
        let initializer = info.initializer.unwrap_or_default();
        let numbers = match initializer.distribution {
            None => return Err(refused("initializer is missing".to_owned())),
            Some(Distribution::Constant(value)) => [value, 0.0],
            Some(Distribution::Uniform(uniform)) => [uniform.low, uniform.high],
            Some(Distribution::Normal(normal)) => [normal.mean, normal.deviation],
        };
        if let Some(wrong) = numbers.iter().find(|number| !number.is_finite()) {
            return Err(refused(format!("its initializer has {wrong}")));
        }
        let digest = Sha256::digest(info.name.as_bytes());
        let name_hash = digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let slots = optimizer::slots(optimizer, 1).into_iter().flatten().collect();
        let dim = info.dim as usize;
        Ok(Self { dim, name_hash, slots, rows: BTreeMap::new(), past: VecDeque::new(), info })
    }

    pub(crate) fn info(&self) -> &EmbeddingTable {
        &self.info
    }

    /// Rows that are stored.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Numbers that are stored, those of the optimizer not counted.
    pub(crate) fn parameters(&self) -> u64 {
        (self.rows.len() * self.dim) as u64
    }

    /// Bytes of all that are stored.
    pub(crate) fn bytes(&self) -> u64 {
        self.parameters() * 4 * (1 + self.slots.len() as u64)
    }

    /// Checks that gradients are of this table and of this server.
    pub(crate) fn check(&self, rows: &RowGradients, place: Place) -> Result<(), ModelError> {
        self.same_dim(u32::try_from(rows.dim).unwrap_or(u32::MAX))?;
        self.are_here(&rows.ids, place)
    }

    pub(crate) fn same_dim(&self, found: u32) -> Result<(), ModelError> {
        let (table, dim) = (self.info.name.clone(), self.info.dim);
        if found == dim { Ok(()) } else { Err(ModelError::Dim { table, dim, found }) }
    }

    pub(crate) fn are_here(&self, ids: &[u64], place: Place) -> Result<(), ModelError> {
        let (index, servers) = place;
        let Some(id) = ids.iter().copied().find(|id| !has_row(place, *id)) else { return Ok(()) };
        let right = server_of_row(id, servers);
        let table = self.info.name.clone();
        Err(ModelError::RowElsewhere { table, id, right, index, servers })
    }

    /// `true` if rows can be read as they were in a version; `present` is the one of now.
    pub(crate) fn has(&self, version: u64, present: u64) -> bool {
        let oldest = self.past.front().map_or(present, |past| past.version);
        (oldest..=present).contains(&version)
    }

    /// Keeps the rows that an update of version `was` will change, and drops those older than
    /// `from`.
    pub(crate) fn keep(&mut self, pushes: &[&RowGradients], (was, from): (u64, u64)) {
        while self.past.front().is_some_and(|past| past.version < from) {
            self.past.pop_front();
        }
        if was < from {
            return;
        }
        let ids = pushes.iter().flat_map(|push| &push.ids);
        let row = |id: &u64| (*id, self.rows.get(id).map(|row| row[..self.dim].into()));
        self.past.push_back(Past { version: was, rows: ids.map(row).collect() });
    }

    /// The numbers of these rows in a version that it [`Self::has`], one row after the other.
    pub(crate) fn values_in(&self, ids: &[u64], version: u64) -> Bytes {
        let since = self.past.partition_point(|past| past.version < version);
        if since == self.past.len() {
            return self.values(ids);
        }
        let mut bytes = Vec::with_capacity(ids.len() * self.dim * 4);
        for id in ids {
            let changed = self.past.range(since..).find_map(|past| past.rows.get(id));
            let present = || self.rows.get(id).map(|row| &row[..self.dim]);
            match changed.map_or_else(present, Option::as_deref) {
                Some(row) => bytes.extend(row.iter().flat_map(|value| value.to_le_bytes())),
                None => bytes.extend(self.initial(*id).flat_map(f32::to_le_bytes)),
            }
        }
        bytes.into()
    }

    /// The numbers of these rows, one row after the other.
    pub(crate) fn values(&self, ids: &[u64]) -> Bytes {
        let mut bytes = Vec::with_capacity(ids.len() * self.dim * 4);
        for id in ids {
            match self.rows.get(id) {
                Some(row) => {
                    bytes.extend(row[..self.dim].iter().flat_map(|value| value.to_le_bytes()));
                }
                None => bytes.extend(self.initial(*id).flat_map(f32::to_le_bytes)),
            }
        }
        bytes.into()
    }

    /// The ids of the stored rows from this one on, at most so many.
    pub(crate) fn stored(&self, from: u64, count: usize) -> Vec<u64> {
        self.rows.range(from..).take(count).map(|(id, _)| *id).collect()
    }

    /// A row before its first update.
    fn initial(&self, id: u64) -> impl Iterator<Item = f32> {
        let RowInitializer { seed, distribution } = self.info.initializer.unwrap_or_default();
        let start = mix(mix(self.name_hash ^ mix(seed)) ^ id);
        // A number takes two random ones; no two of the same row have one in common.
        let random = move |number: u64| mix(start.wrapping_add(number.wrapping_mul(GOLDEN)));
        (0..u64::from(self.info.dim)).map(move |column| {
            let (one, two) = (unit(random(2 * column + 1)), unit(random(2 * column + 2)));
            match distribution {
                Some(Distribution::Uniform(of)) => {
                    narrow(f64::from(of.low) + one * (f64::from(of.high) - f64::from(of.low)))
                }
                // Box and Muller; 1 - one is not 0.
                Some(Distribution::Normal(of)) => narrow(
                    f64::from(of.mean)
                        + f64::from(of.deviation)
                            * (-2.0 * (1.0 - one).ln()).sqrt()
                            * (TAU * two).cos(),
                ),
                Some(Distribution::Constant(value)) => value,
                None => 0.0,
            }
        })
    }

    /// Makes an update of these, which [`Self::check`] has let pass: their sum, row by row.
    pub(crate) fn update(&mut self, optimizer: &Optimizer, rate: f32, pushes: &[&RowGradients]) {
        if let [one] = pushes {
            one.iter().for_each(|(id, gradient)| self.step(optimizer, rate, id, gradient));
        } else {
            let sums = RowGradients::sum(pushes);
            sums.iter().for_each(|(id, gradient)| self.step(optimizer, rate, *id, gradient));
        }
    }

    fn step(&mut self, optimizer: &Optimizer, rate: f32, id: u64, gradient: &[f32]) {
        if !self.rows.contains_key(&id) {
            let slots = self.slots.iter().flat_map(|start| std::iter::repeat_n(*start, self.dim));
            let row = self.initial(id).chain(slots).collect();
            self.rows.insert(id, row);
        }
        let Some(row) = self.rows.get_mut(&id) else { return };
        let (values, kept) = row.split_at_mut(self.dim);
        let mut kept = kept.chunks_exact_mut(self.dim);
        let mut slots = [(); SLOTS_MAX].map(|()| kept.next().unwrap_or_default());
        optimizer::update(optimizer, rate, (values, &mut slots[..self.slots.len()]), gradient);
    }

    pub(crate) fn save(&self) -> SavedTable {
        let column = |at: usize| -> Bytes {
            let range = at * self.dim..(at + 1) * self.dim;
            let all = self.rows.values().flat_map(|row| &row[range.clone()]);
            all.flat_map(|value| value.to_le_bytes()).collect()
        };
        SavedTable {
            info: Some(self.info.clone()),
            ids: self.rows.keys().flat_map(|id| id.to_le_bytes()).collect(),
            values: column(0),
            slots: (1..=self.slots.len()).map(column).collect(),
        }
    }

    /// Adds those saved rows that belong to a server.
    pub(crate) fn restore(&mut self, saved: &SavedTable, place: Place) -> Result<(), ModelError> {
        let table = || self.info.name.clone();
        let all = ids(&self.info.name, &saved.ids)?;
        if saved.slots.len() != self.slots.len() {
            let (found, expected) = (saved.slots.len(), self.slots.len());
            return Err(ModelError::Slots { name: table(), found, expected });
        }
        let columns: Vec<&[u8]> =
            std::iter::once(&saved.values).chain(&saved.slots).map(|bytes| &bytes[..]).collect();
        let width = self.dim * 4;
        if let Some(wrong) = columns.iter().find(|bytes| bytes.len() != all.len() * width) {
            let (rows, dim, bytes) = (all.len(), self.info.dim, wrong.len());
            return Err(ModelError::Rows { table: table(), rows, dim, bytes });
        }
        for (at, id) in all.into_iter().enumerate().filter(|(_, id)| has_row(place, *id)) {
            let row = columns.iter().flat_map(|bytes| floats(&bytes[at * width..(at + 1) * width]));
            if self.rows.insert(id, row.collect()).is_some() {
                return Err(ModelError::Ids { table: table(), first: id, second: id });
            }
        }
        Ok(())
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads the bits of a number (the finaliser of `SplitMix64`).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A number from 0 to 1, 1 not included.
fn unit(random: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits")]
    let number = (random >> 11) as f64;
    number / (1_u64 << 53) as f64
}

#[expect(clippy::cast_possible_truncation, reason = "parameters are of float32")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests;
