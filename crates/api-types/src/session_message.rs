//! Messages of the WebSocket of a session in a pod.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A terminal has another size: the message of channel 4 of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// Type of a message of a session's WebSocket: its first byte.
pub mod channel {
    /// To the command: input.
    pub const INPUT: u8 = 0;
    /// From the command: its output, with a terminal its errors as well.
    pub const OUTPUT: u8 = 1;
    /// From the command: its errors.
    pub const ERRORS: u8 = 2;
    /// From the server: the end of the command; the last message.
    pub const END: u8 = 3;
    /// To the command: the size of the terminal.
    pub const SIZE: u8 = 4;
    /// To the command: there is no more input.
    pub const INPUT_ENDS: u8 = 255;
}
