//! Device and context of a stream. Does not know about: the work in it.

use crate::called::{
    context_of_stream, current_ordinal, ordinal_of_stream, pop_context, push_context,
};
use crate::process::Limited;

/// The device of a stream, whatever context is current. The streams 0 to 2 are those of the
/// current context.
pub(crate) fn ordinal_of(limited: &Limited, stream: usize) -> Option<i32> {
    let (mut ordinal, mut context, mut ignored) = (-1, 0, 0);
    if stream <= 2 {
        return current_ordinal();
    }
    // SAFETY, for the calls below: room for a number.
    if unsafe { ordinal_of_stream(stream, &raw mut ordinal) } == Some(0) {
        return Some(ordinal);
    }
    // SAFETY: see above.
    let known = unsafe { context_of_stream(stream, &raw mut context) } == Some(0);
    if !known || context == limited.context() {
        return current_ordinal();
    }
    // SAFETY: a context that the driver has just named; taken off again below.
    if unsafe { push_context(context) } != Some(0) {
        return None;
    }
    let ordinal = current_ordinal();
    // SAFETY: see above.
    unsafe { pop_context(&raw mut ignored) };
    ordinal
}

/// The context of a stream, whatever context is current.
pub(crate) fn context_of(limited: &Limited, stream: usize) -> u64 {
    let mut context = 0;
    // SAFETY: room for a handle. The streams 0 to 2 are those of the current context.
    if stream <= 2 || unsafe { context_of_stream(stream, &raw mut context) } != Some(0) {
        context = limited.context();
    }
    context
}
