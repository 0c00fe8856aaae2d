//! From command lines to meanings, and from workloads to tables.

mod lines;
mod samples;
mod tables;
