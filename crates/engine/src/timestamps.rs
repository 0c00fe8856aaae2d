//! Output with the time before each line. Owns: where a line starts. Does not know when it was
//! written, which each engine finds out in its own way.

use std::fmt::Display;

/// Puts times before lines.
#[derive(Debug, Default)]
pub struct Timestamps {
    /// True if the next piece continues a line.
    within_a_line: bool,
}

impl Timestamps {
    /// For output that continues from here.
    #[must_use]
    pub const fn going_on(within_a_line: bool) -> Self {
        Self { within_a_line }
    }

    /// Appends a line, or a part of one, that was written at this time.
    pub fn line(&mut self, at: impl Display, piece: &[u8], to: &mut Vec<u8>) {
        let Some(last) = piece.last() else { return };
        if !self.within_a_line {
            to.extend(format!("{at} ").into_bytes());
        }
        to.extend(piece);
        self.within_a_line = *last != b'\n';
    }

    /// Returns a line, or a part of one, that was written at this time.
    pub fn stamped(&mut self, at: impl Display, piece: &[u8]) -> Vec<u8> {
        let mut told = Vec::new();
        self.line(at, piece, &mut told);
        told
    }
}
