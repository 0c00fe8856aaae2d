//! A route. Owns: that what is served and what is said of it are one value.

use auth::{Action, Resource};
use axum::extract::Extension;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use utoipa::ToSchema;

use super::describe::{Described, Description};
use crate::access::{Access, Where};
use crate::edge::Row;

/// A route: one method of one path.
pub(crate) struct Route<S> {
    pub(crate) path: &'static str,
    pub(crate) method: Method,
    /// Name of the operation; the published one where there is one.
    pub(crate) id: &'static str,
    /// One line for people.
    pub(crate) about: &'static str,
    /// Family it belongs to.
    pub(crate) family: &'static str,
    pub(crate) access: Access,
    /// Whether it may take longer than an answer usually may.
    pub(crate) patient: bool,
    /// Whether it only says what to use instead.
    pub(crate) deprecated: bool,
    /// What it says of itself. Made when somebody asks: all of them together are megabytes.
    describe: Vec<fn(&mut Description)>,
    /// Schemas shared with other families, and their published names in this one.
    pub(crate) names: Vec<(&'static str, &'static str)>,
    pub(crate) serve: MethodRouter<S>,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    fn new<H, T, A>(
        (method, filter): (Method, MethodFilter),
        (path, id, about): (&'static str, &'static str, &'static str),
        handler: H,
    ) -> Self
    where
        H: Handler<T, S> + Described<A>,
        T: 'static,
    {
        Self {
            path,
            method,
            id,
            about,
            family: "",
            access: Access::Undeclared,
            patient: false,
            deprecated: false,
            describe: vec![H::describe],
            names: Vec::new(),
            serve: on(filter, handler),
        }
    }

    /// What is known of it.
    pub(crate) fn description(&self) -> Description {
        let mut description = Description::default();
        for describe in &self.describe {
            describe(&mut description);
        }
        description
    }

    /// Needs no token.
    pub(crate) fn open(mut self) -> Self {
        self.access = Access::Open;
        self
    }

    /// Needs a token, and no role.
    pub(crate) fn own(mut self) -> Self {
        self.access = Access::Token;
        self
    }

    /// Needs a role that allows this there.
    pub(crate) fn needs(mut self, action: Action, resource: Resource, place: Where) -> Self {
        self.access = Access::Role(action, resource, place);
        self
    }

    /// May take as long as it takes.
    pub(crate) fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// Only says what to use instead.
    pub(crate) fn deprecated(mut self) -> Self {
        self.deprecated = true;
        self
    }

    /// One of this family.
    pub(crate) fn of(mut self, family: &'static str) -> Self {
        self.family = family;
        self
    }

    /// Hands the handler a value that tells it from its siblings.
    pub(crate) fn with<V: Clone + Send + Sync + 'static>(mut self, value: V) -> Self {
        self.serve = self.serve.layer(Extension(value));
        self
    }

    /// Says by which fields of what it lists can be sorted and filtered.
    pub(crate) fn rows<T: Row>(mut self) -> Self {
        self.describe.push(Description::rows::<T>);
        self
    }

    /// Describes the part of a generic type, which that only refers to.
    pub(crate) fn part<T: ToSchema>(mut self) -> Self {
        self.describe.push(|to| {
            to.refer::<T>();
        });
        self
    }

    /// Gives a schema that several families share its published name in this one.
    pub(crate) fn naming(mut self, shared: &'static str, published: &'static str) -> Self {
        self.names.push((shared, published));
        self
    }
}

/// A route that answers a method that is data; none for one that has no routes.
pub(crate) fn any<S, H, T, A>(
    method: Method,
    path: &'static str,
    (id, about): (&'static str, &'static str),
    handler: H,
) -> Option<Route<S>>
where
    S: Clone + Send + Sync + 'static,
    H: Handler<T, S> + Described<A>,
    T: 'static,
{
    let filter = MethodFilter::try_from(method.clone()).ok()?;
    Some(Route::new((method, filter), (path, id, about), handler))
}

macro_rules! method {
    ($name:ident, $method:ident) => {
        #[doc = concat!("A route that answers ", stringify!($method), ".")]
        pub(crate) fn $name<S, H, T, A>(
            path: &'static str,
            id: &'static str,
            about: &'static str,
            handler: H,
        ) -> Route<S>
        where
            S: Clone + Send + Sync + 'static,
            H: Handler<T, S> + Described<A>,
            T: 'static,
        {
            Route::new((Method::$method, MethodFilter::$method), (path, id, about), handler)
        }
    };
}

method!(get, GET);
method!(post, POST);
method!(put, PUT);
method!(patch, PATCH);
method!(delete, DELETE);
