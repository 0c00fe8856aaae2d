//! Faults of the server in its own state. Owns: which of them become an error, and its message.

use std::panic::{AssertUnwindSafe, catch_unwind};

use orchestrator::Error;

/// Does something to the state. After a fault of the server in it nothing of the state counts.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    let message = "the server failed, which is a fault of it: nothing of the request was done. Try it \
                   again, and report it with the log of the server";
    let failed = |_| Error::Internal { message: message.to_owned() };
    catch_unwind(AssertUnwindSafe(work)).map_err(failed)
}

/// Error of a server that ends because its state fails again and again.
pub(crate) fn given_up(store: &store::Store) -> Error {
    let message = format!(
        "the server fails again and again on its own state, which is a fault of it, and ends; what runs \
         goes on, and what was acknowledged is in {}. Save what led to it with `elastane record \
         report.jsonl`, see it with `elastane replay report.jsonl`, and report it with the log of the \
         server. If it fails again after a start, `elastane restore FILE --replace` goes back to a \
         backup",
        store.place()
    );
    Error::Internal { message }
}
