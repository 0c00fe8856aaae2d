//! Mutual exclusion of the threads of one process. Owns: a lock that makes system calls only where
//! threads meet. Does not know about: other processes, which share nothing that needs one.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::sys::{futex_wait, futex_wake};

/// A value that one thread at a time may use.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Lock<T> {
    /// 0 free, 1 held, 2 held and waited for.
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `with`, by one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Does something with the value. Not from within itself: that waits for ever.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        take(&self.word);
        // SAFETY: this thread holds the lock until the word is changed below.
        let result = work(unsafe { &mut *self.value.get() });
        give(&self.word);
        result
    }
}

// Once for values of all types: locks are taken in many places.

#[inline(never)]
fn take(word: &AtomicU32) {
    if word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
        while word.swap(2, Acquire) != 0 {
            futex_wait(word, 2);
        }
    }
}

#[inline(never)]
fn give(word: &AtomicU32) {
    if word.swap(0, Release) == 2 {
        futex_wake(word);
    }
}
