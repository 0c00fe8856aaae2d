//! Streams, their capture, events and kernels. Owns: when what was launched ends. A kernel is a
//! name with a length of time; it computes nothing. Real kernel images are refused. Does not know
//! about: memory.

use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering::Relaxed;

use fraction_abi::sys::{monotonic_ns, sleep_ns};
use fraction_abi::wire::Operation;

use super::{
    Answer, HAS_LAUNCH_FAULT, INVALID_HANDLE, INVALID_VALUE, NO_BINARY, NOT_FOUND, NOT_READY,
    NOT_SUPPORTED, State, driver, give, with,
};

/// `CU_STREAM_PER_THREAD`; threads of a program share what it has here.
const STREAM_OF_THREAD: usize = 2;

/// The stream that functions for default streams of threads mean.
pub(super) fn of_thread(stream: usize) -> usize {
    if stream == 0 { STREAM_OF_THREAD } else { stream }
}

#[derive(Default)]
pub(crate) struct Stream {
    end_ns: u64,
    /// Device and context of the stream; `None` for the default streams, which belong to each
    /// context.
    of: Option<(usize, usize)>,
    /// The graph that it is captured into.
    pub(super) captured: Option<usize>,
}

/// A module of virtual kernels begins with this line. Each further line is a name and nanoseconds.
const MODULE: &[u8] = b"elastane simulated kernels\n";

/// Functions are their nanoseconds, shifted; no table has to be asked about them at a launch.
const FUNCTION_SHIFT: u32 = 4;
const FUNCTION_MARK: u64 = 1;

impl State {
    pub(super) fn run(&mut self, stream: usize, length_ns: u64) -> Answer<()> {
        let device = self.device_of(stream)?;
        self.count_launch();
        if length_ns == 0 {
            return Ok(());
        }
        let [end, ..] = self.ask(Operation::Run, device, length_ns)?;
        let stream = self.streams.entry(stream).or_default();
        stream.end_ns = stream.end_ns.max(end);
        Ok(())
    }

    fn end_of(&self, stream: usize) -> u64 {
        self.streams.get(&stream).map_or(0, |stream| stream.end_ns)
    }

    /// The device of a stream.
    pub(super) fn device_of(&self, stream: usize) -> Answer<usize> {
        let of = self.streams.get(&stream).and_then(|stream| stream.of);
        of.map_or_else(|| self.current_device(), |(device, _)| Ok(device))
    }

    /// The graph that a stream is captured into.
    pub(super) fn captured(&self, stream: usize) -> Option<usize> {
        self.streams.get(&stream)?.captured
    }

    fn begin_capture(&mut self, stream: usize) -> Answer<()> {
        // As with the real driver, the default stream of all threads cannot be captured.
        if stream < STREAM_OF_THREAD {
            return Err(NOT_SUPPORTED);
        }
        let stream = self.known_stream(stream)?;
        if self.captured(stream).is_some() { Err(INVALID_VALUE) } else { Ok(()) }
    }

    fn known_stream(&self, stream: usize) -> Answer<usize> {
        let known = stream <= 2 || self.streams.contains_key(&stream);
        if known { Ok(stream) } else { Err(INVALID_HANDLE) }
    }
}

/// Waits outside of the lock, so that other threads go on.
fn wait(end: impl FnOnce(&mut State) -> Answer<u64>) -> i32 {
    let mut end_ns = 0;
    let found = with(|state| {
        end_ns = end(state)?;
        Ok(())
    });
    if found != 0 {
        return found;
    }
    loop {
        match end_ns.saturating_sub(monotonic_ns()) {
            0 => break,
            left => sleep_ns(left),
        }
    }
    with(State::trim_pools)
}

/// The begin of `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    sizes: [u32; 6],
    shared: u32,
    stream: usize,
}

fn launch(function: u64, stream: usize) -> i32 {
    if function & FUNCTION_MARK == 0 {
        return INVALID_HANDLE;
    }
    match function >> FUNCTION_SHIFT {
        0 if !HAS_LAUNCH_FAULT.load(Relaxed) => 0,
        length_ns => with(|state| {
            let stream = state.known_stream(stream)?;
            match state.captured(stream) {
                Some(graph) => state.add_kernel(graph, length_ns),
                None => state.run(stream, length_ns),
            }
        }),
    }
}

