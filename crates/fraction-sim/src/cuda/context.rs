//! Devices and contexts. Owns: what a device says about itself, the stack of contexts of each
//! thread, and the memory that each context takes. Does not know about: what is done in a context.

use core::arch::asm;

use super::{Answer, INVALID_CONTEXT, INVALID_VALUE, State, driver, give, with};
use crate::put_text;

pub(crate) const NAME: &str = "Elastane Simulated GPU";

pub(crate) struct Context {
    pub(super) device: usize,
    /// Number of references to the primary context; `None` for another one.
    retained: Option<u32>,
}

/// Tells this thread from others that live.
pub(super) fn thread() -> usize {
    let id: usize;
    // SAFETY: on x86-64 the first word of a thread's block is its own address, with any C library.
    unsafe { asm!("mov {}, fs:0", out(reg) id, options(nostack, readonly, pure)) };
    id
}

impl State {
    /// The device of the context that is current in this thread.
    pub(super) fn current_device(&self) -> Answer<usize> {
        let id = self.context()?;
        Ok(self.contexts.get(&id).ok_or(INVALID_CONTEXT)?.device)
    }

    fn current_context(&self) -> Option<usize> {
        self.current.get(&thread())?.last().copied().filter(|id| *id != 0)
    }

    fn create_context(&mut self, ordinal: i32, primary: bool) -> Answer<usize> {
        let (device, about) = self.device(ordinal)?;
        self.take_for_context(device, about.context_bytes)?;
        let id = self.id();
        self.contexts.insert(id, Context { device, retained: primary.then_some(0) });
        Ok(id)
    }

    fn destroy_context(&mut self, id: usize) -> Answer<()> {
        let context = self.contexts.remove(&id).ok_or(INVALID_CONTEXT)?;
        self.forget_current(id);
        self.free_memory_of(id)?;
        let bytes = self.devices.get(context.device).map_or(0, |device| device.context_bytes);
        self.give_back(context.device, bytes)
    }

    fn push(&mut self, id: usize) {
        self.current.entry(thread()).or_default().push(id);
    }

    fn primary(&self, device: usize) -> Option<usize> {
        let is = |context: &Context| context.device == device && context.retained.is_some();
        self.contexts.iter().find(|(_, context)| is(context)).map(|(id, _)| *id)
    }

    /// Retains the primary context of a device.
    fn retain(&mut self, ordinal: i32) -> Answer<usize> {
        let id = match self.primary(self.device(ordinal)?.0) {
            Some(id) => id,
            None => self.create_context(ordinal, true)?,
        };
        if let Some(Context { retained: Some(retained), .. }) = self.contexts.get_mut(&id) {
            *retained += 1;
        }
        Ok(id)
    }

    fn release(&mut self, ordinal: i32, all: bool) -> Answer<()> {
        let id = self.primary(self.device(ordinal)?.0).ok_or(INVALID_CONTEXT)?;
        let context = self.contexts.get_mut(&id).ok_or(INVALID_CONTEXT)?;
        let left = context.retained.unwrap_or(1).saturating_sub(1);
        context.retained = Some(left);
        if left == 0 || all { self.destroy_context(id) } else { Ok(()) }
    }

    /// The context that memory belongs to; that of a green one is its primary one.
    pub(super) fn context(&self) -> Answer<usize> {
        let id = self.current_context().ok_or(INVALID_CONTEXT)?;
        match self.greens.get(&id) {
            Some(green) => self.primary(self.device(*green)?.0).ok_or(INVALID_CONTEXT),
            None => Ok(id),
        }
    }

    fn forget_current(&mut self, id: usize) {
        for stack in self.current.values_mut() {
            stack.retain(|one| *one != id);
        }
    }
}

unsafe fn create(into: *mut usize, device: i32) -> i32 {
    with(|state| {
        let id = state.create_context(device, false)?;
        state.push(id);
        // SAFETY: as the interface demands.
        unsafe { give(into, id) }
    })
}

fn release(device: i32, all: bool) -> i32 {
    with(|state| state.release(device, all))
}

unsafe fn uuid(into: *mut [u8; 16], device: i32) -> i32 {
    // SAFETY: as the interface demands.
    with(|state| unsafe { give(into, state.device(device)?.1.uuid) })
}

