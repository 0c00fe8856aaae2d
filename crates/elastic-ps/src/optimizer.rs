//! How a gradient changes a variable. Owns: the rules and their state. Does not know about: where
//! gradients come from.
//!
//! The loops are over slices of equal length without branches, so that the compiler makes vector
//! instructions of them.

use elastic_proto::v1::Optimizer;
use elastic_proto::v1::optimizer::Rule;

/// Error of an optimizer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum OptimizerError {
    #[error("optimizer: rule is missing; one of sgd, adam, adagrad")]
    Missing,
    #[error("optimizer: {field} {value} is not allowed; {allowed}")]
    Field { field: &'static str, value: f32, allowed: &'static str },
}

/// Checks an optimizer.
pub(crate) fn check(optimizer: &Optimizer) -> Result<(), OptimizerError> {
    let is_one = |field, value: f32, ok: bool, allowed| {
        let error = OptimizerError::Field { field, value, allowed };
        if value.is_finite() && ok { Ok(()) } else { Err(error) }
    };
    let rate = optimizer.learning_rate;
    is_one("learning_rate", rate, rate > 0.0, "a number above 0")?;
    let below_one = |field, value: f32| {
        is_one(field, value, (0.0..1.0).contains(&value), "at least 0 and below 1")
    };
    let positive = |field, value: f32| is_one(field, value, value >= 0.0, "at least 0");
    match optimizer.rule.as_ref().ok_or(OptimizerError::Missing)? {
        Rule::Sgd(sgd) => below_one("sgd.momentum", sgd.momentum),
        Rule::Adam(adam) => {
            below_one("adam.beta_1", adam.beta_1)?;
            below_one("adam.beta_2", adam.beta_2)?;
            positive("adam.epsilon", adam.epsilon)
        }
        Rule::Adagrad(adagrad) => {
            positive("adagrad.epsilon", adagrad.epsilon)?;
            positive("adagrad.initial_accumulator", adagrad.initial_accumulator)
        }
    }
}

/// Slots of the rule for a variable of this length, before the first update.
pub(crate) fn slots(optimizer: &Optimizer, length: usize) -> Vec<Vec<f32>> {
    let (count, start) = match &optimizer.rule {
        Some(Rule::Sgd(sgd)) => (usize::from(sgd.momentum > 0.0), 0.0),
        Some(Rule::Adam(adam)) => (2 + usize::from(adam.amsgrad), 0.0),
        Some(Rule::Adagrad(adagrad)) => (1, adagrad.initial_accumulator),
        None => (0, 0.0),
    };
    vec![vec![start; length]; count]
}

/// The rate of an update. `steps` is the number of updates, this one included.
pub(crate) fn rate(optimizer: &Optimizer, (steps, rate): (u64, f32)) -> f32 {
    match &optimizer.rule {
        Some(Rule::Adam(adam)) => rate * bias_correction((adam.beta_1, adam.beta_2), steps),
        _ => rate,
    }
}

/// Changes a variable by a gradient, at the rate of [`rate`].
pub(crate) fn update(
    optimizer: &Optimizer,
    rate: f32,
    (values, slots): (&mut [f32], &mut [impl AsMut<[f32]>]),
    gradient: &[f32],
) {
    match (&optimizer.rule, slots) {
        (Some(Rule::Sgd(sgd)), [velocity]) => {
            let (momentum, velocity) = (sgd.momentum, velocity.as_mut());
            // With Nesterov the step is that of the next velocity.
            let (of_velocity, of_gradient) =
                if sgd.nesterov { (momentum, 1.0) } else { (1.0, 0.0) };
            for ((p, v), g) in values.iter_mut().zip(velocity).zip(gradient) {
                *v = momentum * *v + g;
                *p -= rate * (of_gradient * g + of_velocity * *v);
            }
        }
        (Some(Rule::Sgd(_)), _) => {
            values.iter_mut().zip(gradient).for_each(|(p, g)| *p -= rate * g);
        }
        (Some(Rule::Adam(adam)), [first, second, rest @ ..]) => {
            let (b1, b2, epsilon) = (adam.beta_1, adam.beta_2, adam.epsilon);
            let (first, second) = (first.as_mut(), second.as_mut());
            for ((m, v), g) in first.iter_mut().zip(second.iter_mut()).zip(gradient) {
                *m = b1 * *m + (1.0 - b1) * g;
                *v = b2 * *v + (1.0 - b2) * g * g;
            }
            let divisor = match rest {
                [largest, ..] => {
                    let largest = largest.as_mut();
                    largest.iter_mut().zip(&*second).for_each(|(l, v)| *l = l.max(*v));
                    &*largest
                }
                [] => &*second,
            };
            for ((p, m), v) in values.iter_mut().zip(first).zip(divisor) {
                *p -= rate * *m / (v.sqrt() + epsilon);
            }
        }
        (Some(Rule::Adagrad(adagrad)), [sum, ..]) => {
            for ((p, m), g) in values.iter_mut().zip(sum.as_mut()).zip(gradient) {
                *m += g * g;
                *p -= rate * g / (m.sqrt() + adagrad.epsilon);
            }
        }
        // A rule has as many slots as `slots` makes; a checkpoint with others was refused.
        _ => {}
    }
}

