//! All open connections. Owns: how many at a time, how many of one client and of one caller, and
//! which idle one is closed for a new one. So idle connections never lock others out, however many
//! they are. Does not know when a connection is idle (`connection`), nor its client (`client`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use tokio::sync::Notify;

use crate::client::Client;
use crate::connection::{Arriving, Busy, Connection};
use crate::{ApiError, Proxies};

/// Most connections at a time, unless the files that may be open are fewer.
pub const CONNECTIONS_MAX: usize = 8192;
/// Most connections of one client.
const OWN_MAX: usize = 1024;
/// Places that only listed proxies and clients without any other may take.
const RESERVED: usize = 64;
/// Largest request body that does not count: the number of connections limits the sum of these.
pub(crate) const SMALL_BODY_BYTES: usize = 64 << 10;
/// Most bytes of larger request bodies at a time.
const LARGE_BODIES_BYTES_MAX: usize = 64 << 20;
/// Bytes beside these for callers that have no larger body yet.
const LARGE_BODIES_BYTES_RESERVED: usize = 16 << 20;
/// Most bytes of larger request bodies of one caller at a time, or of one client without a token.
const OWN_BODIES_BYTES_MAX: usize = 16 << 20;
/// Longest until the head of the first request is there.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// Seconds after which to try again if there was no place.
const RETRY_S: u64 = 5;

/// Limits of the connections of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most connections at a time.
    pub connections: usize,
    /// Longest until the head of the first request is there, encryption included.
    pub first_request: Duration,
    /// Proxies: they connect for many, so no limit by client holds for them.
    pub proxies: Proxies,
}

impl Default for Limits {
    fn default() -> Self {
        let proxies = Proxies::default();
        Self { connections: CONNECTIONS_MAX, first_request: FIRST_WAIT, proxies }
    }
}

impl Limits {
    /// Limits for a process that may have this many files open: a request to a workload takes two,
    /// and the server has files of its own.
    #[must_use]
    pub fn for_files(files: usize) -> Self {
        Self { connections: (files / 2).min(CONNECTIONS_MAX), ..Self::default() }
    }

    fn reserved(&self) -> usize {
        RESERVED.min(self.connections / 8)
    }

    /// Most connections of one client: an account of this machine, or an address.
    fn own_max(&self) -> usize {
        OWN_MAX.min(self.connections / 4).max(1)
    }

    /// Most connections of one caller: half as many, so that no token takes all places of the
    /// account or the address that others come from as well.
    fn caller_max(&self) -> usize {
        (self.own_max() / 2).max(1)
    }

    /// Most connections of one client that callers keep: the others are for callers that have none.
    fn kept_max(&self) -> usize {
        self.own_max() - self.own_max() / 8
    }

    /// Most connections of all containers of this machine, and of all guests of workloads: a user
    /// can make many of both.
    fn group_max(&self) -> usize {
        (self.connections / 2).max(1)
    }
}

/// Limit that a connection would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// The client has all it may have.
    #[error(
        "{0} connections of this account or address are open, the most allowed; close some, or \
         try again in {RETRY_S} s"
    )]
    Own(usize),
    /// The containers of this machine have all they may have.
    #[error(
        "{0} connections of containers of this machine are open, the most allowed; try again in \
         {RETRY_S} s"
    )]
    Containers(usize),
    /// There are no more.
    #[error("too many connections are open; try again in {RETRY_S} s")]
    All,
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
    all: BTreeMap<u64, Entry>,
    by_client: BTreeMap<Client, usize>,
    by_caller: BTreeMap<Arc<str>, usize>,
    /// Connections of a client that have a caller or guests.
    kept: BTreeMap<Client, usize>,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    client: Client,
    /// `true` for a listed proxy, which connects for many.
    is_proxy: bool,
    /// Principal of the token in its newest request, or the guests that it is one of.
    caller: Option<Arc<str>>,
    /// `true` if its newest request had no token and was for a workload that is open to everyone.
    is_guest: bool,
}

