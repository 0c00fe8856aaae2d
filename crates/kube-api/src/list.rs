//! Lists. Owns: reading them page by page, and going on past objects that cannot be read. Does not
//! know about: what changes later (`watch`).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer;
use crate::client::{ApiRequest, Client};
use crate::error::{Error, Verb};
use crate::path::{Kind, Query, Target, with_parameters};
use crate::types::{Metadata, ObjectMeta, Resource, or_default};

/// Objects of a page.
const PAGE: &str = "500";
/// Most restarts of a list whose pages were compacted under it.
const RESTARTS_MAX: u32 = 3;

/// A part of a list.
#[derive(Debug)]
pub struct Page<R> {
    /// The objects.
    pub items: Vec<R>,
    /// Objects that cannot be read.
    pub unreadable: Vec<UnreadableObject>,
    /// Version of the whole list.
    pub resource_version: String,
    /// Token of the next page; none after the last one.
    pub next: Option<String>,
}

/// A whole list.
#[derive(Debug)]
pub struct Listed<R> {
    /// The objects.
    pub items: Vec<R>,
    /// Objects that cannot be read.
    pub unreadable: Vec<UnreadableObject>,
    /// Its version.
    pub resource_version: String,
}

/// An object with a field of another type than the API server gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableObject {
    /// The metadata, as far as it can be read.
    pub meta: ObjectMeta,
    /// The field that is wrong, and why.
    pub fault: String,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Wire<R> {
    #[serde(default, deserialize_with = "or_default")]
    metadata: ListMeta,
    #[serde(default = "Vec::new", deserialize_with = "or_default")]
    items: Vec<R>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    #[serde(deserialize_with = "or_default")]
    resource_version: String,
    #[serde(rename = "continue", deserialize_with = "or_default")]
    next: String,
}

impl Client {
    /// All objects of a kind.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn list<R: Resource>(&self, query: &Query) -> Result<Listed<R>, Error> {
        let mut restarts = 0;
        loop {
            match self.all_pages(query).await {
                Err(error) if error.is_expired() && restarts < RESTARTS_MAX => restarts += 1,
                done => return done,
            }
        }
    }

    async fn all_pages<R: Resource>(&self, query: &Query) -> Result<Listed<R>, Error> {
        let (mut items, mut unreadable, mut from) = (Vec::new(), Vec::new(), None);
        loop {
            let page = self.page::<R>(query, from.as_deref()).await?;
            items.extend(page.items);
            unreadable.extend(page.unreadable);
            from = page.next;
            if from.is_none() {
                let resource_version = page.resource_version;
                return Ok(Listed { items, unreadable, resource_version });
            }
        }
    }

    /// A page of a list, from where the one before ended.
    ///
    /// # Errors
    /// The API server does not answer, or refuses; [`Error::is_expired`] if the list has to begin
    /// again.
    pub async fn page<R: Resource>(
        &self,
        query: &Query,
        from: Option<&str>,
    ) -> Result<Page<R>, Error> {
        let target = Target { namespace: query.namespace.as_deref(), ..Target::default() };
        let kind = Kind::of::<R>();
        let parameters = [
            ("limit", PAGE),
            ("continue", from.unwrap_or_default()),
            ("labelSelector", &query.labels),
            ("fieldSelector", &query.fields),
        ];
        let path = with_parameters(kind.path(target), &parameters);
        let asked = ApiRequest::reading(kind.call(Verb::List, target), path);
        let body = self.ask_bytes(&asked).await?;
        // Nearly always all can be read, and that is three times as fast.
        let (wire, unreadable) = match serde_json::from_slice::<Wire<R>>(&body) {
            Ok(wire) => (wire, Vec::new()),
            Err(_) => one_by_one(answer::read(&asked.call, &body)?),
        };
        let Wire { metadata: ListMeta { resource_version, next }, items } = wire;
        let next = Some(next).filter(|next| !next.is_empty());
        Ok(Page { items, unreadable, resource_version, next })
    }
}

fn one_by_one<R: DeserializeOwned>(wire: Wire<Value>) -> (Wire<R>, Vec<UnreadableObject>) {
    let (mut items, mut unreadable) = (Vec::new(), Vec::new());
    for value in wire.items {
        match R::deserialize(&value) {
            Ok(item) => items.push(item),
            Err(error) => unreadable.push(UnreadableObject::of(&value, &error)),
        }
    }
    (Wire { metadata: wire.metadata, items }, unreadable)
}

impl UnreadableObject {
    pub(crate) fn of(value: &Value, error: &serde_json::Error) -> Self {
        let meta = Metadata::deserialize(value).unwrap_or_default().metadata;
        Self { meta, fault: error.to_string() }
    }
}