driver! {
    2000 fn cuDeviceGetCount(count: *mut i32) {
        // SAFETY: as the interface demands.
        with(|state| unsafe { give(count, i32::try_from(state.devices.len()).unwrap_or(0)) })
    }
    2000 fn cuDeviceGet(device: *mut i32, ordinal: i32) {
        // SAFETY: as the interface demands.
        with(|state| state.device(ordinal).and_then(|_| unsafe { give(device, ordinal) }))
    }
    2000 fn cuDeviceGetName(into: *mut u8, room: i32, device: i32) {
        with(|state| {
            state.device(device)?;
            let room = usize::try_from(room).map_err(|_| INVALID_VALUE)?;
            // SAFETY: as the interface demands.
            if unsafe { put_text(into, room, NAME) } { Ok(()) } else { Err(INVALID_VALUE) }
        })
    }
    9020 fn cuDeviceGetUuid(into: *mut [u8; 16], device: i32) {
        // SAFETY: as the interface demands.
        unsafe { uuid(into, device) }
    }
    11040 fn cuDeviceGetUuid_v2(into: *mut [u8; 16], device: i32) {
        // SAFETY: as the interface demands.
        unsafe { uuid(into, device) }
    }
    2000 fn cuDeviceTotalMem(bytes: *mut u32, device: i32) {
        with(|state| {
            let total = u32::try_from(state.device(device)?.1.bytes).unwrap_or(u32::MAX);
            // SAFETY: as the interface demands.
            unsafe { give(bytes, total) }
        })
    }
    3020 fn cuDeviceTotalMem_v2(bytes: *mut u64, device: i32) {
        // SAFETY: as the interface demands.
        with(|state| unsafe { give(bytes, state.device(device)?.1.bytes) })
    }
    2000 fn cuDeviceGetAttribute(into: *mut i32, attribute: i32, device: i32) {
        with(|state| {
            state.device(device)?;
            // Compute capability 9.0, 132 multiprocessors, warps of 32, blocks of 1024, unified
            // addresses, virtual memory management, pools.
            let value = match attribute {
                1 | 2 | 5 => 1024,
                10 => 32,
                16 => 132,
                75 => 9,
                41 | 83 | 102 | 115 => 1,
                _ => 0,
            };
            // SAFETY: as the interface demands.
            unsafe { give(into, value) }
        })
    }

    2000 fn cuCtxCreate(into: *mut usize, _flags: u32, device: i32) {
        // SAFETY: as the interface demands.
        unsafe { create(into, device) }
    }
    3020 fn cuCtxCreate_v2(into: *mut usize, _flags: u32, device: i32) {
        // SAFETY: as the interface demands.
        unsafe { create(into, device) }
    }
    11040 fn cuCtxCreate_v3(into: *mut usize, _p: *const u8, _n: i32, _flags: u32, device: i32) {
        // SAFETY: as the interface demands.
        unsafe { create(into, device) }
    }
    12050 fn cuCtxCreate_v4(into: *mut usize, _params: *const u8, _flags: u32, device: i32) {
        // SAFETY: as the interface demands.
        unsafe { create(into, device) }
    }
    2000 fn cuCtxDestroy(context: usize) {
        with(|state| state.destroy_context(context))
    }
    4000 fn cuCtxDestroy_v2(context: usize) {
        with(|state| state.destroy_context(context))
    }
    4000 fn cuCtxSetCurrent(context: usize) {
        with(|state| {
            let stack = state.current.entry(thread()).or_default();
            stack.pop();
            stack.push(context);
            Ok(())
        })
    }
    4000 fn cuCtxGetCurrent(into: *mut usize) {
        // SAFETY: as the interface demands.
        with(|state| unsafe { give(into, state.current_context().unwrap_or(0)) })
    }
    4000 fn cuCtxPushCurrent_v2(context: usize) {
        with(|state| {
            state.push(context);
            Ok(())
        })
    }
    4000 fn cuCtxPopCurrent_v2(into: *mut usize) {
        with(|state| {
            let id = state.current.entry(thread()).or_default().pop().ok_or(INVALID_CONTEXT)?;
            // SAFETY: as the interface demands.
            unsafe { crate::put(into, id) };
            Ok(())
        })
    }
    2000 fn cuCtxGetDevice(device: *mut i32) {
        with(|state| {
            let index = i32::try_from(state.current_device()?).unwrap_or(0);
            // SAFETY: as the interface demands.
            unsafe { give(device, index) }
        })
    }
    7000 fn cuDevicePrimaryCtxRetain(into: *mut usize, device: i32) {
        // SAFETY: as the interface demands.
        with(|state| state.retain(device).and_then(|id| unsafe { give(into, id) }))
    }
    12040 fn cuGreenCtxCreate(into: *mut usize, _resources: usize, device: i32, _flags: u32) {
        with(|state| {
            state.retain(device)?;
            let id = state.id();
            state.greens.insert(id, device);
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    12040 fn cuGreenCtxDestroy(green: usize) {
        with(|state| {
            let device = state.greens.remove(&green).ok_or(INVALID_CONTEXT)?;
            state.forget_current(green);
            state.release(device, false)
        })
    }
    12040 fn cuCtxFromGreenCtx(into: *mut usize, green: usize) {
        with(|state| {
            // A handle of its own, as with the real driver.
            state.greens.get(&green).ok_or(INVALID_CONTEXT)?;
            // SAFETY: as the interface demands.
            unsafe { give(into, green) }
        })
    }
    7000 fn cuDevicePrimaryCtxRelease(device: i32) { release(device, false) }
    11000 fn cuDevicePrimaryCtxRelease_v2(device: i32) { release(device, false) }
    7000 fn cuDevicePrimaryCtxReset(device: i32) { release(device, true) }
    11000 fn cuDevicePrimaryCtxReset_v2(device: i32) { release(device, true) }
    7000 fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) {
        with(|state| {
            let (index, _) = state.device(device)?;
            // SAFETY: as the interface demands.
            unsafe {
                crate::put(flags, 0);
                give(active, i32::from(state.primary(index).is_some()))
            }
        })
    }
}
