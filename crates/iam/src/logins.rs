//! Common parts of all ways to get a token: the name to log, the refusal, and the note of the
//! login.

use access::{Caller, Family, Item};
use api_types::TokenResponse;
use auth::{Granted, Principal};
use axum::http::StatusCode;
use http_kit::{ApiError, Origin};
use view::Scope;

use crate::Iam;
use crate::limit::Attempt;
use crate::subjects::{Login, ServiceAccount, User};

pub(super) fn wrong(why: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, why)
}

/// The answer to a wrong secret of a program or session. A right one is never refused because of
/// wrong ones: 256 random bits cannot be guessed. A client that tries without end has to slow down.
pub(super) fn wrong_secret(iam: &Iam, name: &str, origin: &Origin, why: &str) -> ApiError {
    let who = Attempt { name, address: &origin.address, known: false };
    iam.wrong_secrets.count(who, iam.now()).map_or_else(ApiError::too_many, |()| wrong(why))
}

pub(super) fn response(granted: Granted, refresh_token: Option<String>) -> TokenResponse {
    let (access_token, expires_in) = (granted.token, granted.expires_in_s);
    TokenResponse { access_token, expires_in, refresh_token }
}

/// Stores when a user got a token, and writes it to the audit log.
pub(super) async fn logged_in(
    iam: &Iam,
    principal: &Principal,
    name: &str,
    origin: &Origin,
) -> Result<(), ApiError> {
    let by_program = !matches!(principal, Principal::User(_) | Principal::Local);
    let caller = Caller { by_program, ..Caller::new(principal.clone(), name, origin.clone()) };
    let (owner, at_ms) = (principal.to_string(), iam.now().0);
    let address = origin.address.clone();
    let Some(before) = iam.login_of(&owner) else {
        let login = Login { at_ms, address, networks_before: Vec::new() };
        let made = iam.make_owned(&caller, Scope::Tenant, &owner, name, &login).await;
        // Another login of the same user may have come first.
        return match made {
            Err(error) if error.status != StatusCode::CONFLICT => Err(error),
            _ => Ok(()),
        };
    };
    let note = move |_: &mut String, login: &mut Login| {
        login.at_ms = login.at_ms.max(at_ms);
        login.came_from(&address);
        Ok(())
    };
    iam.change(&caller, &before.object.id, note).await.map(drop)
}

impl Iam {
    /// The user with this name.
    pub(crate) fn user_named(&self, name: &str) -> Result<Option<Item<User>>, ApiError> {
        let view = self.control.view();
        let mut users = view.objects.shelf(User::KIND).into_iter().flat_map(|all| all.values());
        let found = users.find(|user| user.name == name);
        Ok(found.map(Item::of).transpose()?)
    }

    /// The service account with this name, which older programs have for its id.
    pub(super) fn account_named(&self, name: &str) -> Option<Item<ServiceAccount>> {
        let view = self.control.view();
        let mut all = view.objects.shelf(ServiceAccount::KIND)?.values();
        Item::of(all.find(|account| account.name == name)?).ok()
    }

    /// The last login of a principal, `user/<id>`: its time and place.
    pub(super) fn login_of(&self, owner: &str) -> Option<Item<Login>> {
        let view = self.control.view();
        let mut logins = view.objects.shelf(Login::KIND)?.values();
        Item::of(logins.find(|login| login.owner == owner)?).ok()
    }
}
