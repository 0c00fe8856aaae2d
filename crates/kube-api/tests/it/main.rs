//! The client, against a real API server and against scripted ones.

mod faults;
mod kinds;
mod reads;
mod rights;
mod scripted;
mod ways;
mod writes;
