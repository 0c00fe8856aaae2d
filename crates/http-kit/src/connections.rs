//! Which connections there are. Owns: how many at a time, how many of one address, and which of
//! them makes room for a new one: one that is silent. So silent connections lock no other out,
//! however many they are.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

use crate::Proxies;

/// Most connections at a time, unless the files that may be open are fewer.
pub const CONNECTIONS_MAX: usize = 8192;
/// Most connections from one address of another machine.
const OWN_MAX: usize = 1024;
/// Places that only this machine and listed proxies may take.
const RESERVED: usize = 64;
/// How long a client may leave a piece of an answer unread before it makes room for others.
const STALLED_AFTER_S: u64 = 60;
/// Longest until the head of the first request is there.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// How many connections a server takes, and from whom.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most at a time.
    pub connections: usize,
    /// Longest until the head of the first request is there, encryption included.
    pub first_request: Duration,
    /// Proxies: they connect for many, so no limit by address holds for them.
    pub proxies: Proxies,
}

impl Default for Limits {
    fn default() -> Self {
        let proxies = Proxies::default();
        Self { connections: CONNECTIONS_MAX, first_request: FIRST_WAIT, proxies }
    }
}

impl Limits {
    /// What suits a process that may have this many files open: a request to a workload takes two,
    /// and the server has files of its own.
    #[must_use]
    pub fn for_files(files: usize) -> Self {
        Self { connections: (files / 2).min(CONNECTIONS_MAX), ..Self::default() }
    }

    fn reserved(&self) -> usize {
        RESERVED.min(self.connections / 8)
    }

    fn own_max(&self) -> usize {
        OWN_MAX.min(self.connections / 4)
    }
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: Limits,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    all: BTreeMap<u64, Arc<Connection>>,
    by_address: BTreeMap<IpAddr, usize>,
}

/// One connection.
#[derive(Debug)]
struct Connection {
    from: IpAddr,
    /// Requests that are being answered.
    busy: AtomicUsize,
    /// There was a request.
    has_asked: AtomicBool,
    /// It speaks another protocol by now.
    went_over: AtomicBool,
    /// When the last piece of an answer was handed on and no further one requested yet, in seconds
    /// since [`seconds`] began, at least 1; 0: nothing is unread.
    handed_at_s: AtomicU64,
    leave: Notify,
}

/// Seconds of a clock that never goes back, from 1.
fn seconds() -> u64 {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGAN.elapsed().as_secs() + 1
}

impl Connection {
    /// Whether its client has not read what it was sent for too long.
    fn is_stalled(&self, now_s: u64) -> bool {
        let handed_at_s = self.handed_at_s.load(Ordering::Relaxed);
        handed_at_s > 0 && now_s.saturating_sub(handed_at_s) >= STALLED_AFTER_S
    }

    fn is_silent(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0 && !self.went_over.load(Ordering::Relaxed)
    }
}

/// The place of a connection. What it goes over to keeps it.
#[derive(Debug, Clone)]
pub struct ConnectionPermit(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    all: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default(), freed: Notify::new() })
    }

    /// Longest until the head of the first request is there.
    pub(crate) const fn first_wait(&self) -> Duration {
        self.limits.first_request
    }

    /// A place for one more connection; none if there is none even without the silent ones.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let address = address.to_canonical();
        let is_limited = !address.is_loopback() && !self.limits.proxies.contain(address);
        let from = client_of(address);
        let mut table = self.table();
        let own = table.by_address.get(&from).copied().unwrap_or(0);
        if is_limited && own >= self.limits.own_max() && !table.make_room(|one| one.from == from) {
            return None;
        }
        let reserved = if is_limited { self.limits.reserved() } else { 0 };
        let full = table.all.len() + reserved >= self.limits.connections;
        if full && !table.make_room(|_| true) {
            return None;
        }
        let connection = Arc::new(Connection {
            from,
            busy: AtomicUsize::new(0),
            has_asked: AtomicBool::new(false),
            went_over: AtomicBool::new(false),
            handed_at_s: AtomicU64::new(0),
            leave: Notify::new(),
        });
        let number = table.next;
        table.next += 1;
        table.all.insert(number, connection.clone());
        *table.by_address.entry(from).or_default() += 1;
        drop(table);
        Some(ConnectionPermit(Arc::new(Slot { all: self.clone(), number, connection })))
    }

    /// Returns when there are no connections any more.
    pub(crate) async fn all_ended(&self) {
        loop {
            let freed = self.freed.notified();
            if self.table().all.is_empty() {
                return;
            }
            freed.await;
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Ends the oldest silent or stalled connection among these: one without any request before
    /// others.
    fn make_room(&mut self, among: impl Fn(&Connection) -> bool) -> bool {
        let now_s = seconds();
        let makes_room = |one: &Connection| one.is_silent() || one.is_stalled(now_s);
        let some = self.all.iter().filter(|(_, one)| makes_room(one) && among(one));
        let oldest = some.min_by_key(|(_, one)| one.has_asked.load(Ordering::Relaxed));
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        if let Some(connection) = self.remove(number) {
            connection.leave.notify_one();
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.all.remove(&number)?;
        if let Some(own) = self.by_address.get_mut(&connection.from) {
            *own -= 1;
            if *own == 0 {
                self.by_address.remove(&connection.from);
            }
        }
        Some(connection)
    }
}

/// Whose connection it is: a client has all addresses of an IPv6 network.
fn client_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.all.table().remove(self.number);
        self.all.freed.notify_waiters();
    }
}

