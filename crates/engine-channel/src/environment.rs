//! How a run finds its channel, and its memory for checkpoints. Owns: the names of the variables.

/// The path of the socket of a run.
pub const CHANNEL_VARIABLE: &str = "ELASTANE_CHANNEL";
/// The folder in memory for copies of the checkpoints of a run.
pub const MEMORY_VARIABLE: &str = "ELASTANE_MEMORY_DIR";
