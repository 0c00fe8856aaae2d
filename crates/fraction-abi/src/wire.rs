//! Messages between the simulated driver and the broker of its devices. Owns: the messages. Each
//! request and each reply is one message over a socket that preserves message boundaries; numbers
//! are words of 8 bytes, in the order of the machine. Does not know about: how either side computes
//! its answers.

/// The environment variable with the paths of the brokers' sockets. Their devices are numbered in
/// this order, so a program finds those GPUs that it was given, and no others.
pub const SOCKET_VARIABLE: &str = "ELASTANE_SIMULATED_DRIVER";

/// The environment variable that chooses the version of the driver.
pub const VERSION_VARIABLE: &str = "ELASTANE_SIMULATED_VERSION";

/// The environment variable that chooses faults, separated by commas.
pub const FAULTS_VARIABLE: &str = "ELASTANE_SIMULATED_FAULTS";

/// Separator of paths.
pub const SOCKET_SEPARATOR: u8 = b':';

/// Where the socket is if the variable is not set.
pub const SOCKET: &str = "/run/elastane/simulated-driver";

/// Words of a request.
pub const REQUEST_WORDS: usize = 4;

/// Words of a reply before its list.
pub const REPLY_WORDS: usize = 6;

/// Entries of a reply's list, of two words each.
pub const LIST_MAX: usize = 512;

/// Bytes of the longest reply.
pub const REPLY_BYTES: usize = (REPLY_WORDS + 2 * LIST_MAX) * 8;

/// Request of the driver, and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Operation {
    /// How many devices there are, and which driver this is: `a` devices, `b` its CUDA version.
    Hello = 1,
    /// A device: `a`, `b` its UUID, `c` bytes of memory, `d` bytes of a context.
    Device = 2,
    /// Take `a` bytes of a device.
    Take = 3,
    /// Give back `a` bytes of a device.
    Give = 4,
    /// `a` free bytes of a device, `b` per cent that it was busy in the last second.
    State = 5,
    /// Processes with memory of a device: pairs of process id and bytes.
    Holders = 6,
    /// Run for `a` nanoseconds after the kernels that wait already; the reply has the clock's time
    /// `a` of the end.
    Run = 7,
    /// Connected processes that ever ran something on a device: pairs of process id and thousandths
    /// of the last second in which it ran.
    Work = 8,
}

impl Operation {
    /// The operation of a number.
    pub fn of(number: u64) -> Option<Self> {
        use Operation::{Device, Give, Hello, Holders, Run, State, Take, Work};
        let all = [Hello, Device, Take, Give, State, Holders, Run, Work];
        all.into_iter().find(|operation| *operation as u64 == number)
    }
}

/// The answer: fine.
pub const OK: u64 = 0;
/// The answer: a value is wrong.
pub const INVALID: u64 = 1;
/// The answer: not enough memory is free.
pub const NO_MEMORY: u64 = 2;
/// The answer: no such device.
pub const NO_DEVICE: u64 = 101;

/// A request as bytes.
pub fn request(operation: Operation, device: u64, a: u64, b: u64) -> [u8; REQUEST_WORDS * 8] {
    let mut bytes = [0; REQUEST_WORDS * 8];
    write_words(&mut bytes, &[operation as u64, device, a, b]);
    bytes
}

/// The words of a message, as many as are whole.
pub fn read_words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().unwrap_or([0; 8]));
    }
    words
}

/// Writes words, as many as fit.
pub fn write_words(bytes: &mut [u8], words: &[u64]) {
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
}
