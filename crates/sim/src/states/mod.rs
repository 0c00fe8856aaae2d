//! Benchmark states for decisions, by name and size. Every node has 8 GPUs; CPU and memory are
//! never scarce. Source: benchmarks reference §1 and §2.

mod builder;
mod different;

use model::Cluster;

use builder::Builder;

pub use different::Different;

/// GPUs of each node in every state.
pub const GPUS_PER_NODE: u64 = 8;

/// A state to decide on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As many one-GPU jobs pending as there are GPUs, in four queues of two departments.
    Fill,
    /// Every GPU held by a one-GPU job of a queue that deserves nothing; one gang of N/10 pods of
    /// 8 GPUs pending in a queue that deserves everything.
    ReclaimGang,
    /// As `ReclaimGang`, with a gang of N/2 pods.
    ReclaimHalf,
    /// 8 running one-GPU jobs per node in a queue that deserves nothing and 8 pending ones per
    /// node in a queue that deserves them all.
    ReclaimSingles,
    /// Full of one-GPU jobs; a gang of 10 × 8 GPUs whose queue is one GPU short of deserving it.
    OneShort,
    /// One GPU of every node free, the rest held by one-GPU jobs; the gang of `OneShort`, whose
    /// queue is one GPU short: the free GPUs are enough in sum, so that every node has to be
    /// examined.
    OneShortScattered,
    /// 3 of 8 GPUs busy on every node; gangs of 10 × 6 GPUs pending, as many as have room.
    Fragmented,
    /// Empty; one gang of as many pods as nodes, each of 2 GPUs.
    WideGang,
    /// Empty; 5 zones of 10 blocks of 10 racks. One gang of as many pods as nodes, each of 1 GPU,
    /// which must be in one zone.
    TopologyGang,
    /// Full of one-GPU jobs within their quota, nothing pending.
    Full,
}

impl State {
    /// Every state, in the order of the published table.
    pub const ALL: [Self; 10] = [
        Self::Fill,
        Self::ReclaimGang,
        Self::ReclaimHalf,
        Self::ReclaimSingles,
        Self::OneShort,
        Self::OneShortScattered,
        Self::Fragmented,
        Self::WideGang,
        Self::TopologyGang,
        Self::Full,
    ];

    /// Name of the state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::ReclaimGang => "reclaim-gang",
            Self::ReclaimHalf => "reclaim-half",
            Self::ReclaimSingles => "reclaim-singles",
            Self::OneShort => "one-short",
            Self::OneShortScattered => "one-short-scattered",
            Self::Fragmented => "fragmented",
            Self::WideGang => "wide-gang",
            Self::TopologyGang => "topology-gang",
            Self::Full => "full",
        }
    }

    /// Builds the state with `nodes` nodes.
    #[must_use]
    pub fn build(self, nodes: u32) -> Cluster {
        let count = u64::from(nodes);
        let gpus = count * GPUS_PER_NODE;
        let mut b = Builder::new(nodes);
        match self {
            Self::Fill => {
                let departments = ["a", "b"].map(|name| b.queue(name, None, gpus / 2, 1));
                let queues: Vec<_> = (0..4_usize)
                    .map(|n| b.queue(&format!("q{n}"), Some(departments[n / 2]), gpus / 4, 1))
                    .collect();
                for job in 0..gpus {
                    b.pending(queues[(job % 4) as usize], 1, 1);
                }
            }
            Self::ReclaimGang => b.full_with_pending(0, gpus, &[(nodes.div_ceil(10), 8)]),
            Self::ReclaimHalf => b.full_with_pending(0, gpus, &[(nodes.div_ceil(2), 8)]),
            Self::ReclaimSingles => {
                let jobs = vec![(1, 1); usize::try_from(gpus).unwrap_or(usize::MAX)];
                b.full_with_pending(0, gpus, &jobs);
            }
            Self::OneShort => b.full_with_pending(gpus.saturating_sub(80) + 1, 80, &[(10, 8)]),
            Self::OneShortScattered => {
                let running = b.queue("queue-0", None, (7 * count).saturating_sub(69), 0);
                let pending = b.queue("queue-1", None, 80, 0);
                for gpu in 0..7 {
                    (0..nodes).for_each(|node| b.running(running, node, gpu));
                }
                b.pending(pending, 10, 8);
            }
            Self::Fragmented => {
                let running = b.queue("running", None, gpus, 1);
                let pending = b.queue("pending", None, gpus, 1);
                for node in 0..nodes {
                    (0..3).for_each(|gpu| b.running(running, node, gpu));
                }
                for _ in 0..(count / 10 * 50) / 60 {
                    b.pending(pending, 10, 6);
                }
            }
            Self::WideGang => {
                let queue = b.queue("q0", None, gpus, 1);
                b.pending(queue, nodes, 2);
            }
            Self::TopologyGang => {
                let queue = b.queue("q0", None, gpus, 1);
                b.pending_in_one_zone(queue, nodes);
            }
            Self::Full => b.full_with_pending(gpus, 0, &[]),
        }
        b.cluster
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn every_state_is_sound_and_has_its_size() {
        for state in State::ALL {
            let cluster = state.build(20);
            assert_eq!(cluster.verify(), Ok(()), "{}", state.name());
            assert_eq!(cluster.capacity().gpu_millis, 160_000, "{}", state.name());
        }
        assert_eq!(State::OneShort.build(20).waiting().len(), 1);
        assert_eq!(State::TopologyGang.build(1000).topologies()[0].domains_at(2).len(), 500);
        assert_eq!(State::Fill.build(20).waiting().len(), 160);
    }
}