/// Both means start at 0 and are too small at first.
fn bias_correction((b1, b2): (f32, f32), steps: u64) -> f32 {
    let power = |base: f32| f64::from(base).powf(as_float(steps));
    #[expect(clippy::cast_possible_truncation, reason = "a factor near 1")]
    let factor = ((1.0 - power(b2)).sqrt() / (1.0 - power(b1))) as f32;
    factor
}

#[expect(clippy::cast_precision_loss, reason = "fewer updates than 2^53")]
fn as_float(steps: u64) -> f64 {
    steps as f64
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::optimizer::Rule;
    use elastic_proto::v1::{Adagrad, Adam, Optimizer, Sgd};

    use super::{check, rate, slots, update};

    /// The value of a variable that starts at 1 and gets these gradients, with rate 0.1.
    fn after(rule: Rule, gradients: &[f32]) -> f32 {
        let optimizer = Optimizer { learning_rate: 0.1, rule: Some(rule) };
        assert_eq!(check(&optimizer), Ok(()));
        let (mut value, mut kept) = ([1.0], slots(&optimizer, 1));
        for (step, gradient) in (1..).zip(gradients) {
            let rate = rate(&optimizer, (step, 0.1));
            update(&optimizer, rate, (&mut value, &mut kept), &[*gradient]);
        }
        value[0]
    }

    fn near(value: f32, expected: f32) {
        assert!((value - expected).abs() < 1e-5, "{value}, not {expected}");
    }

    #[test]
    fn gradient_descent_with_and_without_momentum() {
        near(after(Rule::Sgd(Sgd { momentum: 0.0, nesterov: false }), &[1.0, 2.0]), 0.7);
        // v = 1, then 0.5 + 2 = 2.5.
        near(after(Rule::Sgd(Sgd { momentum: 0.5, nesterov: false }), &[1.0, 2.0]), 0.65);
        // 1 + 0.5, then 2 + 0.5 * 2.5.
        near(after(Rule::Sgd(Sgd { momentum: 0.5, nesterov: true }), &[1.0, 2.0]), 0.525);
    }

    #[test]
    fn adam_steps_by_the_rate_at_first_and_amsgrad_divides_by_the_largest() {
        let adam = |amsgrad| Rule::Adam(Adam { beta_1: 0.9, beta_2: 0.99, epsilon: 0.0, amsgrad });
        near(after(adam(false), &[3.0]), 0.9);
        near(after(adam(true), &[3.0]), 0.9);
        // m = 0.3, v = 0.09; then m = 0.27 and v = 0.0891, while the largest v stays 0.09:
        // 0.1 * sqrt(1 - 0.99^2) / (1 - 0.9^2) * 0.27 / sqrt(v).
        let factor = 0.1 * (1.0_f32 - 0.9801).sqrt() / 0.19 * 0.27;
        near(after(adam(false), &[3.0, 0.0]), 0.9 - factor / 0.0891_f32.sqrt());
        near(after(adam(true), &[3.0, 0.0]), 0.9 - factor / 0.3);
    }

    #[test]
    fn adagrad_divides_by_all_so_far() {
        let adagrad =
            |initial_accumulator| Rule::Adagrad(Adagrad { epsilon: 0.0, initial_accumulator });
        near(after(adagrad(0.0), &[3.0, 4.0]), 1.0 - 0.1 - 0.1 * 0.8);
        near(after(adagrad(16.0), &[3.0]), 1.0 - 0.1 * 0.6);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        let refused = |learning_rate, rule| {
            check(&Optimizer { learning_rate, rule }).expect_err("refused").to_string()
        };
        let sgd = |momentum| Some(Rule::Sgd(Sgd { momentum, nesterov: false }));
        assert!(refused(0.1, None).contains("one of sgd, adam, adagrad"));
        assert!(refused(f32::NAN, sgd(0.0)).contains("learning_rate NaN is not allowed"));
        assert!(refused(0.0, sgd(0.0)).contains("a number above 0"));
        assert!(refused(0.1, sgd(1.0)).contains("sgd.momentum 1 is not allowed"));
    }
}
