//! Fair share against the published examples and its own invariants.

use model::{
    Cluster, GpuRequest, NodeSpec, PodRequest, PodSetSpec, QueueSpec, Share, Usage, Weights,
    WorkloadSpec,
};
use proptest::prelude::*;
use sched::{OverQuota, Policy};
use units::Resources;

/// (quota, weight, requested) in whole GPUs.
type Line = (u64, u64, u32);

/// The fair shares of sibling queues on `gpus` GPUs, in thousandths.
fn divide(gpus: usize, lines: &[Line]) -> Vec<u64> {
    divide_by(gpus, lines, &[], &Policy::default())
}

/// The fair shares under a policy, with past use in parts per million.
fn divide_by(gpus: usize, lines: &[Line], usage: &[u64], policy: &Policy) -> Vec<u64> {
    let mut cluster = Cluster::new();
    cluster.add_node(NodeSpec::new("n", vec![1 << 34; gpus], 0, 0));
    let mut ids = Vec::new();
    let mut usage = usage.iter().copied();
    for (seq, &(quota, weight, requested)) in (1..).zip(lines) {
        let gpu_ppm = usage.next().unwrap_or(0);
        let quota = Resources { gpu_millis: quota * 1000, ..Resources::UNLIMITED };
        let share = Share {
            over_quota_weight: Weights::all(weight),
            ..Share::new(quota, Resources::UNLIMITED)
        };
        let spec = QueueSpec { name: format!("q{seq}"), parent: None, share, seq };
        let queue = cluster.add_queue(spec).expect("a sound queue");
        cluster.set_usage(queue, Usage { gpu_ppm, ..Usage::default() });
        ids.push(queue);
        if requested > 0 {
            let gpu = GpuRequest::Whole(1);
            let request = PodRequest { gpu, cpu_millis: 0, memory_bytes: 0 };
            let pod_set = PodSetSpec { pods: requested, ..request.into() };
            let spec = WorkloadSpec::new(format!("w{seq}"), queue, seq, pod_set);
            let workload = cluster.add_workload(spec);
            let workload = workload.expect("a sound workload");
            for pod in cluster.workloads()[workload].pods.clone() {
                cluster.set_wants(pod, true);
            }
        }
    }
    let shares = sched::fair_shares(&cluster, policy);
    ids.iter().map(|id| shares[id].gpu_millis).collect()
}

#[test]
fn left_over_goes_by_weight_on_top_of_quota() {
    // The published example: 20 spare GPUs, weights 3, 2, 1; the first has a quota of 6.
    let shares = divide(26, &[(6, 3, 30), (0, 2, 30), (0, 1, 30)]);
    assert_eq!(shares, [16_000, 7_000, 3_000]);
}

#[test]
fn what_one_does_not_want_goes_to_the_others() {
    assert_eq!(divide(8, &[(2, 1, 1), (2, 1, 8), (2, 1, 8)]), [1_000, 4_000, 3_000]);
    assert_eq!(divide(8, &[(2, 1, 0), (2, 1, 8)]), [0, 8_000]);
}

#[test]
fn weight_zero_gets_its_quota_and_no_more() {
    assert_eq!(divide(8, &[(2, 0, 8), (2, 1, 8)]), [2_000, 6_000]);
}

#[test]
fn without_weights_left_over_goes_in_proportion_to_quota() {
    let policy = Policy { over_quota: OverQuota::ByQuota, ..Policy::default() };
    assert_eq!(divide_by(12, &[(3, 1, 12), (1, 1, 12)], &[], &policy), [9_000, 3_000]);
}

#[test]
fn quotas_that_promise_too_much_shrink_in_proportion() {
    assert_eq!(divide(6, &[(6, 1, 8), (3, 1, 8)]), [4_000, 2_000]);
    assert_eq!(divide(6, &[(6, 1, 1), (6, 1, 8)]), [1_000, 5_000]);
}

#[test]
fn who_used_more_of_late_gets_less_of_what_is_left_over() {
    let policy = Policy::default();
    let lines = [(0, 1, 10), (0, 1, 10)];
    assert_eq!(divide_by(10, &lines, &[0, 0], &policy), [5_000, 5_000]);
    // n = 1/2 each; the first used 3/4 of the cluster: 1/2 - 1/4 against 1/2 + 1/4.
    assert_eq!(divide_by(10, &lines, &[750_000, 250_000], &policy), [3_000, 7_000]);
    assert_eq!(divide_by(10, &lines, &[1_000_000, 0], &policy), [0, 10_000]);
}

#[test]
fn rounding_leaves_whole_gpus_to_the_larger_remainder_then_the_older() {
    assert_eq!(divide(4, &[(0, 1, 4), (0, 1, 4), (0, 1, 4)]), [2_000, 1_000, 1_000]);
    assert_eq!(divide(5, &[(0, 1, 5), (0, 2, 5)]), [2_000, 3_000]);
}

proptest! {
    #[test]
    fn shares_are_bounded_and_nothing_wanted_is_left_lying(
        gpus in 1..64_usize,
        lines in prop::collection::vec((0..16_u64, 0..5_u64, 0..32_u32), 1..8),
    ) {
        let shares = divide(gpus, &lines);
        let capacity = gpus as u64 * 1000;
        for (&share, &(quota, weight, requested)) in shares.iter().zip(&lines) {
            let requested = u64::from(requested) * 1000;
            prop_assert!(share <= requested, "no more than asked for");
            let promised: u64 = lines.iter().map(|l| (u64::from(l.2) * 1000).min(l.0 * 1000)).sum();
            let kept = promised > capacity || share >= requested.min(quota * 1000);
            prop_assert!(kept, "the quota is kept where there is enough");
            prop_assert!(weight > 0 || share <= quota * 1000, "weight 0 gets no more than quota");
        }
        let total: u64 = shares.iter().sum();
        let hungry = shares.iter().zip(&lines).any(|(&share, &(_, weight, requested))| {
            weight > 0 && share < u64::from(requested) * 1000
        });
        prop_assert!(total <= capacity, "{total} of {capacity} given");
        prop_assert!(!hungry || total >= capacity, "{total} of {capacity} given, a queue wants more");
    }
}
