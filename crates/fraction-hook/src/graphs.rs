//! Memory of graphs, and their launches. Owns: what the nodes of each graph take, reserving it before
//! a launch, and charging what graphs have really kept on a device, which the driver says afterwards.
//! Does not know about: what else is in a graph.
//!
//! Nodes that live one after the other may share memory, so their sum is only an upper bound. Where
//! it does not fit, the driver is asked to bring the graph to the device without running it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::gate;
use crate::hooked::{calls, hooks};
use crate::linear::{Call, written};
use crate::location::Properties;
use crate::process::{Limited, Mode, ORDINALS, OUT_OF_MEMORY, mode};
use crate::table::{Class, Row, Table};

calls! {
    graph_memory = cuDeviceGetGraphMemAttribute(device: i32, attribute: i32, value: *mut u64);
    upload = cuGraphUpload(executable: u64, stream: usize);
    trim_graphs = cuDeviceGraphMemTrim(device: i32);
}

/// On which devices this program has ever put memory into a graph, one bit for each ordinal; only
/// then do launches cost anything.
static IN_USE: AtomicU64 = AtomicU64::new(0);

const USED: i32 = 0;
const RESERVED: i32 = 2;

fn in_use() -> impl Iterator<Item = i32> {
    let bits = IN_USE.load(Relaxed);
    (0..i32::try_from(ORDINALS).unwrap_or(0)).filter(move |ordinal| bits >> ordinal & 1 != 0)
}

fn attribute(ordinal: i32, attribute: i32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: room for a number.
    (unsafe { graph_memory(ordinal, attribute, &raw mut value) } == Some(0)).then_some(value)
}

/// The key of what a graph takes on a device: addresses of graphs have no more than 56 bits.
fn key(graph: u64, ordinal: i32) -> u64 {
    graph ^ u64::from(ordinal.unsigned_abs()) << 56
}

impl Limited {
    /// Adds memory to what a graph takes on a device. Whether it could ever fit.
    pub(crate) fn add_to_graph(&self, graph: u64, ordinal: i32, bytes: u64) -> bool {
        if !self.could_fit(self.place(ordinal), bytes) {
            return false;
        }
        if let Some(bit) = u32::try_from(ordinal).ok().and_then(|at| 1_u64.checked_shl(at)) {
            IN_USE.fetch_or(bit, Relaxed);
        }
        let before = self.nodes(Class::GraphNodes, graph, ordinal);
        let bytes = before.saturating_add(bytes);
        self.set_nodes(Class::GraphNodes, graph, ordinal, bytes)
    }

    fn nodes(&self, class: Class, graph: u64, ordinal: i32) -> u64 {
        self.table.with(|table| table.find(class, key(graph, ordinal)).map_or(0, |row| row.bytes))
    }

    fn set_nodes(&self, class: Class, graph: u64, ordinal: i32, bytes: u64) -> bool {
        let (key, device) = (key(graph, ordinal), None);
        let row = Row { key, owner: 0, bytes, references: 1, device, class, mapped: 0 };
        self.table.with(|table| table.insert(row))
    }

    /// What a graph takes, its copy takes as well.
    fn copy_nodes(&self, (from, graph): (Class, u64), (to, copy): (Class, u64)) {
        for ordinal in in_use() {
            match self.nodes(from, graph, ordinal) {
                0 => {}
                bytes => _ = self.set_nodes(to, copy, ordinal, bytes),
            }
        }
    }

    fn forget_nodes(&self, class: Class, graph: u64) {
        for ordinal in in_use() {
            self.table.with(|table| table.remove(class, key(graph, ordinal)));
        }
    }

