//! Functions with replacements, and their replacements. Owns: the entries of the library, which are
//! a few bytes each and lead to one place. Does not know about: how a replacement works.
//!
//! `cuMemGetLocationInfo` of CUDA 13.4 is not kept: it says on which device pages of managed memory
//! are, and nothing of how much there is or is free.
//!
//! Each entry is assembly: it puts the number of the function into a register and jumps to what
//! saves the arguments, whatever they are. Launches, of which programs make the most, have an entry
//! that jumps to the driver itself while the run has no turns.

use core::arch::naked_asm;
use core::sync::atomic::AtomicUsize;

use crate::arrays;
use crate::call::{Call, Words};
use crate::captures;
use crate::contexts;
use crate::elf::hash;
use crate::entry;
use crate::gate;
use crate::graphs;
use crate::hooked::{self, Kept};
use crate::linear;
use crate::nvml;
use crate::pools;
use crate::table::Class;
use crate::turns::GATE;
use crate::virtual_memory::{self as memory, Change};

/// Errors of a function that this driver does not have, of CUDA and of NVML.
const MISSING: [i32; 2] = [500, 13];

/// Added to the number of a function for which stream 0 is the default one of each thread.
const fn of_threads(name: &str) -> u32 {
    (matches!(name.as_bytes(), [.., b'_', b'p', b't', b's', b'z']) as u32) << 16
}

macro_rules! kept {
    (
        launches { $($launch:ident)* }
        launches of graphs { $($graph:ident)* }
        $library:literal |$call:ident| { $($($name:ident)|+ => $do:expr,)* }
        $other:literal |$other_call:ident| { $($($nvml:ident)|+ => $other_do:expr,)* }
    ) => {
        /// The number of each function.
        #[expect(non_camel_case_types, reason = "names of others")]
        #[derive(Clone, Copy)]
        #[repr(u32)]
        enum At { $($launch,)* $($graph,)* $($($name,)+)* $($($nvml,)+)* Count }

        static REAL: [AtomicUsize; At::Count as usize] =
            [const { AtomicUsize::new(0) }; At::Count as usize];

        const HASHES: [u32; At::Count as usize] = [
            $(hash(stringify!($launch).as_bytes()),)*
            $(hash(stringify!($graph).as_bytes()),)*
            $($(hash(stringify!($name).as_bytes()),)+)*
            $($(hash(stringify!($nvml).as_bytes()),)+)*
        ];

        $(entry! { $library $launch
            "mov rax, [rip + {gate}]",
            "cmp dword ptr [rax], 0",
            "mov rax, [rip + {real} + 8 * {at}]",
            "jne 2f",
            "test rax, rax",
            "jz 2f",
            "jmp rax",
            "2:",
            "mov eax, {at}",
            "jmp {slowly}",
            gate = sym GATE, real = sym REAL, slowly = sym launch_slowly,
        })*
        $(entry! { $library $graph
            "mov rax, [rip + {gate}]",
            "cmp dword ptr [rax], 0",
            "jne 2f",
            "cmp qword ptr [rip + {in_use}], 0",
            "jne 2f",
            "mov rax, [rip + {real} + 8 * {at}]",
            "test rax, rax",
            "jz 2f",
            "jmp rax",
            "2:",
            "mov eax, {at} + {threads}",
            "jmp {enter}",
            gate = sym GATE, in_use = sym graphs::IN_USE, real = sym REAL, enter = sym enter,
            ; threads
        })*
        $($(entry! { $library $name
            "mov eax, {at} + {threads}", "jmp {enter}", enter = sym enter, ; threads
        })+)*
        $($(entry! { $other $nvml "mov eax, {at}", "jmp {enter}", enter = sym enter, })+)*

        #[inline(always)]
        fn run_cuda(at: At, $call: &Call<'_>) -> i32 {
            match at {
                $($(At::$name)|+ => $do,)*
                _ => graphs::launch($call),
            }
        }

        #[inline(always)]
        fn run_nvml(at: At, $other_call: &Call<'_>) -> i32 {
            match at {
                $($(At::$nvml)|+ => $other_do,)*
                _ => $other_call.ask(),
            }
        }

        fn is_nvml(at: At) -> bool {
            matches!(at, $($(At::$nvml)|+)|*)
        }
    };
}

macro_rules! entry {
    (
        $library:literal $name:ident $($asm:literal,)* $($word:ident = sym $to:path,)*
        $(; $threads:ident)?
    ) => {
        #[cfg_attr(
            any(elastane_library = "preload", elastane_library = $library),
            unsafe(no_mangle)
        )]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                $($asm,)* at = const At::$name as u32, $($word = sym $to,)*
                $($threads = const of_threads(stringify!($name)),)?
            )
        }
    };
}

