//! The engine suite against real processes, and what only this engine promises.

use crate::bench::Bench;

engine::conformance_suite!(Bench::new());
engine::conformance_suite!(sessions of Bench::new());
engine::conformance_suite!(copies of Bench::new());
