//! The functions that are kept here, and those of the driver behind them. Owns: finding the real
//! ones, and replacing addresses. Does not know about: what the functions do.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::elf::{self, Object};

/// A function of the driver.
pub(crate) struct Entry {
    /// What is used in its place; null where the driver's own is only called from here.
    pub(crate) hook: *const (),
    pub(crate) real: AtomicUsize,
}

// SAFETY: addresses of functions; the only part that changes is atomic.
unsafe impl Sync for Entry {}

impl Entry {
    pub(crate) const fn new(hook: *const ()) -> Self {
        Self { hook, real: AtomicUsize::new(0) }
    }
}

/// Functions, and their names in the same order, each ended by a zero byte: a pointer to each name
/// would take as much room again as the name.
pub(crate) struct Table {
    pub(crate) names: &'static str,
    pub(crate) entries: &'static [Entry],
}

/// The table of functions that are used in place of the driver's.
macro_rules! table {
    ($($name:ident)*) => {
        #[expect(non_camel_case_types, reason = "names of others")]
        enum At { $($name,)* Count }

        pub(crate) static ENTRIES: [$crate::hooked::Entry; At::Count as usize] = [$(
            $crate::hooked::Entry::new($name as *const ()),
        )*];

        pub(crate) fn hooks() -> $crate::hooked::Table {
            let names = concat!($(stringify!($name), "\0",)*);
            $crate::hooked::Table { names, entries: &ENTRIES }
        }
    };
}
pub(crate) use table;

/// Defines functions that are used in place of the driver's. The name after the arguments is that
/// of the driver's own; where there is none, the number is the answer.
macro_rules! hooks {
    (missing $missing:literal in $library:literal;
     $(fn $name:ident($($a:ident: $t:ty),* $(,)?) |$real:ident| $body:block)*) => {
        $crate::hooked::table! { $($name)* }

        $(
            #[cfg_attr(
                any(elastane_library = "preload", elastane_library = $library),
                unsafe(no_mangle)
            )]
            pub unsafe extern "C" fn $name($($a: $t),*) -> i32 {
                let Some(real) = $crate::hooked::real(&ENTRIES[At::$name as usize]) else {
                    return $missing;
                };
                // SAFETY: the driver's function of this name has this form.
                let $real: unsafe extern "C" fn($($t),*) -> i32 =
                    unsafe { core::mem::transmute(real) };
                $body
            }
        )*
    };
}
pub(crate) use hooks;

