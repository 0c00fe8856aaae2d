//! Reading request bodies. Owns: their size limit, and texts that name the field at fault.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ApiError;
use super::nearest::nearest;
use super::{allowed_characters, decode, tree};
use crate::connections::{ConnectionPermit, SMALL_BODY_BYTES};

/// Largest request body, unless its route takes a larger one.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;

/// Longest time for a body to arrive; shorter than the time limit of a response, so that the error
/// names the body.
const BODY_WAIT: Duration = Duration::from_secs(20);

/// A format in which a body may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// A form, written like the query of an address.
    Form,
}

impl Format {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Form => "application/x-www-form-urlencoded",
        }
    }

    fn is(self, media_type: &str) -> bool {
        let is_json = |rest: &str| rest.ends_with("+json");
        media_type == self.media_type()
            || self == Self::Json && media_type.strip_prefix("application/").is_some_and(is_json)
    }
}

/// A JSON body of at most so many bytes.
pub struct Body<T, const BYTES_MAX: usize = BODY_BYTES_MAX>(pub T);

impl<T: DeserializeOwned, S: Sync, const BYTES_MAX: usize> FromRequest<S> for Body<T, BYTES_MAX> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (bytes, _) = typed(request, &[Format::Json], BYTES_MAX).await?;
        parse(&bytes).map(Self)
    }
}

/// The whole body, in one of these formats; that of an empty body is the first.
pub async fn read(request: Request, formats: &[Format]) -> Result<(Bytes, Format), ApiError> {
    typed(request, formats, BODY_BYTES_MAX).await
}

/// A body whose content type names its format. A page of another site can have a browser send
/// `text/plain` without asking this server first; it cannot do that with JSON.
async fn typed(
    request: Request,
    formats: &[Format],
    bytes_max: usize,
) -> Result<(Bytes, Format), ApiError> {
    let format = format_of(request.headers(), formats);
    let bytes = up_to(request, bytes_max).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok((bytes, formats.first().copied().unwrap_or(Format::Json)));
    }
    format.map(|format| (bytes, format))
}

fn format_of(headers: &HeaderMap, formats: &[Format]) -> Result<Format, ApiError> {
    let mut given = headers.get_all(header::CONTENT_TYPE).iter();
    let (first, second) = (given.next(), given.next());
    let text = first.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = formats.iter().find(|format| format.is(&media_type));
    if let (Some(format), None) = (known, second) {
        return Ok(*format);
    }
    let wrong = match (first, second) {
        (None, _) => "the body has no content type".to_owned(),
        (_, Some(_)) => "the request has several content types".to_owned(),
        _ => format!("a body of the content type `{}` is not read here", units::shown(text)),
    };
    let allowed: Vec<_> = formats.iter().map(|format| format.media_type()).collect();
    let why = format!("{wrong}; send `Content-Type: {}`", allowed.join("` or `"));
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}

async fn up_to(request: Request, bytes_max: usize) -> Result<Bytes, ApiError> {
    let permit = request.extensions().get::<ConnectionPermit>().cloned();
    let whole = collect(request.into_body(), bytes_max, permit.as_ref());
    tokio::time::timeout(BODY_WAIT, whole).await.map_err(|_| {
        let message = format!("the body did not come within {} s", BODY_WAIT.as_secs());
        ApiError::new(StatusCode::REQUEST_TIMEOUT, message)
    })?
}

