//! The memory of the library itself, which may not use that of the program. Owns: blocks in powers
//! of two, reused and never given back. Does not know about: the memory of devices.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;

use fraction_abi::lock::Lock;
use fraction_abi::sys::map_memory;

const SMALLEST: u32 = 4;
const LARGEST: u32 = 20;
const CLASSES: usize = (LARGEST - SMALLEST + 1) as usize;

struct Free {
    /// Heads of lists; each block holds the address of the next one.
    heads: [usize; CLASSES],
    chunk: usize,
    left: usize,
}

pub(crate) struct Heap(Lock<Free>);

#[cfg_attr(elastane_library, global_allocator)]
#[cfg_attr(
    not(elastane_library),
    expect(dead_code, reason = "a crate has the heap of its program")
)]
static HEAP: Heap = Heap(Lock::new(Free { heads: [0; CLASSES], chunk: 0, left: 0 }));

fn class(layout: Layout) -> u32 {
    let bytes = layout.size().max(layout.align()).max(1 << SMALLEST);
    bytes.next_power_of_two().trailing_zeros()
}

// SAFETY: a block has the size of its class, which is a power of two not below size and alignment,
// at an address that is a multiple of it or of a page, and is in one list or handed out once.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class(layout);
        let bytes = 1_usize << class;
        if class > LARGEST {
            return map_memory(bytes, true).map_or(null_mut(), |at| at.as_ptr());
        }
        let at = self.0.with(|free| free.take(class, bytes));
        core::ptr::with_exposed_provenance_mut(at)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let class = class(layout);
        if class > LARGEST {
            if let Some(at) = core::ptr::NonNull::new(at) {
                // SAFETY: a mapping of this size was made for this block alone.
                unsafe { fraction_abi::sys::unmap(at, 1 << class) };
            }
            return;
        }
        self.0.with(|free| {
            if let Some(head) = free.heads.get_mut((class - SMALLEST) as usize) {
                // SAFETY: the block is at least 16 bytes, aligned to them, and unused from now on.
                unsafe { at.cast::<usize>().write(*head) };
                *head = at.expose_provenance();
            }
        });
    }
}

impl Free {
    fn take(&mut self, class: u32, bytes: usize) -> usize {
        let Some(head) = self.heads.get_mut((class - SMALLEST) as usize) else { return 0 };
        if *head != 0 {
            let at = *head;
            // SAFETY: a block in the list holds the address of the next.
            *head = unsafe { core::ptr::with_exposed_provenance::<usize>(at).read() };
            return at;
        }
        let skip = self.chunk.next_multiple_of(bytes) - self.chunk;
        if self.left < bytes + skip {
            const CHUNK: usize = 4 << LARGEST;
            let Ok(at) = map_memory(CHUNK, true) else { return 0 };
            self.chunk = at.as_ptr().expose_provenance();
            self.left = CHUNK;
            return self.take(class, bytes);
        }
        let at = self.chunk + skip;
        self.chunk = at + bytes;
        self.left -= bytes + skip;
        at
    }
}
