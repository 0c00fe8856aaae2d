//! Contexts, which take memory themselves and whose end frees what was allocated in them. Owns:
//! charging what the control page says that a context takes. Does not know about: how much that
//! really is; the agent corrects it.

use crate::hooked::hooks;
use crate::linear::{Call, written};
use crate::process::{Limited, Mode, OUT_OF_MEMORY, Place, mode};
use crate::table::{Class, Row};

impl Limited {
    fn context_bytes(&self, place: Place) -> u64 {
        let device = place.device();
        let process = self.process();
        let limit = device.zip(process).and_then(|(device, p)| p.control.limit(device.into()));
        limit.map_or(0, |limit| limit.context)
    }

    /// Gives back all that was allocated in a context.
    fn forget_memory_of(&self, context: u64) {
        let of =
            |row: &Row| row.owner == context && matches!(row.class, Class::Linear | Class::Array);
        while let Some(row) = self.table.with(|table| {
            let row = table.any(of)?;
            table.remove(row.class, row.key)
        }) {
            self.release(row.device, row.bytes);
        }
    }

    /// Retains the primary context; charged as long as the driver keeps it.
    fn retain(&self, ordinal: i32, ask: &mut dyn FnMut() -> (i32, u64)) -> i32 {
        let Ok(key) = u64::try_from(ordinal) else { return ask().0 };
        let again = |table: &mut crate::table::Table| {
            let row = table.find(Class::Primary, key)?;
            row.references = row.references.saturating_add(1);
            Some(())
        };
        if self.table.with(again).is_some() {
            let (result, _) = ask();
            if result != 0 {
                self.unretain(key, false);
            }
            return result;
        }
        let place = self.place(ordinal);
        let bytes = self.context_bytes(place);
        if !self.reserve(place, bytes) {
            return OUT_OF_MEMORY;
        }
        let device = place.device();
        let (result, context) = ask();
        if result != 0 {
            self.release(device, bytes);
            return result;
        }
        let row = Row {
            key,
            owner: context,
            bytes,
            references: 1,
            device,
            class: Class::Primary,
            mapped: 0,
        };
        let other = self.table.with(|table| match table.find(Class::Primary, key) {
            // Another thread was faster.
            Some(known) => {
                known.references = known.references.saturating_add(1);
                true
            }
            None => {
                table.insert(row);
                false
            }
        });
        if other {
            self.release(device, bytes);
        }
        0
    }

    fn unretain(&self, key: u64, all: bool) {
        let ended = self.table.with(|table| {
            let row = table.find(Class::Primary, key)?;
            row.references = row.references.saturating_sub(1);
            if row.references == 0 || all { table.remove(Class::Primary, key) } else { None }
        });
        if let Some(row) = ended {
            self.release(row.device, row.bytes);
            self.forget_memory_of(row.owner);
        }
    }
}

#[inline(never)]
fn create(ordinal: i32, ask: &mut dyn FnMut() -> (i32, u64)) -> i32 {
    match mode() {
        Mode::Off => ask().0,
        Mode::Closed => OUT_OF_MEMORY,
        Mode::Limited(limited) => {
            let place = limited.place(ordinal);
            let bytes = limited.context_bytes(place);
            limited.take(Class::Context, place, bytes, &mut || {
                let (result, context) = ask();
                (result, context, bytes)
            })
        }
    }
}

#[inline(never)]
fn destroy(context: u64, ask: Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return ask() };
    let result = limited.put_back(Class::Context, context, ask);
    if result == 0 {
        limited.forget_memory_of(context);
    }
    result
}

#[inline(never)]
fn release(ordinal: i32, all: bool, ask: Call<'_>) -> i32 {
    let result = ask();
    if let (0, Mode::Limited(limited), Ok(key)) = (result, mode(), u64::try_from(ordinal)) {
        limited.unretain(key, all);
    }
    result
}

// SAFETY, for all blocks below: as the program's own call of the driver.
hooks! {
    missing 500 in "cuda";
    fn cuCtxCreate(into: *mut u64, flags: u32, device: i32) |real| {
        // SAFETY: see above.
        create(device, &mut || unsafe { (real(into, flags, device), written(into)) })
    }
    fn cuCtxCreate_v2(into: *mut u64, flags: u32, device: i32) |real| {
        // SAFETY: see above.
        create(device, &mut || unsafe { (real(into, flags, device), written(into)) })
    }
    fn cuCtxCreate_v3(
        into: *mut u64,
        affinity: usize,
        count: i32,
        flags: u32,
        device: i32,
    ) |real| {
        // SAFETY: see above.
        create(device, &mut || unsafe {
            (real(into, affinity, count, flags, device), written(into))
        })
    }
    fn cuCtxCreate_v4(into: *mut u64, parameters: usize, flags: u32, device: i32) |real| {
        // SAFETY: see above.
        create(device, &mut || unsafe { (real(into, parameters, flags, device), written(into)) })
    }
    fn cuCtxDestroy(context: u64) |real| {
        // SAFETY: see above.
        destroy(context, &mut || unsafe { real(context) })
    }
    fn cuCtxDestroy_v2(context: u64) |real| {
        // SAFETY: see above.
        destroy(context, &mut || unsafe { real(context) })
    }
    fn cuDevicePrimaryCtxRetain(into: *mut u64, device: i32) |real| {
        // SAFETY: see above.
        let mut ask = || unsafe { (real(into, device), written(into)) };
        match mode() {
            Mode::Off => ask().0,
            Mode::Closed => OUT_OF_MEMORY,
            Mode::Limited(limited) => limited.retain(device, &mut ask),
        }
    }
    fn cuDevicePrimaryCtxRelease(device: i32) |real| {
        // SAFETY: see above.
        release(device, false, &mut || unsafe { real(device) })
    }
    fn cuDevicePrimaryCtxRelease_v2(device: i32) |real| {
        // SAFETY: see above.
        release(device, false, &mut || unsafe { real(device) })
    }
    fn cuDevicePrimaryCtxReset(device: i32) |real| {
        // SAFETY: see above.
        release(device, true, &mut || unsafe { real(device) })
    }
    fn cuDevicePrimaryCtxReset_v2(device: i32) |real| {
        // SAFETY: see above.
        release(device, true, &mut || unsafe { real(device) })
    }
}
