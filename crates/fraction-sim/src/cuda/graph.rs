//! Graphs. Owns: their nodes, and the memory that launches of them keep on a device. Does not know
//! about: dependencies; nodes run in the order in which they were added.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::memory::Source;
use super::stream::of_thread;
use super::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, State, driver, give, with};

#[derive(Default)]
pub(crate) struct Graphs {
    graphs: BTreeMap<usize, Vec<Node>>,
    executables: BTreeMap<usize, Vec<Node>>,
    /// Bytes that launches keep, by device.
    reserved: BTreeMap<usize, u64>,
}

#[derive(Clone, Copy)]
enum Node {
    /// Takes memory of a device.
    Memory { device: usize, bytes: u64 },
    /// A kernel of this length.
    Kernel { length_ns: u64 },
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

unsafe fn add_memory(into: *mut usize, graph: usize, parameters: *mut MemoryNode) -> i32 {
    with(|state| {
        // SAFETY: the interface demands null or the whole structure, which is written to.
        let parameters = unsafe { parameters.as_mut() }.ok_or(INVALID_VALUE)?;
        let (device, _) = state.device(parameters.location)?;
        let bytes = parameters.bytes;
        parameters.address = state.map_range(bytes, Source::Reserved)?;
        state.add_node(graph, Node::Memory { device, bytes })?;
        let id = state.id();
        // SAFETY: as the interface demands.
        unsafe { give(into, id) }
    })
}

unsafe fn instantiate(into: *mut usize, graph: usize) -> i32 {
    with(|state| {
        let nodes = state.graphs.graphs.get(&graph).ok_or(INVALID_HANDLE)?.clone();
        let id = state.id();
        state.graphs.executables.insert(id, nodes);
        // SAFETY: as the interface demands.
        unsafe { give(into, id) }
    })
}

impl State {
    pub(super) fn create_graph(&mut self) -> usize {
        let id = self.id();
        self.graphs.graphs.insert(id, Vec::new());
        id
    }

    fn add_node(&mut self, graph: usize, node: Node) -> Answer<()> {
        let nodes = self.graphs.graphs.get_mut(&graph).ok_or(INVALID_HANDLE)?;
        nodes.push(node);
        Ok(())
    }

    pub(super) fn add_kernel(&mut self, graph: usize, length_ns: u64) -> Answer<()> {
        self.add_node(graph, Node::Kernel { length_ns })
    }

    /// Memory that is allocated while a stream is captured; an address range for it.
    pub(super) fn add_captured(&mut self, graph: usize, device: usize, bytes: u64) -> Answer<u64> {
        self.add_node(graph, Node::Memory { device, bytes })?;
        self.map_range(bytes, Source::Reserved)
    }

