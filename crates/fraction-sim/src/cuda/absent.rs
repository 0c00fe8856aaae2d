//! Functions that a chosen driver does not have. Owns: taking them out of the table by which the
//! loader finds functions of this library, before anything can look one up. Does not know about:
//! which ones that are.

use core::arch::naked_asm;
use core::ffi::CStr;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use fraction_abi::sys::make_usable;

/// Function that the loader calls after loading this library.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    super::hide(remove);
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

#[unsafe(naked)]
extern "C" fn own_dynamic() -> *const [usize; 2] {
    naked_asm!(".hidden _DYNAMIC", "lea rax, [rip + _DYNAMIC]", "ret")
}

/// Where this library is loaded.
#[unsafe(naked)]
extern "C" fn own_base() -> usize {
    naked_asm!(".hidden __ehdr_start", "lea rax, [rip + __ehdr_start]", "ret")
}

/// The address in an entry of the dynamic section. glibc has made it absolute, musl has not.
fn table(tag: usize) -> Option<usize> {
    let mut entry = own_dynamic();
    loop {
        // SAFETY: a dynamic section ends with an entry whose tag is 0.
        match unsafe { *entry } {
            [0, _] => return None,
            [found, value] if found == tag => {
                let base = own_base();
                return Some(if value < base { base.wrapping_add(value) } else { value });
            }
            _ => entry = entry.wrapping_add(1),
        }
    }
}

/// Takes a function out of the table: from now on the loader does not find it.
fn remove(name: &CStr) -> Option<()> {
    const HASH: usize = 4;
    const STRINGS: usize = 5;
    const SYMBOLS: usize = 6;
    let (counts, strings, symbols) = (table(HASH)?, table(STRINGS)?, table(SYMBOLS)?);
    // SAFETY: the second word of this table is the number of symbols.
    let count = unsafe { with_exposed_provenance::<u32>(counts).add(1).read() };
    for index in 0..count as usize {
        let at = symbols.wrapping_add(index * size_of::<Symbol>());
        let symbol = with_exposed_provenance_mut::<Symbol>(at);
        // SAFETY: within the table of symbols, whose names are texts of this library.
        let is = unsafe {
            let text = strings.wrapping_add((*symbol).name as usize);
            CStr::from_ptr(with_exposed_provenance(text)) == name
        };
        if is {
            make_usable(at, size_of::<Symbol>()).ok()?;
            // SAFETY: writable by now; the loader runs nothing beside this function.
            unsafe { ((*symbol).section, (*symbol).value) = (0, 0) };
        }
    }
    Some(())
}