impl ConnectionPermit {
    /// Returns when this connection has to make room for others.
    pub async fn has_to_leave(&self) {
        self.0.connection.leave.notified().await;
    }

    pub(crate) fn has_asked(&self) -> bool {
        self.0.connection.has_asked.load(Ordering::Relaxed)
    }

    /// Marks the connection as one on which a request is answered.
    pub fn begin(&self) -> Busy {
        let connection = self.0.connection.clone();
        connection.has_asked.store(true, Ordering::Relaxed);
        connection.busy.fetch_add(1, Ordering::Relaxed);
        Busy(connection)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Busy(Arc<Connection>);

impl Busy {
    /// The connection goes over to another protocol.
    pub fn goes_over(&self) {
        self.0.went_over.store(true, Ordering::Relaxed);
    }

    /// The request lasts until the end of this answer.
    pub fn until_end_of(self, body: Body) -> Answer {
        Answer { body, busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer.
pub struct Answer {
    body: Body,
    busy: Busy,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.busy.0.handed_at_s.store(0, Ordering::Relaxed);
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        // The next is asked for once there is room for it, so a client that reads nothing leaves
        // this as it is. A stream that has nothing to say is not stalled.
        let has_data = matches!(frame, Poll::Ready(Some(Ok(_))));
        self.busy.0.handed_at_s.store(if has_data { seconds() } else { 0 }, Ordering::Relaxed);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_nothing_makes_room_and_one_that_waits_does_not() {
        use http_body_util::BodyExt as _;
        let all = connections(2);
        let admit = || all.admit(from("127.0.0.1")).expect("room");
        let (stalled, waiting) = (admit(), admit());
        let mut unread = stalled.begin().until_end_of(Body::from("a piece"));
        unread.frame().await.unwrap().unwrap();
        let quiet =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        let mut asked = waiting.begin().until_end_of(quiet);
        let nothing = tokio::time::timeout(Duration::from_millis(1), asked.frame()).await;
        assert!(nothing.is_err());
        let later_s = seconds() + STALLED_AFTER_S;
        let is_stalled = |place: &ConnectionPermit| place.0.connection.is_stalled(later_s);
        assert!(is_stalled(&stalled) && !is_stalled(&waiting));
    }

    fn connections(most: usize) -> Arc<Connections> {
        let proxies = "10.9.9.9".parse().unwrap();
        Connections::new(Limits { connections: most, proxies, ..Limits::default() })
    }

    fn from(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    fn is_there(place: &ConnectionPermit) -> bool {
        place.0.all.table().all.contains_key(&place.0.number)
    }

    #[test]
    fn silent_ones_make_room_the_oldest_first_and_those_that_asked_last() {
        let all = connections(4);
        let admit = || all.admit(from("127.0.0.1")).expect("room");
        let [asked, busy, silent, other] = [admit(), admit(), admit(), admit()];
        drop(asked.begin());
        let answering = busy.begin();
        let (fifth, sixth) = (admit(), admit());
        assert!(!is_there(&silent) && !is_there(&other), "they never asked");
        assert!(is_there(&asked) && is_there(&busy));
        let (_a, _b) = (fifth.begin(), sixth.begin());
        let seventh = admit();
        assert!(!is_there(&asked), "it asked, and is silent now");
        let _c = seventh.begin();
        assert!(all.admit(from("127.0.0.1")).is_none(), "all others are answered");
        drop(answering);
        admit();
        assert!(!is_there(&busy));
    }

    #[test]
    fn what_went_over_to_another_protocol_stays() {
        let all = connections(1);
        let place = all.admit(from("127.0.0.1")).expect("room");
        place.begin().goes_over();
        assert!(all.admit(from("127.0.0.1")).is_none());
        drop(place);
        assert!(all.admit(from("127.0.0.1")).is_some());
    }

    #[test]
    fn one_address_takes_a_quarter_and_the_last_places_are_this_machines() {
        let all = connections(64);
        let mut kept = Vec::new();
        let mut take = |address: &str, most: usize| {
            let taken = (0..most).map_while(|_| {
                let place = all.admit(from(address))?;
                kept.push((place.begin(), place));
                Some(())
            });
            taken.count()
        };
        assert_eq!(take("192.0.2.1", 64), 16);
        assert_eq!(take("2001:db8::1", 10) + take("2001:db8::2:0:0:1", 64), 16, "one network");
        assert_eq!(take("192.0.2.2", 64) + take("192.0.2.3", 64), 24, "eight are reserved");
        assert_eq!(take("10.9.9.9", 5), 5, "a proxy connects for many");
        assert_eq!(take("::ffff:127.0.0.1", 64), 3);
    }

    #[test]
    fn a_flood_from_one_address_ends_connections_of_that_address_only() {
        let all = connections(64);
        let friend = all.admit(from("192.0.2.9")).expect("room");
        let flood: Vec<_> = (0..500).filter_map(|_| all.admit(from("192.0.2.1"))).collect();
        assert_eq!(flood.iter().filter(|place| is_there(place)).count(), 16);
        assert!(is_there(&friend));
    }

    #[test]
    fn few_files_mean_few_connections() {
        assert_eq!(Limits::for_files(1024).connections, 512);
        assert_eq!(Limits::for_files(1 << 20).connections, CONNECTIONS_MAX);
    }
}
