//! The published command lines of elastic training jobs: the first form (flags alone) and the final
//! one → the job that they describe. No program takes them yet.
//!
//! Owns: which flags there are, as data; how a line is taken apart; what of it has a meaning here,
//! and what the flags mean together. Does not know about: how a job is submitted, and how a
//! training runs (`elastic`).

pub mod commands;
pub mod flag;
pub mod flags;
pub mod job;
pub mod parse;
pub mod values;
