//! Captures of streams into graphs. Owns: which are under way, and into which graph. The end of a
//! context ends those of its streams. Does not know about: what is captured.

use crate::call::Call;
use crate::called::captured_into;
use crate::process::{Limited, Mode, mode};
use crate::streams::{context_of, ordinal_of};
use crate::table::{Class, Row, Table};

impl Limited {
    fn capture_begins(&self, stream: usize) {
        let (key, class) = (stream as u64, Class::Capture);
        self.turns.capture_begins();
        let again = |table: &mut Table| {
            let row = table.find(class, key)?;
            row.references = row.references.saturating_add(1);
            Some(())
        };
        if self.table.with(again).is_some() {
            return;
        }
        let owner = context_of(self, stream);
        let device = ordinal_of(self, stream).and_then(|ordinal| self.place(ordinal).device());
        self.know(Row { key, owner, bytes: 0, references: 1, device, class, mapped: 0 });
    }

    /// True if one began at the stream.
    #[inline(never)]
    fn capture_ends(&self, stream: usize) -> bool {
        let (key, class) = (stream as u64, Class::Capture);
        let known = self.table.with(|table| {
            let row = table.find(class, key)?;
            row.references = row.references.saturating_sub(1);
            if row.references == 0 {
                table.remove(class, key);
            }
            Some(())
        });
        let known = known.is_some();
        self.turns.captures_end(u32::from(known));
        known
    }
}

/// The graph that a stream is captured into.
pub(crate) fn graph_of(limited: &Limited, stream: usize) -> Option<u64> {
    const ACTIVE: u32 = 1;
    if !limited.turns.has_captured() {
        return None;
    }
    let (status, graph) = capture_of(stream)?;
    (status == ACTIVE).then_some(graph)
}

/// Capture status of a stream, 0 for none, and the graph.
#[inline(never)]
fn capture_of(stream: usize) -> Option<(u32, u64)> {
    let (mut status, mut id, mut graph) = (0, 0, 0);
    // SAFETY: room for what is asked for; null for what is not.
    let asked =
        unsafe { captured_into(stream, &raw mut status, &raw mut id, &raw mut graph, 0, 0) };
    (asked == Some(0)).then_some((status, graph))
}

/// Begins a capture: stream-ordered memory that is captured becomes memory of the graph.
pub(crate) fn begin(call: &Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return call.ask() };
    // Before the driver is asked, because other threads may use the stream as soon as it has begun.
    limited.capture_begins(call.stream(0));
    let result = call.ask();
    if result != 0 {
        _ = limited.capture_ends(call.stream(0));
    }
    result
}

#[inline(never)]
fn is_captured(call: &Call<'_>) -> bool {
    capture_of(call.stream(0)).is_some_and(|(status, _)| status != 0)
}

/// Ends a capture, if the stream is captured; what fails may leave it so.
pub(crate) fn end(call: &Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return call.ask() };
    let was_captured = is_captured(call);
    let result = call.ask();
    if was_captured && (result == 0 || !is_captured(call)) {
        _ = limited.capture_ends(call.stream(0));
    }
    result
}

/// Destroys a stream, which ends a capture that began there.
pub(crate) fn destroy_stream(call: &Call<'_>) -> i32 {
    let Mode::Limited(limited) = mode() else { return call.ask() };
    // Before the driver is asked, because it may give the same handle to another thread.
    let captured = limited.capture_ends(call.stream(0));
    let result = call.ask();
    if captured && result != 0 {
        limited.capture_begins(call.stream(0));
    }
    result
}
