//! How a batch is divided over GPUs. Owns: the arithmetic of gradient accumulation. Does not
//! know about: gradients.

use std::fmt;

/// How one training step is divided: `accumulation` rounds, in each of which every GPU takes
/// `gpu_batch` samples. The step stays (about) the same size whatever the number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchPlan {
    /// GPUs at work.
    pub gpus: u32,
    /// Rounds of micro-batches before the weights change.
    pub accumulation: u32,
    /// Samples of one GPU in one round.
    pub gpu_batch: u32,
}

impl BatchPlan {
    /// Divides `global_batch` samples over `gpus` that take up to `max_gpu_batch` at a time. All
    /// arguments are at least 1. What does not divide evenly is rounded down, as researchers know
    /// it from the elasticity library.
    pub(crate) fn new(global_batch: u32, max_gpu_batch: u32, gpus: u32) -> Self {
        let accumulation = (global_batch / max_gpu_batch.saturating_mul(gpus).max(1)).max(1);
        let gpu_batch = (global_batch / accumulation.saturating_mul(gpus).max(1)).max(1);
        Self { gpus, accumulation, gpu_batch }
    }

    /// Micro-batches in a step.
    pub(crate) fn micro_batches(&self) -> u32 {
        self.accumulation.saturating_mul(self.gpus)
    }
}

impl fmt::Display for BatchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gpus, accumulation, gpu_batch } = self;
        write!(f, "gpus {gpus} accumulation {accumulation} batch per gpu {gpu_batch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_gpus_need_fewer_rounds() {
        let plan = |gpus| {
            let plan = BatchPlan::new(256, 64, gpus);
            (plan.accumulation, plan.gpu_batch)
        };
        assert_eq!(plan(1), (4, 64));
        assert_eq!(plan(2), (2, 64));
        assert_eq!(plan(4), (1, 64));
        assert_eq!(plan(8), (1, 32));
    }

    #[test]
    fn a_batch_smaller_than_the_gpus_still_trains() {
        let plan = BatchPlan::new(1, 64, 1000);
        assert_eq!((plan.accumulation, plan.gpu_batch), (1, 1));
    }
}
