//! Secrets that have to be used again: sealed with a key that is not in the database.
//!
//! Owns: the keys, their file, and the form of a sealed text:
//! `1.<number of the key>.<base64url of nonce, text and tag>`, ChaCha20-Poly1305 with a random
//! nonce each. A text sealed for one object opens for no other. Does not know what is sealed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use sha2::{Digest as _, Sha256};

use crate::secret::random;
use crate::{Error, files};

/// File with the keys, one a line; the first one seals.
pub const VAULT_FILE: &str = "credentials-key";

/// Error of a sealed text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Sealed {
    /// The key is not there.
    #[error(
        "it was sealed with key {key}, which is not in {path}; bring that file back, or enter the \
         credential again"
    )]
    OtherKey {
        /// Number of the key.
        key: u32,
        /// File of the keys.
        path: PathBuf,
    },
    /// The text was changed, or sealed for another object.
    #[error("what is stored was changed, or is of another credential; enter the credential again")]
    Damaged,
}

/// Seals and opens. Cheap to clone.
#[derive(Clone)]
pub struct Vault {
    path: Arc<Path>,
    /// The first one seals; never empty.
    keys: Arc<[Key]>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({})", self.path.display())
    }
}

struct Key {
    number: u32,
    cipher: LessSafeKey,
    /// Key that other secrets are derived from.
    root: hmac::Key,
}

impl Key {
    fn new(bytes: &[u8]) -> Option<Self> {
        let cipher = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, bytes).ok()?);
        let digest = Sha256::new().chain_update("elastane vault key ").chain_update(bytes);
        let [a, b, c, d, ..] = <[u8; 32]>::from(digest.finalize());
        let root = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        Some(Self { number: u32::from_be_bytes([a, b, c, d]), cipher, root })
    }
}

impl Vault {
    /// The vault with the keys in this file, which is made if it is not there.
    ///
    /// # Errors
    /// The file cannot be read or written, others may read it, or it holds something else.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let text = match files::read(path)? {
            Some(bytes) => bytes,
            None => {
                let text = new_line()?;
                files::write(path, text.as_bytes())?;
                text.into_bytes()
            }
        };
        let bad = || Error::BadVaultKey { path: path.to_owned() };
        let text = String::from_utf8(text).map_err(|_| bad())?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys = lines.map(|line| Key::new(&BASE64.decode(line).ok()?));
        let keys = keys.collect::<Option<Vec<_>>>().filter(|keys| !keys.is_empty());
        Ok(Self { path: path.into(), keys: keys.ok_or_else(bad)?.into() })
    }

    /// Puts a new key before the others; answers its number. Servers that run do not notice.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub fn rotate(path: &Path) -> Result<u32, Error> {
        Self::open(path)?;
        let old = files::read(path)?.unwrap_or_default();
        let text = [new_line()?.into_bytes(), old].concat();
        files::write(path, &text)?;
        Ok(Self::open(path)?.current())
    }

    /// Number of the key that seals.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.keys.first().map_or(0, |key| key.number)
    }

    /// Seals a text for one object, `<kind>/<id>`.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn seal(&self, of: &str, text: &[u8]) -> Result<String, Error> {
        let unsealable = || Error::Sealing;
        let key = self.keys.first().ok_or_else(unsealable)?;
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut bytes = text.to_vec();
        let aad = Aad::from(of.as_bytes());
        let nonce_of = Nonce::assume_unique_for_key(nonce);
        key.cipher.seal_in_place_append_tag(nonce_of, aad, &mut bytes).map_err(|_| unsealable())?;
        let bytes = [nonce.as_slice(), &bytes].concat();
        Ok(format!("1.{}.{}", key.number, BASE64.encode(bytes)))
    }

    /// A secret of an object that is kept nowhere: the same for as long as the oldest key is there.
    #[must_use]
    pub fn derive(&self, of: &str) -> String {
        let message = format!("elastane derived secret {of}");
        let tag = self.keys.last().map(|key| hmac::sign(&key.root, message.as_bytes()));
        tag.map(|tag| BASE64.encode(tag)).unwrap_or_default()
    }

    /// Opens a text that was sealed for this object.
    ///
    /// # Errors
    /// Description of the fault.
    pub fn unseal(&self, of: &str, sealed: &str) -> Result<Vec<u8>, Sealed> {
        let number = key_of(sealed).ok_or(Sealed::Damaged)?;
        let key = self.keys.iter().find(|key| key.number == number);
        let key = key.ok_or_else(|| Sealed::OtherKey { key: number, path: (*self.path).into() })?;
        let (_, text) = sealed.rsplit_once('.').ok_or(Sealed::Damaged)?;
        let bytes = BASE64.decode(text).map_err(|_| Sealed::Damaged)?;
        let (nonce, rest) = bytes.split_at_checked(NONCE_LEN).ok_or(Sealed::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Sealed::Damaged)?;
        let mut rest = rest.to_vec();
        let opened = key.cipher.open_in_place(nonce, Aad::from(of.as_bytes()), &mut rest);
        opened.map(|text| text.to_vec()).map_err(|_| Sealed::Damaged)
    }
}

