//! The training loop's state. Owns: the step, the weights and how a step changes them. Does not
//! know about: time, files and printing.

use crate::checkpoint::Snapshot;
use crate::data::{Data, Sample};
use crate::net::{self, PARAMS, Params};
use crate::plan::BatchPlan;
use crate::random::Random;

const MOMENTUM: f32 = 0.9;
const TRAINING_SAMPLES: usize = 3000;
const HELD_OUT_SAMPLES: usize = 300;

/// Purposes of the streams of random numbers; a step's stream is the step above these.
mod purpose {
    pub(super) const TRAINING: u64 = 0;
    pub(super) const HELD_OUT: u64 = 1;
    pub(super) const WEIGHTS: u64 = 2;
    pub(super) const STEPS: u64 = 16;
}

/// A training in progress. All its further steps follow from its snapshot.
#[derive(Debug)]
pub(crate) struct Trainer {
    snapshot: Snapshot,
    training: Data,
    held_out: Data,
}

impl Trainer {
    /// A training that has not begun.
    pub(crate) fn new(seed: u64) -> Self {
        let weights = net::initial(&mut Random::new(seed, purpose::WEIGHTS));
        Self::resume(Snapshot { seed, step: 0, weights, momentum: vec![0.0; PARAMS] })
    }

    /// A training that goes on where the snapshot was taken.
    pub(crate) fn resume(snapshot: Snapshot) -> Self {
        let data = |count, purpose| Data::spirals(count, &mut Random::new(snapshot.seed, purpose));
        let training = data(TRAINING_SAMPLES, purpose::TRAINING);
        let held_out = data(HELD_OUT_SAMPLES, purpose::HELD_OUT);
        Self { snapshot, training, held_out }
    }

    /// Steps done since the very beginning.
    pub(crate) fn step(&self) -> u64 {
        self.snapshot.step
    }

    /// State to keep for a resume from here.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshot.clone()
    }

    /// Does one step: accumulates the gradients of all micro-batches, then moves the weights once.
    /// Returns the mean loss of the batch.
    #[expect(clippy::cast_precision_loss, reason = "a batch is far below 2^24")]
    pub(crate) fn advance(&mut self, plan: &BatchPlan, learning_rate: f32) -> f32 {
        let Snapshot { seed, step, ref mut weights, ref mut momentum } = self.snapshot;
        let mut random = Random::new(seed, purpose::STEPS + step);
        let mut gradient: Params = vec![0.0; PARAMS];
        let mut loss = 0.0;
        for _ in 0..plan.micro_batches() {
            for _ in 0..plan.gpu_batch {
                loss += net::accumulate(weights, self.training.draw(&mut random), &mut gradient);
            }
        }
        let samples = (plan.micro_batches() * plan.gpu_batch) as f32;
        for ((weight, speed), slope) in weights.iter_mut().zip(momentum).zip(gradient) {
            *speed = MOMENTUM * *speed - learning_rate * slope / samples;
            *weight += *speed;
        }
        self.snapshot.step += 1;
        loss / samples
    }

    /// Share of the held-out samples that are classified rightly.
    #[expect(clippy::cast_precision_loss, reason = "a few hundred samples")]
    pub(crate) fn accuracy(&self) -> f32 {
        let right =
            |sample: &&Sample| net::classify(&self.snapshot.weights, sample.point) == sample.class;
        let samples = self.held_out.all();
        samples.iter().filter(right).count() as f32 / samples.len() as f32
    }
}
