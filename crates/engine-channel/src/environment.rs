//! How a run finds its channel. Owns: the name of the variable.

/// The path of the socket of a run.
pub const CHANNEL_VARIABLE: &str = "ELASTANE_CHANNEL";
