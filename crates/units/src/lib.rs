//! The quantities everything else is counted in: GPU thousandths, CPU thousandths, bytes,
//! instants, ratios and table indices.
//!
//! Owns: exact integer arithmetic and the parsing of what a person types (`0.5`, `16GiB`); the
//! kinds of failures. Does not know about: what the quantities are for. No floats, no clock, no
//! I/O.

mod amount;
mod failure;
mod idx;
mod label;
mod name;
mod ratio;
mod resources;
mod time;

pub use amount::{
    Error, GPU_MILLIS, counted, format_bytes, format_millis, gpus, parse_bytes, parse_cpu_millis,
    parse_gpu_millis,
};
pub use failure::{Classify, Failure};
pub use idx::{Idx, Table};
pub use label::{check_label, parse_labels};
pub use name::{NAME_CHARS_MAX, NameError, check_name, markup, shown};
pub use ratio::Ratio;
pub use resources::{Kind, Resources};
pub use time::Instant;
