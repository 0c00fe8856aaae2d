//! Names of objects, regions, refusals, and misbehaving servers. Owns: the scenarios.

use std::collections::BTreeMap;
use std::sync::Mutex;

use reqwest::StatusCode;
use tokio::sync::oneshot;

use super::*;
use crate::copy::{Bounds, NotCopied, Origin, patiently};
use engine_conformance::S3Server;

/// Silence of a server that only a hang reaches.
const LONG: Duration = Duration::from_secs(120);

/// Result of a copy with one further attempt, its folder, and the last progress text.
async fn copied(bucket: &Bucket) -> (Result<(), NotCopied>, tempfile::TempDir, String) {
    copied_within((1 << 30, LONG), bucket).await
}

async fn copied_within(
    (bytes_max, silence_max): (u64, Duration),
    bucket: &Bucket,
) -> (Result<(), NotCopied>, tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |what| told.lock().unwrap().push(what);
    let (_wanted, mut stop) = oneshot::channel();
    let pauses = &[Duration::ZERO];
    let patience = Bounds { bytes_max, silence_max, pauses };
    let to = folder.path().join("copy");
    let done = patiently(Origin::Bucket(bucket), &to, &mut stop, &tell, patience).await;
    let told = told.lock().unwrap().join("\n");
    (done, folder, told)
}

fn why(done: Result<(), NotCopied>) -> String {
    match done {
        Err(NotCopied::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_object_lies_where_its_name_says_and_never_outside() {
    for (key, at) in [
        ("a", Some("a")),
        ("a/b c/ä+%2e", Some("a/b c/ä+%2e")),
        ("a/", Some("a")),
        ("...", Some("...")),
        ("../x", None),
        ("a/../../x", None),
        ("a/..", None),
        ("/etc/x", None),
        ("a//b", None),
        ("./a", None),
        ("a\0b", None),
        ("/", None),
        ("", None),
    ] {
        assert_eq!(place(key), at.map(PathBuf::from), "{key:?}");
    }
}

#[test]
fn the_region_is_in_the_name_of_the_server() {
    for (host, want) in [
        ("s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ("s3.dualstack.eu-west-1.amazonaws.com", "eu-west-1"),
        ("s3.fr-par.scw.cloud", "fr-par"),
        ("s3.amazonaws.com", REGION_DEFAULT),
        ("minio.example.org", REGION_DEFAULT),
        ("127.0.0.1", REGION_DEFAULT),
    ] {
        assert_eq!(region(host), want, "{host}");
    }
}

#[test]
fn a_refusal_is_told_with_what_to_check() {
    let xml = |code: &str, more: &str| format!("<Error><Code>{code}</Code>{more}</Error>");
    let region = Some("eu-west-1".to_owned());
    let moved = StatusCode::MOVED_PERMANENTLY;
    for (status, region, text, login, want) in [
        (StatusCode::NOT_FOUND, None, xml("NoSuchBucket", ""), true, "check the name of the"),
        (StatusCode::FORBIDDEN, None, xml("AccessDenied", ""), true, "does not allow"),
        (StatusCode::FORBIDDEN, None, xml("AccessDenied", ""), false, "make a credential"),
        (StatusCode::FORBIDDEN, None, xml("SignatureDoesNotMatch", ""), true, "id and secret"),
        (StatusCode::FORBIDDEN, None, xml("InvalidObjectState", ""), true, "it is archived"),
        (moved, region, xml("PermanentRedirect", ""), true, "https://s3.eu-west-1.amazonaws.com"),
        (moved, None, String::new(), true, "write its own address"),
        (StatusCode::NOT_FOUND, None, "<html>".to_owned(), true, "that of an S3 server"),
    ] {
        match error_response::fault(status, region, &text, login) {
            FetchError::Final(why) => assert!(why.contains(want), "{status} {text}: {why}"),
            other => panic!("{status} {text}: {other:?}"),
        }
    }
    for (status, text) in [
        (StatusCode::SERVICE_UNAVAILABLE, xml("SlowDown", "")),
        (StatusCode::BAD_GATEWAY, String::new()),
    ] {
        assert!(
            matches!(error_response::fault(status, None, &text, true), FetchError::Passing(_)),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_or_is_not_there_is_tried_again_and_given_up() {
    let server = S3Server::open(BTreeMap::new());
    server.silence.be(true);
    let soon = Duration::from_millis(500);
    let (done, _folder, told) = copied_within((1 << 30, soon), &server.bucket("b")).await;
    assert!(why(done).contains("nothing came for 0 s"), "{told}");
    assert_eq!(told.matches("trying again in 0 s").count(), 1, "{told}");
    let bucket = Bucket { address: "http://127.0.0.1:1".into(), ..server.bucket("b") };
    let (done, _folder, told) = copied(&bucket).await;
    assert!(why(done).contains("check its address, and that its server runs"), "{told}");
}

#[tokio::test]
async fn nothing_is_written_beside_the_copy() {
    for key in ["../beside", "/beside", "a/../../beside"] {
        let server = S3Server::open(BTreeMap::from([(key.to_owned(), "x".to_owned())]));
        let (done, folder, _) = copied(&server.bucket("b")).await;
        assert!(why(done).contains(&format!("`{key}` is not a path inside a folder")));
        assert!(!folder.path().join("beside").exists());
    }
    let both = ["a", "a/b"].map(|key| (key.to_owned(), "x".to_owned()));
    let (done, _folder, _) = copied(&S3Server::open(BTreeMap::from(both)).bucket("b")).await;
    assert!(why(done).contains("would be a file and a folder"));
}

#[tokio::test]
async fn a_bucket_that_is_too_large_is_refused_at_once() {
    let object = |name: String, bytes: usize| (name, "x".repeat(bytes));
    let large = BTreeMap::from([object("large".into(), 300_000)]);
    let many = (0..70).map(|n| object(n.to_string(), 0)).collect();
    for objects in [large, many] {
        let bucket = S3Server::open(objects);
        let (done, _folder, told) = copied_within((256 << 10, LONG), &bucket.bucket("b")).await;
        let why = why(done);
        assert!(why.contains("more than 256KiB") && why.contains("--copies-max"), "{why}");
        assert!(!told.contains("trying again"), "{told}");
    }
    let few = (0..60).map(|n| object(n.to_string(), 4096)).collect();
    let (done, ..) = copied_within((256 << 10, LONG), &S3Server::open(few).bucket("b")).await;
    assert_eq!(done, Ok(()));
}

#[tokio::test]
async fn an_object_that_is_refused_is_named() {
    let objects = BTreeMap::from(["a", "b c"].map(|key| (key.to_owned(), "x".to_owned())));
    let server = S3Server::open(objects);
    *server.refused.lock().unwrap() = Some("b c".to_owned());
    let (done, _folder, _) = copied(&server.bucket("b")).await;
    let why = why(done);
    assert!(why.contains("its object `b c`: AccessDenied"), "{why}");
}

#[tokio::test]
async fn what_is_no_list_of_objects_is_told_and_no_address_of_a_request() {
    let server = S3Server::open(BTreeMap::new());
    let (done, _folder, _) = copied(&server.bucket("page")).await;
    assert!(why(done).contains("not a list of objects"));
    let (done, _folder, told) = copied(&server.bucket("elsewhere")).await;
    let why = why(done);
    assert!(why.contains("write its own address") && !why.contains("Signature"), "{why} {told}");
}
