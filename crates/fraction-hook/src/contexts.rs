//! Contexts, which take memory themselves and whose end frees what was allocated in them. Owns:
//! charging what the control page says that a context takes. Does not know about: how much that
//! really is; the agent corrects it.

use crate::call::Call;
use crate::linear::Size;
use crate::process::{Limited, Mode, OUT_OF_MEMORY, Place, mode};
use crate::table::{Class, Row, Table};

/// The primary context of a device, while only green ones have retained it.
const NOT_KNOWN: u64 = u64::MAX;

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

    /// Retains the primary context of a device, itself or through a green one; charged as long as
    /// the driver keeps it.
    fn retain(&self, call: &Call<'_>, ordinal: i32, is_green: bool) -> i32 {
        let Ok(key) = u64::try_from(ordinal) else { return call.ask() };
        let owner = || if is_green { NOT_KNOWN } else { call.written(0) };
        let again = |table: &mut Table| {
            let row = table.find(Class::Primary, key)?;
            row.references = row.references.saturating_add(1);
            Some(())
        };
        if self.table.with(again).is_some() {
            let result = call.ask();
            if result != 0 {
                self.unretain(key, false);
            } else if !is_green {
                self.table
                    .with(|table| table.find(Class::Primary, key).map(|row| row.owner = owner()));
            }
            return result;
        }
        let place = self.place(ordinal);
        let bytes = self.context_bytes(place);
        if !self.reserve(place, bytes) {
            return OUT_OF_MEMORY;
        }
        let device = place.device();
        let result = call.ask();
        if result != 0 {
            self.release(device, bytes);
            return result;
        }
        let (owner, class) = (owner(), Class::Primary);
        let row = Row { key, owner, bytes, references: 1, device, class, mapped: 0 };
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

/// Retains the primary context of a device.
pub(crate) fn retain(call: &Call<'_>) -> i32 {
    match mode() {
        Mode::Off => call.ask(),
        Mode::Closed => OUT_OF_MEMORY,
        Mode::Limited(limited) => limited.retain(call, call.ordinal(1), false),
    }
}

/// Creates a green context, which retains the primary one of its device.
pub(crate) fn create_green(call: &Call<'_>) -> i32 {
    let limited = match mode() {
        Mode::Off => return call.ask(),
        Mode::Closed => return OUT_OF_MEMORY,
        Mode::Limited(limited) => limited,
    };
    let result = limited.retain(call, call.ordinal(2), true);
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
    let result = limited.put_back(call, Class::Green, green);
    if let (0, Some(ordinal)) = (result, of) {
        limited.unretain(ordinal, false);
    }
    result
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
    let result = limited.put_back(call, Class::Context, context);
    if result == 0 {
        limited.forget_memory_of(context);
    }
    result
}

/// Gives back the primary context of a device, or `all` that was retained of it.
pub(crate) fn release(call: &Call<'_>, all: bool) -> i32 {
    let result = call.ask();
    if let (0, Mode::Limited(limited), Ok(key)) = (result, mode(), u64::try_from(call.ordinal(0))) {
        limited.unretain(key, all);
    }
    result
}