/// Captures a stream into a graph, or into a new one.
fn begin_capture(stream: usize, graph: Option<usize>) -> i32 {
    with(|state| {
        state.begin_capture(stream)?;
        let graph = graph.unwrap_or_else(|| state.create_graph());
        state.streams.entry(stream).or_default().captured = Some(graph);
        Ok(())
    })
}

unsafe fn end_capture(stream: usize, into: *mut usize) -> i32 {
    with(|state| {
        let stream = state.streams.get_mut(&stream).ok_or(INVALID_HANDLE)?;
        let graph = stream.captured.take().ok_or(INVALID_VALUE)?;
        // SAFETY: as the interface demands.
        unsafe { give(into, graph) }
    })
}

fn ready(end_ns: u64) -> Answer<()> {
    if end_ns > monotonic_ns() { Err(NOT_READY) } else { Ok(()) }
}

/// # Safety
/// Null, or an image as the interface demands.
unsafe fn load(into: *mut usize, image: *const c_char) -> i32 {
    with(|_| {
        if image.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: real images are longer than this line; texts end with zero.
        let begins =
            (0..MODULE.len()).all(|at| unsafe { image.add(at).read() } as u8 == MODULE[at]);
        if !begins {
            return Err(NO_BINARY);
        }
        // SAFETY: a module of virtual kernels is a text, which the caller keeps while it is loaded.
        unsafe { give(into, image.addr()) }
    })
}

fn length_of(module: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = module.get(MODULE.len()..)?.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b" "))?;
    core::str::from_utf8(line).ok()?.trim().parse().ok()
}

