//! The connections to the brokers of the devices. Owns: finding their sockets, which device is
//! whose, and one question at a time. Does not know about: what the answers are used for.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write as _;

use fraction_abi::sys::{self, Access, Descriptor};
use fraction_abi::wire::{
    NO_DEVICE, OK, Operation, REPLY_BYTES, REPLY_WORDS, SOCKET, SOCKET_SEPARATOR, SOCKET_VARIABLE,
    read_words, request,
};

/// The broker is gone or never was.
pub(crate) const GONE: u64 = 100;

pub(crate) struct Client {
    /// Each device: the connection to its broker, and its number there.
    places: Vec<(Arc<Descriptor>, u64)>,
}

/// One device as the broker describes it.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) uuid: [u8; 16],
    pub(crate) bytes: u64,
    #[cfg_attr(elastane_library = "nvml", expect(dead_code, reason = "NVML has no contexts"))]
    pub(crate) context_bytes: u64,
}

impl Device {
    /// UUID of the device as drivers write it.
    pub(crate) fn uuid_text(&self) -> String {
        let mut text = String::from("GPU");
        for (at, byte) in self.uuid.into_iter().enumerate() {
            let dash = if matches!(at, 0 | 4 | 6 | 8 | 10) { "-" } else { "" };
            // Writing to a string cannot fail.
            let _infallible = write!(text, "{dash}{byte:02x}");
        }
        text
    }
}

impl Client {
    /// Leaves the devices that the program chose when it began, in its order: their UUIDs, which
    /// may be cut short, up to the first that is not there. Numbers are those of the machine, of
    /// which a run has only its own devices, so they choose nothing here.
    #[cfg_attr(elastane_library = "nvml", expect(dead_code, reason = "NVML shows all devices"))]
    pub(crate) fn choose(&mut self, devices: &mut Vec<Device>) {
        let list = variable("CUDA_VISIBLE_DEVICES").filter(|list| list.starts_with(b"GPU-"));
        let Some(list) = list else { return };
        let mut chosen = Vec::new();
        for name in list.split(|byte| *byte == b',') {
            let is = |device: &Device| device.uuid_text().as_bytes().starts_with(name);
            match devices.iter().position(is) {
                Some(at) if !chosen.contains(&at) => chosen.push(at),
                _ => break,
            }
        }
        *devices = chosen.iter().filter_map(|at| devices.get(*at).copied()).collect();
        self.places = chosen.iter().filter_map(|at| self.places.get(*at).cloned()).collect();
    }

    /// Connects to all brokers; also the devices, in their order, and the oldest CUDA version.
    pub(crate) fn connect() -> Result<(Self, Vec<Device>, u32), u64> {
        let from_environment = variable(SOCKET_VARIABLE);
        let paths = from_environment.as_deref().unwrap_or(SOCKET.as_bytes());
        let (mut places, mut devices, mut oldest) = (Vec::new(), Vec::new(), u32::MAX);
        for path in paths.split(|byte| *byte == SOCKET_SEPARATOR).filter(|path| !path.is_empty()) {
            let socket = Arc::new(sys::connect(path).map_err(|_| GONE)?);
            let ask = |operation, device| {
                exchange(&socket, operation, device, 0, &mut [0; REPLY_WORDS * 8])
            };
            let [count, version, ..] = ask(Operation::Hello, 0)?;
            oldest = oldest.min(u32::try_from(version).unwrap_or(0));
            for number in 0..count {
                let [low, high, bytes, context_bytes] = ask(Operation::Device, number)?;
                let uuid = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
                devices.push(Device { uuid, bytes, context_bytes });
                places.push((Arc::clone(&socket), number));
            }
        }
        if places.is_empty() { Err(GONE) } else { Ok((Self { places }, devices, oldest)) }
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
        let place = usize::try_from(device).ok().and_then(|at| self.places.get(at));
        let (socket, number) = place.ok_or(NO_DEVICE)?;
        exchange(socket, operation, *number, a, reply)
    }
}

fn exchange(
    socket: &Descriptor,
    operation: Operation,
    device: u64,
    a: u64,
    reply: &mut [u8],
) -> Result<[u64; 4], u64> {
    sys::send(socket, &request(operation, device, a, 0)).map_err(|_| GONE)?;
    let length = sys::receive(socket, reply).map_err(|_| GONE)?;
    if length < REPLY_WORDS * 8 {
        return Err(GONE);
    }
    let [status, _, a, b, c, d] = read_words::<REPLY_WORDS>(reply);
    if status == OK { Ok([a, b, c, d]) } else { Err(status) }
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
