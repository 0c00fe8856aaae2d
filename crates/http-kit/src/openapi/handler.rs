//! A handler without its type. Owns: that what axum makes for a route exists once in a program, and
//! not once for each handler. Does not know about: routes.
//!
//! Axum keeps a handler's type through seven services and futures, nested in each other, until it
//! boxes them. For 260 handlers that was two thirds of the time it took to compile the crate with
//! the table of routes, for code that does the same.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;

/// The answer that a handler is working on; that of every function with extractors.
pub(super) type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler behind a pointer.
pub(super) struct Erased<S>(Arc<dyn Fn(Request, S) -> Answer + Send + Sync>);

impl<S> Erased<S> {
    pub(super) fn new<H, T>(handler: H) -> Self
    where
        H: Handler<T, S, Future = Answer>,
    {
        Self(Arc::new(move |request, state| handler.clone().call(request, state)))
    }
}

impl<S> Clone for Erased<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: 'static> Handler<(), S> for Erased<S> {
    type Future = Answer;

    fn call(self, request: Request, state: S) -> Answer {
        (self.0)(request, state)
    }
}