/// Functions of the driver that are only called.
macro_rules! calls {
    ($($called:ident = $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        #[expect(non_camel_case_types, reason = "names of others")]
        enum CalledAt { $($name,)* Count }

        pub(crate) static CALLED: [$crate::hooked::Entry; CalledAt::Count as usize] =
            [const { $crate::hooked::Entry::new(core::ptr::null()) }; CalledAt::Count as usize];

        pub(crate) fn calls() -> $crate::hooked::Table {
            let names = concat!($(stringify!($name), "\0",)*);
            $crate::hooked::Table { names, entries: &CALLED }
        }

        $(
            /// The result of the driver's function; none if this driver does not have it.
            pub(crate) unsafe fn $called($($argument: $type),*) -> Option<i32> {
                let real = $crate::hooked::real(&CALLED[CalledAt::$name as usize])?;
                // SAFETY: the driver's function of this name has this form; the caller passes
                // pointers that are valid for it.
                unsafe {
                    let real: unsafe extern "C" fn($($type),*) -> i32 = core::mem::transmute(real);
                    Some(real($($argument),*))
                }
            }
        )*
    };
}
pub(crate) use calls;

const CUDA: &[u8] = b"libcuda.so";
const NVML: &[u8] = b"libnvidia-ml.so";

static CUDA_BASE: AtomicUsize = AtomicUsize::new(0);
static NVML_BASE: AtomicUsize = AtomicUsize::new(0);

#[inline(never)]
fn find(is: &mut dyn FnMut(&CStr, &'static Entry) -> bool) -> Option<&'static Entry> {
    for Table { names, entries } in crate::tables() {
        let mut names = names.as_bytes();
        for entry in entries {
            let name = CStr::from_bytes_until_nul(names).ok()?;
            names = names.get(name.to_bytes_with_nul().len()..)?;
            if is(name, entry) {
                return Some(entry);
            }
        }
    }
    None
}

/// The driver's own function behind an entry, if it was looked for before.
#[inline(always)]
pub(crate) fn known(entry: &'static Entry) -> Option<usize> {
    Some(entry.real.load(Relaxed)).filter(|real| *real != 0)
}

/// The driver's own function behind an entry.
#[inline]
pub(crate) fn real(entry: &'static Entry) -> Option<usize> {
    known(entry).or_else(|| find_real(entry))
}

#[cold]
#[inline(never)]
fn find_real(entry: &'static Entry) -> Option<usize> {
    learn();
    known(entry)
}

/// Finds the driver's functions, once for each copy of it that is loaded first.
#[inline(never)]
pub(crate) fn learn() {
    learn_from(CUDA, b"cu", &CUDA_BASE);
    learn_from(NVML, b"nvml", &NVML_BASE);
}

/// Whether `libcuda.so.1` is a proxy, which limits by itself; then a preload passes everything on.
/// A proxy of NVML alone limits nothing, and narrowing an answer twice changes nothing. A proxy
/// never gives way.
static PROXIED: AtomicU32 = AtomicU32::new(0);

pub(crate) fn is_proxied() -> bool {
    PROXIED.load(Relaxed) != 0
}

/// Tells a preload that this is a proxy.
#[cfg_attr(any(elastane_library = "cuda", elastane_library = "nvml"), unsafe(no_mangle))]
pub extern "C" fn elastane_fraction_proxy() {}

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
    find(&mut |name, entry| {
        if name.to_bytes().starts_with(prefix) {
            entry.real.store(first.function(name).unwrap_or(0), Relaxed);
        }
        false
    });
    if cfg!(elastane_library = "preload") && library == CUDA {
        let proxied = first.function(c"elastane_fraction_proxy").is_some();
        PROXIED.store(u32::from(proxied), Relaxed);
    }
    base.store(first.base(), Relaxed);
}

fn kept(name: &CStr) -> Option<&'static Entry> {
    find(&mut |own, entry| !entry.hook.is_null() && own == name)
}

/// What a search by name leads to, in place of what the loader found.
pub(crate) fn by_name(name: &CStr, found: usize) -> usize {
    let Some(entry) = kept(name) else { return found };
    let hook = entry.hook.expose_provenance();
    if found == 0 || found == hook || found == entry.real.load(Relaxed) {
        return if found == 0 { 0 } else { hook };
    }
    let prefix = if name.to_bytes().starts_with(b"cu") { CUDA } else { NVML };
    let of_driver = |object: &Object| {
        !object.is_self() && object.is_called(prefix) && object.function(name) == Some(found)
    };
    if elf::objects().any(|object| of_driver(&object)) {
        // Of a second copy of the driver, whose memory could not be told from that of the first.
        return (refuse as *const ()).expose_provenance();
    }
    found
}

/// What the program's own search leads to; none: the loader has to search.
pub(crate) fn by_default(name: &CStr) -> Option<usize> {
    let entry = kept(name)?;
    Some(real(entry).map_or(0, |_| entry.hook.expose_provenance()))
}

/// What an address that the driver gave out is replaced by.
pub(crate) fn by_address(found: usize) -> usize {
    let is = |entry: &Entry| !entry.hook.is_null() && entry.real.load(Relaxed) == found;
    let kept = find(&mut |_, entry| found != 0 && is(entry));
    kept.map_or(found, |entry| entry.hook.expose_provenance())
}

/// Answers that this is not supported.
extern "C" fn refuse() -> i32 {
    801
}
