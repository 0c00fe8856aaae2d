//! What a run has of GPUs, as its folder keeps it. Owns: the form. Does not know about: how limits are
//! kept.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the last line of a container begins whose command was not started.
pub const REFUSED: &str = "[FATAL elastane] ";

/// What a run has of GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// Its limits; empty: it has none.
    pub limits: Vec<Limit>,
    /// The GPUs of its simulated driver; empty: it has none.
    pub simulated: Vec<SimulatedGpu>,
    /// The folder of their sockets.
    pub sockets: PathBuf,
    /// The program that looks whether the limits hold.
    pub program: PathBuf,
}

/// A limit of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// By UUID, or by name where it is simulated.
    pub gpu: String,
    /// Bytes that it may hold at any time.
    pub bytes: u64,
    /// Bytes that it may hold while they are free; 0: no more.
    #[serde(default)]
    pub most: u64,
    /// Memory of the GPU; 0: not known.
    #[serde(default)]
    pub device: u64,
}

impl Limit {
    /// Most that it may hold.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.max(self.bytes)
    }
}

/// A simulated GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedGpu {
    /// Its name.
    pub gpu: String,
    /// Its memory.
    pub bytes: u64,
}

impl Fraction {
    /// The words for the server's program that let it look, inside a run, whether the limits hold;
    /// none: it has none.
    #[must_use]
    pub fn check(&self) -> Option<[String; 2]> {
        let most = self.limits.iter().map(Limit::most).max()?;
        Some(["gpu-check".to_owned(), format!("--most={most}B")])
    }
}

/// Why a run with limits does not start, by what the look found.
#[must_use]
pub fn not_kept(why: &str) -> String {
    let why = why.lines().next().filter(|line| !line.is_empty()).unwrap_or("it was ended").trim();
    format!(
        "its part of the GPU would not be kept: {why}; see `elastane status`, and ask for whole \
         GPUs or have the libraries mended by a restart of the server"
    )
}
