//! Common parts of the command lines. Owns: exit codes, plain output, tables, YAML and the settings
//! file. Does not know about any command or any object of the server.

pub mod browser;
pub mod change_wait;
pub mod color;
pub mod complete;
pub mod exit;
pub mod input;
pub mod jsonpath;
pub mod local_time;
pub mod message;
pub mod output;
pub mod parse_number;
pub mod settings;
pub mod suggest;
pub mod table;
#[cfg(feature = "testing")]
pub mod testing;
pub mod yaml;
