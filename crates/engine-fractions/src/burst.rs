//! Memory of one GPU that runs may use beyond their guarantee. Owns: dividing the free memory. Does
//! not know about: the source of the numbers.

/// A run on the GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Guaranteed memory.
    pub(crate) guaranteed: u64,
    /// Maximum memory.
    pub(crate) most: u64,
    /// Memory in use.
    pub(crate) held: u64,
}

impl Holder {
    /// Memory that no other run may use.
    fn kept(self) -> u64 {
        self.guaranteed.max(self.held)
    }
}

/// Current limit of each run: its memory in use or its guarantee, whichever is larger, and an equal
/// part of the rest of the device, up to its maximum. If each run keeps to its limit, all together
/// fit the device, so guaranteed memory is there when a run needs it.
pub(crate) fn divide(device: u64, holders: &[Holder]) -> Vec<u64> {
    let kept = holders.iter().fold(0, |sum: u64, holder| sum.saturating_add(holder.kept()));
    let mut free = device.saturating_sub(kept);
    let wanted = |holder: &Holder| holder.most.saturating_sub(holder.kept());
    let mut order: Vec<usize> = (0..holders.len()).collect();
    order.sort_by_key(|&at| holders.get(at).map(wanted));
    let mut limits = vec![0; holders.len()];
    let mut left = holders.len() as u64;
    for at in order {
        let (Some(holder), Some(limit)) = (holders.get(at), limits.get_mut(at)) else { continue };
        let part = wanted(holder).min(free / left.max(1));
        (free, left) = (free - part, left - 1);
        *limit = (holder.kept() + part).min(holder.most);
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn holder(guaranteed: u64, most: u64, held: u64) -> Holder {
        Holder { guaranteed, most, held }
    }

    #[test]
    fn one_alone_may_have_its_most_and_beside_others_what_they_are_not_guaranteed() {
        assert_eq!(divide(100, &[holder(25, 60, 0)]), [60]);
        assert_eq!(divide(100, &[holder(25, 100, 0), holder(50, 50, 0)]), [50, 50]);
        assert_eq!(divide(100, &[holder(25, 100, 40), holder(25, 100, 25)]), [57, 43]);
        assert_eq!(divide(100, &[holder(20, 30, 0), holder(20, 100, 0)]), [30, 70]);
    }

    #[test]
    fn what_a_run_has_beyond_is_kept_and_does_not_grow_once_it_is_guaranteed_to_another() {
        assert_eq!(divide(100, &[holder(25, 100, 80), holder(50, 50, 0)]), [80, 50]);
        assert_eq!(divide(100, &[holder(25, 40, 80)]), [40], "its limit was lowered");
    }

    #[test]
    fn nobody_is_promised_what_is_not_there() {
        // A multiplicative generator with a fixed seed.
        let mut seed = 42_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        for _ in 0..2000 {
            let device = 1000;
            let mut free = device;
            let mut holders = Vec::new();
            while holders.len() < 5 {
                let guaranteed = next(300).min(free);
                free -= guaranteed;
                holders.push(holder(guaranteed, guaranteed + next(700), 0));
            }
            // They take and give back in turn, each within what it may hold then.
            for _ in 0..10 {
                let limits = divide(device, &holders);
                assert!(limits.iter().sum::<u64>() <= device, "{holders:?} {limits:?}");
                for (holder, limit) in holders.iter_mut().zip(limits) {
                    assert!(limit >= holder.guaranteed && limit <= holder.most, "{holder:?}");
                    holder.held = next(limit + 1);
                }
            }
        }
    }
}
