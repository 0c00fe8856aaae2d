//! Pending reasons of workloads. Owns: that the reasons of a class of workloads are stored once,
//! however many they are. Does not know about: the definition of a class, and when its reasons
//! change.

use std::borrow::Cow;
use std::sync::Arc;

use reasons::ClassId;
use units::Instant;
use uuid::Uuid;

use crate::SharedMap;

/// A coded reason with its text for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonView {
    /// Stable code: `P…` for pending, `E…` for evictions; explained in
    /// `docs/reference/codes/<code>.md`.
    pub code: Cow<'static, str>,
    /// One sentence with the numbers.
    pub message: Arc<str>,
    /// Start time of the reason, or time of the event.
    pub at: Instant,
}

/// A reason of a workload, or its membership in a class whose reasons it shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingReason {
    /// A reason of its own.
    Own(ReasonView),
    /// The reasons of its class.
    OfClass(Membership),
}

/// Membership of a workload in a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Id of the class.
    pub class: ClassId,
    /// Start of the membership.
    pub since: Instant,
    /// Codes of reasons that it had before as well, with their start times.
    pub earlier: Arc<[(Cow<'static, str>, Instant)]>,
}

impl PendingReason {
    /// True if the workload waits for the scheduler.
    #[must_use]
    pub fn is_about_a_place(&self) -> bool {
        match self {
            Self::Own(why) => why.code.starts_with('P'),
            Self::OfClass(_) => true,
        }
    }

    /// The workload's own reason; `None` for a membership.
    #[must_use]
    pub const fn own(&self) -> Option<&ReasonView> {
        match self {
            Self::Own(why) => Some(why),
            Self::OfClass(_) => None,
        }
    }

    /// The class of a membership; `None` for the workload's own reason.
    #[must_use]
    pub const fn class(&self) -> Option<ClassId> {
        match self {
            Self::Own(_) => None,
            Self::OfClass(membership) => Some(membership.class),
        }
    }
}

impl Membership {
    /// Start time of a reason of the class for this member.
    fn since(&self, why: &ReasonView) -> Instant {
        if why.at > self.since {
            return why.at;
        }
        let earlier = self.earlier.iter().find(|(code, _)| *code == why.code);
        earlier.map_or(self.since, |(_, at)| *at)
    }
}

/// Pending reasons and members of classes of workloads. A copy shares the unchanged parts.
#[derive(Debug, Clone, Default)]
pub struct PendingClasses {
    reasons: SharedMap<ClassId, Arc<[ReasonView]>>,
    members: SharedMap<ClassId, SharedMap<Uuid, ()>>,
}

impl PendingClasses {
    /// The reasons of a class, with their start times for the class; `None` without such a class.
    #[must_use]
    pub fn reasons(&self, class: ClassId) -> Option<&Arc<[ReasonView]>> {
        self.reasons.get(&class)
    }

    /// The workloads of a class, in order.
    pub fn members(&self, class: ClassId) -> impl Iterator<Item = Uuid> {
        self.members.get(&class).into_iter().flat_map(SharedMap::keys).copied()
    }

    /// All members of all classes.
    pub fn all_members(&self) -> impl Iterator<Item = (ClassId, Uuid)> {
        let of_each = self.members.iter();
        of_each.flat_map(|(class, members)| members.keys().map(|id| (*class, *id)))
    }

    /// Sets the reasons of a class.
    pub fn set(&mut self, class: ClassId, reasons: Arc<[ReasonView]>) {
        self.reasons.insert(class, reasons);
    }

    /// Adds a workload to a class.
    pub fn join(&mut self, class: ClassId, id: Uuid) {
        if let Some(members) = self.members.get_mut(&class) {
            members.insert(id, ());
        } else {
            self.members.insert(class, SharedMap::from_iter([(id, ())]));
        }
    }

    /// Removes a workload from a class; the last one removes the class.
    pub fn leave(&mut self, class: ClassId, id: Uuid) {
        let Some(members) = self.members.get_mut(&class) else { return };
        members.remove(&id);
        if members.is_empty() {
            self.members.remove(&class);
            self.reasons.remove(&class);
        }
    }

    /// Reasons of a workload, with their start times for it.
    pub fn each<'a>(
        &'a self,
        pending: &'a [PendingReason],
    ) -> impl Iterator<Item = (&'a ReasonView, Instant)> {
        pending.iter().flat_map(|reason| {
            let of_class = reason.class().and_then(|class| self.reasons(class));
            let of_class = of_class.into_iter().flat_map(|all| all.iter());
            let each = reason.own().into_iter().chain(of_class);
            each.map(move |why| match reason {
                PendingReason::Own(_) => (why, why.at),
                PendingReason::OfClass(membership) => (why, membership.since(why)),
            })
        })
    }

    /// Reasons of a workload, with text and start times for it.
    #[must_use]
    pub fn in_full(&self, pending: &[PendingReason]) -> Vec<ReasonView> {
        self.each(pending).map(|(why, at)| ReasonView { at, ..why.clone() }).collect()
    }

    /// The classes whose reasons have changed, new ones and removed ones: true if the class existed
    /// before, and true if it exists now.
    pub fn diff<'a>(
        before: &'a Self,
        now: &'a Self,
    ) -> impl Iterator<Item = (ClassId, bool, bool)> + 'a {
        let both = SharedMap::diff(&before.reasons, &now.reasons);
        both.map(|(class, was, is)| (*class, was.is_some(), is.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(all: &[(&'static str, u64)]) -> Arc<[ReasonView]> {
        let one = |&(code, at)| ReasonView {
            code: Cow::Borrowed(code),
            message: code.into(),
            at: Instant(at),
        };
        all.iter().map(one).collect()
    }

    fn of_class(since: u64, earlier: &[(&'static str, u64)]) -> [PendingReason; 1] {
        let earlier = earlier.iter().map(|(code, at)| (Cow::Borrowed(*code), Instant(*at)));
        let (class, since) = (ClassId(1), Instant(since));
        [PendingReason::OfClass(Membership { class, since, earlier: earlier.collect() })]
    }

    #[test]
    fn a_member_has_each_reason_since_it_and_its_class_have_it() {
        let mut classes = PendingClasses::default();
        let (early, late) = (Uuid::from_u128(1), Uuid::from_u128(2));
        classes.set(ClassId(1), reasons(&[("P1", 5), ("P2", 5)]));
        classes.join(ClassId(1), early);
        classes.join(ClassId(1), late);
        let at = |classes: &PendingClasses, pending: &[PendingReason]| {
            let all = classes.in_full(pending);
            all.iter().map(|why| (why.code.to_string(), why.at.0)).collect::<Vec<_>>()
        };
        let told = |of: [(&str, u64); 2]| of.map(|(code, at)| (code.to_owned(), at)).to_vec();
        assert_eq!(at(&classes, &of_class(5, &[])), told([("P1", 5), ("P2", 5)]));
        assert_eq!(at(&classes, &of_class(7, &[])), told([("P1", 7), ("P2", 7)]));
        assert_eq!(at(&classes, &of_class(7, &[("P2", 3)])), told([("P1", 7), ("P2", 3)]));
        let before = classes.clone();
        classes.set(ClassId(1), reasons(&[("P1", 5), ("P2", 9)]));
        assert_eq!(at(&classes, &of_class(7, &[("P2", 3)])), told([("P1", 7), ("P2", 9)]));
        let differs = |now: &PendingClasses| PendingClasses::diff(&before, now).collect::<Vec<_>>();
        assert_eq!(differs(&classes), [(ClassId(1), true, true)]);
        assert_eq!(differs(&before), []);
        classes.leave(ClassId(1), early);
        assert_eq!(classes.members(ClassId(1)).collect::<Vec<_>>(), [late]);
        assert!(classes.reasons(ClassId(1)).is_some());
        classes.leave(ClassId(1), late);
        assert_eq!((classes.reasons(ClassId(1)), classes.all_members().count()), (None, 0));
        assert_eq!(differs(&classes), [(ClassId(1), true, false)]);
        let none = PendingClasses::default();
        let new: Vec<_> = PendingClasses::diff(&none, &before).collect();
        assert_eq!(new, [(ClassId(1), false, true)]);
    }
}
