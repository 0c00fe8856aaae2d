//! Numbers that look random and are the same for the same seed. Owns: SplitMix64 (Steele, Lea and
//! Flood, 2014). Does not know about: the clock and the machine.

/// A stream of numbers that its seed decides.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream for `purpose` under `seed`; streams for different purposes are unrelated.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut mixer = Self(seed);
        Self(mixer.next() ^ purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), with the 24 bits that a float keeps exactly.
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit a float's mantissa")]
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 24) as f32
    }

    /// Uniform in [0, `bound`); `bound` is at least 1.
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a usize")]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Roughly normal with mean 0 and deviation 1: the sum of twelve uniforms, less six.
    pub(crate) fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
}