kept! {
    launches {
        cuLaunchKernel cuLaunchKernel_ptsz cuLaunchKernelEx cuLaunchKernelEx_ptsz
        cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz
        cuLaunchCooperativeKernelMultiDevice cuLaunch cuLaunchGrid cuLaunchGridAsync
    }
    launches of graphs { cuGraphLaunch cuGraphLaunch_ptsz }
    "cuda" |call| {
        cuGetProcAddress | cuGetProcAddress_v2 | cuGetProcAddress_v2_ptsz => entry::search(call),

        cuMemAlloc | cuMemAlloc_v2 | cuMemAllocManaged => linear::allocate_linear(call),
        cuMemAllocPitch | cuMemAllocPitch_v2 => linear::allocate_pitched(call),
        cuMemFree | cuMemFree_v2 | cuMemFreeAsync | cuMemFreeAsync_ptsz => {
            linear::free(call, Class::Linear)
        },
        cuMemGetInfo | cuMemGetInfo_v2 => linear::info(call),
        cuDeviceTotalMem | cuDeviceTotalMem_v2 => linear::total(call),

        cuMemAllocAsync | cuMemAllocAsync_ptsz => pools::allocate(call, None),
        cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz => {
            pools::allocate(call, Some(call.word(2)))
        },
        cuMemPoolCreate => pools::create(call),
        cuMemGetDefaultMemPool | cuMemGetMemPool => pools::of_location(call),
        cuMemPoolDestroy => pools::destroy(call),
        cuMemPoolExportToShareableHandle => pools::export(call),
        cuMemPoolTrimTo | cuMemPoolSetAttribute => pools::change(call),
        cuStreamSynchronize | cuStreamSynchronize_ptsz | cuCtxSynchronize_v2 => {
            pools::wait(call, false)
        },
        cuCtxSynchronize => pools::wait(call, true),

        cuMemCreate => memory::create(call),
        cuMemRelease => memory::release(call),
        cuMemRetainAllocationHandle => memory::change(call, Change::Retain),
        cuMemExportToShareableHandle => memory::change(call, Change::Keep(1)),
        cuMemMapArrayAsync | cuMemMapArrayAsync_ptsz => memory::change(call, Change::MapArrays),
        cuMulticastBindMem => memory::change(call, Change::Keep(2)),
        cuMulticastBindMem_v2 | cuLogicalEndpointBindMem => memory::change(call, Change::Keep(3)),
        cuMulticastBindAddr => memory::change(call, Change::KeepAt(2)),
        cuMulticastBindAddr_v2 | cuLogicalEndpointBindAddr => {
            memory::change(call, Change::KeepAt(3))
        },
        cuMemMap => memory::change(call, Change::Map),
        cuMemUnmap => memory::unmap(call),

        cuArrayCreate => arrays::create_flat::<u32>(call),
        cuArrayCreate_v2 => arrays::create_flat::<u64>(call),
        cuArray3DCreate => arrays::create_solid::<u32>(call, 1),
        cuArray3DCreate_v2 => arrays::create_solid::<u64>(call, 1),
        cuMipmappedArrayCreate => arrays::create_solid::<u64>(call, call.half(2)),
        cuArrayDestroy | cuMipmappedArrayDestroy => linear::free(call, Class::Array),

        cuCtxCreate | cuCtxCreate_v2 => contexts::create(call, call.ordinal(2)),
        cuCtxCreate_v3 => contexts::create(call, call.ordinal(4)),
        cuCtxCreate_v4 => contexts::create(call, call.ordinal(3)),
        cuCtxDestroy | cuCtxDestroy_v2 => contexts::destroy(call),
        cuDevicePrimaryCtxRetain => contexts::retain(call),
        cuGreenCtxCreate => contexts::create_green(call),
        cuGreenCtxDestroy => contexts::destroy_green(call),
        cuDevicePrimaryCtxRelease | cuDevicePrimaryCtxRelease_v2 => contexts::release(call, false),
        cuDevicePrimaryCtxReset | cuDevicePrimaryCtxReset_v2 => contexts::release(call, true),

        cuGraphAddMemAllocNode => graphs::add_memory(call),
        cuGraphAddNode => graphs::add_any(call, 4),
        cuGraphAddNode_v2 | cuGraphAddNode_v3 => graphs::add_any(call, 5),
        cuGraphClone => graphs::copy(call, Class::GraphNodes),
        cuGraphInstantiate | cuGraphInstantiate_v2 | cuGraphInstantiateWithFlags
            | cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz => {
            graphs::copy(call, Class::Executable)
        },
        cuGraphDestroy => graphs::destroy(call, Class::GraphNodes),
        cuGraphExecDestroy => graphs::destroy(call, Class::Executable),
        cuStreamBeginCapture | cuStreamBeginCapture_ptsz | cuStreamBeginCapture_v2
            | cuStreamBeginCapture_v2_ptsz | cuStreamBeginCaptureToGraph
            | cuStreamBeginCaptureToGraph_ptsz | cuStreamBeginRecaptureToGraph
            | cuStreamBeginRecaptureToGraph_ptsz | cuStreamBeginCaptureToCig
            | cuStreamBeginCaptureToCig_ptsz => captures::begin(call),
        cuStreamEndCapture | cuStreamEndCapture_ptsz | cuStreamEndCaptureToCig
            | cuStreamEndCaptureToCig_ptsz => captures::end(call),
        // Streams had captures only long after the first form of this.
        cuStreamDestroy_v2 => captures::destroy_stream(call),
        cuGraphUpload | cuGraphUpload_ptsz => graphs::bring(call),
        cuDeviceGraphMemTrim => graphs::trim(call),
    }
    "nvml" |call| {
        nvmlDeviceGetMemoryInfo => nvml::memory(call),
        nvmlDeviceGetMemoryInfo_v2 => nvml::memory_v2(call),
        nvmlDeviceGetComputeRunningProcesses => nvml::list_processes(call, 1),
        nvmlDeviceGetComputeRunningProcesses_v2 | nvmlDeviceGetComputeRunningProcesses_v3 => {
            nvml::list_processes(call, 2)
        },
        nvmlDeviceGetGraphicsRunningProcesses | nvmlDeviceGetGraphicsRunningProcesses_v2
            | nvmlDeviceGetGraphicsRunningProcesses_v3 | nvmlDeviceGetMPSComputeRunningProcesses
            | nvmlDeviceGetMPSComputeRunningProcesses_v2
            | nvmlDeviceGetMPSComputeRunningProcesses_v3 => nvml::list_none(call),
        nvmlDeviceGetRunningProcessDetailList | nvmlDeviceGetProcessUtilization
            | nvmlDeviceGetProcessesUtilizationInfo | nvmlDeviceGetAccountingPids
            | nvmlDeviceGetAccountingStats | nvmlDeviceGetAccountingStats_v2 => {
            nvml::refuse(call, nvml::NOT_SUPPORTED)
        },
        nvmlDeviceSetMemoryLimits_v1 => nvml::set_limit(call),
    }
}

