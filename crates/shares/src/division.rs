//! The division of one kind of resource among siblings. Owns: the precedence of quotas over
//! weights, and the rounding. Source: scheduling reference §7 and §8, Run:ai reference D.3, D.3b.

use std::collections::BTreeMap;

use model::Claim;
use units::Kind;

/// Rules of the division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Division of the capacity that exceeds the quotas.
    pub over_quota: OverQuota,
    /// `true` if quotas that exceed the capacity are scaled to claims; else shares exceed it, too.
    pub shrinks_promises: bool,
    /// Strength with which past use lowers a queue's weight, in thousandths (0 = not at all).
    pub usage_weight_millis: u64,
}

/// Division of the capacity that exceeds the quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverQuota {
    /// By the weights of the queues.
    ByWeight,
    /// In proportion to the quotas, as Run:ai did until 2021.
    ByQuota,
}

/// A queue in the division: the amount that it wants, its weight, and the amount it has been given.
struct Line {
    want: u64,
    weight: u128,
    /// Creation order of the queue; among equals the older is first.
    seq: u64,
    given: u64,
    /// Remainder of its part after rounding down, as numerator and denominator; `None` if the part
    /// was not rounded.
    remainder: Option<(u128, u128)>,
}

pub(crate) fn divide_one(queues: &[Claim<'_>], rules: Rules, kind: Kind, total: u64) -> Vec<u64> {
    let wanted = |q: &Claim<'_>| q.wanted(kind);
    let within = |q: &Claim<'_>| q.promised(kind);
    let promised: u128 = queues.iter().map(|q| u128::from(within(q))).sum();
    if promised > u128::from(total) && !rules.shrinks_promises {
        return queues.iter().map(within).collect();
    }
    if promised > u128::from(total) {
        return scaled(queues, kind, total);
    }
    let mut shares: Vec<u64> = queues.iter().map(within).collect();
    let mut left = total - shares.iter().sum::<u64>();
    for group in by_priority(queues) {
        let weights = weights(queues, &group, rules, kind, &shares);
        let lines = group.iter().zip(weights);
        let mut lines: Vec<_> = lines
            .map(|(&at, weight)| Line::new(&queues[at], wanted(&queues[at]) - shares[at], weight))
            .collect();
        left = pour(&mut lines, kind.share_unit(), left);
        for (&at, line) in group.iter().zip(&lines) {
            shares[at] += line.given;
        }
    }
    shares
}

/// Claims of quotas that exceed the capacity. Non-preemptible work keeps its holdings, then queues
/// of the highest priority get their quotas, and queues of one priority divide the rest in
/// proportion to the unused part of their quotas. Claims are not rounded to whole units, which
/// would favour one of equal queues.
fn scaled(queues: &[Claim<'_>], kind: Kind, total: u64) -> Vec<u64> {
    let quota = |q: &Claim<'_>| q.queue.share.quota[kind].min(total);
    let fixed =
        |q: &Claim<'_>| q.queue.allocated_non_preemptible[kind].min(q.promised(kind)).min(total);
    let kept = queues.iter().map(|q| Line::new(q, fixed(q), u128::from(quota(q))));
    let mut kept: Vec<_> = kept.collect();
    let mut left = pour(&mut kept, 1, total);
    let mut shares: Vec<u64> = kept.into_iter().map(|line| line.given).collect();
    for group in by_priority(queues) {
        let line = |&at: &usize| {
            let q = &queues[at];
            let weight = quota(q).saturating_sub(shares[at]);
            Line::new(q, q.promised(kind) - shares[at], u128::from(weight))
        };
        let mut lines: Vec<_> = group.iter().map(line).collect();
        left = pour(&mut lines, 1, left);
        group.iter().zip(&lines).for_each(|(&at, line)| shares[at] += line.given);
    }
    shares
}

/// Indices of the queues of each priority, the highest priority first.
fn by_priority(queues: &[Claim<'_>]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, one) in queues.iter().enumerate() {
        groups.entry(one.queue.share.priority).or_default().push(at);
    }
    groups.into_values().rev().collect()
}

/// The weights of a group for what is left over. With time-based fairness a queue that used more
/// than its part recently weighs less now: `n + k (n - u)` with `n` its part of the weights, `u`
/// its part of the capacity over the window, both scaled to integers.
fn weights(
    queues: &[Claim<'_>],
    group: &[usize],
    rules: Rules,
    kind: Kind,
    shares: &[u64],
) -> Vec<u128> {
    let plain = |at: usize| match rules.over_quota {
        OverQuota::ByWeight => u128::from(queues[at].queue.share.over_quota_weight.of(kind)),
        OverQuota::ByQuota => u128::from(queues[at].queue.share.quota[kind].min(1 << 50)),
    };
    let hungry = |at: usize| queues[at].wanted(kind) > shares[at];
    let total: u128 = group.iter().filter(|&&at| hungry(at)).map(|&at| plain(at)).sum();
    let k = u128::from(rules.usage_weight_millis);
    let used = group.iter().any(|&at| queues[at].queue.usage.of(kind) != 0);
    if k == 0 || !used {
        return group.iter().map(|&at| plain(at)).collect();
    }
    let scaled = |at: usize| {
        let part = plain(at) * 1_000_000;
        let usage = u128::from(queues[at].queue.usage.of(kind)) * total;
        (part * 1000 + k * part).saturating_sub(k * usage)
    };
    group.iter().map(|&at| scaled(at)).collect()
}

impl Line {
    const fn new(claim: &Claim<'_>, want: u64, weight: u128) -> Self {
        Self { want, weight, seq: claim.queue.seq, given: 0, remainder: None }
    }

    const fn hungry(&self) -> bool {
        self.want > self.given && self.weight > 0
    }
}

/// Divides `left` by weight in whole units, in rounds until no queue takes less than its part;
/// returns the amount that no queue wants.
fn pour(lines: &mut [Line], unit: u64, mut left: u64) -> u64 {
    loop {
        let weights: u128 = lines.iter().filter(|line| line.hungry()).map(|line| line.weight).sum();
        if left == 0 || weights == 0 {
            break;
        }
        let round = u128::from(left);
        let mut again = false;
        for line in lines.iter_mut().filter(|line| line.hungry()) {
            let part = round * line.weight;
            let want = u128::from(line.want - line.given);
            let give = if want * weights <= part {
                line.remainder = None;
                again |= want * weights < part;
                line.want - line.given
            } else {
                let step = weights * u128::from(unit);
                line.remainder = Some((part % step, weights));
                u64::try_from(part / step).unwrap_or(u64::MAX) * unit
            };
            line.given += give;
            left -= give;
        }
        if !again {
            break;
        }
    }
    by_remainder(lines, unit, left)
}

/// Distributes the rounding remainder, one unit each: largest remainder first, then the older
/// queue. Returns the amount left.
fn by_remainder(lines: &mut [Line], unit: u64, mut left: u64) -> u64 {
    let mut order: Vec<_> = (0..lines.len()).filter(|&at| lines[at].remainder.is_some()).collect();
    order.sort_by(|&a, &b| {
        let ((pa, wa), (pb, wb)) =
            (lines[a].remainder.unwrap_or((0, 1)), lines[b].remainder.unwrap_or((0, 1)));
        (pb * wa).cmp(&(pa * wb)).then(lines[a].seq.cmp(&lines[b].seq))
    });
    for at in order {
        let line = &mut lines[at];
        let give = unit.min(left).min(line.want - line.given);
        line.given += give;
        left -= give;
    }
    left
}
