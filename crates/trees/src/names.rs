//! Unused names for entries of folders. Owns: that they cannot be guessed. Does not know about:
//! folders.

use std::ffi::CString;
use std::hash::{BuildHasher as _, RandomState};

/// A source of names.
#[derive(Debug)]
pub(crate) struct FreshNames {
    /// Random: with a known prefix another user could take all names first.
    prefix: u64,
    next: u64,
}

impl Default for FreshNames {
    fn default() -> Self {
        Self { prefix: RandomState::new().hash_one(0), next: 0 }
    }
}

impl FreshNames {
    pub(crate) fn next(&mut self) -> CString {
        self.next += 1;
        let name = format!("{:016x}-{}", self.prefix, self.next);
        CString::new(name).expect("digits and a dash have no NUL")
    }
}