pub(crate) fn table() -> Kept {
    Kept { hashes: const { &HASHES }, real: &REAL }
}

/// No two names have the same hash.
const _: () = {
    let mut at = 0;
    while at < HASHES.len() {
        let mut other = at + 1;
        while other < HASHES.len() {
            assert!(HASHES[at] != HASHES[other]);
            other += 1;
        }
        at += 1;
    }
};

/// Saves all that may be an argument: six registers, and a word behind the return address, which is
/// the caller's whether it is an argument or not.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        "push qword ptr [rsp + 8]",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "movzx edi, ax",
        "mov rsi, rsp",
        "shr eax, 16",
        "mov edx, eax",
        "call {run}",
        "add rsp, 56",
        "ret",
        run = sym run,
    )
}

unsafe extern "C" fn run(at: At, words: &Words, threads: u32) -> i32 {
    let Some(real) = REAL.get(at as usize).and_then(hooked::real) else {
        return MISSING[usize::from(is_nvml(at))];
    };
    let narrow = matches!(
        at,
        At::cuMemAlloc
            | At::cuMemAllocPitch
            | At::cuMemFree
            | At::cuMemGetInfo
            | At::cuDeviceTotalMem
    );
    let call = Call { real, words, narrow, threads: threads != 0 };
    // The library in the place of one has nothing of the other.
    match is_nvml(at) {
        false if cfg!(not(elastane_library = "nvml")) => run_cuda(at, &call),
        true if cfg!(not(elastane_library = "cuda")) => run_nvml(at, &call),
        _ => call.ask(),
    }
}

/// Waits for the turn of the run, and goes on to the driver with all arguments where they were.
#[unsafe(naked)]
unsafe extern "C" fn launch_slowly() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "mov edi, eax",
        "call {passed}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        passed = sym passed,
    )
}

unsafe extern "C" fn passed(at: At) -> usize {
    let real = REAL.get(at as usize).and_then(hooked::real);
    if real.is_some() {
        gate::pass();
    }
    real.unwrap_or_else(|| (missing as *const ()).expose_provenance())
}

extern "C" fn missing() -> i32 {
    MISSING[0]
}
