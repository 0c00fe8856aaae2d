//! The error responses of an S3 server. Owns: finding their code and text, and what to do. Pure.

use reqwest::StatusCode;

use crate::fetch_job::FetchError;

/// Longest text of a server that is shown, in characters.
const TEXT_CHARS_MAX: usize = 300;

const KEY: &str = "check id and secret of its access key, the credential that is named";
const NO_LOGIN: &str = "it wants a login: make a credential of type access-key and name it \
                        (`--s3 …,accesskey=NAME`)";
/// Error code, whether another attempt may succeed, and advice.
const KNOWN: [(&str, bool, &str); 12] = [
    ("NoSuchBucket", false, "check the name of the bucket, and the address of its server"),
    ("InvalidBucketName", false, "check the name of the bucket"),
    ("AllAccessDisabled", false, "ask who keeps the bucket"),
    ("InvalidAccessKeyId", false, KEY),
    ("InvalidClientTokenId", false, KEY),
    ("SignatureDoesNotMatch", false, KEY),
    ("RequestTimeTooSkewed", false, "set the clock of the machine of the server"),
    (
        "InvalidObjectState",
        false,
        "it is archived; restore it, or copy in the command what is needed",
    ),
    ("InvalidRequest", false, "copy in the command what is needed"),
    ("NoSuchKey", true, "another program changes the bucket meanwhile"),
    ("SlowDown", true, "its server has much to do"),
    ("InternalError", true, "its server failed"),
];

/// The error that a refusal of the server amounts to, with advice.
pub(super) fn fault(
    status: StatusCode,
    region: Option<String>,
    text: &str,
    with_login: bool,
) -> FetchError {
    let code = part(text, "Code").unwrap_or_default();
    let said = match (code, part(text, "Message")) {
        ("", _) => format!("its server answers {status}"),
        (code, Some(message)) => format!("{}: {}", units::shown(code), shown(message)),
        (code, None) => units::shown(code),
    };
    if let Some((_, passing, advice)) = KNOWN.iter().find(|(known, ..)| *known == code) {
        let why = format!("{said}; {advice}");
        return if *passing { FetchError::Passing(why) } else { FetchError::Final(why) };
    }
    match (status, region) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) if !with_login => {
            FetchError::Final(format!("{said}; {NO_LOGIN}"))
        }
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            FetchError::Final(format!("{said}; its access key does not allow to list and read it"))
        }
        (status, Some(region)) if status.is_redirection() => {
            let region = shown(&region);
            FetchError::Final(format!(
                "{said}; it is in region `{region}`: write the address of that \
                 (`url=https://s3.{region}.amazonaws.com`)"
            ))
        }
        (status, _) if status.is_redirection() => FetchError::Final(format!(
            "{said}, so it is elsewhere, and redirects are not followed with a login; write its own address"
        )),
        (StatusCode::TOO_MANY_REQUESTS, _) => FetchError::Passing(said),
        (status, _) if status.is_server_error() => FetchError::Passing(said),
        _ => FetchError::Final(format!("{said}; check that its address is that of an S3 server")),
    }
}

/// The text of the first element of this name.
pub(super) fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(inner, _)| inner).filter(|inner| !inner.is_empty())
}

/// One line of it.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_CHARS_MAX).collect()
}
