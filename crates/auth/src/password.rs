//! Passwords of people. Owns: how they are hashed (argon2id with the parameters of RFC 9106's
//! second choice scaled as OWASP recommends) and what a password may be. Hashing takes tens of
//! milliseconds and 19 MiB on purpose: call it where blocking is allowed, a few at a time.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::secret::random;
use crate::{Error, common_passwords};

/// Shortest and longest password, in bytes.
const PASSWORD_BYTES: std::ops::RangeInclusive<usize> = 8..=1024;
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// A hashed password with what it was hashed with, so that the parameters can be raised later.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
    hash: String,
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

impl PasswordHash {
    /// Hashes a password. Blocks for tens of milliseconds.
    ///
    /// # Errors
    /// The operating system gives no random bytes, or no memory.
    pub fn new(password: &str) -> Result<Self, Error> {
        let salt = random::<16>()?;
        let hash = digest(password, &salt, (MEMORY_KIB, PASSES, LANES)).ok_or(Error::Hashing)?;
        Ok(Self {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: BASE64_STANDARD_NO_PAD.encode(salt),
            hash: BASE64_STANDARD_NO_PAD.encode(hash),
        })
    }

    /// True if this is the password. Blocks for tens of milliseconds.
    #[must_use]
    pub fn matches(&self, password: &str) -> bool {
        let decode = |text: &str| BASE64_STANDARD_NO_PAD.decode(text).ok();
        let (Some(salt), Some(want)) = (decode(&self.salt), decode(&self.hash)) else {
            return false;
        };
        let cost = (self.memory_kib, self.passes, self.lanes);
        let Some(own) = digest(password, &salt, cost) else { return false };
        let differing = own.iter().zip(&want).fold(0, |seen, (a, b)| seen | (a ^ b));
        std::hint::black_box(differing) == 0 && own.len() == want.len()
    }

    /// Fingerprint of this hash: links and sessions with it end when the password changes.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        crate::fingerprint(&format!("{} {}", self.salt, self.hash))
    }

    /// Takes as long as a comparison: for a user who is not there.
    pub fn waste_time(password: &str) {
        std::hint::black_box(digest(password, &[0; 16], (MEMORY_KIB, PASSES, LANES)));
    }
}

fn digest(
    password: &str,
    salt: &[u8],
    (memory, passes, lanes): (u32, u32, u32),
) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    let params = Params::new(memory, passes, lanes, Some(out.len())).ok()?;
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    hasher.hash_password_into(password.as_bytes(), salt, &mut out).ok()?;
    Some(out)
}

/// Checks a new password.
///
/// # Errors
/// Description of the requirement that it does not meet.
pub fn check_password(password: &str, username: &str) -> Result<(), String> {
    if !PASSWORD_BYTES.contains(&password.len()) {
        let (least, most) = (PASSWORD_BYTES.start(), PASSWORD_BYTES.end());
        return Err(format!("has {} bytes; {least} to {most} are allowed", password.len()));
    }
    match common_passwords::reason(password, username) {
        Some(why) => {
            Err(format!("{why}; choose another, such as four words that do not belong together"))
        }
        None => Ok(()),
    }
}

/// True if the text has the length of a password. Other texts are not worth hashing.
#[must_use]
pub fn may_be_password(password: &str) -> bool {
    (1..=*PASSWORD_BYTES.end()).contains(&password.len())
}

/// An initial password: 16 characters that are not mistaken for each other, 93 bits.
///
/// # Errors
/// The operating system gives no random bytes.
pub fn temporary_password() -> Result<String, Error> {
    const ALPHABET: &[u8; 56] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";
    let mut password = String::new();
    while password.len() < 16 {
        // Bytes past a multiple of the alphabet would make its beginning likelier.
        let bytes = random::<32>()?;
        let fair = bytes.iter().filter(|byte| **byte < 224);
        let chars = fair.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        password.extend(chars.take(16 - password.len()));
    }
    Ok(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_itself_matches_and_salts_differ() {
        let hash = PasswordHash::new("correct horse").unwrap();
        assert!(hash.matches("correct horse"));
        for wrong in ["correct hors", "Correct horse", "", "correct horse\0"] {
            assert!(!hash.matches(wrong), "{wrong}");
        }
        assert_ne!(hash, PasswordHash::new("correct horse").unwrap());
        let stored = serde_json::to_string(&hash).unwrap();
        assert!(!stored.contains("correct") && !format!("{hash:?}").contains(&hash.hash));
        let read: PasswordHash = serde_json::from_str(&stored).unwrap();
        assert!(read.matches("correct horse"));
    }

    #[test]
    fn a_damaged_hash_matches_nothing() {
        let hash = PasswordHash::new("correct horse").unwrap();
        for broken in [
            PasswordHash { hash: String::new(), ..hash.clone() },
            PasswordHash { hash: "!".to_owned(), ..hash.clone() },
            PasswordHash { salt: String::new(), ..hash.clone() },
            PasswordHash { memory_kib: 0, ..hash.clone() },
            PasswordHash { lanes: 0, ..hash },
        ] {
            assert!(!broken.matches("correct horse") && !broken.matches(""));
        }
    }

    #[test]
    fn passwords_that_anybody_would_guess_are_refused() {
        for (password, why) in [
            ("short", "has 5 bytes"),
            ("aaaaaaaaaa", "repeats a few characters"),
            ("Password1!", "tried first"),
            ("23456789", "a row of the keyboard"),
            ("ANN.SMITH@x.org", "the user's name"),
            ("ann.smith", "the user's name"),
            (&"x".repeat(1025), "has 1025 bytes"),
        ] {
            let said = check_password(password, "ann.smith@x.org").unwrap_err();
            assert!(said.contains(why), "{password}: {said}");
        }
        assert_eq!(check_password("correct horse", "ann@x.org"), Ok(()));
    }

    #[test]
    fn temporary_passwords_are_long_and_differ() {
        let (one, other) = (temporary_password().unwrap(), temporary_password().unwrap());
        assert_eq!((one.len(), other.len()), (16, 16));
        assert_ne!(one, other);
        assert_eq!(check_password(&one, "ann@x.org"), Ok(()));
    }
}