/// The body in a buffer that grows with it. A piece as it comes may be one byte and keep the whole
/// buffer of the connection it was read into, so none is kept.
async fn collect(
    mut body: axum::body::Body,
    bytes_max: usize,
    permit: Option<&ConnectionPermit>,
) -> Result<Bytes, ApiError> {
    let mut whole = Vec::new();
    let mut counted = SMALL_BODY_BYTES;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| ApiError::bad(format!("the body could not be read: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        if piece.len() > bytes_max - whole.len() {
            let message = format!("the body is larger than {bytes_max} bytes");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let bytes = whole.len() + piece.len();
        if bytes > counted {
            // In steps, since each looks at all connections.
            counted = bytes.next_multiple_of(SMALL_BODY_BYTES);
            permit.map_or(Ok(()), |permit| permit.takes_large_body(counted))?;
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
}

/// Parses JSON; the error names the field.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ApiError::bad("the body is empty; send a JSON object"));
    }
    // The published asynchronous client (runapy 1.224.0) encodes its bodies twice. No body is a
    // text, so what is one can only be that.
    if bytes.trim_ascii_start().first() == Some(&b'"') {
        let inner: String =
            serde_json::from_slice(bytes).map_err(|error| ApiError::bad(explain(&error)))?;
        return read_object(inner.as_bytes());
    }
    read_object(bytes)
}

fn read_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let value = tree(bytes)?;
    allowed_characters::check_text(&value)?;
    decode::decode(value).map_err(|error| at(&error.path, explain(&error.error)))
}

/// The text as a tree. Not generic: the types of bodies are read from the tree only, so each is
/// compiled for one deserializer.
fn tree(bytes: &[u8]) -> Result<Value, ApiError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = tree::read(&mut json).map_err(|error| {
        // If the text stops being JSON, the path is that of the field before the error.
        let path = if error.error.is_data() { error.path.as_str() } else { "" };
        at(path, explain(&error.error))
    })?;
    json.end().map_err(|error| ApiError::bad(explain(&error)))?;
    Ok(value)
}

/// Reads a part of a body that was taken as it came; the error names the field, which is at or
/// below `at`.
pub fn read_part<T: DeserializeOwned>(at: &str, part: Value) -> Result<T, ApiError> {
    decode::decode(part).map_err(|error| {
        let path =
            if error.path.is_empty() { at.to_owned() } else { format!("{at}.{}", error.path) };
        ApiError::field(&path, explain(&error.error))
    })
}

