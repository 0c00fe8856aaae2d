//! Objects in buckets of S3. Owns: the way to a server, its login by the variables that others read
//! as well, and reading, writing, listing and removing one object. An object appears whole, or not
//! at all. Does not know what an object holds.
//!
//! Requests are signed one by one, so the secret of a login leaves this process for nowhere;
//! redirects are not followed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use rusty_s3::actions::{DeleteObject, GetObject, ListObjectsV2, PutObject, S3Action as _};
use rusty_s3::{Bucket, Credentials, UrlStyle};

/// Prefix of the address of an object.
pub const SCHEME: &str = "s3://";
/// The region of servers that have none.
pub const REGION_DEFAULT: &str = "us-east-1";
/// Longest time of a request, of a connection attempt, and of silence.
const SIGNED_FOR: Duration = Duration::from_secs(3600);
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How often a request is sent to a server that is busy or away, and the first pause between.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
/// The largest object that can be written at once.
const OBJECT_BYTES_MAX: usize = 5 << 30;

/// The way to servers of S3: their certificates are those that the machine trusts.
///
/// # Errors
/// TLS cannot be prepared.
pub fn client(silence_max: Duration) -> Result<Client, String> {
    let mut roots = RootCertStore::empty();
    // An unreadable certificate is not trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
    let builder = Client::builder().tls_backend_preconfigured(tls);
    let builder = builder.redirect(reqwest::redirect::Policy::none());
    let builder = builder.connect_timeout(CONNECT_WITHIN).read_timeout(silence_max);
    builder.build().map_err(|error| error.to_string())
}

/// Bucket and key of an address `s3://BUCKET/KEY`.
#[must_use]
pub fn parts(address: &str) -> Option<(&str, &str)> {
    let rest = address.strip_prefix(SCHEME)?;
    Some(rest.split_once('/').unwrap_or((rest, ""))).filter(|(bucket, _)| !bucket.is_empty())
}

/// A bucket, with a login.
#[derive(Debug)]
pub struct Store {
    http: Client,
    bucket: Bucket,
    login: Credentials,
}

