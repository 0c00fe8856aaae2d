//! From command lines to meanings, and from workloads to tables.

mod access;
mod complete;
mod flags;
mod help;
mod lines;
mod objects;
mod requests;
pub(super) mod samples;
mod spellings;
mod tables;
pub(super) mod tops;
mod waits;
mod what_if;
