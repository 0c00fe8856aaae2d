//! Validity of a token now. A good signature is not enough: its principal must still exist, and the
//! session or secret it was given for must not have ended.

use std::sync::Arc;

use auth::{Claims, Principal, fingerprint};

use access::{Authenticator, Caller, Family, Item, Refusal, audit_detail};
use axum::http::StatusCode;
use http_kit::Origin;

use crate::Iam;
use crate::session::Session;
use crate::subjects::{AccessKey, ServiceAccount, User};

const REVOKED: &str = "the token was revoked; get a new one";

impl Authenticator for Iam {
    fn has_signed(&self, token: &str) -> bool {
        self.authority.has_signed(token)
    }

    fn check(&self, token: &str, origin: Origin) -> Result<Caller, Refusal> {
        let claims = self.authority.verify(token, self.now());
        let claims = claims.map_err(|why| Refusal { why: why.to_string(), who: String::new() })?;
        let revoked = || Refusal { why: REVOKED.to_owned(), who: claims.identity.name.clone() };
        let who = revoked();
        self.caller_with(claims, origin).ok_or(who)
    }

    fn again(&self, caller: &Caller) -> Option<Caller> {
        // The local administrator's token is replaced all the time; what it began goes on until
        // those of this start are revoked.
        let is_local = caller.principal == Principal::Local;
        let lasts = |claims: &Arc<Claims>| is_local || claims.exp > self.now().0 / 1000;
        let claims = caller.claims.clone().filter(lasts)?;
        self.caller_with(claims, caller.origin.clone())
    }

    fn note_refusal(
        &self,
        origin: &Origin,
        (who, by_program): (&str, bool),
        status: StatusCode,
        why: &str,
    ) {
        if self.notes_refusal(who, origin) {
            let control = self.control.asked_from(audit_detail(origin, by_program, Some(status)));
            control.record(who, "request", &origin.path, why);
        }
    }
}

impl Iam {
    /// The caller and what it may do now, if the token was not revoked.
    pub(crate) fn caller_with(
        &self,
        claims: impl Into<Arc<Claims>>,
        origin: Origin,
    ) -> Option<Caller> {
        let claims = claims.into();
        let caller = self.caller(&claims, origin)?;
        let grants = self.rules().of(&caller.principal, &caller.groups);
        Some(Caller { grants, view: self.control.view(), claims: Some(claims), ..caller })
    }

    /// The session with this id of a principal, while it lasts.
    fn lasting(&self, id: &str, of: &Principal) -> Option<Item<Session>> {
        let session = self.living::<Session>(id)?;
        let own = session.object.owner == of.to_string();
        (own && session.body.expires_at_ms > self.now().0).then_some(session)
    }

    /// The caller, if the token was not revoked.
    fn caller(&self, claims: &Claims, origin: Origin) -> Option<Caller> {
        let name = &claims.identity.name;
        let proof = &claims.identity.proof;
        let principal: Principal = claims.identity.principal.parse().ok()?;
        let caller = |principal, name: &str| Caller::new(principal, name, origin.clone());
        match &principal {
            Principal::Local if self.authority.is_current_local(proof) => {
                Some(caller(Principal::Local, name))
            }
            // The local administrator in a browser.
            Principal::Local => {
                let session = self.lasting(proof, &principal)?;
                self.authority.is_current_local(&session.body.password_mark).then(|| Caller {
                    session: Some(session.object.id.clone()),
                    ..caller(Principal::Local, name)
                })
            }
            Principal::Admin => {
                self.authority.is_current(proof).then(|| caller(Principal::Admin, name))
            }
            Principal::User(id) => {
                let user = self.living::<User>(id)?;
                let session = self.lasting(proof, &principal)?;
                self.is_of(&session.body, &user.body).then(|| Caller {
                    session: Some(session.object.id.clone()),
                    groups: session.body.groups(&user.body),
                    must_change_password: user.body.must_change && !session.body.by_provider,
                    since: user.object.created_at,
                    ..caller(principal.clone(), &user.object.name)
                })
            }
            Principal::ServiceAccount(id) => {
                let account = self.living::<ServiceAccount>(id)?;
                let current = account.body.proof() == *proof;
                (account.body.enabled && current).then(|| Caller {
                    since: account.object.created_at,
                    ..caller(principal.clone(), &account.object.name)
                })
            }
            Principal::AccessKey(id) => {
                let key = self.living::<AccessKey>(id)?;
                let user = key.object.owner.strip_prefix("user/")?;
                let (name, since) = {
                    let user = self.living::<User>(user)?.object;
                    (user.name.clone(), user.created_at)
                };
                let current = fingerprint(&key.body.secrets.sha256) == *proof;
                let caller = caller(Principal::User(user.to_owned()), &name);
                current.then_some(Caller { by_program: true, since, ..caller })
            }
        }
    }

    /// The one of a family with this id, if there is one.
    pub(super) fn living<F: Family>(&self, id: &str) -> Option<Item<F>> {
        let view = self.control.view();
        Item::of(view.objects.get(F::KIND, id)?).ok()
    }
}
