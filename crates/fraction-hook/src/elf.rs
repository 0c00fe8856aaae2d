//! The libraries that are loaded, and their functions. Owns: walking the list of the dynamic loader
//! and the symbol tables in memory. Does not know about: which functions are kept here.
//!
//! Asking the loader itself would mean importing `dlsym` in a version that not every C library has.
//! The list is read without the loader's lock, as debuggers do; libraries of a driver stay loaded.

use core::arch::naked_asm;
use core::ffi::{CStr, c_char};
use core::ptr::{null, null_mut, with_exposed_provenance};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use fraction_abi::sys::{self, Access};

/// `struct link_map`, as glibc and musl publish it.
#[repr(C)]
pub(crate) struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
    previous: *const LinkMap,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Debug {
    version: i32,
    map: *const LinkMap,
    stop: usize,
    state: u32,
    loader: usize,
    /// Structure of the next link namespace, since glibc 2.35, which has version 2.
    next: *const Debug,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

/// The list of the loader in glibc; null elsewhere.
#[unsafe(naked)]
extern "C" fn glibc_debug() -> *const Debug {
    naked_asm!(".weak _r_debug", "mov rax, [rip + _r_debug@GOTPCREL]", "ret")
}

/// This library's own dynamic section, which tells it from the others.
#[unsafe(naked)]
extern "C" fn own_dynamic() -> *const Dynamic {
    naked_asm!(".hidden _DYNAMIC", "lea rax, [rip + _DYNAMIC]", "ret")
}

/// A loaded library, or the program.
#[derive(Clone, Copy)]
pub(crate) struct Object(&'static LinkMap);

/// Loaded libraries in the order in which symbols are searched. A type of its own, because loops
/// over it are in many places.
pub(crate) struct Objects(*const LinkMap);

impl Iterator for Objects {
    type Item = Object;

    #[inline(always)]
    fn next(&mut self) -> Option<Object> {
        // SAFETY: what the loader publishes is valid while the libraries are loaded; see above.
        let map = unsafe { self.0.as_ref() }?;
        self.0 = map.next;
        Some(Object(map))
    }
}

/// All that are loaded in this library's own namespace.
#[inline(never)]
pub(crate) fn objects() -> Objects {
    let mut at = debug();
    // SAFETY, here and below: as above.
    let first = unsafe { at.as_ref() }.map_or(null(), |debug| debug.map);
    while let Some(debug) = unsafe { at.as_ref() } {
        if Objects(debug.map).any(|object| object.is_self()) {
            return Objects(debug.map);
        }
        // The field exists since version 2.
        at = if debug.version < 2 { null() } else { debug.next };
    }
    Objects(first)
}

/// This library.
#[inline(never)]
pub(crate) fn own() -> Option<Object> {
    objects().find(Object::is_self)
}

fn debug() -> *const Debug {
    static FOUND: AtomicPtr<Debug> = AtomicPtr::new(null_mut());
    let known = glibc_debug();
    if !known.is_null() {
        return known;
    }
    if FOUND.load(Relaxed).is_null() {
        FOUND.store(debug_of_program().unwrap_or(null()).cast_mut(), Relaxed);
    }
    FOUND.load(Relaxed)
}

/// The entry `DT_DEBUG` of the program, which every loader fills in for debuggers.
fn debug_of_program() -> Option<*const Debug> {
    const DYNAMIC_SEGMENT: u32 = 2;
    const PROGRAM_HEADERS: u32 = 6;
    const DEBUG: i64 = 21;
    #[repr(C)]
    struct Header {
        kind: u32,
        flags: u32,
        offset: usize,
        address: usize,
        rest: [usize; 4],
    }
    let at = auxiliary(3)?;
    let headers = with_exposed_provenance::<Header>(at);
    // SAFETY: the kernel says where the headers of the program are and how many.
    let headers = unsafe { core::slice::from_raw_parts(headers, auxiliary(5)?.min(256)) };
    let find = |kind: u32| headers.iter().find(|header| header.kind == kind);
    let base = at.wrapping_sub(find(PROGRAM_HEADERS)?.address);
    let dynamic = base.wrapping_add(find(DYNAMIC_SEGMENT)?.address);
    let debug = entry(with_exposed_provenance(dynamic), DEBUG)?;
    Some(with_exposed_provenance(debug))
}

/// True if this program has other rights than who started it. The C library knows; the kernel's
/// file about it cannot be read in such a program.
pub(crate) fn is_secure() -> bool {
    const SECURE: usize = 23;
    let library = objects().find_map(|object| object.function(c"getauxval"));
    let answer = library.map(|getauxval| {
        // SAFETY: the function of this name has this form in every C library.
        let getauxval: extern "C" fn(usize) -> usize = unsafe { core::mem::transmute(getauxval) };
        getauxval(SECURE)
    });
    answer.or_else(|| auxiliary(SECURE)).unwrap_or(0) != 0
}

/// The path from which this library was loaded.
pub(crate) fn own_path() -> Option<&'static CStr> {
    let own = own()?;
    // SAFETY: the loader keeps the text as long as the library.
    (!own.0.name.is_null()).then(|| unsafe { CStr::from_ptr(own.0.name) })
}

/// A value that the kernel gave this process at its start.
fn auxiliary(kind: usize) -> Option<usize> {
    let mut bytes = [0_u8; 1024];
    let file = sys::open(c"/proc/self/auxv", Access::Read).ok()?;
    let length = sys::read(&file, &mut bytes).ok()?;
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).unwrap_or(0);
    let mut pairs = bytes.get(..length)?.chunks_exact(16);
    let is = |pair: &&[u8]| pair.get(..8).map(word) == Some(kind);
    pairs.find(is).and_then(|pair| pair.get(8..)).map(word)
}

