//! The engine suite against a real daemon.

mod bench;

use bench::Bench;

engine::conformance_suite!(match Bench::new().await {
    Some(bench) => bench,
    None => return,
});
