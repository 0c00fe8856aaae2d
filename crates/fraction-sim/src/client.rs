//! The connection to the broker of the devices. Owns: finding its socket, and one question at a
//! time. Does not know about: what the answers are used for.

use alloc::vec::Vec;

use fraction_abi::sys::{self, Access, Descriptor};
use fraction_abi::wire::{
    OK, Operation, REPLY_BYTES, REPLY_WORDS, SOCKET, SOCKET_VARIABLE, read_words, request,
};

/// The broker is gone or never was.
pub(crate) const GONE: u64 = 100;

pub(crate) struct Client(Descriptor);

/// One device as the broker describes it.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) uuid: [u8; 16],
    pub(crate) bytes: u64,
    #[cfg_attr(elastane_library = "nvml", expect(dead_code, reason = "NVML has no contexts"))]
    pub(crate) context_bytes: u64,
}

impl Client {
    /// Connects; also the devices and the CUDA version.
    pub(crate) fn connect() -> Result<(Self, Vec<Device>, u32), u64> {
        let from_environment = variable(SOCKET_VARIABLE);
        let path = from_environment.as_deref().unwrap_or(SOCKET.as_bytes());
        let client = Self(sys::connect(path).map_err(|_| GONE)?);
        let [count, version, ..] = client.ask(Operation::Hello, 0, 0)?;
        let devices: Result<_, u64> = (0..count).map(|index| client.device(index)).collect();
        Ok((client, devices?, u32::try_from(version).unwrap_or(0)))
    }

    fn device(&self, index: u64) -> Result<Device, u64> {
        let [low, high, bytes, context_bytes] = self.ask(Operation::Device, index, 0)?;
        let uuid = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        Ok(Device { uuid, bytes, context_bytes })
    }

    pub(crate) fn ask(&self, operation: Operation, device: u64, a: u64) -> Result<[u64; 4], u64> {
        let mut reply = [0; REPLY_WORDS * 8];
        self.exchange(operation, device, a, &mut reply)
    }

    /// Process ids and bytes.
    #[cfg_attr(elastane_library = "cuda", expect(dead_code, reason = "only NVML lists processes"))]
    pub(crate) fn holders(&self, device: u64) -> Result<Vec<(u32, u64)>, u64> {
        let mut reply = alloc::vec![0; REPLY_BYTES];
        self.exchange(Operation::Holders, device, 0, &mut reply)?;
        let [_, count] = read_words(&reply);
        let list = reply.get(REPLY_WORDS * 8..).unwrap_or(&[]).chunks_exact(16);
        let entry = |bytes: &[u8]| {
            let [pid, bytes] = read_words(bytes);
            (u32::try_from(pid).unwrap_or(0), bytes)
        };
        Ok(list.take(usize::try_from(count).unwrap_or(0)).map(entry).collect())
    }

    fn exchange(
        &self,
        operation: Operation,
        device: u64,
        a: u64,
        reply: &mut [u8],
    ) -> Result<[u64; 4], u64> {
        sys::send(&self.0, &request(operation, device, a, 0)).map_err(|_| GONE)?;
        let length = sys::receive(&self.0, reply).map_err(|_| GONE)?;
        if length < REPLY_WORDS * 8 {
            return Err(GONE);
        }
        let [status, _, a, b, c, d] = read_words::<REPLY_WORDS>(reply);
        if status == OK { Ok([a, b, c, d]) } else { Err(status) }
    }
}

/// The value of a variable when this process began.
pub(crate) fn variable(name: &str) -> Option<Vec<u8>> {
    let file = sys::open(c"/proc/self/environ", Access::Read).ok()?;
    let mut text = Vec::new();
    loop {
        let filled = text.len();
        text.resize(filled + 65_536, 0);
        let read = sys::read(&file, text.get_mut(filled..)?).ok()?;
        text.truncate(filled + read);
        if read == 0 {
            break;
        }
    }
    let value =
        |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
    text.split(|byte| *byte == 0).find_map(value)
}
