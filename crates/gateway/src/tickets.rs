//! Access of browsers, which send no token of their own: a ticket is good for one request, a visit
//! is the cookie that the browser keeps after it. Owns: their lifetime and number. They are in
//! memory only: after a restart a new ticket is needed. Does not know who may get one, and how a
//! request carries either.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use access::Caller;
use auth::{Principal, hash_secret};
use units::Instant;
use uuid::Uuid;

/// Lifetime of a ticket, and longest lifetime of a visit, in milliseconds.
pub(crate) const TICKET_MS: u64 = 60_000;
pub(crate) const VISIT_MS: u64 = 12 * 3600 * 1000;
/// Most tickets, and most visits, of one caller and of all. For a new one the oldest of the caller is
/// dropped, or of the principal with the most.
const OWN_MAX: usize = 64;
const ALL_MAX: usize = 2048;
/// Most secrets of one request that are checked.
const BROUGHT_MAX: usize = 64;

/// A port of a workload; 0 is the WebSockets of this server to it.
pub(crate) type PortKey = (Uuid, u16);

/// Access of a caller to a port until `ends`.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) place: PortKey,
    pub(crate) caller: Caller,
    pub(crate) ends: Instant,
}

/// Tickets and visits, by the hash of their secrets.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    tickets: Mutex<BTreeMap<String, Grant>>,
    visits: Mutex<BTreeMap<String, Grant>>,
}

impl Tickets {
    /// A ticket to a port.
    pub(crate) fn ticket(
        &self,
        place: PortKey,
        caller: &Caller,
        now: Instant,
    ) -> Result<String, auth::Error> {
        let ends = now.plus_ms(TICKET_MS);
        keep(&self.tickets, Grant { place, caller: caller.clone(), ends }, now)
    }

    /// Caller of a ticket to this port. The ticket is used up.
    pub(crate) fn redeem(&self, ticket: &str, place: PortKey, now: Instant) -> Option<Caller> {
        let grant = lock(&self.tickets).remove(&hash_secret(ticket))?;
        (grant.place == place && grant.ends > now).then_some(grant.caller)
    }

    /// Admits the caller until the visit ends.
    pub(crate) fn begin(
        &self,
        place: PortKey,
        caller: Caller,
        now: Instant,
    ) -> Result<String, auth::Error> {
        keep(&self.visits, Grant { place, caller, ends: now.plus_ms(VISIT_MS) }, now)
    }

    /// The visit to this port of which a browser brings the secret. A page of a host beside may
    /// have it bring others, too, worth nothing here; of two valid visits one is foreign, so
    /// neither is used.
    pub(crate) fn visit(&self, secrets: &[String], place: PortKey, now: Instant) -> Option<Grant> {
        let here = |grant: &&Grant| grant.place == place && grant.ends > now;
        let all = lock(&self.visits);
        let known = |secret: &String| all.get(&hash_secret(secret)).filter(here);
        let mut found = secrets.iter().take(BROUGHT_MAX).filter_map(known);
        match (found.next(), found.next()) {
            (Some(grant), None) => Some(grant.clone()),
            _ => None,
        }
    }
}

fn lock(all: &Mutex<BTreeMap<String, Grant>>) -> MutexGuard<'_, BTreeMap<String, Grant>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a grant; answers its secret.
fn keep(
    all: &Mutex<BTreeMap<String, Grant>>,
    mut grant: Grant,
    now: Instant,
) -> Result<String, auth::Error> {
    // Permissions and the port are checked again when it is redeemed.
    (grant.caller.grants, grant.caller.view) = (Arc::default(), Arc::default());
    let secret = auth::new_secret()?;
    let mut all = lock(all);
    all.retain(|_, one| one.ends > now);
    let own = |one: &Grant| one.caller.principal == grant.caller.principal;
    if all.values().filter(|one| own(one)).count() >= OWN_MAX {
        drop_oldest(&mut all, own);
    } else if all.len() >= ALL_MAX {
        drop_of_the_most(&mut all);
    }
    all.insert(hash_secret(&secret), grant);
    Ok(secret)
}