/// Takes the field with this path, such as `spec.image`, out of such a part.
pub fn take_part(from: &mut Value, path: &str) -> Option<Value> {
    let (outer, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut outer = outer.split('.').filter(|name| !name.is_empty());
    outer.try_fold(from, |value, name| value.get_mut(name))?.as_object_mut()?.remove(name)
}

fn at(path: &str, why: String) -> ApiError {
    if path.is_empty() { ApiError::bad(why) } else { ApiError::field(path, why) }
}

/// Most names listed if none is near.
const NAMES_MAX: usize = 12;

/// The text of a JSON error; for an unknown field the nearest known one instead of all of them.
fn explain(error: &serde_json::Error) -> String {
    if !error.is_data() {
        return format!("the body is not valid JSON: {error}");
    }
    let text = error.to_string();
    // Positions in a generated body are of no use; the path names the field.
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    // serde's own text: unknown field `x`, expected one of `a`, `b`
    let mut quoted = text.split('`').skip(1).step_by(2);
    match quoted.next() {
        Some(unknown) if text.starts_with("unknown field ") => {
            let known: Vec<_> = quoted.collect();
            let hint = match nearest(unknown, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if (1..=NAMES_MAX).contains(&known.len()) => {
                    format!("there are {}", known.join(", "))
                }
                None => "/elastane/v1/docs on this server lists them".to_owned(),
            };
            format!("unknown field `{unknown}`; {hint}")
        }
        _ => plainly(text),
    }
}

/// Message of serde about values, in the words of JSON, with the expected value.
fn plainly(text: &str) -> String {
    // The sent value stands before the expected one, and may hold anything.
    let Some((got, want)) = text.rsplit_once(", expected ") else {
        let named = |kind: &str| text.strip_prefix(kind)?.strip_suffix('`');
        return match (named("missing field `"), named("duplicate field `")) {
            (Some(name), _) => format!("`{name}` is missing"),
            (_, Some(name)) => format!("`{name}` is given twice"),
            _ => text.to_owned(),
        };
    };
    if let Some(word) = got.strip_prefix("unknown variant ") {
        let words: Vec<&str> = want.split('`').skip(1).step_by(2).collect();
        return format!("{word} is not allowed; write {}", one_of(&words));
    }
    let kinds = ["invalid type: ", "invalid value: "];
    match kinds.iter().find_map(|kind| got.strip_prefix(kind)) {
        Some(got) => format!("{} is needed, not {}", wanted(want), sent(got)),
        None => format!("{got}, expected {}", wanted(want)),
    }
}

fn wanted(want: &str) -> &str {
    match want {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0",
        "i32" | "i64" => "a whole number",
        "a JSON number" | "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        want if want.starts_with("struct ") => "an object",
        want => want,
    }
}

fn sent(got: &str) -> &str {
    let kinds = ["integer ", "floating point ", "boolean ", "string "];
    match got {
        "map" => "an object",
        "sequence" => "a list",
        "unit value" | "null" => "null",
        got => kinds.iter().find_map(|kind| got.strip_prefix(kind)).unwrap_or(got),
    }
}

/// `A`, `A or B`, `A, B or C`.
fn one_of(words: &[&str]) -> String {
    match words {
        [] => "another word".to_owned(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn error(body: &str) -> String {
        parse::<api_types::CreationRequest>(body.as_bytes()).unwrap_err().message()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let request = Request::new(axum::body::Body::from_stream(never));
        let refused = read(request, &[Format::Json]).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn of_a_body_that_comes_byte_by_byte_only_its_bytes_are_kept() {
        struct Piece(Arc<AtomicUsize>, [u8; 8192]);
        impl AsRef<[u8]> for Piece {
            fn as_ref(&self) -> &[u8] {
                &self.1
            }
        }
        impl Drop for Piece {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let kept = Arc::new(AtomicUsize::new(0));
        let pieces = (0..300).map({
            let kept = kept.clone();
            move |_| {
                assert!(kept.fetch_add(1, Ordering::Relaxed) <= 1, "pieces before are kept");
                let piece = Bytes::from_owner(Piece(kept.clone(), [b' '; 8192]));
                Ok::<_, std::io::Error>(piece.slice(..1))
            }
        });
        let body = axum::body::Body::from_stream(futures_util::stream::iter(pieces));
        let (read, _) = read(Request::new(body), &[Format::Json]).await.unwrap();
        assert_eq!((read.len(), kept.load(Ordering::Relaxed)), (300, 0));
    }

    #[tokio::test]
    async fn a_body_may_be_as_large_as_its_route_takes_and_no_larger() {
        for (bytes, status) in [(9, None), (10, None), (11, Some(StatusCode::PAYLOAD_TOO_LARGE))] {
            let read = collect(axum::body::Body::from(vec![b'x'; bytes]), 10, None).await;
            assert_eq!(read.map_err(|error| error.status).err(), status, "{bytes}");
        }
    }

    #[test]
    fn a_body_has_one_content_type_that_its_route_takes() {
        let of = |types: &[&str], formats: &[Format]| {
            let mut headers = HeaderMap::new();
            for text in types {
                headers.append(header::CONTENT_TYPE, text.parse().unwrap());
            }
            format_of(&headers, formats).map_err(|error| error.message())
        };
        let (json, form) = (Format::Json, Format::Form);
        for media_type in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/merge-patch+json",
            "application/json-patch+json;v=1",
        ] {
            assert_eq!(of(&[media_type], &[json]), Ok(json), "{media_type}");
        }
        assert_eq!(of(&["application/x-www-form-urlencoded"], &[json, form]), Ok(form));
        for (types, said) in [
            (&[][..], "the body has no content type; send `Content-Type: application/json`"),
            (&["text/plain"], "a body of the content type `text/plain` is not read here; send"),
            (&["text/plain; application/json"], "a body of"),
            (&["text/x+json"], "a body of"),
            (&["application/jsonx"], "a body of"),
            (&["application/x-www-form-urlencoded"], "a body of"),
            (&["multipart/form-data; boundary=x"], "a body of"),
            (&["application/json", "application/json"], "the request has several content types"),
        ] {
            let refused = of(types, &[json]).unwrap_err();
            assert!(refused.starts_with(said), "{types:?}: {refused}");
        }
        let refused = of(&["text/plain"], &[json, form]).unwrap_err();
        assert!(refused.ends_with("json` or `application/x-www-form-urlencoded`"), "{refused}");
    }

    #[test]
    fn a_body_that_was_encoded_twice_is_read() {
        let once = r#"{"name":"a","projectId":"1"}"#;
        let twice = serde_json::to_string(once).unwrap();
        let read = parse::<api_types::CreationRequest>(twice.as_bytes()).unwrap();
        assert_eq!(read, parse(once.as_bytes()).unwrap());
        assert!(error("\"x\"").starts_with("the body is not valid JSON"));
        assert!(error("\"\\\"x\\\"\"").starts_with("an object is needed, not \"x\""));
    }

    #[test]
    fn a_body_that_is_too_deep_is_refused() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(error(&deep).contains("recursion limit exceeded"), "{}", error(&deep));
    }

    #[test]
    fn faults_name_the_field() {
        let spec = |spec: &str| format!(r#"{{"name":"a","projectId":"1","spec":{spec}}}"#);
        let cases = [
            ("", "the body is empty; send a JSON object"),
            ("{\"name\":", "the body is not valid JSON: EOF while parsing"),
            ("[]", "an object is needed, not a list"),
            ("{}", "`name` is missing"),
            (r#"{"name":1,"projectId":"1"}"#, "name: a string is needed, not `1`"),
            (r#"{"name":"a","projectId":7}"#, "projectId: a string is needed, not `7`"),
            (&spec(r#"{"imgae":"x"}"#), "spec.imgae: unknown field `imgae`; did you mean `image`?"),
            (
                &spec(r#"{"compute":{"gpuDeviceRequest":1}}"#),
                "spec.compute.gpuDeviceRequest: unknown field `gpuDeviceRequest`; \
                 did you mean `gpuDevicesRequest`?",
            ),
            (&spec(r#"{"compute":{"gpuDevicesRequest":"1"}}"#), "spec.compute.gpuDevicesRequest: "),
            (
                &spec(r#"{"preemptibility":"no"}"#),
                "spec.preemptibility: `no` is not allowed; write ",
            ),
            (
                &spec(r#"{"zzzzzzz":1}"#),
                "spec.zzzzzzz: unknown field `zzzzzzz`; /elastane/v1/docs on this server",
            ),
            (&spec(r#"{"command":{}}"#), "spec.command: a string is needed, not an object"),
            (&spec(r#"{"tolerations":{}}"#), "spec.tolerations: a list is needed, not an object"),
            (
                &spec(r#"{"backoffLimit":-1}"#),
                "spec.backoffLimit: a whole number from 0 to 4294967295 is needed, not `-1`",
            ),
            (
                &spec(r#"{"environmentVariables":[{"name":", expected u32"},7]}"#),
                "spec.environmentVariables[1]: an object is needed, not `7`",
            ),
            (r#"{"name":"a","projectId":"1"} x"#, "the body is not valid JSON: trailing char"),
            (r#"{"name":"a","projectId":"1","name":"b"}"#, "`name` is given twice"),
            (&spec(r#"{"image":"a","image":"a"}"#), "spec: `image` is given twice"),
            (
                &spec(r#"{"environmentVariables":[{"name":"A","name":"B"}]}"#),
                "spec.environmentVariables[0]: `name` is given twice",
            ),
            (
                &spec(r#"{"labels":[{"name":"a","value":{"b":1,"b":1}}]}"#),
                "spec.labels[0].value: `b` is given twice",
            ),
            (
                &spec(r#"{"backoffLimit":1e400}"#),
                "the body is not valid JSON: number out of range at line 1 column",
            ),
            (
                &spec(r#"{"backoffLimit":1.0}"#),
                "spec.backoffLimit: a whole number from 0 to 4294967295 is needed, not `1.0`",
            ),
            (
                &spec(r#"{"backoffLimit":4294967296}"#),
                "spec.backoffLimit: a whole number from 0 to 4294967295 is needed, not `4294967296`",
            ),
            (
                &spec(r#"{"backoffLimit":18446744073709551616}"#),
                "spec.backoffLimit: a whole number from 0 to 4294967295 is needed, not `1.844674407",
            ),
        ];
        for (body, want) in cases {
            let got = error(body);
            assert!(got.starts_with(want), "{body}\n got: {got}\nwant: {want}");
        }
    }
}