impl Store {
    /// The bucket of this name, at the server and with the login of `AWS_ENDPOINT_URL_S3` or
    /// `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
    /// `AWS_SESSION_TOKEN`.
    ///
    /// # Errors
    /// A variable is missing or wrong.
    pub fn of(name: &str, variable: impl Fn(&str) -> Option<String>) -> io::Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let (Some(id), Some(secret)) =
            (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"))
        else {
            let why = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; name a credential of \
                       the kind access-key (`--checkpoint_credential`)";
            return Err(wrong(why.to_owned()));
        };
        let login = match variable("AWS_SESSION_TOKEN") {
            Some(token) => Credentials::new_with_token(id, secret, token),
            None => Credentials::new(id, secret),
        };
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| REGION_DEFAULT.to_owned());
        let mut names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].into_iter();
        let set = names.find_map(|name| Some((name, variable(name)?)));
        let amazons = || ("AWS_REGION", format!("https://s3.{region}.amazonaws.com"));
        let (from, server) = set.unwrap_or_else(amazons);
        let wrong_server = |why: &dyn std::fmt::Display| {
            wrong(format!("{from} makes the address of the server {server:?}: {why}"))
        };
        let url: Url = server.parse().map_err(|error| wrong_server(&error))?;
        let bucket = Bucket::new(url, UrlStyle::Path, name.to_owned(), region.clone())
            .map_err(|error| wrong_server(&error))?;
        Ok(Self { http: client(SILENCE_MAX).map_err(io::Error::other)?, bucket, login })
    }

    /// Writes an object, which takes the place of one before.
    ///
    /// # Errors
    /// The server does not take it; the one before stays.
    pub async fn put(&self, key: &str, content: Vec<u8>) -> io::Result<()> {
        if content.len() > OBJECT_BYTES_MAX {
            let why = format!(
                "it has {} bytes, and an object {OBJECT_BYTES_MAX} at most; use more parameter servers, \
                 which write one each",
                content.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let put = PutObject::new(&self.bucket, Some(&self.login), key).sign(SIGNED_FOR);
        // Shared by the attempts.
        let content = Bytes::from(content);
        let request = || self.http.put(put.clone()).body(content.clone());
        self.ask(request).await?.map(drop).ok_or_else(|| missing("the bucket is not there"))
    }

    /// An object, or its first bytes; none if it is not there.
    ///
    /// # Errors
    /// The server refuses, or it does not come whole.
    pub async fn get(&self, key: &str, most: Option<u64>) -> io::Result<Option<Vec<u8>>> {
        let get = GetObject::new(&self.bucket, Some(&self.login), key).sign(SIGNED_FOR);
        let request = || match most {
            Some(most) => {
                let range = format!("bytes=0-{}", most.saturating_sub(1));
                self.http.get(get.clone()).header("range", range)
            }
            None => self.http.get(get.clone()),
        };
        let Some(answer) = self.ask(request).await? else { return Ok(None) };
        let bytes = answer.bytes().await.map_err(away)?;
        Ok(Some(bytes.into()))
    }

    /// The names of objects and folders in a folder, whose key ends with a slash or is empty.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let mut list = ListObjectsV2::new(&self.bucket, Some(&self.login));
            list.with_prefix(folder);
            list.with_delimiter("/");
            if let Some(after) = after {
                list.with_continuation_token(after);
            }
            let url = list.sign(SIGNED_FOR);
            let answer = self.ask(|| self.http.get(url.clone())).await?;
            let answer = answer.ok_or_else(|| missing("the bucket is not there"))?;
            let text = answer.text().await.map_err(away)?;
            let page = ListObjectsV2::parse_response(&text)
                .map_err(|_| io::Error::other("what answers is not a server of S3"))?;
            let keys = page.contents.into_iter().map(|one| one.key);
            let keys = keys.chain(page.common_prefixes.into_iter().map(|one| one.prefix));
            names.extend(keys.filter_map(|key| {
                let name = key.strip_prefix(folder)?.trim_end_matches('/');
                (!name.is_empty()).then(|| name.to_owned())
            }));
            after = page.next_continuation_token;
            if after.is_none() {
                return Ok(names);
            }
        }
    }

    /// Removes an object, which may be gone already.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn remove(&self, key: &str) -> io::Result<()> {
        let delete = DeleteObject::new(&self.bucket, Some(&self.login), key).sign(SIGNED_FOR);
        self.ask(|| self.http.delete(delete.clone())).await.map(drop)
    }

    /// The response; `None` if the object does not exist. A request to a server that is busy or
    /// away for a moment is repeated.
    async fn ask(&self, request: impl Fn() -> RequestBuilder) -> io::Result<Option<Response>> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            let is_last = attempt == ATTEMPTS;
            match request().send().await {
                Ok(answer) if answer.status().is_success() => return Ok(Some(answer)),
                Ok(answer) if is_last || !is_passing(answer.status()) => {
                    return refused(answer).await;
                }
                Err(error) if is_last => return Err(away(error)),
                _ => {}
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(None)
    }
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Error of a refusal; `None` if the object is not there, but its bucket is.
async fn refused(answer: Response) -> io::Result<Option<Response>> {
    let status = answer.status();
    let text = answer.text().await.map_err(away)?;
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once("</").map(|(inner, _)| inner.to_owned())
    };
    let code = part("Code").unwrap_or_default();
    if status == StatusCode::NOT_FOUND && code != "NoSuchBucket" {
        return Ok(None);
    }
    let message = part("Message").unwrap_or_default();
    Err(io::Error::other(format!("the server of the bucket answers {status} {code} {message}")))
}

fn missing(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, why)
}

/// Causes of a failed request. Its address is left out: it contains the signature.
#[must_use]
pub fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut why = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        why = format!("{why}: {inner}");
        cause = inner.source();
    }
    why
}

fn away(error: reqwest::Error) -> io::Error {
    io::Error::other(format!("the server of the bucket does not answer: {}", causes(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_bucket_and_perhaps_a_key() {
        assert_eq!(parts("s3://b/a/c"), Some(("b", "a/c")));
        assert_eq!(parts("s3://b"), Some(("b", "")));
        assert_eq!((parts("/s3/b"), parts("s3:///a")), (None, None));
    }

    #[test]
    fn what_is_missing_for_a_login_is_named() {
        let of = |known: &[(&str, &str)]| {
            let variable = |name: &str| {
                known.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
            };
            Store::of("b", variable).map(drop).map_err(|error| error.to_string())
        };
        let none = of(&[("AWS_ACCESS_KEY_ID", "id")]).expect_err("no secret");
        assert!(none.contains("--checkpoint_credential"), "{none}");
        let login = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
        assert_eq!(of(&login).map_err(drop), Ok(()));
        let wrong = of(&[&login[..], &[("AWS_ENDPOINT_URL", "here")]].concat());
        let wrong = wrong.expect_err("no address");
        assert!(
            wrong.contains("AWS_ENDPOINT_URL makes the address of the server \"here\""),
            "{wrong}"
        );
        let wrong = of(&[&login[..], &[("AWS_ENDPOINT_URL_S3", "there")]].concat());
        assert!(wrong.expect_err("no address").contains("AWS_ENDPOINT_URL_S3 makes"));
    }
}
