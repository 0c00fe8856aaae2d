//! The engine of processes, with a real supervisor.

mod bench;
mod cdi;
mod conformance;
mod fractions;
mod leftovers;
mod limits;
mod local;
mod memory;
mod mig;
mod mps;
mod output;
mod shares;
