//! Graphs. Owns: their nodes, and the memory that launches of them keep on a device. Does not know
//! about: dependencies; nodes run in the order in which they were added.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::memory::Source;
use super::{INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, State, driver, give, with};

#[derive(Default)]
pub(crate) struct Graphs {
    graphs: BTreeMap<usize, Vec<Node>>,
    executables: BTreeMap<usize, Vec<Node>>,
    /// Bytes that launches keep, by device.
    reserved: BTreeMap<usize, u64>,
}

#[derive(Clone, Copy)]
struct Node {
    device: usize,
    bytes: u64,
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
        let nodes = state.graphs.graphs.get_mut(&graph).ok_or(INVALID_HANDLE)?;
        nodes.push(Node { device, bytes });
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

fn launch(executable: usize) -> i32 {
    with(|state| {
        let nodes = state.graphs.executables.get(&executable).ok_or(INVALID_HANDLE)?;
        let mut needs = BTreeMap::<usize, u64>::new();
        for node in nodes {
            *needs.entry(node.device).or_default() += node.bytes;
        }
        for (device, bytes) in needs {
            let kept = state.graphs.reserved.get(&device).copied().unwrap_or(0);
            state.take(device, bytes.saturating_sub(kept))?;
            state.graphs.reserved.insert(device, kept.max(bytes));
        }
        Ok(())
    })
}

fn reserved(state: &State, device: usize) -> u64 {
    state.graphs.reserved.get(&device).copied().unwrap_or(0)
}

driver! {
    10000 fn cuGraphCreate(into: *mut usize, _flags: u32) {
        with(|state| {
            let id = state.id();
            state.graphs.graphs.insert(id, Vec::new());
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
        // SAFETY: the interface demands null or the whole structure.
        match unsafe { parameters.as_mut() } {
            // SAFETY: as the interface demands.
            Some(node) if node.kind == 10 => unsafe { add_memory(into, graph, &mut node.memory) },
            Some(_) => NOT_SUPPORTED,
            None => INVALID_VALUE,
        }
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
    10000 fn cuGraphLaunch(executable: usize, _stream: usize) { launch(executable) }
    10000 fn cuGraphLaunch_ptsz(executable: usize, _stream: usize) { launch(executable) }
    11040 fn cuDeviceGetGraphMemAttribute(device: i32, attribute: i32, into: *mut u64) {
        with(|state| {
            let (device, _) = state.device(device)?;
            let value = if matches!(attribute, 0..=3) { reserved(state, device) } else {
                return Err(INVALID_VALUE);
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
