//! A program's call of a function of the driver. Owns: how its arguments are passed on. Does not
//! know about: what each function does.
//!
//! Functions that are kept take at most seven numbers and addresses, which the calling convention
//! of this architecture puts into the same places whatever their widths, and a function ignores
//! places that it has no argument for. So all of them are called in one form.

use core::ptr::with_exposed_provenance_mut;

/// Arguments of a call, those that the function does not have included.
pub(crate) type Words = [u64; 7];

/// `CU_STREAM_PER_THREAD`.
const STREAM_OF_THREAD: usize = 2;

/// A call of a function that is kept.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Where the driver's own is.
    pub(crate) real: usize,
    pub(crate) words: &'a Words,
    /// True if addresses and sizes have 4 bytes, as in the first forms of the oldest functions.
    pub(crate) narrow: bool,
    /// True if the stream 0 is the default one of each thread, as in the functions that end so.
    pub(crate) threads: bool,
}

impl Call<'_> {
    /// The driver's own answer.
    #[inline(never)]
    pub(crate) fn ask(&self) -> i32 {
        type Real = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> i32;
        let [a, b, c, d, e, f, g] = *self.words;
        // SAFETY: the address of the function that the program called, with the program's own
        // arguments in the places in which it has put them; see above.
        unsafe { core::mem::transmute::<usize, Real>(self.real)(a, b, c, d, e, f, g) }
    }

    /// An argument of 8 bytes.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// An argument of 4 bytes; what is above them means nothing.
    #[inline(always)]
    pub(crate) fn half(&self, at: usize) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        let half = self.word(at) as u32;
        half
    }

    /// An ordinal of a device.
    #[inline(always)]
    pub(crate) fn ordinal(&self, at: usize) -> i32 {
        self.half(at).cast_signed()
    }

    /// A stream, as the functions that do not end so name it.
    #[inline(never)]
    pub(crate) fn stream(&self, at: usize) -> usize {
        match pointer::<u8>(self.word(at)).addr() {
            0 if self.threads => STREAM_OF_THREAD,
            stream => stream,
        }
    }

    /// An address or a size.
    #[inline(always)]
    pub(crate) fn size(&self, at: usize) -> u64 {
        if self.narrow { u64::from(self.half(at)) } else { self.word(at) }
    }

    /// An argument that is an address.
    #[inline(always)]
    pub(crate) fn pointer<T>(&self, at: usize) -> *mut T {
        pointer(self.word(at))
    }

    /// The value that a pointer argument points to.
    ///
    /// # Safety
    /// It is null or points to such a value, as in the program's own call of the driver.
    #[inline(always)]
    pub(crate) unsafe fn at<T>(&self, at: usize) -> Option<&T> {
        // SAFETY: promised by the caller.
        unsafe { self.pointer::<T>(at).as_ref() }
    }

    /// The address, size or handle that a pointer argument points to; 0 for null.
    #[inline(never)]
    pub(crate) fn written(&self, at: usize) -> u64 {
        let at = self.pointer::<u64>(at);
        // SAFETY: null, or the driver has just written there.
        unsafe {
            match (at.is_null(), self.narrow) {
                (true, _) => 0,
                (false, true) => u64::from(at.cast::<u32>().read_unaligned()),
                (false, false) => at.read_unaligned(),
            }
        }
    }

    /// Writes a size where an argument leads to and the driver has just written one, or nowhere.
    /// One that does not fit is left as it is.
    #[inline(never)]
    pub(crate) fn write(&self, at: usize, size: u64) {
        let at = self.pointer::<u64>(at);
        // SAFETY: null, or the driver has just written there.
        unsafe {
            match u32::try_from(size) {
                _ if at.is_null() => {}
                Ok(half) if self.narrow => at.cast::<u32>().write_unaligned(half),
                Err(_) if self.narrow => {}
                _ => at.write_unaligned(size),
            }
        }
    }
}

fn pointer<T>(word: u64) -> *mut T {
    #[expect(clippy::cast_possible_truncation, reason = "addresses have 8 bytes here")]
    let address = word as usize;
    with_exposed_provenance_mut(address)
}