    /// Charges what graphs keep on a device, of which `extra` bytes are charged beside it.
    #[inline(never)]
    fn count_graphs(&self, ordinal: i32, extra: u64) {
        let (place, Ok(key)) = (self.place(ordinal), u64::try_from(ordinal)) else { return };
        let (device, class) = (place.device(), Class::Graphs);
        let Some(bytes) = attribute(ordinal, RESERVED) else {
            return self.release(device, extra);
        };
        let before = self.table.with(|table: &mut Table| {
            if let Some(row) = table.find(class, key) {
                return core::mem::replace(&mut row.bytes, bytes);
            }
            table.insert(Row { key, owner: 0, bytes, references: 1, device, class, mapped: 0 });
            0
        });
        self.recount(device, before.saturating_add(extra), bytes);
    }

    fn trim_graphs(&self, ordinal: i32) {
        // SAFETY: takes a number.
        unsafe { trim_graphs(ordinal) };
        self.count_graphs(ordinal, 0);
    }

    /// Reserves what a launch takes on a device beyond what graphs have there; none: it does not
    /// fit.
    fn reserve_for(&self, executable: u64, ordinal: i32) -> Option<u64> {
        let (place, nodes) =
            (self.place(ordinal), self.nodes(Class::Executable, executable, ordinal));
        let needed = || {
            let has = |what| attribute(ordinal, what).unwrap_or(0);
            has(USED).saturating_add(nodes).saturating_sub(has(RESERVED))
        };
        let bytes = if nodes == 0 { 0 } else { needed() };
        if self.reserve_or_trim(place, bytes) {
            return Some(bytes);
        }
        self.trim_graphs(ordinal);
        let bytes = needed();
        self.reserve(place, bytes).then_some(bytes)
    }

    /// Has the driver bring a graph to the device, and looks whether that fits.
    fn fits_uploaded(&self, executable: u64, stream: usize) -> bool {
        // SAFETY: as the program's own call of a launch.
        if unsafe { upload(executable, stream) } != Some(0) {
            return false;
        }
        let mut fits = true;
        for ordinal in in_use() {
            self.count_graphs(ordinal, 0);
            if self.is_over(self.place(ordinal)) {
                self.trim_graphs(ordinal);
                fits = false;
            }
        }
        fits
    }
}

#[inline]
fn launch(executable: u64, stream: usize, ask: Call<'_>) -> i32 {
    gate::pass();
    bring(executable, stream, ask)
}

/// Launches a graph, or brings it to the device, which takes its memory there.
#[inline]
fn bring(executable: u64, stream: usize, ask: Call<'_>) -> i32 {
    if IN_USE.load(Relaxed) == 0 { ask() } else { launch_with_memory(executable, stream, ask) }
}

