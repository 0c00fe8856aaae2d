//! Requests that take a few parameters. Owns: that they are checked and described from one table,
//! and that any other is refused, not ignored.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::ApiError;
use super::list::{ListQuery, parameters, unknown_word};
use super::parameters::Parameter;
use crate::openapi::{Description, Input};

/// Parameters that an operation accepts.
pub trait Takes: Send + 'static {
    /// Its parameters.
    const PARAMETERS: &'static [Parameter];
}

/// The parameters of a request, checked.
pub struct QueryParameters<T>(Vec<(String, String)>, PhantomData<T>);

impl<T> QueryParameters<T> {
    /// True if a flag is set.
    pub fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|(name, value)| name == flag && value == "true")
    }

    /// The value of a parameter, where it is given.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The list query, if these are the parameters of a list.
    pub fn list(&self) -> Result<ListQuery, ApiError> {
        ListQuery::parse(&self.0)
    }
}

impl<T: Takes> Input for QueryParameters<T> {
    fn describe(to: &mut Description) {
        for (name, allowed, about) in T::PARAMETERS {
            to.parameter_of(name, allowed.schema(), about);
        }
    }
}

impl<S: Sync, T: Takes> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let given = parameters(&parts.uri)?;
        for (name, value) in &given {
            let known = T::PARAMETERS.iter().find(|(known, ..)| known == name);
            let Some((_, allowed, _)) = known else {
                let known: Vec<&str> = T::PARAMETERS.iter().map(|row| row.0).collect();
                return Err(unknown_word("parameter", name, &known));
            };
            allowed.check(name, value)?;
        }
        Ok(Self(given, PhantomData))
    }
}

/// Declares what operations take.
#[macro_export]
macro_rules! takes {
    ($($(#[$about:meta])* $visible:vis $name:ident: $($parameter:expr),+;)+) => {
        $(
            $(#[$about])*
            $visible struct $name;

            impl $crate::Takes for $name {
                const PARAMETERS: &'static [$crate::Parameter] = &[$($parameter),+];
            }
        )+
    };
}

use super::parameters::{DELETED, LIMIT, OFFSET, SORT_ORDER};

takes! {
    /// Selects living or deleted rows.
    pub Deleted: DELETED;
    /// A page.
    pub Page: OFFSET, LIMIT;
    /// A page, and which end comes first.
    pub OrderedPage: OFFSET, LIMIT, SORT_ORDER;
}
