//! A network of two layers. Owns: its forward and backward pass. Does not know about: where samples
//! come from and what is done with the gradient.

use crate::data::{CLASSES, INPUTS, Sample};
use crate::random::Random;

/// Units of the hidden layer.
pub(crate) const HIDDEN: usize = 32;

const W1: usize = 0;
const B1: usize = W1 + HIDDEN * INPUTS;
const W2: usize = B1 + HIDDEN;
const B2: usize = W2 + CLASSES * HIDDEN;
/// Numbers that are learned.
pub(crate) const PARAMS: usize = B2 + CLASSES;

/// Weights and biases of both layers in one row; a gradient has the same shape.
pub(crate) type Params = Vec<f32>;

/// Weights to start from.
pub(crate) fn initial(random: &mut Random) -> Params {
    let mut params = vec![0.0; PARAMS];
    #[expect(clippy::cast_precision_loss, reason = "a layer is small")]
    let scale = |fan_in: usize| (2.0 / fan_in as f32).sqrt();
    for weight in &mut params[W1..B1] {
        *weight = random.normal() * scale(INPUTS);
    }
    for weight in &mut params[W2..B2] {
        *weight = random.normal() * scale(HIDDEN);
    }
    params
}

/// Activations of the network for one sample.
struct Pass {
    hidden: [f32; HIDDEN],
    probability: [f32; CLASSES],
}

fn forward(params: &[f32], point: [f32; INPUTS]) -> Pass {
    let mut hidden = [0.0; HIDDEN];
    for (unit, value) in hidden.iter_mut().enumerate() {
        let weights = &params[W1 + unit * INPUTS..][..INPUTS];
        let sum: f32 = weights.iter().zip(point).map(|(weight, input)| weight * input).sum();
        *value = (sum + params[B1 + unit]).max(0.0);
    }
    let mut scores = [0.0; CLASSES];
    for (class, score) in scores.iter_mut().enumerate() {
        let weights = &params[W2 + class * HIDDEN..][..HIDDEN];
        *score = params[B2 + class]
            + weights.iter().zip(hidden).map(|(weight, input)| weight * input).sum::<f32>();
    }
    let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut probability = scores.map(|score| (score - top).exp());
    let total: f32 = probability.iter().sum();
    probability.iter_mut().for_each(|value| *value /= total);
    Pass { hidden, probability }
}

/// Adds the gradient of the sample's cross-entropy to `gradient` and returns the loss.
pub(crate) fn accumulate(params: &[f32], sample: Sample, gradient: &mut [f32]) -> f32 {
    let Pass { hidden, probability } = forward(params, sample.point);
    let mut back = [0.0; HIDDEN];
    for class in 0..CLASSES {
        let error = probability[class] - f32::from(u8::from(class == sample.class));
        gradient[B2 + class] += error;
        for unit in 0..HIDDEN {
            let at = W2 + class * HIDDEN + unit;
            gradient[at] += error * hidden[unit];
            back[unit] += error * params[at];
        }
    }
    for unit in 0..HIDDEN {
        if hidden[unit] > 0.0 {
            gradient[B1 + unit] += back[unit];
            for (input, value) in sample.point.iter().enumerate() {
                gradient[W1 + unit * INPUTS + input] += back[unit] * value;
            }
        }
    }
    -probability[sample.class].max(f32::MIN_POSITIVE).ln()
}

/// The class the network thinks a point is of.
pub(crate) fn classify(params: &[f32], point: [f32; INPUTS]) -> usize {
    let probability = forward(params, point).probability;
    (1..CLASSES).fold(
        0,
        |best, class| {
            if probability[class] > probability[best] { class } else { best }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradient is what the loss does when one number is nudged.
    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let mut params = initial(&mut Random::new(7, 0));
        let sample = Sample { point: [0.4, -0.3], class: 1 };
        let mut gradient = vec![0.0; PARAMS];
        accumulate(&params, sample, &mut gradient);
        let loss = |params: &[f32]| accumulate(params, sample, &mut vec![0.0; PARAMS]);
        let nudge = 1e-2;
        for at in 0..PARAMS {
            let kept = params[at];
            params[at] = kept + nudge;
            let above = loss(&params);
            params[at] = kept - nudge;
            let below = loss(&params);
            params[at] = kept;
            let slope = (above - below) / (2.0 * nudge);
            assert!((slope - gradient[at]).abs() < 2e-2, "{at}: {slope} and {}", gradient[at]);
        }
    }
}
