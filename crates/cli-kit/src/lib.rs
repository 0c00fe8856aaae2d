//! What the command lines share. Owns: exit codes, plain output, tables, YAML and the settings
//! file. Does not know about any command or any object of the server.

pub mod color;
pub mod complete;
pub mod exit;
pub mod input;
pub mod jsonpath;
pub mod number;
pub mod output;
pub mod plain;
pub mod pulse;
pub mod settings;
pub mod suggest;
pub mod table;
#[cfg(feature = "testing")]
pub mod testing;
pub mod when;
pub mod yaml;
