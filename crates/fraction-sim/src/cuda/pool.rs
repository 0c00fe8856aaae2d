//! Stream-ordered memory. Owns: pools, which take memory of their device in blocks and keep it
//! until the next synchronisation or longer; one that was destroyed until the last allocation in it
//! is freed. Does not know about: the order of streams; all happens at once.

use super::memory::{Location, Source};
use super::stream::of_thread;
use super::{Answer, INVALID_HANDLE, INVALID_VALUE, State, driver, give, with};

const BLOCK: u64 = 2 << 20;

#[derive(Default)]
pub(crate) struct Pool {
    device: usize,
    default: bool,
    managed: bool,
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
    threshold: u64,
    /// No handle leads to it any more.
    destroyed: bool,
}

/// The begin of `CUmemPoolProps`.
#[repr(C)]
pub struct PoolProperties {
    kind: u32,
    handles: u32,
    location: Location,
}

const MANAGED: u32 = 2;

impl State {
    pub(super) fn default_pool(&mut self, device: usize, managed: bool) -> usize {
        let is = |pool: &Pool| pool.default && pool.device == device && pool.managed == managed;
        let found = self.pools.iter().find(|(_, pool)| is(pool)).map(|(id, _)| *id);
        found.unwrap_or_else(|| {
            let id = self.id();
            self.pools.insert(id, Pool { device, default: true, managed, ..Pool::default() });
            id
        })
    }

    /// Where a pool has its memory. Here managed memory without a preferred device is on the first.
    fn pool_device(&self, kind: u32, location: Location) -> Answer<usize> {
        match location.device() {
            Some(ordinal) => Ok(self.device(ordinal)?.0),
            None if kind == MANAGED => Ok(0),
            None => Err(INVALID_VALUE),
        }
    }

    fn allocate_in_pool(&mut self, id: usize, bytes: u64) -> Answer<u64> {
        let pool = self.pool(id)?;
        if bytes == 0 || bytes > 1 << 46 {
            return Err(INVALID_VALUE);
        }
        let used = pool.used + bytes;
        let more = used.next_multiple_of(BLOCK).saturating_sub(pool.reserved);
        self.take(pool.device, more)?;
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.used = used;
            pool.reserved += more;
            pool.used_high = pool.used_high.max(used);
            pool.reserved_high = pool.reserved_high.max(pool.reserved);
        }
        self.map_range(bytes, Source::Pool(id))
    }

    /// A pool that was not destroyed.
    fn pool(&self, id: usize) -> Answer<&Pool> {
        self.pools.get(&id).filter(|pool| !pool.destroyed).ok_or(INVALID_HANDLE)
    }

    pub(super) fn free_in_pool(&mut self, id: usize, bytes: u64) -> Answer<()> {
        let pool = self.pools.get_mut(&id).ok_or(INVALID_HANDLE)?;
        pool.used = pool.used.saturating_sub(bytes);
        self.end_if_unused(id)
    }

    fn end_if_unused(&mut self, id: usize) -> Answer<()> {
        match self.pools.get(&id) {
            Some(Pool { destroyed: true, used: 0, device, reserved, .. }) => {
                let (device, reserved) = (*device, *reserved);
                self.pools.remove(&id);
                self.give_back(device, reserved)
            }
            _ => Ok(()),
        }
    }

    fn trim(&mut self, id: usize, keep: u64) -> Answer<()> {
        let pool = self.pools.get_mut(&id).ok_or(INVALID_HANDLE)?;
        let keep = keep.max(pool.used).min(pool.reserved).next_multiple_of(BLOCK);
        let back = pool.reserved.saturating_sub(keep);
        pool.reserved -= back;
        let device = pool.device;
        self.give_back(device, back)
    }

    /// Trims the pools, as at a synchronisation.
    pub(super) fn trim_pools(&mut self) -> Answer<()> {
        let pools = self.pools.iter().map(|(id, pool)| (*id, pool.threshold));
        let pools: alloc::vec::Vec<_> = pools.collect();
        pools.into_iter().try_for_each(|(id, threshold)| self.trim(id, threshold))
    }
}

unsafe fn allocate(into: *mut u64, bytes: u64, pool: Option<usize>, stream: usize) -> i32 {
    with(|state| {
        let device = state.device_of(stream);
        let pool = match pool {
            Some(pool) => pool,
            None => state.default_pool(device?, false),
        };
        let address = match state.captured(stream) {
            Some(graph) => state.add_captured(graph, state.pool(pool)?.device, bytes)?,
            None => state.allocate_in_pool(pool, bytes)?,
        };
        // SAFETY: as the interface demands.
        unsafe { give(into, address) }
    })
}

