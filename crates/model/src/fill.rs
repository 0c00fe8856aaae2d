//! The order in which what has room is filled.

/// In which order nodes, or the GPUs of a node, fill up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Full ones first, so that large requests find whole ones.
    BinPack,
    /// Empty ones first, so that pods disturb each other least.
    Spread,
}
