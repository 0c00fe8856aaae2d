//! The order of records as a permutation that needs no memory. Owns: the permutation. Does not know
//! about: the meaning of its numbers.

/// A pseudo-random order of the numbers below a length, from a seed. Each position is computed on
/// its own, so that a task carries a range of positions instead of a list of records, however large
/// the data.
///
/// A Feistel network of four rounds over the next power of four, walked until the result is below
/// the length (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002): on average
/// fewer than four steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    length: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// Permutation of the numbers `0..length`.
    #[must_use]
    pub fn new(length: u64, seed: u64) -> Self {
        let bits = u64::BITS - length.saturating_sub(1).leading_zeros();
        let mut state = seed;
        let keys = [(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        });
        Self { length, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// The number at a position.
    ///
    /// # Panics
    ///
    /// In debug builds, if the position is not below the length.
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.length, "position {position} of {}", self.length);
        let mut number = position;
        loop {
            number = self.step(number);
            if number < self.length {
                return number;
            }
        }
    }

    fn step(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let halves = (number >> self.half_bits & mask, number & mask);
        let (left, right) = self
            .keys
            .iter()
            .fold(halves, |(left, right), key| (right, left ^ (mix(right ^ key) & mask)));
        left << self.half_bits | right
    }
}

/// Spreads the bits of a number (the finaliser of `SplitMix64`).
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::Permutation;

    #[test]
    fn every_number_comes_once() {
        for length in [1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097] {
            let order = Permutation::new(length, 7);
            let mut numbers: Vec<u64> = (0..length).map(|at| order.at(at)).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..length).collect::<Vec<_>>());
        }
    }

    #[test]
    fn another_seed_is_another_order() {
        let order =
            |seed| (0..100).map(|at| Permutation::new(100, seed).at(at)).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..100).collect::<Vec<_>>());
    }
}
