//! The binaries `elastane` and `runai`: they parse a command line, ask the server, and print.
//!
//! Owns: words, flags, texts, tables, exit codes, local files, and putting the parts of the
//! server together. Refuses to know: how anything is decided or stored.

// The samples of the tests are large JSON objects.
#![cfg_attr(test, recursion_limit = "256")]

pub mod elastane;
mod exit;
mod input;
mod plain;
pub mod runai;
mod settings;
mod table;
mod yaml;
