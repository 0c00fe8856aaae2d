//! Principals: stored users, service accounts and access keys, how they get tokens, and the
//! validity of a token now.
//!
//! Owns: users, service accounts, access keys, sessions. Does not know what they may do.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::{Caller, DocumentView, DocumentViewKind, Family, Item};
use api_types::{ChangeKind, Time};
use auth::{PasswordHash, Principal, Resource};
use axum::http::StatusCode;
use http_kit::{ApiError, Origin};
use serde::{Deserialize, Serialize};
use units::Instant;
use view::View;

use crate::Iam;
use crate::limit::{self, Attempt};

/// A person; the name is the e-mail address in small letters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct User {
    /// True if the password was given out and has to be changed first.
    pub(crate) must_change: bool,
    #[serde(default)]
    pub(crate) secrets: UserSecrets,
    /// The account at the login provider, once it was used.
    #[serde(default)]
    pub(crate) account: Option<Account>,
}

/// An account at a login provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) issuer: String,
    /// Id of the account at the provider; never given to another person.
    pub(crate) subject: String,
    /// The groups of the last login.
    #[serde(default)]
    pub(crate) groups: Arc<[String]>,
}

impl User {
    /// True if this server checks a password of it.
    pub(crate) fn is_local(&self) -> bool {
        self.secrets.password.is_some()
    }
}

impl Account {
    /// Fingerprint of the account, without its groups.
    pub(crate) fn mark(&self) -> String {
        auth::fingerprint(&format!("{} {}", self.issuer, self.subject))
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct UserSecrets {
    pub(crate) password: Option<PasswordHash>,
}

impl Family for User {
    const KIND: &'static str = "user";
}

/// A program. Its id is its client id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServiceAccount {
    pub(crate) enabled: bool,
    /// How often it was switched off; earlier tokens stay invalid.
    #[serde(default)]
    pub(crate) switched_off: u64,
    #[serde(default)]
    pub(crate) secrets: ClientSecret,
}

impl ServiceAccount {
    /// Proof in its tokens: it changes with the secret, and when the account is switched off.
    pub(crate) fn proof(&self) -> String {
        auth::fingerprint(&format!("{} {}", self.secrets.sha256, self.switched_off))
    }
}

impl Family for ServiceAccount {
    const KIND: &'static str = "service-account";
}

/// A key by which a program speaks for a person, its owner.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct AccessKey {
    #[serde(default)]
    pub(crate) secrets: ClientSecret,
}

impl Family for AccessKey {
    const KIND: &'static str = "access-key";
}

/// The hash of the secret of a program; an empty one matches nothing.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct ClientSecret {
    pub(crate) sha256: String,
}

impl std::fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientSecret(..)")
    }
}

impl ClientSecret {
    /// A new secret, and what is kept of it.
    pub(crate) fn generate() -> Result<(String, Self), ApiError> {
        let secret = auth::new_secret().map_err(ApiError::internal)?;
        let sha256 = auth::hash_secret(&secret);
        Ok((secret, Self { sha256 }))
    }
}

/// When and where a principal got its last token. Apart from the principal, so that a login is no
/// change of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Login {
    pub(crate) at_ms: u64,
    #[serde(default)]
    pub(crate) address: String,
    /// Networks of earlier logins, the last one first.
    #[serde(default)]
    pub(crate) networks_before: Vec<String>,
}

/// Most networks remembered besides the last one.
const NETWORKS_BEFORE_MAX: usize = 7;

impl Login {
    /// True if it came from the network of this address before.
    pub(crate) fn is_known_at(&self, address: &str) -> bool {
        let network = limit::network(address);
        limit::network(&self.address) == network || self.networks_before.contains(&network)
    }

    /// Notes that it came from this address.
    pub(crate) fn came_from(&mut self, address: &str) {
        let (last, network) = (limit::network(&self.address), limit::network(address));
        self.address = address.to_owned();
        if last != network {
            self.networks_before.retain(|before| *before != network && *before != last);
            self.networks_before.insert(0, last);
            self.networks_before.truncate(NETWORKS_BEFORE_MAX);
        }
    }
}

/// Owner and time of a login.
fn login(item: &Item<Login>) -> (String, Time) {
    (item.object.owner.clone(), Time(Instant(item.body.at_ms)))
}

impl Family for Login {
    const KIND: &'static str = "login";
}

/// Documents of this crate in the stream of changes: users, each with the time of its last token.
#[must_use]
pub fn documents() -> [DocumentViewKind; 2] {
    let users = DocumentViewKind {
        stored: User::KIND,
        kind: ChangeKind::User,
        resource: Resource::Users,
        is_part: false,
        shown: |_, view, user| shown(view, &user.id),
    };
    let logins = DocumentViewKind {
        stored: Login::KIND,
        is_part: true,
        shown: |_, view, login| match login.owner.strip_prefix("user/") {
            Some(user) => shown(view, user),
            None => Ok(None),
        },
        ..users
    };
    [users, logins]
}

/// A user as it is shown, with when it got its last token.
fn shown(view: &View, id: &str) -> Result<Option<DocumentView>, ApiError> {
    let Some(user) = view.objects.get(User::KIND, id) else { return Ok(None) };
    let logins = logins_of(view, &user.key())?;
    DocumentView::new(id, &crate::routes::user(&logins, &Item::of(user)?)).map(Some)
}

/// Time of the last token of one principal, `user/<id>`.
fn logins_of(view: &View, owner: &str) -> Result<BTreeMap<String, Time>, ApiError> {
    let all = view.objects.shelf(Login::KIND).into_iter().flat_map(|all| all.values());
    all.filter(|object| object.owner == owner).map(|object| Ok(login(&Item::of(object)?))).collect()
}

impl Iam {
    /// True if another refusal is written to the audit log. A caller that is refused all the time
    /// does not fill the disk with that: what is too much is left out.
    pub(crate) fn notes_refusal(&self, name: &str, origin: &Origin) -> bool {
        let who = Attempt { name, address: &origin.address, known: false };
        self.refusals.count(who, self.now()).is_ok()
    }

    /// Time of the last token of each principal, `user/<id>`.
    pub(crate) fn logins(&self) -> Result<BTreeMap<String, Time>, ApiError> {
        Ok(self.all::<Login>()?.iter().map(login).collect())
    }

    /// Time of the last token of the principal of a document that is shown alone.
    pub(crate) fn logins_of<D>(&self, of: &Item<D>) -> Result<BTreeMap<String, Time>, ApiError> {
        logins_of(&self.control.view(), &of.object.key())
    }

    /// Ends what a user has of a family: sessions, keys.
    pub(crate) async fn end_all<F: Family>(
        &self,
        caller: &Caller,
        user: &str,
    ) -> Result<(), ApiError> {
        self.end_all_of::<F>(caller, &Principal::User(user.to_owned()).to_string()).await
    }

    /// Ends what a principal has of a family.
    pub(crate) async fn end_all_of<F: Family>(
        &self,
        caller: &Caller,
        owner: &str,
    ) -> Result<(), ApiError> {
        for own in self.all::<F>()? {
            if own.object.owner == owner {
                self.end::<F>(caller, &own.object.id).await?;
            }
        }
        Ok(())
    }

    /// Deletes one, if it is still there.
    pub(crate) async fn end<F: Family>(&self, caller: &Caller, id: &str) -> Result<(), ApiError> {
        match self.remove::<F>(caller, id).await {
            Err(error) if error.status != StatusCode::NOT_FOUND => Err(error),
            _ => Ok(()),
        }
    }
}
