//! How programs find functions: `dlsym`, `dlvsym` and the driver's own search. Owns: these three.
//! Does not know about: the functions.

use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::call::Call;
use crate::elf;
use crate::hooked;

static DLSYM: AtomicUsize = AtomicUsize::new(0);
static DLVSYM: AtomicUsize = AtomicUsize::new(0);

/// The function that this library stands before: that of the C library, or of another preload.
extern "C" fn next(name: *const c_char, into: &AtomicUsize) -> usize {
    // SAFETY: called below with texts that end with zero.
    let name = unsafe { CStr::from_ptr(name) };
    let mut behind = elf::objects().skip_while(|object| !object.is_self()).skip(1);
    let found = behind.find_map(|object| object.function(name));
    let others = || elf::objects().filter(|o| !o.is_self()).find_map(|o| o.function(name));
    let address = found.or_else(others).unwrap_or(0);
    into.store(address, Relaxed);
    address
}

extern "C" fn next_dlsym() -> usize {
    next(c"dlsym".as_ptr(), &DLSYM)
}

/// Replaces the loader's. All but names of the driver jump to the loader's own with the return
/// address of the caller, on which the meaning of `RTLD_NEXT` and `RTLD_DEFAULT` depends.
#[cfg_attr(elastane_library = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jz 5f",
        "2:",
        "cmp rdi, -1",
        "je 4f",
        "test rsi, rsi",
        "jz 4f",
        "cmp byte ptr [rsi], 0x63", // c
        "jne 3f",
        "cmp byte ptr [rsi + 1], 0x75", // u
        "je 6f",
        "jmp 4f",
        "3:",
        "cmp byte ptr [rsi], 0x6e", // n
        "jne 4f",
        "cmp byte ptr [rsi + 1], 0x76", // v
        "je 6f",
        "4:",
        "jmp rax",
        // Not known yet.
        "5:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {next}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2b",
        "ret",
        // A name that may be of the driver.
        "6:",
        "test rdi, rdi",
        "jnz {found}",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "mov rdi, rsi",
        "call {default}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "cmp rax, 1",
        "jne 7f",
        "mov rax, [rip + {real}]",
        "jmp rax",
        "7:",
        "ret",
        real = sym DLSYM,
        next = sym next_dlsym,
        found = sym found,
        default = sym default,
    )
}

extern "C" fn found(handle: *mut c_void, name: *const c_char) -> usize {
    let real = DLSYM.load(Relaxed);
    // SAFETY: not 0, so it is the address of the loader's function of this form.
    let real: unsafe extern "C" fn(*mut c_void, *const c_char) -> usize =
        unsafe { core::mem::transmute(real) };
    // SAFETY: as the caller's own call.
    let address = unsafe { real(handle, name) };
    if address == 0 {
        return 0;
    }
    hooked::learn();
    // SAFETY: the loader has read the name.
    hooked::by_name(unsafe { CStr::from_ptr(name) }, address)
}

/// 1: the loader has to search.
extern "C" fn default(name: *const c_char) -> usize {
    // SAFETY: the interface demands a text that ends with zero.
    hooked::by_default(unsafe { CStr::from_ptr(name) }).unwrap_or(1)
}

/// Replaces the loader's. A version is never asked of the driver's functions with the two special
/// handles, so the caller's return address does not matter.
#[cfg_attr(elastane_library = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    naked_asm!(
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jnz 2f",
        "push rdi",
        "push rsi",
        "push rdx",
        "call {next}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 4f",
        "2:",
        "lea rcx, [rdi + 1]",
        "cmp rcx, 1",
        "jbe 3f",
        "test rsi, rsi",
        "jz 3f",
        "cmp byte ptr [rsi], 0x63", // c
        "jne 3f",
        "cmp byte ptr [rsi + 1], 0x75", // u
        "je {found}",
        "3:",
        "jmp rax",
        "4:",
        "ret",
        real = sym DLVSYM,
        next = sym next_dlvsym,
        found = sym found_version,
    )
}

extern "C" fn next_dlvsym() -> usize {
    next(c"dlvsym".as_ptr(), &DLVSYM)
}

extern "C" fn found_version(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> usize {
    let real = DLVSYM.load(Relaxed);
    // SAFETY: not 0, so it is the address of the loader's function of this form.
    let real: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> usize =
        unsafe { core::mem::transmute(real) };
    // SAFETY: as the caller's own call.
    let address = unsafe { real(handle, name, version) };
    if address == 0 {
        return 0;
    }
    hooked::learn();
    // SAFETY: the loader has read the name.
    hooked::by_name(unsafe { CStr::from_ptr(name) }, address)
}

/// Replaces the address that the driver has written, if it has.
pub(crate) fn search(call: &Call<'_>) -> i32 {
    let result = call.ask();
    // SAFETY: null, or the driver has just written there.
    if let (0, Some(address)) = (result, unsafe { call.pointer::<usize>(1).as_mut() }) {
        *address = hooked::by_address(*address);
    }
    result
}
