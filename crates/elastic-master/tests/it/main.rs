//! Trainings with real processes: a master and parameter servers that are killed, and workers in
//! this process that speak the protocol.

mod clock;
mod cluster;
mod faults;
mod refusals;
mod trainings;
mod wire;
mod worker;
mod worlds;
