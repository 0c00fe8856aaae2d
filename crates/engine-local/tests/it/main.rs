//! The engine of processes, with a real supervisor.

mod bench;
mod conformance;
mod fractions;
mod limits;
mod local;
mod mps;
mod output;
mod shares;
