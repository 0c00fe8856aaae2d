//! Memory and work of the simulated devices. Owns: the answers to requests, without sockets and
//! clocks. Does not know about: which processes may connect.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fraction_abi::wire::{
    INVALID, LIST_MAX, NO_DEVICE, NO_MEMORY, OK, Operation, REPLY_WORDS, REQUEST_WORDS,
};

/// The simulated driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The newest CUDA version it knows, as `cuDriverGetVersion` answers: 13000 is 13.0.
    pub cuda_version: u32,
    /// Devices of the driver.
    pub devices: Vec<Device>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// UUID of the device.
    pub uuid: [u8; 16],
    /// Size of its memory, in bytes.
    pub bytes: u64,
    /// Memory that each context takes on it, in bytes.
    pub context_bytes: u64,
}

/// A connected process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    /// Process id, as the kernel reports it.
    pub pid: u32,
    /// Tells its connection from others.
    pub connection: u64,
}

#[derive(Debug, Default)]
struct Use {
    held: BTreeMap<Client, u64>,
    busy_until_ns: u64,
    /// Recent work, the newest last.
    runs: VecDeque<Ran>,
    /// Processes that ever ran something.
    active: BTreeSet<Client>,
}

/// Uninterrupted work of one process.
#[derive(Debug)]
struct Ran {
    client: Client,
    begin_ns: u64,
    end_ns: u64,
}

/// All devices of a driver.
#[derive(Debug)]
pub struct Devices {
    driver: Driver,
    uses: Vec<Use>,
}

/// An answer: its words, and a list of process ids and bytes.
pub(crate) type Answer = ([u64; REPLY_WORDS], Vec<(u32, u64)>);

const SECOND_NS: u64 = 1_000_000_000;

/// No kernel is longer, so that one cannot occupy a device for good.
const RUN_NS_MAX: u64 = 60 * SECOND_NS;

impl Devices {
    /// The devices, with nothing in use.
    pub fn new(driver: Driver) -> Self {
        let uses = driver.devices.iter().map(|_| Use::default()).collect();
        Self { driver, uses }
    }

    /// Bytes of a device that are in use; `None` if there is no such device.
    pub fn used(&self, device: usize) -> Option<u64> {
        Some(self.uses.get(device)?.held.values().sum())
    }

    /// Bytes that processes hold on a device, by process id.
    pub fn holders(&self, device: usize) -> BTreeMap<u32, u64> {
        let mut holders = BTreeMap::new();
        for (client, bytes) in self.uses.get(device).iter().flat_map(|used| &used.held) {
            *holders.entry(client.pid).or_default() += bytes;
        }
        holders
    }

    /// A process is gone.
    pub fn leave(&mut self, client: Client) {
        for used in &mut self.uses {
            used.held.remove(&client);
            used.active.remove(&client);
        }
    }

    /// Answers a request at a time of the monotonic clock.
    pub(crate) fn answer(
        &mut self,
        client: Client,
        request: [u64; REQUEST_WORDS],
        now_ns: u64,
    ) -> Answer {
        let [operation, device, a, _] = request;
        let Some(operation) = Operation::of(operation) else { return refused(INVALID) };
        if operation == Operation::Hello {
            let count = self.driver.devices.len() as u64;
            return answer(count, u64::from(self.driver.cuda_version), 0, 0);
        }
        let index = usize::try_from(device).unwrap_or(usize::MAX);
        let Some(free) = self.free(index) else { return refused(NO_DEVICE) };
        let (Some(device), Some(used)) = (self.driver.devices.get(index), self.uses.get_mut(index))
        else {
            return refused(NO_DEVICE);
        };
        match operation {
            Operation::Hello | Operation::Device => {
                let uuid = u128::from_le_bytes(device.uuid);
                #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
                let (low, high) = (uuid as u64, (uuid >> 64) as u64);
                answer(low, high, device.bytes, device.context_bytes)
            }
            Operation::Take if a > free => refused(NO_MEMORY),
            Operation::Take => {
                *used.held.entry(client).or_default() += a;
                answer(0, 0, 0, 0)
            }
            Operation::Give => match used.held.get_mut(&client) {
                Some(held) if *held >= a => {
                    *held -= a;
                    answer(0, 0, 0, 0)
                }
                _ => refused(INVALID),
            },
            Operation::State => {
                answer(free, used.busy_ns(now_ns, |_| true) * 100 / SECOND_NS, 0, 0)
            }
            Operation::Holders => {
                let mut list: Vec<_> = self.holders(index).into_iter().collect();
                list.retain(|(_, bytes)| *bytes > 0);
                listed(list)
            }
            Operation::Work => listed(used.work(now_ns).into_iter().collect()),
            Operation::Run if a > RUN_NS_MAX => refused(INVALID),
            Operation::Run => answer(used.run(client, a, now_ns), 0, 0, 0),
        }
    }

