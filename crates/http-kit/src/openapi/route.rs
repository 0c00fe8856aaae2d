//! A route. Owns: its handler and its description are one value.

use axum::extract::Extension;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use utoipa::ToSchema;

use super::describe::{Described, Description};
use super::handler::{Answer, Erased};
use crate::row::Row;

/// Credential that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access<N> {
    /// No access was declared: every caller is refused.
    Undeclared,
    /// No credential.
    Open,
    /// A token: the route is about the caller, or its data is no secret.
    Token,
    /// A role that allows this.
    Role(N),
}

/// A route: one method of one path. `N` is the permission it needs.
pub struct Route<S, N> {
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The method.
    pub method: Method,
    /// Name of the operation; the published one where there is one.
    pub id: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Family it belongs to.
    pub family: &'static str,
    /// Credential that it needs.
    pub access: Access<N>,
    /// True if it may take longer than the usual limit.
    pub patient: bool,
    /// True if its response only names a replacement.
    pub deprecated: bool,
    /// Parts of its description. Made on demand: all of them together are megabytes.
    describe: Vec<fn(&mut Description)>,
    /// Schemas shared with other families, and their published names in this one.
    pub names: Vec<(&'static str, &'static str)>,
    /// The handler.
    pub serve: MethodRouter<S>,
}

impl<S: Clone + Send + Sync + 'static, N> Route<S, N> {
    fn new<H, T, A>(
        (method, filter): (Method, MethodFilter),
        (path, id, about): (&'static str, &'static str, &'static str),
        handler: H,
    ) -> Self
    where
        H: Handler<T, S, Future = Answer> + Described<A>,
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
            serve: on(filter, Erased::new(handler)),
        }
    }

    /// Its description.
    pub fn description(&self) -> Description {
        let mut description = Description::default();
        for describe in &self.describe {
            describe(&mut description);
        }
        description
    }

    /// Needs no token.
    pub fn open(mut self) -> Self {
        self.access = Access::Open;
        self
    }

    /// Needs a token, and no role.
    pub fn own(mut self) -> Self {
        self.access = Access::Token;
        self
    }

    /// Needs a role that allows this to that, there.
    pub fn needs<A, R, P>(mut self, action: A, resource: R, place: P) -> Self
    where
        N: From<(A, R, P)>,
    {
        self.access = Access::Role((action, resource, place).into());
        self
    }

    /// May take as long as it takes.
    pub fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// Marks a route whose response only names a replacement.
    pub fn deprecated(mut self) -> Self {
        self.deprecated = true;
        self
    }

    /// Sets the family.
    pub fn of(mut self, family: &'static str) -> Self {
        self.family = family;
        self
    }

    /// Passes a value to the handler that distinguishes it from others with the same function.
    pub fn with<V: Clone + Send + Sync + 'static>(mut self, value: V) -> Self {
        self.serve = self.serve.layer(Extension(value));
        self
    }

    /// Adds the fields that its list can be sorted and filtered by.
    pub fn rows<T: Row<L>, L>(mut self) -> Self {
        self.describe.push(Description::rows::<T, L>);
        self
    }

    /// Describes the part of a generic type, which that only refers to.
    pub fn part<T: ToSchema>(mut self) -> Self {
        self.describe.push(|to| {
            to.refer::<T>();
        });
        self
    }

    /// Gives a schema that several families share its published name in this one.
    pub fn naming(mut self, shared: &'static str, published: &'static str) -> Self {
        self.names.push((shared, published));
        self
    }
}

/// A route that answers a method that is data; none for one that has no routes.
pub fn any<S, N, H, T, A>(
    method: Method,
    path: &'static str,
    (id, about): (&'static str, &'static str),
    handler: H,
) -> Option<Route<S, N>>
where
    S: Clone + Send + Sync + 'static,
    H: Handler<T, S, Future = Answer> + Described<A>,
    T: 'static,
{
    let filter = MethodFilter::try_from(method.clone()).ok()?;
    Some(Route::new((method, filter), (path, id, about), handler))
}

macro_rules! method {
    ($name:ident, $method:ident) => {
        #[doc = concat!("A route that answers ", stringify!($method), ".")]
        pub fn $name<S, N, H, T, A>(
            path: &'static str,
            id: &'static str,
            about: &'static str,
            handler: H,
        ) -> Route<S, N>
        where
            S: Clone + Send + Sync + 'static,
            H: Handler<T, S, Future = Answer> + Described<A>,
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
