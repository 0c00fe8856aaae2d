//! Functions of the driver that are only called from here. Owns: their names and forms. Does not
//! know about: why they are called.

use core::sync::atomic::AtomicUsize;

use crate::hooked::{self, Called};

macro_rules! called {
    ($($called:ident = $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        #[expect(non_camel_case_types, reason = "names of others")]
        enum At { $($name,)* Count }

        static REAL: [AtomicUsize; At::Count as usize] =
            [const { AtomicUsize::new(0) }; At::Count as usize];

        pub(crate) fn table() -> Called {
            Called { names: concat!($(stringify!($name), "\0",)*), real: &REAL }
        }

        $(
            /// The result of the driver's function; `None` if this driver does not have it.
            ///
            /// # Safety
            /// As its own.
            pub(crate) unsafe fn $called($($argument: $type),*) -> Option<i32> {
                let real = hooked::real(&REAL[At::$name as usize])?;
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

called! {
    ordinal_of_context = cuCtxGetDevice(device: *mut i32);
    current_context = cuCtxGetCurrent(context: *mut u64);
    wait_for_all = cuCtxSynchronize();
    push_context = cuCtxPushCurrent_v2(context: u64);
    pop_context = cuCtxPopCurrent_v2(context: *mut u64);
    device_uuid = cuDeviceGetUuid(uuid: *mut [u8; 16], device: i32);
    device_uuid_v2 = cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32);
    pool_of_device = cuDeviceGetMemPool(pool: *mut u64, device: i32);
    default_pool_of_device = cuDeviceGetDefaultMemPool(pool: *mut u64, device: i32);
    graph_memory = cuDeviceGetGraphMemAttribute(device: i32, attribute: i32, value: *mut u64);
    trim_graphs = cuDeviceGraphMemTrim(device: i32);
    upload = cuGraphUpload(executable: u64, stream: usize);
    free_in_order = cuMemFreeAsync(address: u64, stream: usize);
    pool_attribute = cuMemPoolGetAttribute(pool: u64, attribute: i32, value: *mut u64);
    trim = cuMemPoolTrimTo(pool: u64, keep: u64);
    ordinal_of_stream = cuStreamGetDevice(stream: usize, device: *mut i32);
    context_of_stream = cuStreamGetCtx(stream: usize, context: *mut u64);
    captured_into = cuStreamGetCaptureInfo_v2(
        stream: usize,
        status: *mut u32,
        id: *mut u64,
        graph: *mut u64,
        dependencies: usize,
        count: usize,
    );
    uuid_of = nvmlDeviceGetUUID(device: usize, into: *mut u8, room: u32);
}

/// The device of the current context; `None` without a context.
#[inline(never)]
pub(crate) fn current_ordinal() -> Option<i32> {
    let mut ordinal = -1;
    // SAFETY: room for a number.
    (unsafe { ordinal_of_context(&raw mut ordinal) } == Some(0)).then_some(ordinal)
}
