//! The functions that are kept here, and those of the driver behind them. Owns: finding the real
//! ones, and replacing addresses. Does not know about: what the functions do.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::elf::{self, Object};

/// Functions that are kept, by the hashes of their names, and in the same order the addresses of
/// the driver's own. The names themselves are in the table of what this library offers, where what
/// is used in place of each is as well; a second list would take as much room again, and one of
/// pointers twice, all of which the loader would have to write.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) hashes: &'static [u32],
    pub(crate) real: &'static [AtomicUsize],
}

/// Functions that are only called: their names, each ended by a zero byte, and in the same order
/// the addresses of the driver's own.
pub(crate) struct Called {
    pub(crate) names: &'static str,
    pub(crate) real: &'static [AtomicUsize],
}

const CUDA: &[u8] = b"libcuda.so";
const NVML: &[u8] = b"libnvidia-ml.so";

static CUDA_BASE: AtomicUsize = AtomicUsize::new(0);
static NVML_BASE: AtomicUsize = AtomicUsize::new(0);

/// The driver's own function, if it was looked for before.
#[inline(always)]
pub(crate) fn known(real: &'static AtomicUsize) -> Option<usize> {
    Some(real.load(Relaxed)).filter(|real| *real != 0)
}

/// The driver's own function.
#[inline(never)]
pub(crate) fn real(real: &'static AtomicUsize) -> Option<usize> {
    known(real).or_else(|| {
        learn();
        known(real)
    })
}

/// Finds the driver's functions, once for each copy of it that is loaded first.
#[cold]
#[inline(never)]
pub(crate) fn learn() {
    learn_from(CUDA, b"cu", &CUDA_BASE);
    learn_from(NVML, b"nvml", &NVML_BASE);
}

/// Not 0 if `libcuda.so.1` is a proxy, which limits by itself; then a preload passes every call on.
/// A proxy of NVML alone limits nothing, and narrowing an answer twice changes nothing. A proxy
/// never gives way.
static PROXIED: AtomicU32 = AtomicU32::new(0);

pub(crate) fn is_proxied() -> bool {
    PROXIED.load(Relaxed) != 0
}

/// Tells a preload that this is a proxy.
#[cfg_attr(any(elastane_library = "cuda", elastane_library = "nvml"), unsafe(no_mangle))]
pub extern "C" fn elastane_fraction_proxy() {}

#[inline(never)]
fn learn_from(library: &[u8], prefix: &[u8], base: &AtomicUsize) {
    let known = base.load(Relaxed);
    let is = |object: &Object| !object.is_self() && object.is_called(library);
    let Some(first) = elf::objects().find(is) else { return };
    if first.base() == known {
        return;
    }
    if known != 0 && elf::objects().filter(is).any(|object| object.base() == known) {
        // Another copy has been put before the one that is in use.
        return;
    }
    let learn = |name: &CStr, real: &AtomicUsize| first.learn(prefix, name, real);
    let learn_own = |searches: bool| {
        for (name, _) in elf::own().iter().flat_map(Object::functions) {
            if name.to_bytes().starts_with(b"cuGetProcAddress") == searches
                && let Some(real) = behind(name)
            {
                learn(name, real);
            }
        }
    };
    learn_own(false);
    let Called { names, real } = crate::table_of_called();
    let mut names = names.as_bytes();
    for real in real {
        let Ok(name) = CStr::from_bytes_until_nul(names) else { break };
        learn(name, real);
        names = names.get(name.count_bytes() + 1..).unwrap_or(&[]);
    }
    // Last, because a thread that finds these looks for no others.
    learn_own(true);
    if cfg!(elastane_library = "preload") && library == CUDA {
        let proxied = first.function(c"elastane_fraction_proxy").is_some();
        PROXIED.store(u32::from(proxied), Relaxed);
    }
    base.store(first.base(), Relaxed);
}

impl Object {
    #[inline(never)]
    fn learn(&self, prefix: &[u8], name: &CStr, real: &AtomicUsize) {
        if name.to_bytes().starts_with(prefix) {
            real.store(self.function(name).unwrap_or(0), Relaxed);
        }
    }
}

/// The driver's own function behind one that is kept.
#[inline(never)]
fn behind(name: &CStr) -> Option<&'static AtomicUsize> {
    let Kept { hashes, real } = crate::table_of_kept();
    let hash = elf::hash(name.to_bytes());
    real.get(hashes.iter().position(|own| *own == hash)?)
}

/// The driver's own function of a name, and its replacement.
fn kept(name: &CStr) -> Option<(&'static AtomicUsize, usize)> {
    Some((behind(name)?, elf::own()?.function(name)?))
}

/// Result of a search by name, in place of the loader's.
pub(crate) fn by_name(name: &CStr, found: usize) -> usize {
    let Some((real, hook)) = kept(name) else { return found };
    if found == 0 || found == hook || found == real.load(Relaxed) {
        return if found == 0 { 0 } else { hook };
    }
    let prefix = if name.to_bytes().starts_with(b"cu") { CUDA } else { NVML };
    let of_driver = |object: &Object| {
        !object.is_self() && object.is_called(prefix) && object.function(name) == Some(found)
    };
    if elf::objects().any(|object| of_driver(&object)) {
        // A function of a second copy of the driver, whose memory could not be distinguished from
        // that of the first.
        return (refuse as *const ()).expose_provenance();
    }
    found
}

/// Result of the program's own search; `None` if the loader has to search.
pub(crate) fn by_default(name: &CStr) -> Option<usize> {
    let (behind, hook) = kept(name)?;
    Some(real(behind).map_or(0, |_| hook))
}

/// Replacement of an address that the driver returned.
pub(crate) fn by_address(found: usize) -> usize {
    let Kept { hashes, real } = crate::table_of_kept();
    let hook = || {
        let at = real.iter().position(|real| found != 0 && real.load(Relaxed) == found)?;
        let hash = *hashes.get(at)?;
        let is = |(name, _): &(&CStr, usize)| elf::hash(name.to_bytes()) == hash;
        elf::own()?.functions().find(is).map(|(_, hook)| hook)
    };
    hook().unwrap_or(found)
}

/// Answers that this is not supported.
extern "C" fn refuse() -> i32 {
    801
}
