//! Contexts, which take memory themselves and whose end frees what was allocated in them. Owns:
//! charging what the control page says that a context takes. Does not know about: how much that
//! really is; the agent corrects it.

use crate::call::Call;
use crate::linear::Size;
use crate::process::{Limited, Mode, OUT_OF_MEMORY, Place, mode};
use crate::table::{Class, Row, Table};

/// Takes out what was allocated in a context, and captures of its streams; for 0 in the primary one
/// of the device. Called before the driver ends it, because it may give the same addresses to
/// another thread.
#[inline(never)]
fn take_out(table: &mut Table, context: u64, device: Option<u8>) -> Table {
    table.split(|row| {
        let is_there = row.owner == context && (context != 0 || row.device == device);
        is_there && matches!(row.class, Class::Linear | Class::Array | Class::Capture)
    })
}

impl Limited {
    fn context_bytes(&self, place: Place) -> u64 {
        let device = place.device();
        let process = self.process();
        let limit = device.zip(process).and_then(|(device, p)| p.control.limit(device.into()));
        limit.map_or(0, |limit| limit.context)
    }

    /// Gives back what was taken out if it has ended, or keeps it.
    #[inline(never)]
    fn restore_or_release(&self, mut memory: Table, ended: bool) {
        for row in memory.iter() {
            if !ended {
                self.know(row);
                continue;
            }
            self.release(row.device, row.bytes);
            if row.class == Class::Capture {
                self.turns.captures_end(row.references);
            }
        }
    }

    /// Retains the primary context of a device, itself or through a green one; charged as long as
    /// the driver keeps it.
    fn retain(&self, call: &Call<'_>, ordinal: i32) -> i32 {
        let Ok(key) = u64::try_from(ordinal) else { return call.ask() };
        let again = |table: &mut Table| {
            let row = table.find(Class::Primary, key)?;
            row.references = row.references.saturating_add(1);
            Some(())
        };
        if self.table.with(again).is_some() {
            let result = call.ask();
            if result != 0 {
                self.let_go(key, false, &|| 0);
            }
            return result;
        }
        let place = self.place(ordinal);
        let bytes = self.context_bytes(place);
        if !self.reserve(place, bytes) {
            return OUT_OF_MEMORY;
        }
        let (device, class) = (place.device(), Class::Primary);
        let result = call.ask();
        let is_first = result == 0
            && self.table.with(|table| {
                // Another thread may have been faster.
                again(table).is_none() && {
                    let row = Row { key, owner: 0, bytes, references: 1, device, class, mapped: 0 };
                    table.insert(row);
                    true
                }
            });
        if !is_first {
            self.release(device, bytes);
        }
        result
    }

    /// Asks the driver to end one use of a primary context, or `all`, and gives back what ends.
    #[inline(never)]
    fn let_go(&self, key: u64, all: bool, ask: &dyn Fn() -> i32) -> i32 {
        let mut uses = 0;
        let memory = self.table.with(|table| {
            let row = table.find(Class::Primary, key)?;
            uses = if all { row.references } else { 1 };
            row.references = row.references.saturating_sub(uses);
            let (is_last, device) = (row.references == 0, row.device);
            is_last.then(|| take_out(table, 0, device))
        });
        let result = ask();
        let ended = self.table.with(|table| {
            let row = table.find(Class::Primary, key)?;
            if result != 0 {
                row.references = row.references.saturating_add(uses);
            }
            // Another thread may have retained it meanwhile.
            let is_unused = row.references == 0;
            if is_unused { table.remove(Class::Primary, key) } else { None }
        });
        if let Some(memory) = memory {
            self.restore_or_release(memory, ended.is_some());
        }
        if let Some(row) = ended {
            self.release(row.device, row.bytes);
        }
        result
    }
}

/// Retains the primary context of a device.
pub(crate) fn retain(call: &Call<'_>) -> i32 {
    match mode() {
        Mode::Off => call.ask(),
        Mode::Closed => OUT_OF_MEMORY,
        Mode::Limited(limited) => limited.retain(call, call.ordinal(1)),
    }
}

/// Creates a green context, which retains the primary one of its device.
pub(crate) fn create_green(call: &Call<'_>) -> i32 {
    let limited = match mode() {
        Mode::Off => return call.ask(),
        Mode::Closed => return OUT_OF_MEMORY,
        Mode::Limited(limited) => limited,
    };
    let result = limited.retain(call, call.ordinal(2));
    if result == 0 {
        let (key, owner, class) = (call.written(0), u64::from(call.half(2)), Class::Green);
        let row = Row { key, owner, bytes: 0, references: 1, device: None, class, mapped: 0 };
        limited.table.with(|table| table.insert(row));
    }
    result
}

/// Destroys a green context.
pub(crate) fn destroy_green(call: &Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return call.ask() };
    let green = call.word(0);
    let of = limited.table.with(|table| table.find(Class::Green, green).map(|row| row.owner));
    let ask = || limited.put_back(call, Class::Green, green);
    match of {
        Some(ordinal) => limited.let_go(ordinal, false, &ask),
        None => ask(),
    }
}

/// Creates a context on a device.
#[inline(never)]
pub(crate) fn create(call: &Call<'_>, ordinal: i32) -> i32 {
    match mode() {
        Mode::Off => call.ask(),
        Mode::Closed => OUT_OF_MEMORY,
        Mode::Limited(limited) => {
            let place = limited.place(ordinal);
            let size = Size::Bytes(limited.context_bytes(place));
            limited.take(call, Class::Context, place, size)
        }
    }
}

/// Destroys a context.
pub(crate) fn destroy(call: &Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return call.ask() };
    let context = call.word(0);
    let memory = limited.table.with(|table| {
        let row = table.find(Class::Context, context).copied()?;
        Some(take_out(table, context, row.device))
    });
    let result = limited.put_back(call, Class::Context, context);
    if let Some(memory) = memory {
        limited.restore_or_release(memory, result == 0);
    }
    result
}

/// Gives back the primary context of a device, or `all` that was retained of it.
pub(crate) fn release(call: &Call<'_>, all: bool) -> i32 {
    match (mode(), u64::try_from(call.ordinal(0))) {
        (Mode::Limited(limited), Ok(key)) => limited.let_go(key, all, &|| call.ask()),
        _ => call.ask(),
    }
}
