//! Rollout of replicas. Owns: the order in which replicas are removed, and how one revision
//! replaces another, as a function of their states. Does not know about: time, and the number of
//! replicas that should run.
//!
//! The newest revision gets as many replicas as should run. Those of older ones stop one by one, as
//! those of the newest become ready; so the number of ready replicas never falls, and a newest
//! revision that never becomes ready removes nothing. If the newest finds no room beside the old
//! ones, one of theirs stops ahead, for any number of the newest.

use std::collections::BTreeSet;

use uuid::Uuid;

/// State of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replica {
    /// Nil for a replica that never should have run.
    pub(crate) pod: Uuid,
    pub(crate) number: u32,
    /// True if it should run.
    pub(crate) wanted: bool,
    /// True if it has a place.
    pub(crate) placed: bool,
    /// True if it is ready.
    pub(crate) ready: bool,
}

/// Planned replicas of a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RevisionPlan {
    /// Numbers of the replicas that should run.
    pub(crate) stay: BTreeSet<u32>,
    /// Running replicas that stop when they are drained.
    pub(crate) leave: Vec<Replica>,
}

/// Plans for the replicas of some revisions, the newest first. `ahead`: number of the older ones
/// that stop before one of the newest is ready, to make room.
pub(crate) fn roll(revisions: &[Vec<Replica>], replicas: u32, ahead: u32) -> Vec<RevisionPlan> {
    let mut fates = Vec::with_capacity(revisions.len());
    let mut missing = replicas as usize;
    for (age, all) in revisions.iter().enumerate() {
        if age == 1 && ahead > 0 {
            let serve = revisions[1..].iter().flatten().filter(|r| r.ready && r.wanted).count();
            missing = missing.min(serve).saturating_sub(ahead as usize);
        }
        let mut order = all.clone();
        // Ready replicas are kept before those that only run, the first before the last.
        order.sort_by_key(|r| (!r.ready, !r.placed, !r.wanted, r.number));
        // No request waits for a replica of an old revision.
        let may_stay = |r: &&Replica| age == 0 || (r.ready && r.wanted);
        let stay: Vec<_> = order.iter().filter(may_stay).take(missing).copied().collect();
        missing -= stay.iter().filter(|replica| replica.ready).count().min(missing);
        let stay: BTreeSet<u32> = stay.iter().map(|replica| replica.number).collect();
        let leaves = |r: &Replica| r.wanted && !stay.contains(&r.number);
        let leave = all.iter().copied().filter(leaves).collect();
        fates.push(RevisionPlan { stay, leave });
    }
    fates
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replicas by state: `-` has left, `w` wanted, `p` placed, `r` ready.
    fn revision(states: &str) -> Vec<Replica> {
        let one = |(number, state): (u32, char)| Replica {
            pod: Uuid::from_u128(number.into()),
            number,
            wanted: state != '-',
            placed: matches!(state, 'p' | 'r'),
            ready: state == 'r',
        };
        (0..).zip(states.chars()).map(one).collect()
    }

    /// Plans in symbols: `+` stays or starts, `x` leaves, `-` stays away.
    fn fates(revisions: &[&str], replicas: u32) -> Vec<String> {
        fates_with(revisions, replicas, 0)
    }

    fn fates_with(revisions: &[&str], replicas: u32, ahead: u32) -> Vec<String> {
        let all: Vec<_> = revisions.iter().map(|states| revision(states)).collect();
        let fates = roll(&all, replicas, ahead);
        let shown = fates.iter().zip(&all).map(|(fate, all)| {
            let leaves = |r: &Replica| fate.leave.iter().any(|gone| gone.number == r.number);
            let one = |r: &Replica| match (fate.stay.contains(&r.number), leaves(r)) {
                (true, false) => '+',
                (false, true) => 'x',
                (false, false) => '-',
                (true, true) => '!',
            };
            all.iter().map(one).collect()
        });
        shown.collect()
    }

    #[test]
    fn one_revision_grows_and_shrinks() {
        for (states, replicas, want) in [
            ("----", 2, "++--"),
            ("rr--", 3, "+++-"),
            ("rrrr", 2, "++xx"),
            ("wprr", 2, "xx++"),
            ("wwww", 1, "+xxx"),
            ("r--r", 0, "x--x"),
            ("-r--", 1, "-+--"),
            ("rr", 5, "++"),
        ] {
            assert_eq!(fates(&[states], replicas), [want], "{states} to {replicas}");
        }
    }

    #[test]
    fn the_old_goes_as_the_new_gets_ready() {
        for (newest, old, want) in [
            ("www", "rrr", ["+++", "+++"]),
            ("prw", "rrr", ["+++", "++x"]),
            ("rrp", "rrr", ["+++", "+xx"]),
            ("rrr", "rrr", ["+++", "xxx"]),
            ("www", "rpw", ["+++", "+xx"]),
            ("rrr", "---", ["+++", "---"]),
        ] {
            assert_eq!(fates(&[newest, old], 3), want, "{newest} after {old}");
        }
    }

    #[test]
    fn without_room_one_of_the_old_goes_ahead() {
        for (newest, old, replicas, want) in [
            ("ww", "rr", 2, ["++", "+x"]),
            ("ww", "r-", 2, ["++", "x-"]),
            ("rw", "r-", 2, ["++", "x-"]),
            ("rww", "r--", 3, ["+++", "x--"]),
            ("rwww", "rr--", 4, ["++++", "+x--"]),
            ("www", "rrr", 3, ["+++", "++x"]),
            ("rww", "rr-", 3, ["+++", "+x-"]),
            ("w", "r", 1, ["+", "x"]),
            ("w", "-", 1, ["+", "-"]),
        ] {
            assert_eq!(fates_with(&[newest, old], replicas, 1), want, "{newest} after {old}");
        }
    }

    #[test]
    fn of_two_old_ones_the_older_goes_first() {
        assert_eq!(fates(&["ww", "r-", "rr"], 2), ["++", "+-", "+x"]);
        assert_eq!(fates(&["rw", "r-", "rr"], 2), ["++", "+-", "xx"]);
        assert_eq!(fates(&["--", "r-", "rr"], 0), ["--", "x-", "xx"]);
    }
}
