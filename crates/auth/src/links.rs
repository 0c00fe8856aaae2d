//! One-time links: a link logs its user in, once. Owns: how long each is good, and the detection of
//! a second use. They are in memory only and end with the server. Does not know about: sessions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use units::Instant;

use crate::{Error as AuthError, Principal, hash_secret, new_secret};

/// Lifetime of a link, in milliseconds.
const LINK_MS: u64 = 10 * 60 * 1000;
/// How long an ended link is remembered for its error message.
const REMEMBERED_MS: u64 = 3600 * 1000;
/// Most links that are remembered. For a new one the oldest of the principal with the most goes.
const LINKS_MAX: usize = 256;

/// Target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTarget {
    /// Principal that it logs in.
    pub principal: Principal,
    /// Fingerprint of its origin: the secret of this start of the server, or the password that was
    /// given out. The link ends with that.
    pub mark: String,
}

/// Error of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinkFault {
    /// The server does not know this link.
    #[error("this link is not one of this server, or is too old; make another with `elastane ui`")]
    Unknown,
    /// The ten minutes of the link are over.
    #[error("this link was good for ten minutes and is too old; make another with `elastane ui`")]
    Expired,
    /// The link was used at this time.
    #[error("this link was used already")]
    Used(Instant),
}

/// The link with this secret, to a server at this address. Browsers send the part after `#` to no
/// server: it is in no log, and no proxy sees it.
#[must_use]
pub fn login_url(address: &str, secret: &str) -> String {
    format!("{address}/login#once={secret}")
}

#[derive(Debug)]
struct Link {
    secret_sha256: String,
    target: LinkTarget,
    ends: Instant,
    used: Option<Instant>,
}

/// The links that were made, the oldest in front.
#[derive(Debug, Default)]
pub(crate) struct Links(Mutex<VecDeque<Link>>);

impl Links {
    /// A new link: its secret, and until when it is good.
    pub(crate) fn make(
        &self,
        target: LinkTarget,
        now: Instant,
    ) -> Result<(String, Instant), AuthError> {
        let secret = new_secret()?;
        let ends = now.plus_ms(LINK_MS);
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.ends.plus_ms(REMEMBERED_MS) > now);
        if links.len() >= LINKS_MAX {
            drop_one(&mut links);
        }
        let secret_sha256 = hash_secret(&secret);
        links.push_back(Link { secret_sha256, target, ends, used: None });
        Ok((secret, ends))
    }

    /// Ends the unopened links of a principal.
    pub(crate) fn end(&self, of: &Principal, now: Instant) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = links.iter_mut().filter(|link| link.target.principal == *of);
        own.for_each(|link| link.ends = link.ends.min(now));
    }

    /// Target of a link. The link is used up.
    pub(crate) fn redeem(&self, secret: &str, now: Instant) -> Result<LinkTarget, LinkFault> {
        let hash = hash_secret(secret);
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let link = links.iter_mut().find(|link| link.secret_sha256 == hash);
        let link = link.ok_or(LinkFault::Unknown)?;
        if let Some(at) = link.used {
            return Err(LinkFault::Used(at));
        }
        if link.ends <= now {
            return Err(LinkFault::Expired);
        }
        link.used = Some(now);
        Ok(link.target.clone())
    }
}

/// Drops the oldest link of the principal with the most.
fn drop_one(links: &mut VecDeque<Link>) {
    let mut counts: BTreeMap<&Principal, usize> = BTreeMap::new();
    for link in &*links {
        *counts.entry(&link.target.principal).or_default() += 1;
    }
    let most = |(at, link): &(usize, &Link)| (counts[&link.target.principal], Reverse(*at));
    if let Some((at, _)) = links.iter().enumerate().max_by_key(most) {
        links.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000);

    fn target() -> LinkTarget {
        LinkTarget { principal: Principal::Local, mark: "m".to_owned() }
    }

    #[test]
    fn a_link_is_good_once_and_for_ten_minutes() {
        let links = Links::default();
        let (secret, ends) = links.make(target(), NOW).unwrap();
        assert_eq!(ends, NOW.plus_ms(LINK_MS));
        assert_eq!(links.redeem("another", NOW), Err(LinkFault::Unknown));
        let used = NOW.plus_ms(LINK_MS - 1);
        assert_eq!(links.redeem(&secret, used), Ok(target()));
        assert_eq!(links.redeem(&secret, ends.plus_ms(1)), Err(LinkFault::Used(used)));
        let (late, ends) = links.make(target(), NOW).unwrap();
        assert_eq!(links.redeem(&late, ends), Err(LinkFault::Expired));
    }

    #[test]
    fn the_oldest_of_too_many_goes_and_what_is_long_over_is_forgotten() {
        let links = Links::default();
        let (first, _) = links.make(target(), NOW).unwrap();
        for _ in 0..LINKS_MAX {
            links.make(target(), NOW).unwrap();
        }
        assert_eq!(links.redeem(&first, NOW), Err(LinkFault::Unknown));
        assert_eq!(links.0.lock().unwrap().len(), LINKS_MAX);
        links.make(target(), NOW.plus_ms(LINK_MS + REMEMBERED_MS)).unwrap();
        assert_eq!(links.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn many_links_of_one_user_take_the_place_of_no_other() {
        let links = Links::default();
        let (admin, _) = links.make(target(), NOW).unwrap();
        let ann = || LinkTarget { principal: Principal::User("ann".to_owned()), ..target() };
        for _ in 0..2 * LINKS_MAX {
            links.make(ann(), NOW).unwrap();
        }
        assert_eq!(links.redeem(&admin, NOW), Ok(target()));
        let (bob, _) = links.make(target(), NOW).unwrap();
        assert_eq!(links.redeem(&bob, NOW), Ok(target()));
    }
}