    fn free(&self, device: usize) -> Option<u64> {
        let bytes = self.driver.devices.get(device)?.bytes;
        Some(bytes.saturating_sub(self.used(device)?))
    }
}

impl Use {
    fn run(&mut self, client: Client, length_ns: u64, now_ns: u64) -> u64 {
        let begin_ns = self.busy_until_ns.max(now_ns);
        let end_ns = begin_ns.saturating_add(length_ns);
        self.busy_until_ns = end_ns;
        self.active.insert(client);
        match self.runs.back_mut() {
            Some(last) if last.client == client && last.end_ns == begin_ns => last.end_ns = end_ns,
            _ => self.runs.push_back(Ran { client, begin_ns, end_ns }),
        }
        while self.runs.front().is_some_and(|ran| ran.end_ns + SECOND_NS < now_ns) {
            self.runs.pop_front();
        }
        // Nothing asks for what has run long ago, and a burst of short runs needs no more memory.
        while self.runs.len() > 10_000 {
            self.runs.pop_front();
        }
        end_ns
    }

    /// How long some processes ran in the last second.
    fn busy_ns(&self, now_ns: u64, of: impl Fn(u32) -> bool) -> u64 {
        let since = now_ns.saturating_sub(SECOND_NS);
        let own = self.runs.iter().filter(|ran| of(ran.client.pid));
        own.map(|ran| ran.end_ns.min(now_ns).saturating_sub(ran.begin_ns.max(since))).sum()
    }

    fn work(&self, now_ns: u64) -> BTreeMap<u32, u64> {
        let of = |pid| self.busy_ns(now_ns, |other| other == pid) * 1000 / SECOND_NS;
        self.active.iter().map(|client| (client.pid, of(client.pid))).collect()
    }
}

fn listed(mut list: Vec<(u32, u64)>) -> Answer {
    list.truncate(LIST_MAX);
    ([OK, list.len() as u64, 0, 0, 0, 0], list)
}

fn answer(a: u64, b: u64, c: u64, d: u64) -> Answer {
    ([OK, 0, a, b, c, d], Vec::new())
}

