//! The listener itself, over real sockets: encrypted, with a certificate that is replaced under
//! load.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_kit::Tls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use crate::server::Server;

/// An authority and the files of the certificate it gave last.
struct Authority {
    dir: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { dir: tempfile::tempdir().unwrap(), issuer };
        authority.issue();
        authority
    }

    fn files(&self) -> (PathBuf, PathBuf) {
        (self.dir.path().join("cert.pem"), self.dir.path().join("key.pem"))
    }

    /// Replaces the files by a new pair.
    fn issue(&self) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (certificate_file, key_file) = self.files();
        std::fs::write(certificate_file, certificate.pem()).unwrap();
        std::fs::write(key_file, key.serialize_pem()).unwrap();
    }

    /// A client that trusts this authority only.
    fn trusted(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        // A session that is resumed shows the certificate it began with.
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }
}

/// One request on a connection of its own: the answer, and the certificate it came with.
async fn ask(trusted: &Arc<ClientConfig>, port: u16) -> std::io::Result<(String, Vec<u8>)> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(trusted.clone()).connect(name, stream).await?;
    let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok((answer, certificate))
}

async fn listen(server: &Server, tls: Option<Tls>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(http_kit::serve(listener, tls, server.router.clone(), server.shutdown.clone()));
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_replaced_under_load_loses_no_request() {
    let server = Server::new().await;
    let authority = Authority::new();
    let (certificate, key) = authority.files();
    let tls = Tls::open(&certificate, &key).unwrap();
    let port = listen(&server, Some(tls.clone())).await;
    let trusted = authority.trusted();
    let answered = Arc::new(AtomicUsize::new(0));
    let stop = server.shutdown.clone();
    let load = (0..8).map(|_| {
        let (trusted, answered, stop) = (trusted.clone(), answered.clone(), stop.clone());
        tokio::spawn(async move {
            let mut seen = std::collections::BTreeSet::new();
            while seen.len() < 5 {
                let asked = tokio::select! {
                    () = stop.wait() => break,
                    asked = ask(&trusted, port) => asked,
                };
                let (answer, certificate) = asked.expect("an answer");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                seen.insert(certificate);
                answered.fetch_add(1, Ordering::Relaxed);
            }
            seen.len()
        })
    });
    let load: Vec<_> = load.collect();
    while !load.iter().all(tokio::task::JoinHandle::is_finished) {
        let before = answered.load(Ordering::Relaxed);
        authority.issue();
        assert!(tls.reload_if_changed().unwrap());
        while answered.load(Ordering::Relaxed) < before + 8
            && !load.iter().all(tokio::task::JoinHandle::is_finished)
        {
            tokio::task::yield_now().await;
        }
    }
    for task in load {
        assert_eq!(task.await.unwrap(), 5, "every task saw five certificates and no fault");
    }
}

#[tokio::test]
async fn plain_http_is_told_what_to_do() {
    let server = Server::new().await;
    let authority = Authority::new();
    let (certificate, key) = authority.files();
    let port = listen(&server, Some(Tls::open(&certificate, &key).unwrap())).await;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
}

#[tokio::test]
async fn who_does_not_believe_the_certificate_gets_nothing() {
    let server = Server::new().await;
    let authority = Authority::new();
    let (certificate, key) = authority.files();
    let port = listen(&server, Some(Tls::open(&certificate, &key).unwrap())).await;
    let stranger = Authority::new();
    let error = ask(&stranger.trusted(), port).await.unwrap_err().to_string();
    assert!(error.contains("UnknownIssuer") || error.contains("BadSignature"), "{error}");
    assert!(ask(&authority.trusted(), port).await.unwrap().0.contains("200 OK"));
}

#[tokio::test]
async fn a_stop_answers_what_was_asked_and_ends_idle_connections() {
    let server = Server::new().await;
    let port = listen(&server, None).await;
    let mut idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    server.shutdown.trigger();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
