//! The authority that grants tokens and checks them. Owns: the credentials known to this server,
//! and the files a new installation starts with:
//!
//! - `signing-key`: 32 random bytes. Deleting it makes all tokens invalid.
//! - `admin-credentials.json`: client id and secret of the administrator's application.
//! - `token`: a token of the administrator, for command lines of the same user on this machine. It
//!   is short-lived and bound to a secret of this start of the server; the server replaces it in
//!   time, and ends all of them when the file is deleted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use records::{Change, CredentialRow};
use serde::{Deserialize, Serialize};
use store::Store;
use units::Instant;

use crate::links::{LinkFault, LinkTarget, Links};
use crate::token::{Claims, Identity, Keys, TokenFault};
use crate::{Error, Principal, files, fingerprint, hash_secret, new_secret, secret_matches};

/// The application every installation has.
pub const ADMIN_CLIENT_ID: &str = "elastane-admin";
/// Name of the program itself, in the audit log and as the creator of objects.
const PROGRAM: &str = "elastane";
/// File with the signing key.
pub const KEY_FILE: &str = "signing-key";
/// File with the administrator's client id and secret.
pub const CREDENTIALS_FILE: &str = "admin-credentials.json";
/// File with a token for this user's command lines.
pub const TOKEN_FILE: &str = "token";

/// Lifetime of a granted token, in seconds.
const GRANT_S: u64 = 24 * 3600;
/// Lifetime of a token in the state directory, in seconds.
const LOCAL_TOKEN_S: u64 = 900;
/// Age in seconds at which it is replaced, so that a token which was just read can still be used.
const LOCAL_TOKEN_RENEWED_S: u64 = 300;

/// Grants tokens and checks them.
#[derive(Debug, Clone)]
pub struct Authority {
    keys: Keys,
    clients: BTreeMap<String, Client>,
    local_user: String,
    local: LocalToken,
    links: Arc<Links>,
}

/// The token in the state directory.
#[derive(Debug, Clone, Default)]
struct LocalToken {
    path: PathBuf,
    /// Proof of valid tokens; `None`: no token is valid.
    current: Arc<Mutex<Option<LocalProof>>>,
}

/// Proof from a secret that only this process has, so that it ends with this server.
#[derive(Debug, Clone)]
struct LocalProof {
    proof: String,
    issued_at: Instant,
}

#[derive(Debug, Clone)]
struct Client {
    secret_sha256: String,
    subject: String,
}

/// A granted token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Principal of the token.
    pub identity: Identity,
    /// The token.
    pub token: String,
    /// Seconds it is valid.
    pub expires_in_s: u64,
}

/// Content of `admin-credentials.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credentials {
    client_id: String,
    client_secret: String,
}

impl Authority {
    /// An authority that knows these keys and no client.
    #[must_use]
    pub fn new(keys: Keys) -> Self {
        let local = LocalToken::default();
        let links = Arc::default();
        Self { keys, clients: BTreeMap::new(), local_user: String::new(), local, links }
    }

    /// Adds a client, or replaces it.
    pub fn add_client(&mut self, client_id: &str, secret_sha256: &str, subject: &str) {
        let client =
            Client { secret_sha256: secret_sha256.to_owned(), subject: subject.to_owned() };
        self.clients.insert(client_id.to_owned(), client);
    }

    /// The authority of the installation in `dir`, which is set up on the first start. The store
    /// must be the one of `dir`: its lock keeps other servers away from the files as well. The
    /// token in it speaks for `local_user`, who can read the directory.
    ///
    /// # Errors
    /// A file or the store cannot be read or written, or a secret could be read by others.
    pub async fn open(
        dir: &Path,
        store: &Store,
        local_user: &str,
        now: Instant,
    ) -> Result<Self, Error> {
        let mut authority = Self::new(open_key(&dir.join(KEY_FILE))?);
        local_user.clone_into(&mut authority.local_user);
        for row in store.credentials().await? {
            authority.add_client(&row.client_id, &row.secret_sha256, &row.subject);
        }
        let path = dir.join(CREDENTIALS_FILE);
        let known = authority.clients.get(ADMIN_CLIENT_ID).map(|admin| &admin.secret_sha256);
        // The file is written before the store knows its secret, and a file the store does not
        // know is replaced: whatever moment a crash comes, the two agree after the next start.
        if !known.is_some_and(|hash| file_holds(&path, hash)) {
            let secret = new_secret()?;
            let hash = hash_secret(&secret);
            let client_id = ADMIN_CLIENT_ID.to_owned();
            let content = Credentials { client_id: client_id.clone(), client_secret: secret };
            let content = serde_json::json!(content).to_string() + "\n";
            files::write(&path, content.as_bytes())?;
            authority.add_client(&client_id, &hash, &client_id);
            let subject = client_id.clone();
            let row = CredentialRow { client_id, secret_sha256: hash, subject, created_at: now };
            store.apply(&[Change::Credential(row)]).await?;
        }
        authority.local.path = dir.join(TOKEN_FILE);
        authority.renew_local(now)?;
        Ok(authority)
    }

