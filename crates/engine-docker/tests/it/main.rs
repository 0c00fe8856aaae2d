//! The engine of containers, on a real daemon.

mod bench;
mod conformance;
mod docker;
mod registry;
mod stalled;
