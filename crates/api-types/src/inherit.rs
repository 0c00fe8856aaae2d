//! Combination of the values of a specification with inherited ones. Owns: that most values replace
//! the inherited one, and how lists are merged. Does not know about: the source of inherited
//! values.

use serde_json::Number;

/// Combination of a value with an inherited one. Most values replace it.
pub(crate) trait Inherit: Sized {
    fn over(self, _below: Self) -> Self {
        self
    }
}

/// The own value, combined with the inherited one where there are both.
pub(crate) fn inherit<T: Inherit>(own: Option<T>, below: Option<T>) -> Option<T> {
    match (own, below) {
        (Some(own), Some(below)) => Some(own.over(below)),
        (own, below) => own.or(below),
    }
}

impl Inherit for String {}
// An order of preference is one value.
impl Inherit for Vec<String> {}
impl Inherit for Number {}
impl Inherit for bool {}
impl Inherit for u32 {}
impl Inherit for u64 {}
impl Inherit for i64 {}

pub(crate) fn by_name<T>(own: Vec<T>, below: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    by(own, below, |item| name(item).to_owned())
}

/// Inherited items, without those that there are own ones of, and the own ones.
pub(crate) fn by<T, K: PartialEq>(own: Vec<T>, mut below: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    below.retain(|inherited| !own.iter().any(|item| key(item) == key(inherited)));
    below.extend(own);
    below
}