    /// Replaces the token in the state directory if it is old or was deleted; after a deletion
    /// earlier tokens end, too.
    ///
    /// # Errors
    /// The file cannot be written, or the operating system gives no random bytes.
    pub fn renew_local(&self, now: Instant) -> Result<(), Error> {
        let mut current = self.local.current.lock().unwrap_or_else(PoisonError::into_inner);
        // An unreadable file, as on a disk that fails, is no deletion.
        let deleted = matches!(self.local.path.try_exists(), Ok(false));
        let kept = current.clone().filter(|_| !deleted);
        let proof = match kept {
            // A clock that was set back makes none of them young for ever.
            Some(known) if now >= known.issued_at && now < known.due() => return Ok(()),
            Some(known) => known.proof,
            None => {
                // Earlier tokens end, even if the disk refuses a new one.
                *current = None;
                fingerprint(&hash_secret(&new_secret()?))
            }
        };
        let identity = Identity {
            name: self.local_user.clone(),
            principal: Principal::Local.to_string(),
            proof: proof.clone(),
        };
        let token = self.keys.issue(&identity, now, LOCAL_TOKEN_S) + "\n";
        match files::write(&self.local.path, token.as_bytes()) {
            // A full disk must not lock the administrator out.
            Err(error) if !deleted => {
                files::overwrite(&self.local.path, token.as_bytes()).map_err(|_| error)?;
            }
            written => written?,
        }
        *current = Some(LocalProof { proof, issued_at: now });
        Ok(())
    }

    /// True if a token of the state directory has this proof.
    #[must_use]
    pub fn is_current_local(&self, proof: &str) -> bool {
        let current = self.local.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().is_some_and(|current| secret_matches(proof, &hash_secret(&current.proof)))
    }

    /// The name of the local administrator.
    #[must_use]
    pub fn local_user(&self) -> &str {
        &self.local_user
    }

    /// A link that logs in the local administrator, as the secret in it, and until when it is good;
    /// none while all tokens of the state directory are revoked.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn local_link(&self, now: Instant) -> Result<Option<(String, Instant)>, Error> {
        let current = self.local.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let target = |LocalProof { proof: mark, .. }| {
            self.link(LinkTarget { principal: Principal::Local, mark }, now)
        };
        current.map(target).transpose()
    }

    /// Makes a one-time link for a login.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn link(&self, target: LinkTarget, now: Instant) -> Result<(String, Instant), Error> {
        self.links.make(target, now)
    }

    /// Target of a link, if it is valid. The link is used up.
    ///
    /// # Errors
    /// The link is not valid.
    pub fn redeem_link(&self, secret: &str, now: Instant) -> Result<LinkTarget, LinkFault> {
        self.links.redeem(secret, now)
    }

    /// Ends the unopened links of a principal.
    pub fn end_links(&self, of: &Principal, now: Instant) {
        self.links.end(of, now);
    }

    /// A token for a client that comes with the installation, if it is one; none if there is no
    /// such client.
    ///
    /// # Errors
    /// The secret is another.
    pub fn grant_built_in(
        &self,
        client_id: &str,
        secret: &str,
        now: Instant,
    ) -> Option<Result<Granted, Error>> {
        let client = self.clients.get(client_id)?;
        if !secret_matches(secret, &client.secret_sha256) {
            return Some(Err(Error::WrongCredentials));
        }
        Some(Ok(self.issue(
            Identity {
                name: client.subject.clone(),
                principal: Principal::Admin.to_string(),
                proof: fingerprint(&client.secret_sha256),
            },
            now,
        )))
    }

    /// A token for an authenticated principal.
    #[must_use]
    pub fn issue(&self, identity: Identity, now: Instant) -> Granted {
        self.issue_until(identity, now, now.plus_ms(GRANT_S * 1000))
    }

    /// Grants a token for a session that may end before the token would.
    #[must_use]
    pub fn issue_until(&self, identity: Identity, now: Instant, end: Instant) -> Granted {
        let expires_in_s = GRANT_S.min(end.since_ms(now) / 1000);
        let token = self.keys.issue(&identity, now, expires_in_s);
        Granted { identity, token, expires_in_s }
    }

    /// True if a name is that of the program or of a built-in administrator. Actions of others must
    /// not look like theirs.
    #[must_use]
    pub fn is_built_in_name(&self, name: &str) -> bool {
        let same = |other: &str| other.eq_ignore_ascii_case(name);
        same(PROGRAM)
            || same(&self.local_user)
            || self.clients.values().any(|client| same(&client.subject))
    }

    /// True if a built-in client still has the secret with this fingerprint.
    #[must_use]
    pub fn is_current(&self, proof: &str) -> bool {
        self.clients.values().any(|client| fingerprint(&client.secret_sha256) == proof)
    }

    /// Claims of a token, if it is valid.
    ///
    /// # Errors
    /// Description of the fault.
    pub fn verify(&self, token: &str, now: Instant) -> Result<Claims, TokenFault> {
        self.keys.verify(token, now)
    }

    /// True if this server gave a token out, however long ago.
    #[must_use]
    pub fn has_signed(&self, token: &str) -> bool {
        self.keys.verify(token, Instant(0)).is_ok()
    }
}

