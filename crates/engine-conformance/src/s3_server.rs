//! A server of S3 buckets for a test. Owns: a few objects behind a port of the loopback address, in
//! pages of two, for everybody, or for an access key in a region of its own, or saying nothing.
//! Does not know about whether a signature is right; the tests against a program of others do.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::silent_clients::Silence;
use engine::{Bucket, Login};

/// Objects in a page of a list.
const PAGE: usize = 2;
/// Region of the server, which the address does not show.
const REGION: &str = "here-1";

/// The server. Its bucket is `b`; `page` is a page for people, `elsewhere` is at another server.
#[derive(Debug)]
pub struct S3Server {
    port: u16,
    /// Switch that leaves clients without an answer.
    pub silence: Arc<Silence>,
    /// An object without read permission.
    pub refused: Arc<Mutex<Option<String>>>,
}

impl S3Server {
    /// A server that lets everybody in.
    #[must_use]
    pub fn open(objects: BTreeMap<String, String>) -> Self {
        Self::start(objects, None)
    }

    /// A server that wants requests signed with the access key of this id.
    #[must_use]
    pub fn with_login(objects: BTreeMap<String, String>, id: &str) -> Self {
        Self::start(objects, Some(id.to_owned()))
    }

    fn start(objects: BTreeMap<String, String>, id: Option<String>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let silence = Arc::new(Silence::default());
        let refused = Arc::new(Mutex::new(None));
        let store = Arc::new(ObjectStore { objects, id, refused: Arc::clone(&refused) });
        let own = Arc::clone(&silence);
        std::thread::spawn(move || {
            for visitor in listener.incoming().flatten() {
                let Some(mut visitor) = own.pass(visitor) else { continue };
                let store = Arc::clone(&store);
                // A client that disconnects early needs no answer.
                std::thread::spawn(move || store.answer(&mut visitor).is_ok());
            }
        });
        Self { port, silence, refused }
    }

    /// A bucket of it.
    #[must_use]
    pub fn bucket(&self, name: &str) -> Bucket {
        let address = format!("http://127.0.0.1:{}", self.port);
        Bucket { name: name.to_owned(), address, login: None }
    }

    /// The bucket, with an access key.
    #[must_use]
    pub fn bucket_for(&self, id: &str, secret: &str) -> Bucket {
        let login = Login { user: id.to_owned(), password: secret.to_owned() };
        Bucket { login: Some(login), ..self.bucket("b") }
    }
}

/// Objects of the server, the access key id that it requires, and the object that it refuses.
struct ObjectStore {
    objects: BTreeMap<String, String>,
    id: Option<String>,
    refused: Arc<Mutex<Option<String>>>,
}

impl ObjectStore {
    fn answer(&self, visitor: &mut TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            visitor.read_exact(&mut byte)?;
            head.extend(byte);
        }
        let head = String::from_utf8_lossy(&head);
        let target = head.split_whitespace().nth(1).unwrap_or_default();
        let (status, body) = self.reply(target);
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        visitor.write_all(answer.as_bytes())?;
        visitor.write_all(body.as_bytes())
    }

    fn reply(&self, target: &str) -> (&'static str, String) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.trim_start_matches('/');
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let refused = |code: &str| format!("<Error><Code>{code}</Code></Error>");
        let field = |name: &str| {
            query.split('&').filter_map(|pair| pair.split_once('=')).find(|(own, _)| *own == name)
        };
        let signed = field("X-Amz-Signature").is_some();
        match (&self.id, field("X-Amz-Credential")) {
            (Some(_), None) => return ("403 No", refused("AccessDenied")),
            (Some(id), Some((_, who))) if !signed || !who.starts_with(&format!("{id}%2F")) => {
                return ("403 No", refused("InvalidAccessKeyId"));
            }
            (Some(_), Some((_, who))) if !who.contains(&format!("%2F{REGION}%2F")) => {
                let code = "<Code>AuthorizationHeaderMalformed</Code>";
                return ("400 No", format!("<Error>{code}<Region>{REGION}</Region></Error>"));
            }
            _ => {}
        }
        match (bucket, key) {
            ("page", _) => ("200 OK", "<html>Hello</html>".to_owned()),
            ("elsewhere", _) => ("301 Moved", String::new()),
            ("b", "") => ("200 OK", self.list(field("continuation-token").map(|(_, at)| at))),
            ("b", key) if self.refuses(key) => ("403 No", refused("AccessDenied")),
            ("b", key) => match self.objects.iter().find(|(own, _)| encoded(own) == key) {
                Some((_, text)) => ("200 OK", text.clone()),
                None => ("404 No", refused("NoSuchKey")),
            },
            _ => ("404 No", refused("NoSuchBucket")),
        }
    }

    fn refuses(&self, key: &str) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.as_ref().is_some_and(|one| encoded(one) == key)
    }

    /// A page of the list of objects; a token is how many came before.
    fn list(&self, token: Option<&str>) -> String {
        let before = token.and_then(|text| text.parse().ok()).unwrap_or(0);
        let rest = self.objects.keys().skip(before);
        let contents =
            rest.take(PAGE).map(|key| format!("<Contents><Key>{}</Key></Contents>", encoded(key)));
        let contents: String = contents.collect();
        let more = self.objects.len() > before + PAGE;
        let next = if more {
            format!("<NextContinuationToken>{}</NextContinuationToken>", before + PAGE)
        } else {
            String::new()
        };
        format!(
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <EncodingType>url</EncodingType><IsTruncated>{more}</IsTruncated>{next}{contents}\
             </ListBucketResult>"
        )
    }
}

fn encoded(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let each = |byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    key.bytes().map(each).collect()
}
