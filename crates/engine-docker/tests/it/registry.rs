//! A registry on this machine. Owns: answering a daemon that pulls.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine_docker::testing;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// Documents of a registry, by tag or digest: media type and bytes.
type Documents = BTreeMap<String, (&'static str, Vec<u8>)>;

/// The name of an image that a registry has, or of one that it has not.
pub(crate) async fn image(user: Option<&str>) -> String {
    image_while(user, Arc::new(AtomicBool::new(true))).await
}

/// [`image`] from a registry that closes every connection without an answer while it is not
/// `there`.
pub(crate) async fn image_while(user: Option<&str>, there: Arc<AtomicBool>) -> String {
    let documents = Arc::new(user.map(documents).unwrap_or_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if there.load(Ordering::SeqCst) {
                tokio::spawn(answer(stream, Arc::clone(&documents)));
            }
        }
    });
    format!("127.0.0.1:{port}/app:1")
}

/// An image of a shell that runs as this user.
fn documents(user: &str) -> Documents {
    let layer = testing::layer().expect("a daemon needed it");
    let layer_digest = digest(&layer);
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{{"User":"{user}","Env":["PATH=/bin"]}},
           "rootfs":{{"type":"layers","diff_ids":["{layer_digest}"]}}}}"#
    );
    let part = |kind: &str, bytes: &[u8]| {
        let (kind, size) = (format!("application/vnd.docker.{kind}"), bytes.len());
        format!(r#"{{"mediaType":"{kind}","size":{size},"digest":"{}"}}"#, digest(bytes))
    };
    let config_part = part("container.image.v1+json", config.as_bytes());
    let layer_part = part("image.rootfs.diff.tar", &layer);
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{config_part},"layers":[{layer_part}]}}"#
    );
    let plain = "application/octet-stream";
    let of = |kind, bytes: Vec<u8>| (digest(&bytes), (kind, bytes));
    let tagged = ("1".to_owned(), (MANIFEST, manifest.clone().into_bytes()));
    let others = [of(MANIFEST, manifest.into()), of(plain, config.into()), of(plain, layer)];
    [tagged].into_iter().chain(others).collect()
}

fn digest(bytes: &[u8]) -> String {
    let mut program = Command::new("sha256sum");
    let mut sum = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum");
    sum.stdin.take().expect("piped").write_all(bytes).expect("read");
    let told = sum.wait_with_output().expect("it ends").stdout;
    format!("sha256:{}", String::from_utf8_lossy(&told[..64]))
}

async fn answer(mut stream: TcpStream, documents: Arc<Documents>) {
    let mut request = [0; 4096];
    let Ok(length) = stream.read(&mut request).await else { return };
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    let mut words = request.split(' ');
    let (head, path) = (words.next() == Some("HEAD"), words.next().unwrap_or_default());
    let found = documents.get(path.rsplit('/').next().unwrap_or_default());
    let missing: &[u8] =
        br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
    let (status, kind, body) = match found {
        Some((kind, bytes)) => ("200 OK", *kind, bytes.as_slice()),
        None if path == "/v2/" => ("200 OK", "application/json", b"{}".as_slice()),
        None => ("404 Not Found", "application/json", missing),
    };
    let header = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // It may have seen enough.
    let _gone = stream.write_all(header.as_bytes()).await;
    let _gone = stream.write_all(if head { b"" } else { body }).await;
}
