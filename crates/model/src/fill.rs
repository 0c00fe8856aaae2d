//! Order in which nodes or GPUs are filled.

/// Order in which nodes, or the GPUs of a node, are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Fullest first, so that large requests find wholly free ones.
    BinPack,
    /// Emptiest first, so that pods disturb each other least.
    Spread,
}
