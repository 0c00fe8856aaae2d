//! Responses whose type determines their status or format.

use std::borrow::Cow;
use std::marker::PhantomData;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// 201: it exists now.
pub struct Created<T>(pub T);
/// 202: it will be done.
pub struct Accepted<T>(pub T);
/// 202: it will be done, with something that its user has to know.
pub struct Noticed<T> {
    /// The answer.
    pub body: T,
    /// A sentence for its user, in the header of notices.
    pub notice: Option<String>,
}
/// 200 without a body.
pub struct Done;
/// 204: done, without a body.
pub struct NoContent;
/// Text that may still be growing.
pub struct PlainText(pub Body);
/// The connection goes over to a WebSocket.
pub struct Switched(pub Response);
/// A page.
pub struct Html(pub Cow<'static, str>);
/// JSON that is text already.
pub struct JsonText(pub Cow<'static, str>);

/// A `T` that is JSON already.
pub struct Written<T> {
    text: String,
    shape: PhantomData<T>,
}

impl<T> Written<T> {
    /// The text of one.
    pub const fn new(text: String) -> Self {
        Self { text, shape: PhantomData }
    }
}

/// A program to keep.
pub struct Binary {
    /// Name of the file.
    pub name: &'static str,
    /// Its length in bytes.
    pub length: u64,
    /// Its content.
    pub body: Body,
}

/// A file to keep.
pub struct Attachment {
    /// Name of the file.
    pub name: &'static str,
    /// Its format.
    pub media_type: &'static str,
    /// Its content.
    pub text: String,
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

impl<T: Serialize> IntoResponse for Noticed<T> {
    fn into_response(self) -> Response {
        let mut response = Accepted(self.body).into_response();
        let notice = self.notice.and_then(|text| HeaderValue::from_bytes(text.as_bytes()).ok());
        if let Some(notice) = notice {
            response.headers_mut().insert(api_types::NOTICE_HEADER, notice);
        }
        response
    }
}

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        StatusCode::OK.into_response()
    }
}

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl IntoResponse for Switched {
    fn into_response(self) -> Response {
        self.0
    }
}

impl IntoResponse for PlainText {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], self.0).into_response()
    }
}

impl IntoResponse for Html {
    fn into_response(self) -> Response {
        // The page is text and styles of our own; nothing in it may run or be loaded.
        let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, policy),
        ];
        (headers, self.0).into_response()
    }
}

impl IntoResponse for JsonText {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

impl<T> IntoResponse for Written<T> {
    fn into_response(self) -> Response {
        JsonText(self.text.into()).into_response()
    }
}

impl IntoResponse for Binary {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
            (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", self.name)),
            (header::CONTENT_LENGTH, self.length.to_string()),
        ];
        (headers, self.body).into_response()
    }
}

impl IntoResponse for Attachment {
    fn into_response(self) -> Response {
        let name = format!("attachment; filename=\"{}\"", self.name);
        let kind = self.media_type.to_owned();
        ([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)], self.text)
            .into_response()
    }
}
