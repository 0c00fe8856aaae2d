//! The engine of processes, with a real supervisor.

mod bench;
mod conformance;
mod limits;
mod local;
mod output;
