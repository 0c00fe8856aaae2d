//! Memory of graphs. Owns: charging what graphs have reserved on a device, which the driver says
//! after a launch, and refusing a node that can never fit. Does not know about: what else is in a
//! graph.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::hooked::{calls, hooks};
use crate::linear::Call;
use crate::process::{Limited, Mode, OUT_OF_MEMORY, mode};
use crate::table::{Class, Row, Table};

calls! {
    graph_memory = cuDeviceGetGraphMemAttribute(device: i32, attribute: i32, value: *mut u64);
    current_ordinal = cuCtxGetDevice(device: *mut i32);
}

/// Whether this program has ever put memory into a graph; only then do launches cost anything.
static IN_USE: AtomicU32 = AtomicU32::new(0);

const RESERVED: i32 = 2;

impl Limited {
    #[inline(never)]
    fn count_graphs(&self, ordinal: i32) {
        let (place, Ok(key)) = (self.place(ordinal), u64::try_from(ordinal)) else { return };
        let mut bytes = 0;
        // SAFETY: room for a number.
        if unsafe { graph_memory(ordinal, RESERVED, &raw mut bytes) } != Some(0) {
            return;
        }
        let (device, class) = (place.device(), Class::Graphs);
        let before = self.table.with(|table: &mut Table| {
            if let Some(row) = table.find(class, key) {
                return core::mem::replace(&mut row.bytes, bytes);
            }
            table.insert(Row { key, owner: 0, bytes, references: 1, device, class, mapped: 0 });
            0
        });
        self.recount(device, before, bytes);
    }
}

#[inline]
fn launch(ask: Call<'_>) -> i32 {
    if IN_USE.load(Relaxed) == 0 { ask() } else { launch_with_memory(ask) }
}

#[inline(never)]
fn launch_with_memory(ask: Call<'_>) -> i32 {
    let limited = match mode() {
        Mode::Off => return ask(),
        Mode::Closed => return OUT_OF_MEMORY,
        Mode::Limited(limited) => limited,
    };
    let mut ordinal = -1;
    // SAFETY: room for a number.
    if unsafe { current_ordinal(&raw mut ordinal) } != Some(0) {
        return ask();
    }
    if limited.is_over(limited.place(ordinal)) {
        return OUT_OF_MEMORY;
    }
    let result = ask();
    limited.count_graphs(ordinal);
    result
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
pub struct MemoryNode {
    kind: u32,
    handles: u32,
    location_type: u32,
    location: i32,
    security: usize,
    bytes_max: u64,
    usage: u16,
    reserved: [u8; 54],
    access: usize,
    access_count: u64,
    bytes: u64,
    address: u64,
}

/// `CUgraphNodeParams` of a node that takes memory.
#[repr(C)]
pub struct AnyNode {
    kind: u32,
    reserved: [u32; 3],
    memory: MemoryNode,
}

const TAKES_MEMORY: u32 = 10;

/// Whether a node can be added: its memory could fit.
///
/// # Safety
/// Null, or whole, as in the program's own call of the driver.
unsafe fn may_add(node: *const MemoryNode) -> bool {
    IN_USE.store(1, Relaxed);
    // SAFETY: promised by the caller.
    match (mode(), unsafe { node.as_ref() }) {
        (Mode::Limited(limited), Some(node)) if node.location_type == 1 => {
            limited.could_fit(limited.place(node.location), node.bytes)
        }
        (Mode::Closed, _) => false,
        _ => true,
    }
}

/// The same for a node of any kind.
///
/// # Safety
/// As there.
unsafe fn may_add_any(node: *const AnyNode) -> bool {
    // SAFETY: promised by the caller; nodes of every kind begin with it and have the same size.
    let takes = unsafe { node.as_ref() }.filter(|node| node.kind == TAKES_MEMORY);
    // SAFETY: a part of it.
    takes.is_none_or(|node| unsafe { may_add(&raw const node.memory) })
}

// SAFETY, for all blocks below: as the program's own call of the driver.
hooks! {
    missing 500 in "cuda";
    fn cuGraphAddMemAllocNode(
        into: usize,
        graph: usize,
        dependencies: usize,
        count: u64,
        parameters: *mut MemoryNode,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            if !may_add(parameters) {
                return OUT_OF_MEMORY;
            }
            real(into, graph, dependencies, count, parameters)
        }
    }
    fn cuGraphAddNode(
        into: usize,
        graph: usize,
        dependencies: usize,
        count: u64,
        parameters: *mut AnyNode,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            if !may_add_any(parameters) {
                return OUT_OF_MEMORY;
            }
            real(into, graph, dependencies, count, parameters)
        }
    }
    fn cuGraphAddNode_v2(
        into: usize,
        graph: usize,
        dependencies: usize,
        edges: usize,
        count: u64,
        parameters: *mut AnyNode,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            if !may_add_any(parameters) {
                return OUT_OF_MEMORY;
            }
            real(into, graph, dependencies, edges, count, parameters)
        }
    }
    fn cuStreamBeginCapture_v2(stream: usize, kind: i32) |real| {
        // Stream-ordered memory that is captured becomes memory of the graph.
        IN_USE.store(1, Relaxed);
        // SAFETY: see above.
        unsafe { real(stream, kind) }
    }
    fn cuStreamBeginCapture_v2_ptsz(stream: usize, kind: i32) |real| {
        IN_USE.store(1, Relaxed);
        // SAFETY: see above.
        unsafe { real(stream, kind) }
    }
    fn cuGraphLaunch(executable: usize, stream: usize) |real| {
        // SAFETY: see above.
        launch(&mut || unsafe { real(executable, stream) })
    }
    fn cuGraphLaunch_ptsz(executable: usize, stream: usize) |real| {
        // SAFETY: see above.
        launch(&mut || unsafe { real(executable, stream) })
    }
    fn cuDeviceGraphMemTrim(device: i32) |real| {
        // SAFETY: see above.
        let result = unsafe { real(device) };
        if let Mode::Limited(limited) = mode() {
            limited.count_graphs(device);
        }
        result
    }
}
