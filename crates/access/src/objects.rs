//! Families of objects: what a family of documents (users, rules, assets, templates, …) needs to
//! be kept, found and changed. A new one is a storage type with a [`Family`] and its routes.
//!
//! Owns: between a typed body and the document that `control` keeps. Does not know about: routes
//! and who may do what.

use std::sync::Arc;

use axum::http::StatusCode;
use http_kit::ApiError;
use orchestrator::{Edit, NewId, NewObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use view::{Object, Scope};

use crate::Backend;
use crate::caller::{Caller, audit_detail};

/// A family of objects. The implementing type is what is stored of one, beside its id, name,
/// scope, times and authors: a field may be added with a default, never renamed. Hashes of secrets
/// lie under the field `secrets`, which ends with the object.
pub trait Family: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Kind in the database, the audit log and errors: `user`, `access-rule`.
    const KIND: &'static str;
    /// True if ids are integers; else they are UUIDs.
    const NUMBERED: bool = false;
}

/// An object with its body.
#[derive(Debug)]
pub struct Item<F> {
    /// Id, name, scope, times and authors.
    pub object: Arc<Object>,
    /// Fields that are not columns.
    pub body: F,
}

impl<F: Family> Item<F> {
    /// Reads an item from its object.
    pub fn of(object: &Arc<Object>) -> Result<Self, orchestrator::Error> {
        Ok(Self { object: object.clone(), body: body(object)? })
    }
}

fn body<F: Family>(object: &Object) -> Result<F, orchestrator::Error> {
    F::deserialize(&object.body).map_err(|error| orchestrator::Error::Internal {
        message: format!("{} {} cannot be read: {error}", object.kind, object.id),
    })
}

fn document<F: Family>(body: &F) -> Result<serde_json::Value, orchestrator::Error> {
    serde_json::to_value(body).map_err(|error| orchestrator::Error::Internal {
        message: format!("a {} cannot be written: {error}", F::KIND),
    })
}

impl Backend {
    /// The way to the dispatcher for a request; the audit log notes its origin.
    pub fn asked_by(&self, caller: &Caller) -> control::Handle {
        self.control.asked_from(audit_detail(&caller.origin, caller.by_program, None))
    }

    /// All of a family, in order of creation.
    pub fn all<F: Family>(&self) -> Result<Vec<Item<F>>, ApiError> {
        let all = self.control.view().objects.all(F::KIND);
        Ok(all.iter().map(Item::of).collect::<Result<_, _>>()?)
    }

    /// The one with this id.
    pub fn one<F: Family>(&self, id: &str) -> Result<Item<F>, ApiError> {
        let view = self.control.view();
        let found = view.objects.get(F::KIND, id);
        Ok(Item::of(found.ok_or_else(|| ApiError::no_such(F::KIND, id))?)?)
    }

    /// Creates one. A name that is taken in its scope is a conflict.
    pub async fn make<F: Family>(
        &self,
        by: &Caller,
        scope: Scope,
        name: &str,
        body: &F,
    ) -> Result<Item<F>, ApiError> {
        self.make_owned(by, scope, "", name, body).await
    }

    /// Creates one with an id that its body depends on.
    pub async fn make_as<F: Family>(
        &self,
        by: &Caller,
        id: Uuid,
        scope: Scope,
        name: &str,
        body: &F,
    ) -> Result<Item<F>, ApiError> {
        self.create(by, (NewId::Given(id), scope, "", None), name, body).await
    }

    /// Creates one that ends with its owner, `<kind>/<id>`; names are taken within the owner.
    pub async fn make_owned<F: Family>(
        &self,
        by: &Caller,
        scope: Scope,
        owner: &str,
        name: &str,
        body: &F,
    ) -> Result<Item<F>, ApiError> {
        let id = if F::NUMBERED { NewId::Number } else { NewId::Any };
        self.create(by, (id, scope, owner, None), name, body).await
    }

    /// Creates one, and ends the oldest of the owner when there are more than `most`.
    pub async fn make_newest<F: Family>(
        &self,
        by: &Caller,
        (owner, most): (&str, usize),
        name: &str,
        body: &F,
    ) -> Result<Item<F>, ApiError> {
        self.create(by, (NewId::Any, Scope::Tenant, owner, Some(most)), name, body).await
    }

    async fn create<F: Family>(
        &self,
        by: &Caller,
        (id, scope, owner, newest): (NewId, Scope, &str, Option<usize>),
        name: &str,
        body: &F,
    ) -> Result<Item<F>, ApiError> {
        let new = NewObject {
            kind: F::KIND,
            id,
            scope,
            owner: owner.to_owned(),
            name: name.to_owned(),
            body: document(body)?,
            newest,
        };
        Ok(Item::of(&self.asked_by(by).create_object(&by.subject, new).await?)?)
    }

    /// Changes one: `edit` gets its name and body as they are when the change is made, and may
    /// refuse. Two concurrent changes are both kept.
    pub async fn change<F: Family>(
        &self,
        by: &Caller,
        id: &str,
        edit: impl Fn(&mut String, &mut F) -> Result<(), orchestrator::Error> + Send + Sync + 'static,
    ) -> Result<Item<F>, ApiError> {
        let edit = Edit::new(move |object| {
            let (mut name, mut body) = (object.name.clone(), body::<F>(object)?);
            edit(&mut name, &mut body)?;
            Ok((name, document(&body)?))
        });
        Ok(Item::of(&self.asked_by(by).update_object(&by.subject, F::KIND, id, edit).await?)?)
    }

    /// Gives the one of this name and scope its body; where there is none it is made.
    pub async fn put<F: Family + Clone>(
        &self,
        by: &Caller,
        scope: Scope,
        name: &str,
        body: F,
    ) -> Result<Item<F>, ApiError> {
        let found = || self.control.view().objects.named(F::KIND, scope, name).cloned();
        let there = match found() {
            Some(there) => there,
            None => match self.make(by, scope, name, &body).await {
                // Another request has just created it: this one counts as the later one.
                Err(fault) if fault.status == StatusCode::CONFLICT => found().ok_or(fault)?,
                made => return made,
            },
        };
        let edit = move |_: &mut String, kept: &mut F| {
            kept.clone_from(&body);
            Ok(())
        };
        self.change(by, &there.id, edit).await
    }

    /// Deletes one and what ends with it; answers what it was.
    pub async fn remove<F: Family>(&self, by: &Caller, id: &str) -> Result<Item<F>, ApiError> {
        Ok(Item::of(&self.asked_by(by).delete_object(&by.subject, F::KIND, id).await?)?)
    }
}
