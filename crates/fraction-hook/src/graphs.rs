//! Memory of graphs, and their launches. Owns: what the nodes of each graph take, reserving it
//! before a launch, and charging what graphs have really kept on a device, which the driver says
//! afterwards. Does not know about: what else is in a graph.
//!
//! Nodes that live one after the other may share memory, so their sum is only an upper bound. Where
//! it does not fit, the driver is asked to bring the graph to the device without running it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::call::Call;
use crate::called::{self, graph_memory, upload};
use crate::gate;
use crate::location::Properties;
use crate::process::{Limited, Mode, ORDINALS, OUT_OF_MEMORY, mode};
use crate::table::{Class, Row};

/// On which devices this program has ever put memory into a graph, one bit for each ordinal; only
/// then do launches cost anything.
pub(crate) static IN_USE: AtomicU64 = AtomicU64::new(0);

const USED: i32 = 0;
const RESERVED: i32 = 2;

fn in_use() -> impl Iterator<Item = i32> {
    ordinals(IN_USE.load(Relaxed))
}

fn ordinals(bits: u64) -> impl Iterator<Item = i32> {
    (0..i32::try_from(ORDINALS).unwrap_or(0)).filter(move |ordinal| bits >> ordinal & 1 != 0)
}

fn attribute(ordinal: i32, attribute: i32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: room for a number.
    (unsafe { graph_memory(ordinal, attribute, &raw mut value) } == Some(0)).then_some(value)
}

/// Key of the memory of a graph on a device: addresses of graphs have no more than 56 bits.
fn key(graph: u64, ordinal: i32) -> u64 {
    graph ^ u64::from(ordinal.unsigned_abs()) << 56
}

impl Limited {
    /// Adds memory to a graph's memory on a device. Returns `false` if it could never fit.
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

    /// Charges the copy of a graph as much as the graph.
    fn copy_nodes(&self, (from, graph): (Class, u64), (to, copy): (Class, u64)) {
        for ordinal in in_use() {
            match self.nodes(from, graph, ordinal) {
                0 => {}
                bytes => _ = self.set_nodes(to, copy, ordinal, bytes),
            }
        }
    }

    /// Moves the charge of a graph to another, which keeps its own charge too.
    fn move_nodes(&self, from: u64, to: u64) {
        for ordinal in in_use() {
            let of = |graph| self.nodes(Class::GraphNodes, graph, ordinal);
            let bytes = of(from);
            if bytes != 0 {
                let sum = of(to).saturating_add(bytes);
                self.set_nodes(Class::GraphNodes, to, ordinal, sum);
            }
        }
        self.forget_nodes(Class::GraphNodes, from);
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
        let row = Row { key, owner: 0, bytes: 0, references: 1, device, class, mapped: 0 };
        self.table.with(|table| table.find(class, key).is_some() || table.insert(row));
        self.count_kept(class, key, extra, &|| attribute(ordinal, RESERVED));
    }

    fn trim_graphs(&self, ordinal: i32) {
        // SAFETY: takes a number.
        unsafe { called::trim_graphs(ordinal) };
        self.count_graphs(ordinal, 0);
    }

    /// Reserves the memory of a launch on a device beyond that of earlier graphs; `None` if it does
    /// not fit.
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

/// Launches a graph. Without turns and memory in graphs, nothing comes here.
pub(crate) fn launch(call: &Call<'_>) -> i32 {
    gate::pass();
    bring(call)
}

/// Launches a graph, or brings it to the device, which takes its memory there.
pub(crate) fn bring(call: &Call<'_>) -> i32 {
    if IN_USE.load(Relaxed) == 0 {
        return call.ask();
    }
    let limited = match mode() {
        Mode::Off => return call.ask(),
        Mode::Closed => return OUT_OF_MEMORY,
        Mode::Limited(limited) => limited,
    };
    let executable = call.word(0);
    let mut reserved = [0_u64; ORDINALS];
    let mut fit = true;
    // Read once: another thread may put memory of one more device into a graph meanwhile.
    let bits = IN_USE.load(Relaxed);
    for (ordinal, room) in ordinals(bits).zip(&mut reserved) {
        let bytes = limited.reserve_for(executable, ordinal);
        fit &= bytes.is_some();
        *room = bytes.unwrap_or(0);
    }
    let fit = fit || limited.fits_uploaded(executable, call.stream(1));
    let result = if fit { call.ask() } else { OUT_OF_MEMORY };
    for (ordinal, bytes) in ordinals(bits).zip(reserved) {
        limited.count_graphs(ordinal, bytes);
    }
    result
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
struct MemoryNode {
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
struct AnyNode {
    kind: u32,
    reserved: [u32; 3],
    memory: MemoryNode,
}

const TAKES_MEMORY: u32 = 10;

/// `CUgraphNodeParams` of a node that is a graph.
#[repr(C)]
struct ChildNode {
    kind: u32,
    reserved: [u32; 3],
    graph: u64,
    ownership: i32,
}

const IS_GRAPH: u32 = 4;
/// Only a graph that is moved may have nodes that take memory.
const MOVED: i32 = 1;

/// A node that takes memory, if that could fit.
pub(crate) fn add_memory(call: &Call<'_>) -> i32 {
    // SAFETY: null or whole, as in the program's own call of the driver.
    add(call, unsafe { call.at(4) })
}

/// A node of any kind, whose description is this argument.
pub(crate) fn add_any(call: &Call<'_>, at: usize) -> i32 {
    // SAFETY: null or whole, as in the program's own call of the driver; nodes of every kind begin
    // with it and have the same size.
    let node = unsafe { call.at::<AnyNode>(at) }.filter(|node| node.kind == TAKES_MEMORY);
    // SAFETY: as above.
    let child = unsafe { call.at::<ChildNode>(at) };
    let child = child.filter(|node| node.kind == IS_GRAPH && node.ownership == MOVED);
    // The driver writes to the description of a child.
    let child = child.map(|node| node.graph);
    let result = add(call, node.map(|node| &node.memory));
    if let (0, Some(child), Mode::Limited(limited)) = (result, child, mode()) {
        limited.move_nodes(child, call.word(1));
    }
    result
}

#[inline(never)]
fn add(call: &Call<'_>, node: Option<&MemoryNode>) -> i32 {
    let Some(node) = node else { return call.ask() };
    let fits = match (mode(), node.pool.location.device()) {
        (Mode::Off, _) | (Mode::Limited(_), None) => true,
        (Mode::Closed, _) => false,
        (Mode::Limited(limited), Some(device)) => {
            limited.add_to_graph(call.word(1), device, node.bytes)
        }
    };
    if fits { call.ask() } else { OUT_OF_MEMORY }
}

/// A copy of a graph, or an executable one.
pub(crate) fn copy(call: &Call<'_>, class: Class) -> i32 {
    let result = call.ask();
    if let (0, Mode::Limited(limited)) = (result, mode()) {
        limited.copy_nodes((Class::GraphNodes, call.word(1)), (class, call.written(0)));
    }
    result
}

/// Destroys a graph, or an executable one.
pub(crate) fn destroy(call: &Call<'_>, class: Class) -> i32 {
    if let (Mode::Limited(limited), true) = (mode(), IN_USE.load(Relaxed) != 0) {
        limited.forget_nodes(class, call.word(0));
    }
    call.ask()
}

/// Makes graphs release their unused memory on a device.
pub(crate) fn trim(call: &Call<'_>) -> i32 {
    let result = call.ask();
    if let Mode::Limited(limited) = mode() {
        limited.count_graphs(call.ordinal(0), 0);
    }
    result
}