driver! {
    2000 fn cuStreamCreate(into: *mut usize, _flags: u32) {
        with(|state| {
            let of = Some((state.current_device()?, state.context()?));
            let id = state.id();
            state.streams.insert(id, Stream { of, ..Stream::default() });
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    4000 fn cuStreamDestroy_v2(stream: usize) {
        with(|state| state.streams.remove(&stream).map(|_| ()).ok_or(INVALID_HANDLE))
    }
    9020 fn cuStreamGetCtx(stream: usize, into: *mut usize) {
        with(|state| {
            let stream = state.known_stream(stream)?;
            let of = state.streams.get(&stream).and_then(|stream| stream.of);
            let context = of.map_or_else(|| state.context(), |(_, context)| Ok(context))?;
            // SAFETY: as the interface demands.
            unsafe { give(into, context) }
        })
    }
    10000 fn cuStreamBeginCapture(stream: usize) { begin_capture(stream, None) }
    10000 fn cuStreamBeginCapture_ptsz(stream: usize) { begin_capture(of_thread(stream), None) }
    10010 fn cuStreamBeginCapture_v2(stream: usize, _mode: i32) { begin_capture(stream, None) }
    10010 fn cuStreamBeginCapture_v2_ptsz(stream: usize, _mode: i32) {
        begin_capture(of_thread(stream), None)
    }
    13030 fn cuStreamBeginRecaptureToGraph(
        stream: usize,
        _mode: i32,
        graph: usize,
        _changed: usize,
        _data: usize,
    ) {
        begin_capture(stream, Some(graph))
    }
    10000 fn cuStreamEndCapture(stream: usize, into: *mut usize) {
        // SAFETY: as the interface demands.
        unsafe { end_capture(stream, into) }
    }
    10000 fn cuStreamEndCapture_ptsz(stream: usize, into: *mut usize) {
        // SAFETY: as the interface demands.
        unsafe { end_capture(of_thread(stream), into) }
    }
    11030 fn cuStreamGetCaptureInfo_v2(
        stream: usize,
        status: *mut u32,
        id: *mut u64,
        graph: *mut usize,
        _dependencies: usize,
        _count: usize,
    ) {
        with(|state| {
            let captured = state.captured(state.known_stream(stream)?);
            let number = captured.unwrap_or(0);
            // SAFETY: as the interface demands; all but the status may be null.
            unsafe {
                crate::put(id, number as u64);
                crate::put(graph, number);
                give(status, u32::from(captured.is_some()))
            }
        })
    }
    2000 fn cuStreamSynchronize(stream: usize) {
        wait(|state| state.known_stream(stream).map(|stream| state.end_of(stream)))
    }
    2000 fn cuStreamQuery(stream: usize) {
        with(|state| ready(state.end_of(state.known_stream(stream)?)))
    }
    2000 fn cuCtxSynchronize() {
        wait(|state| {
            state.current_device()?;
            Ok(state.streams.values().map(|stream| stream.end_ns).max().unwrap_or(0))
        })
    }
    2000 fn cuEventCreate(into: *mut usize, _flags: u32) {
        with(|state| {
            let id = state.id();
            state.events.insert(id, 0);
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    4000 fn cuEventDestroy_v2(event: usize) {
        with(|state| state.events.remove(&event).map(|_| ()).ok_or(INVALID_HANDLE))
    }
    2000 fn cuEventRecord(event: usize, stream: usize) {
        with(|state| {
            let end = state.end_of(state.known_stream(stream)?).max(monotonic_ns());
            *state.events.get_mut(&event).ok_or(INVALID_HANDLE)? = end;
            Ok(())
        })
    }
    2000 fn cuEventQuery(event: usize) {
        with(|state| ready(*state.events.get(&event).ok_or(INVALID_HANDLE)?))
    }
    2000 fn cuEventSynchronize(event: usize) {
        wait(|state| state.events.get(&event).copied().ok_or(INVALID_HANDLE))
    }
    2000 fn cuModuleLoadData(into: *mut usize, image: *const c_char) {
        // SAFETY: as the interface demands.
        unsafe { load(into, image) }
    }
    2010 fn cuModuleLoadDataEx(
        into: *mut usize,
        image: *const c_char,
        _count: u32,
        _options: *mut i32,
        _values: *mut usize,
    ) {
        // SAFETY: as the interface demands.
        unsafe { load(into, image) }
    }
    2000 fn cuModuleUnload(_module: usize) { with(|_| Ok(())) }
    2000 fn cuModuleGetFunction(into: *mut u64, module: *const c_char, name: *const c_char) {
        with(|_| {
            if module.is_null() || name.is_null() {
                return Err(INVALID_VALUE);
            }
            // SAFETY: a module is the text that it was loaded from; names end with zero.
            let (module, name) = unsafe { (CStr::from_ptr(module), CStr::from_ptr(name)) };
            let length = length_of(module.to_bytes(), name.to_bytes()).ok_or(NOT_FOUND)?;
            let function = (length << FUNCTION_SHIFT) | FUNCTION_MARK;
            // SAFETY: as the interface demands.
            unsafe { give(into, function) }
        })
    }
    4000 fn cuLaunchKernel(
        function: u64,
        _x: u32, _y: u32, _z: u32, _bx: u32, _by: u32, _bz: u32,
        _shared: u32, stream: usize, _parameters: usize, _extra: usize,
    ) {
        launch(function, stream)
    }
    7000 fn cuLaunchKernel_ptsz(
        function: u64,
        _x: u32, _y: u32, _z: u32, _bx: u32, _by: u32, _bz: u32,
        _shared: u32, stream: usize, _parameters: usize, _extra: usize,
    ) {
        launch(function, of_thread(stream))
    }
    9000 fn cuLaunchCooperativeKernel(
        function: u64,
        _x: u32, _y: u32, _z: u32, _bx: u32, _by: u32, _bz: u32,
        _shared: u32, stream: usize, _parameters: usize,
    ) {
        launch(function, stream)
    }
    9000 fn cuLaunchCooperativeKernel_ptsz(
        function: u64,
        _x: u32, _y: u32, _z: u32, _bx: u32, _by: u32, _bz: u32,
        _shared: u32, stream: usize, _parameters: usize,
    ) {
        launch(function, of_thread(stream))
    }
    11060 fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: u64,
        _parameters: usize,
        _extra: usize,
    ) {
        // SAFETY: the interface demands null or the whole structure.
        unsafe { config.as_ref() }.map_or(INVALID_VALUE, |config| launch(function, config.stream))
    }
    11060 fn cuLaunchKernelEx_ptsz(
        config: *const LaunchConfig,
        function: u64,
        _parameters: usize,
        _extra: usize,
    ) {
        // SAFETY: the interface demands null or the whole structure.
        let config = unsafe { config.as_ref() };
        config.map_or(INVALID_VALUE, |config| launch(function, of_thread(config.stream)))
    }
}