#[inline(never)]
fn launch_with_memory(executable: u64, stream: usize, ask: Call<'_>) -> i32 {
    let limited = match mode() {
        Mode::Off => return ask(),
        Mode::Closed => return OUT_OF_MEMORY,
        Mode::Limited(limited) => limited,
    };
    let mut reserved = [0_u64; ORDINALS];
    let mut fit = true;
    for (ordinal, room) in in_use().zip(&mut reserved) {
        let bytes = limited.reserve_for(executable, ordinal);
        fit &= bytes.is_some();
        *room = bytes.unwrap_or(0);
    }
    let fit = fit || limited.fits_uploaded(executable, stream);
    let result = if fit { ask() } else { OUT_OF_MEMORY };
    for (ordinal, bytes) in in_use().zip(reserved) {
        limited.count_graphs(ordinal, bytes);
    }
    result
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
pub struct MemoryNode {
    pool: Properties,
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
unsafe fn may_add(graph: u64, node: *const MemoryNode) -> bool {
    // SAFETY: promised by the caller.
    match (mode(), unsafe { node.as_ref() }) {
        (Mode::Limited(limited), Some(node)) => {
            let device = node.pool.location.device();
            device.is_none_or(|device| limited.add_to_graph(graph, device, node.bytes))
        }
        (Mode::Closed, _) => false,
        _ => true,
    }
}

/// The same for a node of any kind.
///
/// # Safety
/// As there.
unsafe fn may_add_any(graph: u64, node: *const AnyNode) -> bool {
    // SAFETY: promised by the caller; nodes of every kind begin with it and have the same size.
    let takes = unsafe { node.as_ref() }.filter(|node| node.kind == TAKES_MEMORY);
    // SAFETY: a part of it.
    takes.is_none_or(|node| unsafe { may_add(graph, &raw const node.memory) })
}

// SAFETY, for all blocks below: as the program's own call of the driver.
hooks! {
    missing 500 in "cuda";
    fn cuGraphAddMemAllocNode(
        into: usize,
        graph: u64,
        dependencies: usize,
        count: u64,
        parameters: *mut MemoryNode,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            if !may_add(graph, parameters) {
                return OUT_OF_MEMORY;
            }
            real(into, graph, dependencies, count, parameters)
        }
    }
    fn cuGraphAddNode(
        into: usize,
        graph: u64,
        dependencies: usize,
        count: u64,
        parameters: *mut AnyNode,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            if !may_add_any(graph, parameters) {
                return OUT_OF_MEMORY;
            }
            real(into, graph, dependencies, count, parameters)
        }
    }
    fn cuGraphAddNode_v2(
        into: usize,
        graph: u64,
        dependencies: usize,
        edges: usize,
        count: u64,
        parameters: *mut AnyNode,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            if !may_add_any(graph, parameters) {
                return OUT_OF_MEMORY;
            }
            real(into, graph, dependencies, edges, count, parameters)
        }
    }
    fn cuGraphAddNode_v3(
        into: usize,
        graph: u64,
        dependencies: usize,
        edges: usize,
        count: u64,
        parameters: *mut AnyNode,
    ) |real| {
        // SAFETY: see above.
        unsafe {
            if !may_add_any(graph, parameters) {
                return OUT_OF_MEMORY;
            }
            real(into, graph, dependencies, edges, count, parameters)
        }
    }
    fn cuGraphClone(into: *mut u64, graph: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, graph) };
        // SAFETY: see above.
        copied(result, (Class::GraphNodes, graph), (Class::GraphNodes, unsafe { written(into) }))
    }
    fn cuGraphDestroy(graph: u64) |real| {
        forget(Class::GraphNodes, graph);
        // SAFETY: see above.
        unsafe { real(graph) }
    }
    fn cuGraphInstantiate(
        into: *mut u64,
        graph: u64,
        node: usize,
        text: usize,
        room: usize,
    ) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, graph, node, text, room) };
        // SAFETY: see above.
        instantiated(result, graph, unsafe { written(into) })
    }
    fn cuGraphInstantiate_v2(
        into: *mut u64,
        graph: u64,
        node: usize,
        text: usize,
        room: usize,
    ) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, graph, node, text, room) };
        // SAFETY: see above.
        instantiated(result, graph, unsafe { written(into) })
    }
    fn cuGraphInstantiateWithFlags(into: *mut u64, graph: u64, flags: u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, graph, flags) };
        // SAFETY: see above.
        instantiated(result, graph, unsafe { written(into) })
    }
    fn cuGraphInstantiateWithParams(into: *mut u64, graph: u64, parameters: usize) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, graph, parameters) };
        // SAFETY: see above.
        instantiated(result, graph, unsafe { written(into) })
    }
    fn cuGraphInstantiateWithParams_ptsz(into: *mut u64, graph: u64, parameters: usize) |real| {
        // SAFETY: see above.
        let result = unsafe { real(into, graph, parameters) };
        // SAFETY: see above.
        instantiated(result, graph, unsafe { written(into) })
    }
    fn cuGraphExecDestroy(executable: u64) |real| {
        forget(Class::Executable, executable);
        // SAFETY: see above.
        unsafe { real(executable) }
    }
    fn cuStreamBeginCapture(stream: usize) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream) })
    }
    fn cuStreamBeginCapture_ptsz(stream: usize) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream) })
    }
    fn cuStreamBeginCapture_v2(stream: usize, kind: i32) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, kind) })
    }
    fn cuStreamBeginCapture_v2_ptsz(stream: usize, kind: i32) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, kind) })
    }
    fn cuStreamBeginCaptureToGraph(
        stream: usize,
        graph: u64,
        dependencies: usize,
        edges: usize,
        count: usize,
        kind: i32,
    ) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, graph, dependencies, edges, count, kind) })
    }
    fn cuStreamBeginCaptureToGraph_ptsz(
        stream: usize,
        graph: u64,
        dependencies: usize,
        edges: usize,
        count: usize,
        kind: i32,
    ) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, graph, dependencies, edges, count, kind) })
    }
    fn cuStreamBeginRecaptureToGraph(
        stream: usize,
        kind: i32,
        graph: u64,
        changed: usize,
        data: usize,
    ) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, kind, graph, changed, data) })
    }
    fn cuStreamBeginRecaptureToGraph_ptsz(
        stream: usize,
        kind: i32,
        graph: u64,
        changed: usize,
        data: usize,
    ) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, kind, graph, changed, data) })
    }
    fn cuStreamBeginCaptureToCig(stream: usize, parameters: usize) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, parameters) })
    }
    fn cuStreamBeginCaptureToCig_ptsz(stream: usize, parameters: usize) |real| {
        // SAFETY: see above.
        began(unsafe { real(stream, parameters) })
    }
    fn cuStreamEndCaptureToCig(stream: usize) |real| {
        // SAFETY: see above.
        let result = unsafe { real(stream) };
        ended();
        result
    }
    fn cuStreamEndCaptureToCig_ptsz(stream: usize) |real| {
        // SAFETY: see above.
        let result = unsafe { real(stream) };
        ended();
        result
    }
    fn cuStreamEndCapture(stream: usize, graph: *mut u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(stream, graph) };
        ended();
        result
    }
    fn cuStreamEndCapture_ptsz(stream: usize, graph: *mut u64) |real| {
        // SAFETY: see above.
        let result = unsafe { real(stream, graph) };
        ended();
        result
    }
    fn cuGraphUpload(executable: u64, stream: usize) |real| {
        // SAFETY: see above.
        bring(executable, stream, &mut || unsafe { real(executable, stream) })
    }
    fn cuGraphUpload_ptsz(executable: u64, stream: usize) |real| {
        // SAFETY: see above.
        bring(executable, stream, &mut || unsafe { real(executable, stream) })
    }
    fn cuGraphLaunch(executable: u64, stream: usize) |real| {
        // SAFETY: see above.
        launch(executable, stream, &mut || unsafe { real(executable, stream) })
    }
    fn cuGraphLaunch_ptsz(executable: u64, stream: usize) |real| {
        // SAFETY: see above.
        launch(executable, stream, &mut || unsafe { real(executable, stream) })
    }
    fn cuDeviceGraphMemTrim(device: i32) |real| {
        // SAFETY: see above.
        let result = unsafe { real(device) };
        if let Mode::Limited(limited) = mode() {
            limited.count_graphs(device, 0);
        }
        result
    }
}

fn copied(result: i32, from: (Class, u64), to: (Class, u64)) -> i32 {
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        limited.copy_nodes(from, to);
    }
    result
}

fn instantiated(result: i32, graph: u64, executable: u64) -> i32 {
    copied(result, (Class::GraphNodes, graph), (Class::Executable, executable))
}

fn forget(class: Class, graph: u64) {
    if let (Mode::Limited(limited), true) = (mode(), IN_USE.load(Relaxed) != 0) {
        limited.forget_nodes(class, graph);
    }
}

/// Stream-ordered memory that is captured becomes memory of the graph.
fn began(result: i32) -> i32 {
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        limited.turns.capture_begins();
    }
    result
}

fn ended() {
    if let Mode::Limited(limited) = mode() {
        limited.turns.capture_ends();
    }
}
