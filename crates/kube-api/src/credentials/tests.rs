//! Credentials in files, over time.

use std::fs;
use std::path::Path;

use super::*;
use crate::config::User;

fn of_token(path: &Path) -> Credentials {
    let server = http::Uri::from_static("http://127.0.0.1:1");
    let token = Some(TokenSource::File(path.to_owned()));
    let user = User { token, ..User::default() };
    let namespace = "default".to_owned();
    let (authority, server_name, proxy) = (None, None, None);
    Credentials::new(Config { server, namespace, authority, server_name, proxy, user })
}

#[tokio::test]
async fn a_token_is_read_again_each_minute_and_kept_while_it_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let mut credentials = of_token(&path);
    let start = Instant::now();
    let missing = credentials.current(start, None).await.map(|_| ()).unwrap_err();
    assert!(matches!(missing, ConfigError::File { .. }), "{missing}");

    fs::write(&path, "one\n").unwrap();
    let mut at = async |seconds: u64| {
        let now = start + Duration::from_secs(seconds);
        let current = credentials.current(now, None).await.unwrap();
        current.bearer.as_ref().unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(at(0).await, "Bearer one");
    fs::write(&path, "two\n").unwrap();
    assert_eq!(at(59).await, "Bearer one");
    assert_eq!(at(60).await, "Bearer two");
    fs::remove_file(&path).unwrap();
    assert_eq!(at(120).await, "Bearer two");
    fs::write(&path, "three").unwrap();
    assert_eq!(at(121).await, "Bearer two");
    assert_eq!(at(180).await, "Bearer three");
}

#[tokio::test]
async fn requests_that_are_refused_together_read_credentials_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "one").unwrap();
    let mut credentials = of_token(&path);
    let now = Instant::now();
    let first = credentials.current(now, None).await.unwrap().generation;
    let second = credentials.current(now, Some(first)).await.unwrap().generation;
    assert_ne!(first, second);
    assert_eq!(credentials.current(now, Some(first)).await.unwrap().generation, second);
}

#[tokio::test]
async fn a_certificate_that_is_renewed_is_shown_on_new_connections() {
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = ["crt", "key"].map(|name| folder.path().join(name));
    let write = |text: &str| {
        fs::write(&certificate, text).unwrap();
        fs::write(&key, text).unwrap();
    };
    let mut credentials = of_token(Path::new("none"));
    let pair = (Source::File(certificate.clone()), Source::File(key.clone()));
    credentials.config.user = User { certificate: Some(pair), ..User::default() };
    let start = Instant::now();
    let mut at = async |seconds: u64| {
        let now = start + Duration::from_secs(seconds);
        credentials.current(now, None).await.unwrap().material.certificate.clone().unwrap().0
    };
    write("one");
    assert_eq!(at(0).await, b"one");
    write("two");
    assert_eq!(at(30).await, b"one");
    assert_eq!(at(61).await, b"two");
}