/// Number of the key that something was sealed with.
#[must_use]
pub fn key_of(sealed: &str) -> Option<u32> {
    sealed.strip_prefix("1.")?.split_once('.')?.0.parse().ok()
}

fn new_line() -> Result<String, Error> {
    Ok(BASE64.encode(random::<32>()?) + "\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const OF: &str = "password-asset/7";

    fn file(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join(VAULT_FILE)
    }

    #[test]
    fn what_is_sealed_opens_after_a_restart_for_its_object_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(&file(&dir)).unwrap();
        let sealed = vault.seal(OF, b"hunter2").unwrap();
        assert!(!sealed.contains("hunter2"));
        assert_ne!(sealed, vault.seal(OF, b"hunter2").unwrap(), "a nonce of its own each");
        let again = Vault::open(&file(&dir)).unwrap();
        assert_eq!(again.unseal(OF, &sealed).unwrap(), b"hunter2");
        assert_eq!(again.unseal("password-asset/8", &sealed), Err(Sealed::Damaged));
        assert_eq!(fs::metadata(file(&dir)).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_changed_text_does_not_open() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(&file(&dir)).unwrap();
        let sealed = vault.seal(OF, b"hunter2").unwrap();
        let number = vault.current();
        for at in 0..BASE64.decode(sealed.rsplit_once('.').unwrap().1).unwrap().len() {
            let mut bytes = BASE64.decode(sealed.rsplit_once('.').unwrap().1).unwrap();
            bytes[at] ^= 1;
            let changed = format!("1.{number}.{}", BASE64.encode(bytes));
            assert_eq!(vault.unseal(OF, &changed), Err(Sealed::Damaged), "byte {at}");
        }
        for text in ["", "1", "1.", "2.0.x", &format!("1.{number}."), &format!("1.{number}.AAAA")] {
            assert_eq!(vault.unseal(OF, text), Err(Sealed::Damaged), "{text}");
        }
    }

    #[test]
    fn a_new_key_seals_and_the_old_one_still_opens() {
        let dir = tempfile::tempdir().unwrap();
        let before = Vault::open(&file(&dir)).unwrap();
        let old = before.seal(OF, b"old").unwrap();
        let number = Vault::rotate(&file(&dir)).unwrap();
        let after = Vault::open(&file(&dir)).unwrap();
        assert_eq!((after.current(), key_of(&old)), (number, Some(before.current())));
        assert_ne!(number, before.current());
        assert_eq!(after.unseal(OF, &old).unwrap(), b"old");
        assert_eq!(key_of(&after.seal(OF, b"new").unwrap()), Some(number));
    }

    #[test]
    fn a_lost_key_is_named_and_a_wrong_file_refused() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(&file(&dir)).unwrap();
        let sealed = vault.seal(OF, b"x").unwrap();
        fs::remove_file(file(&dir)).unwrap();
        let other = Vault::open(&file(&dir)).unwrap();
        let said = other.unseal(OF, &sealed).unwrap_err().to_string();
        assert!(said.contains(&vault.current().to_string()) && said.contains(VAULT_FILE), "{said}");
        for text in ["", "short", "\u{fffd}"] {
            fs::write(file(&dir), text).unwrap();
            assert!(matches!(Vault::open(&file(&dir)), Err(Error::BadVaultKey { .. })), "{text}");
        }
        fs::set_permissions(file(&dir), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Vault::open(&file(&dir)), Err(Error::Exposed { .. })));
    }
}