fn entry(mut dynamic: *const Dynamic, tag: i64) -> Option<usize> {
    loop {
        // SAFETY: a dynamic section ends with an entry whose tag is 0.
        let one = unsafe { dynamic.as_ref() }?;
        if one.tag == tag {
            return Some(one.value);
        }
        if one.tag == 0 {
            return None;
        }
        dynamic = dynamic.wrapping_add(1);
    }
}

const GNU_HASH: i64 = 0x6fff_fef5;

impl Object {
    /// True if it is this library.
    pub(crate) fn is_self(&self) -> bool {
        core::ptr::eq(self.0.dynamic, own_dynamic())
    }

    /// Where it is loaded.
    pub(crate) fn base(&self) -> usize {
        self.0.base
    }

    /// True if the name under which programs ask for it begins so.
    pub(crate) fn is_called(&self, begin: &[u8]) -> bool {
        const SONAME: i64 = 14;
        let name = entry(self.0.dynamic, SONAME).and_then(|at| Some(self.text(at)?.to_bytes()));
        name.is_some_and(|name| name.starts_with(begin))
    }

    /// glibc has made these addresses absolute, musl has not.
    fn address(&self, tag: i64) -> Option<usize> {
        let value = entry(self.0.dynamic, tag)?;
        Some(if value < self.0.base { value.wrapping_add(self.0.base) } else { value })
    }

    fn text(&self, at: usize) -> Option<&'static CStr> {
        const STRINGS: i64 = 5;
        let at = self.address(STRINGS)?.wrapping_add(at);
        // SAFETY: an offset of the object's own tables into its own texts, which end with zero.
        Some(unsafe { CStr::from_ptr(with_exposed_provenance(at)) })
    }

    /// The address of a function that it defines.
    pub(crate) fn function(&self, name: &CStr) -> Option<usize> {
        const HASH: i64 = 4;
        match (self.address(GNU_HASH), self.address(HASH)) {
            (Some(table), _) => self.function_by_hash(with_exposed_provenance(table), name),
            // The second word of the older table is the number of symbols.
            (None, Some(table)) => {
                let table = with_exposed_provenance::<u32>(table);
                // SAFETY: the loader uses the same table.
                let count = unsafe { table.wrapping_add(1).read() };
                (0..count).find_map(|index| self.defined(index, name))
            }
            (None, None) => None,
        }
    }

    /// Every function that it defines, by name; only of one with the newer table, as this library.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (&'static CStr, usize)> + use<> {
        let (object, mut index) = (*self, 0);
        let last = self.address(GNU_HASH).and_then(|at| last(with_exposed_provenance(at)));
        core::iter::from_fn(move || {
            while index < last? {
                index += 1;
                if let Some(found) = object.symbol(index) {
                    return Some(found);
                }
            }
            None
        })
    }

    fn function_by_hash(&self, table: *const u32, name: &CStr) -> Option<usize> {
        // SAFETY: the loader uses the same table in the same way.
        let word = |at: usize| unsafe { table.wrapping_add(at).read() };
        let (buckets, first, bloom) = (word(0), word(1), word(2) as usize);
        let hash = hash(name.to_bytes());
        let bucket = 4 + 2 * bloom + (hash.checked_rem(buckets)?) as usize;
        let chains = 4 + 2 * bloom + buckets as usize;
        let mut index = word(bucket);
        if index < first {
            return None;
        }
        loop {
            let chain = word(chains + (index - first) as usize);
            if chain | 1 == hash | 1
                && let Some(found) = self.defined(index, name)
            {
                return Some(found);
            }
            if chain & 1 == 1 {
                return None;
            }
            index += 1;
        }
    }

    /// The address of a symbol if it has this name and is a function of this object.
    fn defined(&self, index: u32, name: &CStr) -> Option<usize> {
        self.symbol(index).filter(|(own, _)| *own == name).map(|(_, address)| address)
    }

    /// The name and address of a symbol if it is a function of this object.
    #[inline(never)]
    fn symbol(&self, index: u32) -> Option<(&'static CStr, usize)> {
        const SYMBOLS: i64 = 6;
        const FUNCTION: u8 = 2;
        let symbols = with_exposed_provenance::<Symbol>(self.address(SYMBOLS)?);
        // SAFETY: the loader uses the same table with the same numbers.
        let symbol = unsafe { symbols.wrapping_add(index as usize).as_ref() }?;
        if symbol.section == 0 || symbol.info & 15 != FUNCTION {
            return None;
        }
        Some((self.text(symbol.name as usize)?, self.0.base.wrapping_add(symbol.value)))
    }
}

/// The number of the last symbol that a table of hashes leads to.
fn last(table: *const u32) -> Option<u32> {
    // SAFETY: the loader uses the same table in the same way.
    let word = |at: usize| unsafe { table.wrapping_add(at).read() };
    let (buckets, first, bloom) = (word(0), word(1), word(2) as usize);
    let chains = 4 + 2 * bloom + buckets as usize;
    let begins = (0..buckets as usize).map(|bucket| word(4 + 2 * bloom + bucket));
    let mut last = begins.max().filter(|last| *last >= first)?;
    while word(chains + (last - first) as usize) & 1 == 0 {
        last += 1;
    }
    Some(last)
}

/// By which loaders find a symbol.
pub(crate) const fn hash(mut name: &[u8]) -> u32 {
    let mut hash = 5381_u32;
    while let [byte, rest @ ..] = name {
        hash = hash.wrapping_mul(33).wrapping_add(*byte as u32);
        name = rest;
    }
    hash
}