unsafe fn default_pool(into: *mut usize, device: i32) -> i32 {
    with(|state| {
        let (device, _) = state.device(device)?;
        let pool = state.default_pool(device, false);
        // SAFETY: as the interface demands.
        unsafe { give(into, pool) }
    })
}

unsafe fn pool_at(into: *mut usize, location: *const Location, kind: u32) -> i32 {
    with(|state| {
        // SAFETY: the interface demands null or the whole structure.
        let location = *unsafe { location.as_ref() }.ok_or(INVALID_VALUE)?;
        let device = state.pool_device(kind, location)?;
        let pool = state.default_pool(device, kind == MANAGED);
        // SAFETY: as the interface demands.
        unsafe { give(into, pool) }
    })
}

driver! {
    13000 fn cuMemGetDefaultMemPool(into: *mut usize, location: *const Location, kind: u32) {
        // SAFETY: as the interface demands.
        unsafe { pool_at(into, location, kind) }
    }
    13000 fn cuMemGetMemPool(into: *mut usize, location: *const Location, kind: u32) {
        // SAFETY: as the interface demands.
        unsafe { pool_at(into, location, kind) }
    }
    11020 fn cuMemAllocAsync(into: *mut u64, bytes: u64, stream: usize) {
        // SAFETY: as the interface demands.
        unsafe { allocate(into, bytes, None, stream) }
    }
    11020 fn cuMemAllocAsync_ptsz(into: *mut u64, bytes: u64, stream: usize) {
        // SAFETY: as the interface demands.
        unsafe { allocate(into, bytes, None, of_thread(stream)) }
    }
    11020 fn cuMemAllocFromPoolAsync(into: *mut u64, bytes: u64, pool: usize, stream: usize) {
        // SAFETY: as the interface demands.
        unsafe { allocate(into, bytes, Some(pool), stream) }
    }
    11020 fn cuMemAllocFromPoolAsync_ptsz(into: *mut u64, bytes: u64, pool: usize, stream: usize) {
        // SAFETY: as the interface demands.
        unsafe { allocate(into, bytes, Some(pool), of_thread(stream)) }
    }
    11020 fn cuMemFreeAsync(address: u64, _stream: usize) { with(|state| state.free(address)) }
    11020 fn cuMemFreeAsync_ptsz(address: u64, _stream: usize) { with(|state| state.free(address)) }
    11020 fn cuMemPoolCreate(into: *mut usize, properties: *const PoolProperties) {
        with(|state| {
            // SAFETY: the interface demands null or the whole structure.
            let properties = unsafe { properties.as_ref() }.ok_or(INVALID_VALUE)?;
            let device = state.pool_device(properties.kind, properties.location)?;
            let id = state.id();
            state.pools.insert(id, Pool { device, ..Pool::default() });
            // SAFETY: as the interface demands.
            unsafe { give(into, id) }
        })
    }
    11020 fn cuMemPoolDestroy(pool: usize) {
        with(|state| {
            state.pool(pool)?;
            state.trim(pool, 0)?;
            state.pools.get_mut(&pool).ok_or(INVALID_HANDLE)?.destroyed = true;
            state.end_if_unused(pool)
        })
    }
    11020 fn cuMemPoolTrimTo(pool: usize, keep: u64) { with(|state| state.trim(pool, keep)) }
    11020 fn cuMemPoolGetAttribute(pool: usize, attribute: i32, into: *mut u64) {
        with(|state| {
            let pool = state.pool(pool)?;
            let value = match attribute {
                4 => pool.threshold,
                5 => pool.reserved,
                6 => pool.reserved_high,
                7 => pool.used,
                8 => pool.used_high,
                _ => return Err(INVALID_VALUE),
            };
            // SAFETY: as the interface demands.
            unsafe { give(into, value) }
        })
    }
    11020 fn cuMemPoolSetAttribute(pool: usize, attribute: i32, value: *const u64) {
        with(|state| {
            let pool = state.pools.get_mut(&pool).ok_or(INVALID_HANDLE)?;
            // SAFETY: the interface demands null or a number.
            let value = *unsafe { value.as_ref() }.ok_or(INVALID_VALUE)?;
            match attribute {
                4 => pool.threshold = value,
                6 => pool.reserved_high = pool.reserved,
                8 => pool.used_high = pool.used,
                _ => return Err(INVALID_VALUE),
            }
            Ok(())
        })
    }
    11020 fn cuDeviceGetDefaultMemPool(into: *mut usize, device: i32) {
        // SAFETY: as the interface demands.
        unsafe { default_pool(into, device) }
    }
    11020 fn cuDeviceGetMemPool(into: *mut usize, device: i32) {
        // SAFETY: as the interface demands.
        unsafe { default_pool(into, device) }
    }
}