/// Permit of a connection. An upgraded connection keeps it.
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

    /// A place for one more connection, from there to here.
    pub(crate) fn admit(
        self: &Arc<Self>,
        peer: SocketAddr,
        here: Option<SocketAddr>,
    ) -> Result<ConnectionPermit, Full> {
        let is_proxy = self.limits.proxies.contain(peer.ip().to_canonical());
        self.admit_client(Client::of(peer, here), is_proxy)
    }

    fn admit_client(
        self: &Arc<Self>,
        client: Client,
        is_proxy: bool,
    ) -> Result<ConnectionPermit, Full> {
        let mut table = self.table();
        let own = table.by_client.get(&client).copied().unwrap_or(0);
        let own_max = self.limits.own_max();
        if !is_proxy && own >= own_max && !table.make_room(|one| one.client == client) {
            return Err(Full::Own(own_max));
        }
        let group_max = self.limits.group_max();
        let is_container = |one: &Entry| matches!(one.client, Client::Containers(_));
        if matches!(client, Client::Containers(_))
            && table.all.values().filter(|one| is_container(one)).count() >= group_max
            && !table.make_room(is_container)
        {
            return Err(Full::Containers(group_max));
        }
        // The number of accounts on this machine is limited; addresses can be made at will.
        let is_first = own == 0 && matches!(client, Client::Account(_));
        let reserved = if is_proxy || is_first { 0 } else { self.limits.reserved() };
        let full = table.all.len() + reserved >= self.limits.connections;
        if full && !table.make_room(|_| true) {
            return Err(Full::All);
        }
        let connection = Arc::<Connection>::default();
        let number = table.next;
        table.next += 1;
        let entry = Entry {
            connection: connection.clone(),
            client,
            is_proxy,
            caller: None,
            is_guest: false,
        };
        table.all.insert(number, entry);
        *table.by_client.entry(client).or_default() += 1;
        drop(table);
        Ok(ConnectionPermit(Arc::new(Slot { all: self.clone(), number, connection })))
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
    /// Ends the oldest idle connection among these: one on which no request came whole before
    /// others.
    fn make_room(&mut self, among: impl Fn(&Entry) -> bool) -> bool {
        let some = self.all.iter().filter(|(_, one)| one.connection.is_idle() && among(one));
        let oldest = some.min_by_key(|(_, one)| one.connection.has_asked_whole());
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        if let Some(entry) = self.remove(number) {
            entry.connection.leave();
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.all.remove(&number)?;
        one_less(&mut self.by_client, &entry.client);
        if let Some(caller) = &entry.caller {
            one_less(&mut self.by_caller, caller);
            one_less(&mut self.kept, &entry.client);
        }
        Some(entry)
    }
}

fn too_many(who: &str, own: usize) -> ApiError {
    let why = format!(
        "{who} has {own} connections open, the most allowed; close some, or try again in {RETRY_S} s"
    );
    let refused = ApiError::new(StatusCode::TOO_MANY_REQUESTS, why);
    ApiError { retry_after_s: Some(RETRY_S), ..refused }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, usize>, of: &K) {
    if let Some(own) = counts.get_mut(of) {
        *own -= 1;
        if *own == 0 {
            counts.remove(of);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.all.table().remove(self.number);
        self.all.freed.notify_waiters();
    }
}

impl ConnectionPermit {
    /// Counts the connection among those of the caller whose token its request has, until another
    /// caller uses it or it ends: streams, followed logs, sessions and all else that lasts.
    ///
    /// # Errors
    /// The caller has as many as allowed, and none of them is idle.
    pub fn belongs_to(&self, caller: &str) -> Result<(), ApiError> {
        self.count(caller, false)
    }

    /// Counts the connection among those of the guests of a workload: its request has no token.
    ///
    /// # Errors
    /// They, or the guests of all workloads, have as many as allowed, and none of them is idle.
    pub fn belongs_to_guests_of(&self, workload: &str) -> Result<(), ApiError> {
        self.count(&format!("the group of guests of {workload}"), true)
    }

    fn count(&self, caller: &str, is_guest: bool) -> Result<(), ApiError> {
        let (all, number) = (&self.0.all, self.0.number);
        let limits = &all.limits;
        let mut table = all.table();
        let is_of_caller = |one: &Entry| one.caller.as_deref() == Some(caller);
        let Some(own) = table.all.get(&number).filter(|own| !is_of_caller(own)) else {
            // Counted before, or closed for another one and about to end.
            return Ok(());
        };
        let (client, is_proxy, had_caller) = (own.client, own.is_proxy, own.caller.is_some());
        let of_caller = table.by_caller.get(caller).copied().unwrap_or(0);
        let most = if is_guest { limits.own_max() } else { limits.caller_max() };
        if of_caller >= most && !table.make_room(is_of_caller) {
            return Err(too_many(caller, of_caller));
        }
        let guests_max = limits.group_max();
        if is_guest
            && table.all.values().filter(|one| one.is_guest).count() >= guests_max
            && !table.make_room(|one| one.is_guest)
        {
            return Err(too_many("the group of guests of all workloads", guests_max));
        }
        // So a further caller of an account always finds a place, however many tokens others have.
        let is_first = of_caller == 0 && !is_guest;
        let kept = table.kept.get(&client).copied().unwrap_or(0);
        if !(is_first || is_proxy || had_caller)
            && kept >= limits.kept_max()
            && !table.make_room(|one| one.client == client && one.caller.is_some())
        {
            return Err(too_many("this account or address", kept));
        }
        let caller: Arc<str> = caller.into();
        *table.by_caller.entry(caller.clone()).or_default() += 1;
        let before = table.all.get_mut(&number).and_then(|one| {
            one.is_guest = is_guest;
            one.caller.replace(caller)
        });
        match before {
            Some(before) => one_less(&mut table.by_caller, &before),
            None => *table.kept.entry(client).or_default() += 1,
        }
        Ok(())
    }

    /// Counts the body of the present request, which is larger than [`SMALL_BODY_BYTES`], until its
    /// response begins. So the memory for bodies that arrive, are read and carried out is bounded.
    ///
    /// # Errors
    /// The caller, or all together, send as many bytes as allowed.
    pub(crate) fn takes_large_body(&self, bytes: usize) -> Result<(), ApiError> {
        let (table, number) = (self.0.all.table(), self.0.number);
        let Some(own) = table.all.get(&number) else { return Ok(()) };
        let is_own = |one: &&Entry| match &own.caller {
            Some(caller) => one.caller.as_ref() == Some(caller),
            None => one.client == own.client,
        };
        let others = || table.all.iter().filter(|(other, _)| **other != number);
        let sum = |all: &mut dyn Iterator<Item = &Entry>| -> usize {
            all.map(|one| one.connection.large_body_bytes()).sum()
        };
        let of_all = sum(&mut others().map(|(_, one)| one));
        let of_own = sum(&mut others().map(|(_, one)| one).filter(is_own));
        let reserved = if of_own == 0 { LARGE_BODIES_BYTES_RESERVED } else { 0 };
        let is_full = of_all + bytes > LARGE_BODIES_BYTES_MAX + reserved;
        if is_full || of_own + bytes > OWN_BODIES_BYTES_MAX {
            let why = format!(
                "too many large requests at a time: bodies of more than {} KiB may have {} MiB \
                 together, those of one caller {} MiB; send fewer at a time, or try again in \
                 {RETRY_S} s",
                SMALL_BODY_BYTES >> 10,
                LARGE_BODIES_BYTES_MAX >> 20,
                OWN_BODIES_BYTES_MAX >> 20
            );
            let refused = ApiError::new(StatusCode::TOO_MANY_REQUESTS, why);
            return Err(ApiError { retry_after_s: Some(RETRY_S), ..refused });
        }
        self.0.connection.takes_large_body(bytes);
        Ok(())
    }

    /// Returns when this connection has to end, to make room for others.
    pub(crate) async fn has_to_leave(&self) {
        self.0.connection.has_to_leave().await;
    }

    pub(crate) fn has_asked(&self) -> bool {
        self.0.connection.has_asked()
    }

    /// Marks the connection as one on which a request with this body is answered.
    pub(crate) fn begin(&self, body: Body) -> (Busy, Arriving) {
        self.0.connection.begin(body)
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