impl LocalProof {
    const fn due(&self) -> Instant {
        self.issued_at.plus_ms(LOCAL_TOKEN_RENEWED_S * 1000)
    }
}

/// Reads the signing key, or makes one.
fn open_key(path: &Path) -> Result<Keys, Error> {
    let Some(bytes) = files::read(path)? else {
        let keys = Keys::generate()?;
        files::write(path, keys.bytes())?;
        return Ok(keys);
    };
    let bytes = bytes.try_into().map_err(|_| Error::BadKey { path: path.to_owned() })?;
    Ok(Keys::from_bytes(bytes))
}

/// True if the file holds the secret with this hash. A file that is missing, exposed or damaged
/// does not: a new secret replaces it.
fn file_holds(path: &Path, hash: &str) -> bool {
    let content = files::read(path).ok().flatten().unwrap_or_default();
    serde_json::from_slice::<Credentials>(&content)
        .is_ok_and(|found| secret_matches(&found.client_secret, hash))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NOW: Instant = Instant(1_700_000_000_000);

    async fn open(dir: &Path) -> Result<Authority, Error> {
        let store = Store::open(dir).await.unwrap();
        Authority::open(dir, &store, "ada", NOW).await
    }

    fn credentials(dir: &Path) -> Credentials {
        serde_json::from_slice(&fs::read(dir.join(CREDENTIALS_FILE)).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_new_installation_can_be_used_at_once_and_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let authority = open(dir.path()).await.unwrap();
        let token = fs::read_to_string(dir.path().join(TOKEN_FILE)).unwrap();
        assert_eq!(authority.verify(token.trim(), NOW).unwrap().identity.name, "ada");
        let own = credentials(dir.path());
        let granted =
            authority.grant_built_in(&own.client_id, &own.client_secret, NOW).unwrap().unwrap();
        assert_eq!(authority.verify(&granted.token, NOW).unwrap().identity.name, ADMIN_CLIENT_ID);
        for file in [KEY_FILE, CREDENTIALS_FILE, TOKEN_FILE] {
            let mode = fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }

    #[tokio::test]
    async fn a_restart_keeps_tokens_and_secret() {
        let dir = tempfile::tempdir().unwrap();
        let granted = {
            let authority = open(dir.path()).await.unwrap();
            let own = credentials(dir.path());
            authority.grant_built_in(&own.client_id, &own.client_secret, NOW).unwrap().unwrap()
        };
        let secret = credentials(dir.path()).client_secret;
        let authority = open(dir.path()).await.unwrap();
        let claims = authority.verify(&granted.token, NOW).unwrap();
        assert!(authority.is_current(&claims.identity.proof));
        assert_eq!(credentials(dir.path()).client_secret, secret);
    }

    #[tokio::test]
    async fn the_local_token_is_replaced_in_time_and_ends_with_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let token = || fs::read_to_string(dir.path().join(TOKEN_FILE)).unwrap().trim().to_owned();
        let first = open(dir.path()).await.unwrap();
        let old = token();
        first.renew_local(NOW.plus_ms(299_999)).unwrap();
        assert_eq!(token(), old, "young enough");
        first.renew_local(NOW.plus_ms(300_000)).unwrap();
        let new = token();
        let valid = |of: &Authority, token: &str, at_ms: u64| {
            of.verify(token, NOW.plus_ms(at_ms))
                .is_ok_and(|claims| of.is_current_local(&claims.identity.proof))
        };
        assert!(new != old && valid(&first, &old, 899_999) && valid(&first, &new, 1_199_999));
        assert!(!valid(&first, &old, 900_000) && !valid(&first, &new, 1_200_000), "short-lived");
        let second = open(dir.path()).await.unwrap();
        assert!(valid(&second, &token(), 0) && !valid(&second, &new, 300_000), "another start");
        first.renew_local(Instant(NOW.0 - 1)).unwrap();
        assert!(valid(&first, &token(), 0), "a clock that was set back");
    }

    #[tokio::test]
    async fn a_disk_without_room_for_a_file_keeps_no_local_token_from_being_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let authority = open(dir.path()).await.unwrap();
        let path = dir.path().join(TOKEN_FILE);
        let token = || fs::read_to_string(&path).unwrap();
        let old = token();
        // No other file can be made in the directory.
        fs::create_dir(path.with_extension("new")).unwrap();
        let due = NOW.plus_ms(300_000);
        authority.renew_local(due).unwrap();
        let new = token();
        let proof = authority.verify(new.trim(), due).unwrap().identity.proof;
        assert!(new != old && authority.is_current_local(&proof));
        fs::remove_file(&path).unwrap();
        assert!(authority.renew_local(due).is_err() && !path.exists(), "it was deleted");
        assert!(!authority.is_current_local(&proof));
    }

    #[tokio::test]
    async fn deleting_the_local_token_revokes_it() {
        let dir = tempfile::tempdir().unwrap();
        let authority = open(dir.path()).await.unwrap();
        let token = || fs::read_to_string(dir.path().join(TOKEN_FILE)).unwrap();
        let proof = |token: &str| authority.verify(token.trim(), NOW).unwrap().identity.proof;
        let old = proof(&token());
        fs::remove_file(dir.path().join(TOKEN_FILE)).unwrap();
        authority.renew_local(NOW).unwrap();
        assert!(!authority.is_current_local(&old) && authority.is_current_local(&proof(&token())));
        assert!(!authority.is_current_local(""));
        assert!(!Authority::new(Keys::from_bytes([1; 32])).is_current_local(""));
    }

    #[tokio::test]
    async fn a_lost_credentials_file_is_replaced_and_the_old_secret_ends() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()).await.unwrap());
        let old = credentials(dir.path()).client_secret;
        fs::remove_file(dir.path().join(CREDENTIALS_FILE)).unwrap();
        let authority = open(dir.path()).await.unwrap();
        let new = credentials(dir.path()).client_secret;
        assert!(!authority.is_current(&fingerprint(&hash_secret(&old))), "its tokens end, too");
        let grant = |secret: &str| authority.grant_built_in(ADMIN_CLIENT_ID, secret, NOW).unwrap();
        assert!(matches!(grant(&old), Err(Error::WrongCredentials)));
        assert!(grant(&new).is_ok());
    }

    #[tokio::test]
    async fn a_key_that_others_can_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()).await.unwrap());
        let key = dir.path().join(KEY_FILE);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(open(dir.path()).await, Err(Error::Exposed { .. })));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&key, b"short").unwrap();
        assert!(matches!(open(dir.path()).await, Err(Error::BadKey { .. })));
    }

    #[test]
    fn a_token_does_not_outlast_its_session_and_says_so() {
        let authority = Authority::new(Keys::from_bytes([1; 32]));
        let identity =
            Identity { name: "a".into(), principal: "user/1".into(), proof: String::new() };
        for (left_ms, valid_s) in [(90_000, 90), (1 << 40, GRANT_S), (0, 0)] {
            let end = NOW.plus_ms(left_ms);
            let granted = authority.issue_until(identity.clone(), NOW, end);
            assert_eq!(granted.expires_in_s, valid_s);
            let almost = NOW.plus_ms((valid_s * 1000).saturating_sub(1));
            assert_eq!(authority.verify(&granted.token, almost).is_ok(), valid_s > 0);
            assert!(authority.verify(&granted.token, NOW.plus_ms(valid_s * 1000)).is_err());
        }
    }

    #[test]
    fn wrong_credentials_are_refused() {
        let mut authority = Authority::new(Keys::from_bytes([1; 32]));
        authority.add_client("a", &hash_secret("s"), "ann");
        let grant = |id, secret| authority.grant_built_in(id, secret, NOW);
        assert!(matches!(grant("a", "s"), Some(Ok(_))));
        for secret in ["x", "", "s "] {
            assert!(matches!(grant("a", secret), Some(Err(Error::WrongCredentials))), "{secret}");
        }
        assert!(grant("b", "s").is_none() && grant("", "").is_none());
        assert!(authority.is_built_in_name("ANN") && !authority.is_built_in_name("bob"));
    }
}
