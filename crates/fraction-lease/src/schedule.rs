//! Whose turn it is on a device. Owns: the order of the turns, and what each run has had. Does not
//! know about: clocks (time is an argument), pages and processes.
//!
//! One run at a time holds the lease. Time that it holds it, or still computes what it launched
//! before, is charged to it, divided by its share; of the runs that want the device the one with
//! the least of this virtual time is next. A run that comes back after it wanted nothing starts
//! where the others are, so idle time is not saved up.
//!
//! A *strict* run has a budget as well, which grows with its share of real time and shrinks with
//! what it holds. Without a budget it waits, also for a device that is idle. As the shares of a
//! device are at most a whole together, of the strict runs that want all of theirs one always has a
//! budget. A *fair* run has what the others leave, and gives it back at the end of the quantum.

use std::collections::BTreeMap;

/// Share of a run in a device's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Millionths of the device; 0 counts as 1.
    pub millionths: u32,
    /// Policy for time that other runs leave.
    pub policy: Policy,
}

/// Policy for time that other runs leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Unused: a run never has more than its share.
    Strict,
    /// Lent to runs that want it.
    Fair,
}

/// Current demand of the processes of a run on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// True if they wait for their turn, or have launched work recently.
    pub wants: bool,
    /// True if work that they launched may still run.
    pub busy: bool,
}

/// The turns of one device. Runs are numbers, whose order breaks ties.
#[derive(Debug, Clone)]
pub struct Schedule {
    quantum_ns: u64,
    drain_ns_max: u64,
    clients: BTreeMap<u64, Client>,
    turn: Turn,
    now_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Client {
    share: Share,
    wants: bool,
    /// Nanoseconds that it had, times a million, divided by its share.
    virtual_ns: u128,
    /// Nanoseconds that it may still have, times a million, if it is strict.
    budget: i128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The device has no holder.
    Free,
    /// A run holds the lease since then.
    Held(u64, u64),
    /// The lease of a run has ended then, and what it launched may still run.
    Drains(u64, u64),
}

const WHOLE: u128 = 1_000_000;

impl Client {
    fn millionths(&self) -> u128 {
        u128::from(self.share.millionths.max(1))
    }

    fn charge(&mut self, ns: u64) {
        self.virtual_ns += u128::from(ns) * WHOLE / self.millionths();
        self.budget -= i128::from(ns) * WHOLE.cast_signed();
    }

    fn may_hold(&self) -> bool {
        self.wants && (self.share.policy == Policy::Fair || self.budget >= 0)
    }
}

impl Schedule {
    /// A device without runs. A lease lasts a quantum; the next one begins when what was launched
    /// under it has ended, at the latest after `drain_ns_max`.
    #[must_use]
    pub const fn new(quantum_ns: u64, drain_ns_max: u64) -> Self {
        let clients = BTreeMap::new();
        Self { quantum_ns, drain_ns_max, clients, turn: Turn::Free, now_ns: 0 }
    }

    /// Adds a run, or changes its share.
    pub fn set(&mut self, run: u64, share: Share) {
        let new = Client { share, wants: false, virtual_ns: 0, budget: 0 };
        self.clients.entry(run).and_modify(|client| client.share = share).or_insert(new);
    }

    /// Removes a run.
    pub fn remove(&mut self, run: u64) {
        self.clients.remove(&run);
        if matches!(self.turn, Turn::Held(of, _) | Turn::Drains(of, _) if of == run) {
            self.turn = Turn::Free;
        }
    }

    /// True if no run has to wait for another one, nor for its own budget.
    #[must_use]
    pub fn needs_no_turns(&self) -> bool {
        self.clients.len() < 2
            && self.clients.values().all(|client| client.share.policy == Policy::Fair)
    }

    /// True if a lease has ended and the next one has not begun.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        matches!(self.turn, Turn::Drains(..))
    }

    /// Advances to a time, with the current demand of the runs. Returns the run that holds the
    /// lease.
    pub fn advance(&mut self, now_ns: u64, demand: impl Fn(u64) -> Demand) -> Option<u64> {
        self.charge(now_ns.saturating_sub(self.now_ns), &demand);
        self.now_ns = self.now_ns.max(now_ns);
        if let Turn::Held(run, since) = self.turn {
            self.turn = self.go_on(run, since);
        }
        let ended = match self.turn {
            Turn::Free => true,
            Turn::Held(..) => false,
            Turn::Drains(run, since) => {
                !demand(run).busy || self.now_ns.saturating_sub(since) >= self.drain_ns_max
            }
        };
        if ended {
            self.turn = self.next();
        }
        match self.turn {
            Turn::Held(run, _) => Some(run),
            Turn::Free | Turn::Drains(..) => None,
        }
    }

    /// Charges time that has passed to who had it, and to all what they want.
    fn charge(&mut self, ns: u64, demand: &impl Fn(u64) -> Demand) {
        let holder = match self.turn {
            Turn::Held(run, _) | Turn::Drains(run, _) => Some(run),
            Turn::Free => None,
        };
        let waiting = self.clients.iter().filter(|(_, client)| client.wants);
        let least = waiting.map(|(_, client)| client.virtual_ns).min();
        for (run, client) in &mut self.clients {
            let Demand { wants, busy } = demand(*run);
            let held = holder == Some(*run) && (client.wants || busy);
            if client.wants {
                client.budget += (u128::from(ns) * client.millionths()).cast_signed();
            }
            if held {
                client.charge(ns);
            } else if wants && !client.wants {
                // It starts where the others are.
                client.virtual_ns = client.virtual_ns.max(least.unwrap_or(0));
            } else if !client.wants && client.budget < 0 {
                let earned = (u128::from(ns) * client.millionths()).cast_signed();
                client.budget = (client.budget + earned).min(0);
            }
            if !wants && !busy {
                client.budget = client.budget.min(0);
            }
            client.wants = wants || (held && busy);
        }
    }

    fn next(&self) -> Turn {
        let able = self.clients.iter().filter(|(_, client)| client.may_hold());
        let next = able.min_by_key(|(run, client)| (client.virtual_ns, **run));
        next.map_or(Turn::Free, |(run, _)| Turn::Held(*run, self.now_ns))
    }

    /// At the end of the quantum the next one has its turn; before, only if the holder wants
    /// nothing.
    fn go_on(&self, run: u64, since: u64) -> Turn {
        let Some(client) = self.clients.get(&run) else { return Turn::Free };
        let over = self.now_ns.saturating_sub(since) >= self.quantum_ns;
        if client.wants && !over {
            return self.turn;
        }
        match self.next() {
            Turn::Held(next, now) if next == run => Turn::Held(run, now),
            // Nothing else wants it, and it may come back to it at once.
            Turn::Free if client.share.policy == Policy::Fair || client.budget >= 0 => self.turn,
            _ => Turn::Drains(run, self.now_ns),
        }
    }
}
