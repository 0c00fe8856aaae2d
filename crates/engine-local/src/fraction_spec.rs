//! What a run has of GPUs, as its folder keeps it. Owns: the form. Does not know about: how limits are
//! kept.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a run has of GPUs; part of `spec.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fraction {
    /// Its limits; empty: it has none.
    pub(crate) limits: Vec<Limit>,
    /// The GPUs of its simulated driver; empty: it has none.
    pub(crate) simulated: Vec<SimulatedGpu>,
    /// The folder of their sockets.
    pub(crate) sockets: PathBuf,
    /// The program that looks whether the limits hold.
    pub(crate) program: PathBuf,
}

/// A limit of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    pub(crate) gpu: String,
    pub(crate) bytes: u64,
}

/// A simulated GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimulatedGpu {
    pub(crate) gpu: String,
    pub(crate) bytes: u64,
}