/// Drops the oldest grant of the principal with the most.
fn drop_of_the_most(all: &mut BTreeMap<String, Grant>) {
    let mut counts: BTreeMap<&Principal, usize> = BTreeMap::new();
    for one in all.values() {
        *counts.entry(&one.caller.principal).or_default() += 1;
    }
    let rank = |one: &Grant| (counts[&one.caller.principal], Reverse(one.ends));
    let first = all.iter().max_by_key(|(_, one)| rank(one)).map(|(key, _)| key.clone());
    if let Some(key) = first {
        all.remove(&key);
    }
}

fn drop_oldest(all: &mut BTreeMap<String, Grant>, of: impl Fn(&Grant) -> bool) {
    let some = all.iter().filter(|(_, one)| of(one));
    let oldest = some.min_by_key(|(_, one)| one.ends).map(|(key, _)| key.clone());
    if let Some(key) = oldest {
        all.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_kit::Origin;

    const NOW: Instant = Instant(1_000_000);
    const HERE: PortKey = (Uuid::nil(), 8888);

    fn caller(id: usize) -> Caller {
        Caller::new(Principal::User(id.to_string()), "ann", Origin::default())
    }

    #[test]
    fn a_ticket_is_good_once_at_its_port_and_for_a_minute() {
        let tickets = Tickets::default();
        let ticket = || tickets.ticket(HERE, &caller(1), NOW).unwrap();
        let comes = |ticket: &str, place, at| tickets.redeem(ticket, place, at).is_some();
        let once = ticket();
        assert!(comes(&once, HERE, NOW) && !comes(&once, HERE, NOW));
        assert!(!comes(&ticket(), (Uuid::nil(), 80), NOW));
        assert!(!comes(&ticket(), HERE, NOW.plus_ms(TICKET_MS)));
        assert!(!comes("", HERE, NOW));
    }

    #[test]
    fn a_visit_lasts_for_half_a_day_at_its_port() {
        let tickets = Tickets::default();
        let visit = tickets.begin(HERE, caller(1), NOW).unwrap();
        let other = tickets.begin(HERE, caller(2), NOW).unwrap();
        let secrets = ["junk".to_owned(), visit, other];
        let lasts = |place, at| tickets.visit(&secrets[..2], place, at).is_some();
        assert!(lasts(HERE, NOW.plus_ms(VISIT_MS - 1)));
        assert!(!lasts(HERE, NOW.plus_ms(VISIT_MS)));
        assert!(!lasts((Uuid::nil(), 80), NOW));
        assert!(tickets.visit(&secrets, HERE, NOW).is_none(), "one of two is foreign");
        assert!(tickets.redeem(&secrets[1], HERE, NOW).is_none(), "it is not a ticket");
    }

    #[test]
    fn nobody_fills_the_memory_or_takes_others_places() {
        let tickets = Tickets::default();
        let begin = |id, at| tickets.begin(HERE, caller(id), at).unwrap();
        let first = begin(0, NOW);
        let own: Vec<_> = (0..=OWN_MAX).map(|_| begin(1, NOW.plus_ms(1))).collect();
        let lasts = |secret: &String| {
            tickets.visit(std::slice::from_ref(secret), HERE, NOW.plus_ms(2)).is_some()
        };
        assert_eq!(own.iter().filter(|secret| lasts(secret)).count(), OWN_MAX);
        assert!(lasts(&first), "others' stay");
        let others = |ids: std::ops::Range<usize>| {
            for id in ids {
                begin(id, NOW.plus_ms(2));
            }
        };
        others(2..ALL_MAX);
        assert_eq!(lock(&tickets.visits).len(), ALL_MAX);
        assert!(lasts(&first), "those of the one with the most went");
        others(ALL_MAX..ALL_MAX + 1);
        assert!(!lasts(&first), "of as many of each the oldest went");
    }
}
