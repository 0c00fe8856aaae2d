//! The web interface: which addresses show it, with which headers, and what stays JSON.

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use expect_test::expect;

use crate::server::{Server, bytes, read};

const PAGE: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

/// A request to a host with these headers.
async fn asked(
    server: &Server,
    (host, method, path): (&str, &str, &str),
    headers: &[(&str, &str)],
) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).header("host", host);
    let add = |request: axum::http::request::Builder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    let request = headers.iter().fold(request, add);
    server.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_person_gets_the_page_everywhere_and_a_program_json() {
    let server = Server::new().await;
    let is_page = |response: &Response<Body>| {
        response.headers()["content-type"] == "text/html; charset=utf-8"
    };
    for path in ["/", "/login", "/workloads/0193/explain", "/projects", "/serve", "/nothing"] {
        let page = asked(&server, ("localhost", "GET", path), &[("accept", PAGE)]).await;
        assert!(page.status() == StatusCode::OK && is_page(&page), "{path}");
        let body = String::from_utf8(bytes(page).await.to_vec()).unwrap();
        assert!(body.starts_with("<!doctype html>"), "{path}: {body}");
        for program in ["*/*", "application/json", ""] {
            let json = asked(&server, ("localhost", "GET", path), &[("accept", program)]).await;
            let (status, said) = read(json).await;
            assert_eq!((status, &said["code"]), (StatusCode::NOT_FOUND, &404.into()), "{path}");
        }
        let sent = asked(&server, ("localhost", "POST", path), &[("accept", PAGE)]).await;
        assert_eq!(read(sent).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    for (path, status) in [
        ("/api/v1/workload", 404),
        ("/elastane/v2/status", 404),
        ("/api/v1/workloads", 401),
        ("/serve/a/b/", 410),
        ("/healthz", 200),
        ("/_ui/index-0123456789.js", 404),
        ("/_ui/../index.html", 404),
    ] {
        let json = asked(&server, ("localhost", "GET", path), &[("accept", PAGE)]).await;
        assert_eq!(json.headers()["cache-control"], "no-store", "{path}");
        assert_eq!(json.headers()["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(read(json).await.0.as_u16(), status, "{path}");
    }
}

#[tokio::test]
async fn a_browser_runs_nothing_but_what_is_served_here_and_shows_it_in_no_frame() {
    let server = Server::new().await;
    let page = asked(&server, ("localhost", "GET", "/"), &[("accept", PAGE)]).await;
    let mut said: Vec<String> = page
        .headers()
        .iter()
        .filter(|(name, _)| !["etag", "content-length", "x-request-id"].contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()))
        .collect();
    said.sort();
    expect![[r#"
        cache-control: no-cache
        content-security-policy: default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types elastane-worker
        content-type: text/html; charset=utf-8
        cross-origin-opener-policy: same-origin
        cross-origin-resource-policy: same-origin
        permissions-policy: camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=(self)
        referrer-policy: no-referrer
        vary: accept-encoding
        x-content-type-options: nosniff
    "#]]
    .assert_eq(&said.concat());
}

#[tokio::test]
async fn the_page_is_sent_once_and_compressed_for_who_reads_that() {
    let server = Server::new().await;
    let get = async |headers: &[(&str, &str)]| {
        let headers = [&[("accept", PAGE)], headers].concat();
        asked(&server, ("localhost", "GET", "/login"), &headers).await
    };
    let (plain, gzip) = (get(&[]).await, get(&[("accept-encoding", "gzip, br")]).await);
    assert_eq!(gzip.headers()["content-encoding"], "gzip");
    assert!(!plain.headers().contains_key("content-encoding"));
    assert_eq!(plain.headers()["etag"], gzip.headers()["etag"]);
    let tag = plain.headers()["etag"].to_str().unwrap().to_owned();
    let (plain, gzip) = (bytes(plain).await, bytes(gzip).await);
    assert!(gzip.starts_with(&[0x1f, 0x8b]) && plain.starts_with(b"<!doctype"));
    let known = get(&[("if-none-match", &tag)]).await;
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    assert!(bytes(known).await.is_empty());
    assert_eq!(get(&[("if-none-match", "\"other\"")]).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn hosts_of_workloads_and_strangers_never_show_the_page() {
    let server = Server::with_teams().await;
    for host in ["lab--team-a--8888.localhost", "model--team-a.localhost", "evil.example"] {
        for path in ["/", "/login", "/_ui/x-1.js"] {
            let answer = asked(&server, (host, "GET", path), &[("accept", PAGE)]).await;
            assert!(answer.status().is_client_error(), "{host}{path}: {}", answer.status());
            let body = String::from_utf8(bytes(answer).await.to_vec()).unwrap();
            assert!(!body.contains("web interface"), "{host}{path}: {body}");
        }
    }
}

/// Addresses of files below `/_ui/` that a text names.
fn files_in(text: &str) -> Vec<String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let names = text.split("/_ui/").skip(1);
    let names = names.map(|rest| rest.split(|letter| !is_of_name(letter)).next().unwrap());
    names.filter(|name| name.contains('.')).map(|name| format!("/_ui/{name}")).collect()
}

#[tokio::test]
async fn files_are_kept_for_ever_and_a_worker_is_under_the_policy_too() {
    let server = Server::new().await;
    let page = asked(&server, ("localhost", "GET", "/"), &[("accept", PAGE)]).await;
    let policy = page.headers()["content-security-policy"].clone();
    let page = String::from_utf8(bytes(page).await.to_vec()).unwrap();
    let mut files = files_in(&page);
    let mut looked_at = 0;
    while let Some(path) = files.get(looked_at).cloned() {
        looked_at += 1;
        let get = async |headers: &[(&str, &str)]| {
            asked(&server, ("localhost", "GET", &path), headers).await
        };
        let plain = get(&[]).await;
        let headers = plain.headers().clone();
        assert_eq!(plain.status(), StatusCode::OK, "{path}");
        assert_eq!(headers["cache-control"], "public, max-age=31536000, immutable", "{path}");
        assert_eq!(headers["content-security-policy"], policy, "{path}");
        let known = get(&[("if-none-match", headers["etag"].to_str().unwrap())]).await;
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED, "{path}");
        let gzip = get(&[("accept-encoding", "gzip")]).await;
        assert_eq!(gzip.headers()["content-encoding"], "gzip", "{path}");
        let text = String::from_utf8_lossy(&bytes(plain).await).into_owned();
        files.extend(
            files_in(&text).into_iter().filter(|path| !files.contains(path)).collect::<Vec<_>>(),
        );
    }
    let has = |word: &str| files.iter().any(|path| path.contains(word));
    assert!(has("/index-") && has("/worker-"), "{files:?}");
    for path in
        ["/_ui/%2e%2e/index.html", "/_ui/..%2findex.html", "/_ui/%2e%2e%2f%2e%2e%2fetc/passwd"]
    {
        let answer = asked(&server, ("localhost", "GET", path), &[("accept", PAGE)]).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_server_that_is_reached_by_https_only_says_so() {
    let hsts = async |server: &Server, host: &str| {
        let page = asked(server, (host, "GET", "/"), &[("accept", PAGE)]).await;
        assert_eq!(page.status(), StatusCode::OK);
        page.headers().contains_key("strict-transport-security")
    };
    assert!(hsts(&Server::at("https://gpu-box").await, "gpu-box").await);
    let elsewhere = Server::at("https://gpu-box:8443").await;
    assert!(!hsts(&elsewhere, "gpu-box:8443").await, "other ports may be without");
    assert!(!hsts(&Server::at("http://gpu-box").await, "gpu-box").await);
    assert!(!hsts(&Server::new().await, "localhost").await);
}
