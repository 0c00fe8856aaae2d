//! The one that grants tokens and checks them. Owns: the credentials known to this server, and
//! the files a new installation starts with:
//!
//! - `signing-key`: 32 random bytes. Deleting it makes all tokens invalid.
//! - `admin-credentials.json`: client id and secret of the administrator's application.
//! - `token`: a token of the administrator, for command lines of the same user on this machine;
//!   written anew at every start, so that it cannot run out under a server that is restarted.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use store::{Change, CredentialRow, Store};
use units::Instant;

use crate::token::{Claims, Keys, TokenFault};
use crate::{Error, files, hash_secret, new_secret, secret_matches};

/// The application every installation has.
pub const ADMIN_CLIENT_ID: &str = "elastane-admin";
/// File with the signing key.
pub const KEY_FILE: &str = "signing-key";
/// File with the administrator's client id and secret.
pub const CREDENTIALS_FILE: &str = "admin-credentials.json";
/// File with a token for this user's command lines.
pub const TOKEN_FILE: &str = "token";

/// How long a granted token is valid.
const GRANT_S: u64 = 24 * 3600;
/// How long the token in the state directory is valid.
const LOCAL_TOKEN_S: u64 = 365 * 24 * 3600;

/// Grants tokens and checks them.
#[derive(Debug, Clone)]
pub struct Authority {
    keys: Keys,
    clients: BTreeMap<String, Client>,
}

#[derive(Debug, Clone)]
struct Client {
    secret_sha256: String,
    subject: String,
}

/// A granted token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
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
    pub const fn new(keys: Keys) -> Self {
        Self { keys, clients: BTreeMap::new() }
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
        let token = authority.keys.issue(local_user, now, LOCAL_TOKEN_S) + "\n";
        files::write(&dir.join(TOKEN_FILE), token.as_bytes())?;
        Ok(authority)
    }

    /// Grants a token for a client id and its secret.
    ///
    /// # Errors
    /// Another grant type, or the two do not match.
    pub fn grant(
        &self,
        grant_type: &str,
        client_id: &str,
        secret: &str,
        now: Instant,
    ) -> Result<Granted, Error> {
        if !matches!(grant_type, "client_credentials" | "app_token") {
            return Err(Error::UnknownGrant(grant_type.to_owned()));
        }
        // The digest is taken for an unknown client, too, so that both refusals take equally long.
        let client = self.clients.get(client_id);
        let hash = client.map_or("", |client| client.secret_sha256.as_str());
        let matches = secret_matches(secret, hash);
        let client = client.filter(|_| matches).ok_or(Error::WrongCredentials)?;
        let token = self.keys.issue(&client.subject, now, GRANT_S);
        Ok(Granted { token, expires_in_s: GRANT_S })
    }

    /// What a token says, if it is valid.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn verify(&self, token: &str, now: Instant) -> Result<Claims, TokenFault> {
        self.keys.verify(token, now)
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

/// Whether the file holds the secret with this hash. A file that is missing, exposed or damaged
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
        assert_eq!(authority.verify(token.trim(), NOW).unwrap().sub, "ada");
        let own = credentials(dir.path());
        let granted =
            authority.grant("app_token", &own.client_id, &own.client_secret, NOW).unwrap();
        assert_eq!(authority.verify(&granted.token, NOW).unwrap().sub, ADMIN_CLIENT_ID);
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
            authority.grant("client_credentials", &own.client_id, &own.client_secret, NOW).unwrap()
        };
        let secret = credentials(dir.path()).client_secret;
        let authority = open(dir.path()).await.unwrap();
        assert!(authority.verify(&granted.token, NOW).is_ok());
        assert_eq!(credentials(dir.path()).client_secret, secret);
    }

    #[tokio::test]
    async fn a_lost_credentials_file_is_replaced_and_the_old_secret_ends() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()).await.unwrap());
        let old = credentials(dir.path()).client_secret;
        fs::remove_file(dir.path().join(CREDENTIALS_FILE)).unwrap();
        let authority = open(dir.path()).await.unwrap();
        let new = credentials(dir.path()).client_secret;
        let grant = |secret: &str| authority.grant("app_token", ADMIN_CLIENT_ID, secret, NOW);
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
    fn wrong_credentials_and_grants_are_refused() {
        let mut authority = Authority::new(Keys::from_bytes([1; 32]));
        authority.add_client("a", &hash_secret("s"), "ann");
        let grant = |kind, id, secret| authority.grant(kind, id, secret, NOW);
        assert!(grant("client_credentials", "a", "s").is_ok());
        for (id, secret) in [("a", "x"), ("b", "s"), ("", ""), ("a", "")] {
            let refused = grant("client_credentials", id, secret);
            assert!(matches!(refused, Err(Error::WrongCredentials)), "{id}/{secret}");
        }
        assert!(matches!(grant("password", "a", "s"), Err(Error::UnknownGrant(_))));
    }
}
