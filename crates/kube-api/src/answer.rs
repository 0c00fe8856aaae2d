//! Responses of the API server. Owns: reading a body, and the error in a refusal. Does not know
//! about: which objects are in it.

use std::error::Error as StdError;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::RETRY_AFTER;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::error::{Call, Error, Refusal};
use crate::status::Status;

/// Largest answer: a page of 500 of the largest objects that the API server keeps is larger, and
/// none has ever been seen.
const BODY_BYTES_MAX: usize = 512 << 20;
/// Longest part of an answer without a `Status` that an error quotes, in bytes.
const QUOTED_BYTES_MAX: usize = 300;

/// A whole body.
pub(crate) async fn body(call: &Call, answer: Response<Incoming>) -> Result<Bytes, Error> {
    let mut body = answer.into_body();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| lost(call, &error))?;
        if let Ok(data) = frame.into_data() {
            if whole.len() + data.len() > BODY_BYTES_MAX {
                return Err(unreadable(call, format!("it is larger than {BODY_BYTES_MAX} bytes")));
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.freeze())
}

pub(crate) fn read<T: DeserializeOwned>(call: &Call, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| unreadable(call, error.to_string()))
}

/// The error of an answer that is no success.
pub(crate) async fn refusal(call: &Call, answer: Response<Incoming>) -> Error {
    let code = answer.status().as_u16();
    let headers = answer.headers();
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|text| text.trim().parse().ok());
    let retry_after: Option<u64> = retry_after.filter(|seconds| *seconds > 0);
    let body = match body(call, answer).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    // A proxy between answers with a page of its own.
    let status = serde_json::from_slice(&body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED_BYTES_MAX)]);
        Status { message: text.trim().to_owned(), ..Status::default() }
    });
    of_status(call, code, status, retry_after.map(Duration::from_secs))
}

/// The error that a `Status` is.
pub(crate) fn of_status(
    call: &Call,
    code: u16,
    status: Status,
    retry_after: Option<Duration>,
) -> Error {
    let refusal = Box::new(Refusal::of(code, status, retry_after));
    Error::Refused { call: Box::new(call.clone()), refusal }
}

pub(crate) fn lost(call: &Call, error: &(dyn StdError + 'static)) -> Error {
    Error::Lost { call: Box::new(call.clone()), fault: innermost(error) }
}

pub(crate) fn unreadable(call: &Call, fault: String) -> Error {
    Error::Unreadable { call: Box::new(call.clone()), fault }
}

/// The innermost cause: errors around it only state that something failed.
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
