//! The data: points on intertwined spirals. Owns: how a sample of a class is made. Does not
//! know about: who learns from it.

use crate::random::Random;

/// Spirals, and so classes.
pub(crate) const CLASSES: usize = 3;
/// Numbers that describe a point.
pub(crate) const INPUTS: usize = 2;

const NOISE: f32 = 0.02;
const TURNS: f32 = 0.75;

/// A point and the spiral it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Coordinates of the point.
    pub point: [f32; INPUTS],
    /// Number of its spiral.
    pub class: usize,
}

/// Points with their spirals, the same for the same seed.
#[derive(Debug)]
pub(crate) struct Data {
    samples: Vec<Sample>,
}

impl Data {
    /// `count` samples, classes in turn.
    #[expect(clippy::cast_precision_loss, reason = "a class is a small number")]
    pub(crate) fn spirals(count: usize, random: &mut Random) -> Self {
        let samples = (0..count)
            .map(|index| {
                let class = index % CLASSES;
                let along = random.unit();
                let start = class as f32 / CLASSES as f32;
                let angle = (start + along * TURNS) * std::f32::consts::TAU;
                let radius = 0.1 + 0.9 * along;
                let point = [
                    radius * angle.cos() + NOISE * random.normal(),
                    radius * angle.sin() + NOISE * random.normal(),
                ];
                Sample { point, class }
            })
            .collect();
        Self { samples }
    }

    /// Every sample.
    pub(crate) fn all(&self) -> &[Sample] {
        &self.samples
    }

    /// One sample drawn at random.
    pub(crate) fn draw(&self, random: &mut Random) -> Sample {
        self.samples[random.below(self.samples.len())]
    }
}