fn refused(status: u64) -> Answer {
    ([status, 0, 0, 0, 0, 0], Vec::new())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn devices() -> Devices {
        let device = |at: u8| Device { uuid: [at; 16], bytes: 1000, context_bytes: 100 };
        Devices::new(Driver { cuda_version: 13000, devices: vec![device(1), device(2)] })
    }

    fn client(pid: u32) -> Client {
        Client { pid, connection: u64::from(pid) }
    }

    fn ask(devices: &mut Devices, pid: u32, operation: Operation, device: u64, a: u64) -> u64 {
        devices.answer(client(pid), [operation as u64, device, a, 0], 5 * SECOND_NS).0[0]
    }

    #[test]
    fn memory_runs_out_for_all_and_comes_back_with_a_process() {
        let mut devices = devices();
        assert_eq!(ask(&mut devices, 1, Operation::Take, 0, 600), OK);
        assert_eq!(ask(&mut devices, 2, Operation::Take, 0, 401), NO_MEMORY);
        assert_eq!(ask(&mut devices, 2, Operation::Take, 0, 400), OK);
        assert_eq!(ask(&mut devices, 2, Operation::Take, 1, 1000), OK);
        assert_eq!(devices.holders(0), BTreeMap::from([(1, 600), (2, 400)]));
        devices.leave(client(1));
        assert_eq!((devices.used(0), devices.used(1)), (Some(400), Some(1000)));
    }

    #[test]
    fn a_process_gives_back_only_what_is_its_own() {
        let mut devices = devices();
        assert_eq!(ask(&mut devices, 1, Operation::Take, 0, 600), OK);
        assert_eq!(ask(&mut devices, 2, Operation::Give, 0, 1), INVALID);
        assert_eq!(ask(&mut devices, 1, Operation::Give, 0, 601), INVALID);
        assert_eq!(ask(&mut devices, 1, Operation::Give, 0, u64::MAX), INVALID);
        assert_eq!(devices.used(0), Some(600));
    }

    #[test]
    fn a_request_that_cannot_be_is_refused() {
        let mut devices = devices();
        assert_eq!(ask(&mut devices, 1, Operation::Take, 2, 1), NO_DEVICE);
        assert_eq!(ask(&mut devices, 1, Operation::Run, 0, u64::MAX), INVALID);
        assert_eq!(devices.answer(client(1), [99, 0, 0, 0], 0).0[0], INVALID);
    }

    #[test]
    fn what_runs_on_a_device_runs_in_turn() {
        let mut devices = devices();
        let mut run = |pid, device, now| {
            devices.answer(client(pid), [Operation::Run as u64, device, 100, 0], now).0[2]
        };
        assert_eq!((run(1, 0, 1000), run(2, 0, 1000), run(1, 1, 1000)), (1100, 1200, 1100));
        assert_eq!(run(1, 0, 5000), 5100);
    }

    #[test]
    fn each_process_that_ran_anything_is_busy_for_its_own_part() {
        let mut devices = devices();
        let (begin, part) = (10 * SECOND_NS, SECOND_NS / 10);
        let work = |devices: &mut Devices, now| {
            devices.answer(client(9), [Operation::Work as u64, 0, 0, 0], now).1
        };
        assert_eq!(work(&mut devices, begin), []);
        for (pid, length) in [(1, part), (1, part), (2, part), (1, part), (3, 0)] {
            devices.answer(client(pid), [Operation::Run as u64, 0, length, 0], begin);
        }
        let end = begin + 4 * part;
        assert_eq!(work(&mut devices, end), [(1, 300), (2, 100), (3, 0)]);
        assert_eq!(work(&mut devices, begin + part), [(1, 100), (2, 0), (3, 0)]);
        assert_eq!(work(&mut devices, end + SECOND_NS), [(1, 0), (2, 0), (3, 0)]);
        devices.leave(client(1));
        assert_eq!(work(&mut devices, end), [(2, 100), (3, 0)], "as if it had not been there");
    }

    #[test]
    fn a_burst_of_short_runs_is_counted_whole() {
        let mut devices = devices();
        let begin = 10 * SECOND_NS;
        for _ in 0..50_000 {
            devices.answer(client(1), [Operation::Run as u64, 0, 10_000, 0], begin);
        }
        let work = devices.answer(client(2), [Operation::Work as u64, 0, 0, 0], begin + SECOND_NS);
        assert_eq!(work.1, [(1, 500)]);
    }

    #[test]
    fn a_device_is_busy_for_what_ran_in_the_last_second() {
        let mut devices = devices();
        let run = [Operation::Run as u64, 0, SECOND_NS / 4, 0];
        devices.answer(client(1), run, 10 * SECOND_NS);
        let mut busy =
            |now| devices.answer(client(1), [Operation::State as u64, 0, 0, 0], now).0[3];
        assert_eq!(busy(10 * SECOND_NS + SECOND_NS / 4), 25);
        assert_eq!(busy(11 * SECOND_NS + SECOND_NS / 8), 12);
        assert_eq!(busy(12 * SECOND_NS), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn no_device_gives_more_than_it_has(
            requests in prop::collection::vec((0..4_u32, 0..10_u64, 0..3_u64, any::<u64>()), 1..200),
        ) {
            let mut devices = devices();
            for (pid, operation, device, a) in requests {
                let a = if a % 3 == 0 { a } else { a % 700 };
                if operation == 9 {
                    devices.leave(client(pid));
                }
                devices.answer(client(pid), [operation, device, a, 0], 0);
                prop_assert!(devices.used(0) <= Some(1000) && devices.used(1) <= Some(1000));
            }
        }
    }
}