    /// Takes the memory of a graph; its kernels' time.
    fn upload(&mut self, executable: usize) -> Answer<u64> {
        let nodes = self.graphs.executables.get(&executable).ok_or(INVALID_HANDLE)?;
        let (mut needs, mut length_ns) = (BTreeMap::<usize, u64>::new(), 0_u64);
        for node in nodes {
            match node {
                Node::Memory { device, bytes } => *needs.entry(*device).or_default() += bytes,
                Node::Kernel { length_ns: one } => length_ns = length_ns.saturating_add(*one),
            }
        }
        for (device, bytes) in needs {
            let kept = self.graphs.reserved.get(&device).copied().unwrap_or(0);
            self.take(device, bytes.saturating_sub(kept))?;
            self.graphs.reserved.insert(device, kept.max(bytes));
        }
        Ok(length_ns)
    }
}

fn launch(executable: usize, stream: usize) -> i32 {
    with(|state| {
        let length_ns = state.upload(executable)?;
        state.run(stream, length_ns)
    })
}

fn reserved(state: &State, device: usize) -> u64 {
    state.graphs.reserved.get(&device).copied().unwrap_or(0)
}

/// `CUgraphNodeParams` of a node that is a graph.
#[repr(C)]
struct ChildNode {
    kind: u32,
    reserved: [u32; 3],
    graph: usize,
    ownership: i32,
}

/// As the driver, it lets memory only into a graph that becomes a part of the other for good.
unsafe fn add_child(into: *mut usize, graph: usize, child: &ChildNode) -> i32 {
    with(|state| {
        let nodes = state.graphs.graphs.get(&child.graph).ok_or(INVALID_HANDLE)?.clone();
        let takes = nodes.iter().any(|node| matches!(node, Node::Memory { .. }));
        let moves = child.ownership == 1;
        if takes && !moves {
            return Err(INVALID_VALUE);
        }
        state.graphs.graphs.get_mut(&graph).ok_or(INVALID_HANDLE)?.extend(nodes);
        if moves {
            state.graphs.graphs.remove(&child.graph);
        }
        let id = state.id();
        // SAFETY: as the interface demands.
        unsafe { give(into, id) }
    })
}

unsafe fn add_any(into: *mut usize, graph: usize, parameters: *mut AnyNode) -> i32 {
    // SAFETY: the interface demands null or the whole structure.
    match unsafe { parameters.as_mut() } {
        // SAFETY: as the interface demands.
        Some(node) if node.kind == 10 => unsafe { add_memory(into, graph, &mut node.memory) },
        Some(node) if node.kind == 4 => {
            // SAFETY: as the interface demands; this is what such a node has.
            unsafe { add_child(into, graph, &*core::ptr::from_mut(node).cast()) }
        }
        Some(_) => NOT_SUPPORTED,
        None => INVALID_VALUE,
    }
}

driver! {
    10000 fn cuGraphCreate(into: *mut usize, _flags: u32) {
        with(|state| {
            let id = state.create_graph();
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    10000 fn cuGraphDestroy(graph: usize) {
        with(|state| state.graphs.graphs.remove(&graph).map(|_| ()).ok_or(INVALID_HANDLE))
    }
    11040 fn cuGraphAddMemAllocNode(
        into: *mut usize,
        graph: usize,
        _dependencies: *const usize,
        _count: u64,
        parameters: *mut MemoryNode,
    ) {
        // SAFETY: as the interface demands.
        unsafe { add_memory(into, graph, parameters) }
    }
    12030 fn cuGraphAddNode_v2(
        into: *mut usize,
        graph: usize,
        _dependencies: *const usize,
        _edges: *const u8,
        _count: u64,
        parameters: *mut AnyNode,
    ) {
        // SAFETY: as the interface demands.
        unsafe { add_any(into, graph, parameters) }
    }
    13040 fn cuGraphAddNode_v3(
        into: *mut usize,
        graph: usize,
        _dependencies: *const usize,
        _edges: *const u8,
        _count: u64,
        parameters: *mut AnyNode,
    ) {
        // SAFETY: as the interface demands.
        unsafe { add_any(into, graph, parameters) }
    }
    11040 fn cuGraphInstantiateWithFlags(into: *mut usize, graph: usize, _flags: u64) {
        // SAFETY: as the interface demands.
        unsafe { instantiate(into, graph) }
    }
    10000 fn cuGraphExecDestroy(executable: usize) {
        with(|state| {
            state.graphs.executables.remove(&executable).map(|_| ()).ok_or(INVALID_HANDLE)
        })
    }
    11010 fn cuGraphUpload(executable: usize, _stream: usize) {
        with(|state| state.upload(executable).map(|_| ()))
    }
    10000 fn cuGraphLaunch(executable: usize, stream: usize) { launch(executable, stream) }
    10000 fn cuGraphLaunch_ptsz(executable: usize, stream: usize) {
        launch(executable, of_thread(stream))
    }
    11040 fn cuDeviceGetGraphMemAttribute(device: i32, attribute: i32, into: *mut u64) {
        with(|state| {
            let (device, _) = state.device(device)?;
            // Memory used by a launch is free again when it ends, and it ends at once.
            let value = match attribute {
                0 | 1 => 0,
                2 | 3 => reserved(state, device),
                _ => return Err(INVALID_VALUE),
            };
            // SAFETY: as the interface demands.
            unsafe { give(into, value) }
        })
    }
    11040 fn cuDeviceGraphMemTrim(device: i32) {
        with(|state| {
            let (device, _) = state.device(device)?;
            let bytes = state.graphs.reserved.remove(&device).unwrap_or(0);
            state.give_back(device, bytes)
        })
    }
}
