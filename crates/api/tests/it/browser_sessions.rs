//! Sessions of browsers over plain requests: a cookie and a page secret, and what an attacker has
//! who holds one of them, comes from elsewhere, or comes too late.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};
use store::Database;
use store::testing::PgServer;

use crate::iam::{call, give, grant_password, program, text, user};
use crate::server::{Server, Setup, read};

const SESSION: &str = "/elastane/v1/session";
const LINKS: &str = "/elastane/v1/session/links";
const WHO: &str = "/api/v1/workloads";
const HERE: &str = "http://localhost:7070";

/// A browser with what it keeps for this server.
#[derive(Clone, Default)]
struct Browser {
    cookie: String,
    page: String,
    /// A token that it sends as well.
    token: String,
    /// Value of `Origin`; empty for no such header.
    origin: String,
    /// Value of `Sec-Fetch-Site`; empty for no such header.
    site: String,
    host: String,
}

impl Browser {
    fn new() -> Self {
        let (origin, host) = (HERE.to_owned(), "localhost:7070".to_owned());
        Self { origin, host, ..Self::default() }
    }

    async fn raw(
        &self,
        server: &Server,
        (method, path): (&str, &str),
        body: &Value,
    ) -> axum::http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path).header("host", &self.host);
        let bearer = format!("Bearer {}", self.token);
        for (name, value, sent) in [
            ("cookie", &self.cookie, !self.cookie.is_empty()),
            ("x-elastane-page", &self.page, !self.page.is_empty()),
            ("authorization", &bearer, !self.token.is_empty()),
            ("origin", &self.origin, !self.origin.is_empty()),
            ("sec-fetch-site", &self.site, !self.site.is_empty()),
        ] {
            if sent {
                request = request.header(name, value);
            }
        }
        let request = request.header("content-type", "application/json");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.send(request.body(Body::from(body)).unwrap()).await
    }

    async fn ask(&self, server: &Server, route: (&str, &str), body: &Value) -> (u16, Value) {
        let (status, said) = read(self.raw(server, route, body).await).await;
        (status.as_u16(), said)
    }

    async fn get(&self, server: &Server, path: &str) -> u16 {
        self.ask(server, ("GET", path), &Value::Null).await.0
    }

    /// Logs in, and keeps both halves.
    async fn begin(server: &Server, body: &Value) -> (Self, Value) {
        let browser = Self::new();
        let response = browser.raw(server, ("POST", SESSION), body).await;
        let cookie = response.headers().get("set-cookie").map(|cookie| {
            let cookie = cookie.to_str().unwrap();
            let kept = "; Path=/; Max-Age=";
            assert!(cookie.contains(kept) && cookie.ends_with("; HttpOnly; SameSite=Strict"));
            assert!(cookie.starts_with("elastane_session_7070="), "{cookie}");
            cookie.split(';').next().unwrap().to_owned()
        });
        let (status, said) = read(response).await;
        assert_eq!(status, StatusCode::CREATED, "{said}");
        let page = text(&said, "pageSecret");
        (Self { cookie: cookie.unwrap(), page, ..browser }, said)
    }

    async fn local(server: &Server) -> Self {
        let once = link(server, &json!({})).await;
        Self::begin(server, &json!({"once": once})).await.0
    }
}

/// The secret of a link for the local administrator, or a user.
async fn link(server: &Server, body: &Value) -> String {
    let (status, made) = server.post(LINKS, body.clone()).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let url = text(&made, "url");
    let (place, once) = url.split_once("/login#once=").unwrap();
    assert_eq!(place, "http://localhost:8080", "where it was asked for");
    once.to_owned()
}

/// A user with a password of its own, and the role L1 researcher in team-a.
async fn ann(server: &Server) -> (String, Value) {
    let body = json!({"email": "ann@x.org", "resetPassword": false});
    let (_, made) = server.post("/api/v1/users", body).await;
    give(server, "ann@x.org", 6, ("project", "1")).await;
    let login = json!({"username": "Ann@x.org", "password": text(&made, "tempPassword")});
    (text(&made, "id"), login)
}

#[tokio::test]
async fn a_user_logs_in_and_is_told_who_it_is_and_what_it_may() {
    let server = Server::with_teams().await;
    let (id, login) = ann(&server).await;
    let (browser, said) = Browser::begin(&server, &login).await;
    let since = &server.get(&format!("/api/v1/users/{id}")).await["createdAt"];
    let principal = json!({"kind": "user", "id": id, "name": "ann@x.org", "since": since});
    assert_eq!(said["principal"], principal);
    let (status, again) = browser.ask(&server, ("GET", SESSION), &Value::Null).await;
    assert_eq!(status, 200);
    let mut first = said.clone();
    first.as_object_mut().unwrap().remove("pageSecret").unwrap();
    assert_eq!(again, first, "the page secret is told once");
    assert_eq!(said["versions"]["server"], "1.2.3");
    assert!(!text(&said["versions"], "interface").is_empty());
    assert_eq!((&said["mustChangePassword"], &said["byLink"]), (&json!(false), &json!(false)));
    let rights = &said["rights"];
    assert_eq!(rights.as_array().unwrap().len(), 1);
    let scope = ["scopeType", "scopeId", "scopeName", "ownOnly"].map(|name| &rights[0][name]);
    assert_eq!(json!(scope), json!(["project", "1", "team-a", false]));
    let actions = ["workloads", "nodes", "users"].map(|of| &rights[0]["actions"][of]);
    assert_eq!(json!(actions), json!([["create", "read", "update", "delete"], ["read"], null]));
    assert_eq!(browser.get(&server, WHO).await, 200);
    assert_eq!(browser.get(&server, "/api/v1/audit/log").await, 403);
}

#[tokio::test]
async fn neither_half_counts_alone_and_none_with_that_of_another_session() {
    let server = Server::with_teams().await;
    let (_, login) = ann(&server).await;
    let (one, _) = Browser::begin(&server, &login).await;
    let (two, _) = Browser::begin(&server, &login).await;
    let local = Browser::local(&server).await;
    let (page, cookie) = (|of: &Browser| of.page.clone(), |of: &Browser| of.cookie.clone());
    let with = |cookie: String, page: String| Browser { cookie, page, ..Browser::new() };
    let value = |of: &Browser| of.cookie.split_once('=').unwrap().1.to_owned();
    for (what, browser, status) in [
        ("both", with(cookie(&one), page(&one)), 200),
        ("only the cookie", with(cookie(&one), String::new()), 401),
        ("only the page secret", with(String::new(), page(&one)), 401),
        ("the secret of another session", with(cookie(&one), page(&two)), 401),
        ("the cookie of an administrator", with(cookie(&local), page(&one)), 401),
        ("cookie as page secret", with(cookie(&one), value(&one)), 401),
        (
            "page secret as cookie",
            with(format!("elastane_session_7070={}", page(&one)), page(&one)),
            401,
        ),
        ("another port", with(format!("elastane_session_7071={}", value(&one)), page(&one)), 401),
        (
            "the name of https",
            with(format!("__Host-elastane_session_7070={}", value(&one)), page(&one)),
            401,
        ),
        ("an id alone", with(cookie(&one).split('.').next().unwrap().to_owned(), page(&one)), 401),
        (
            "one of a program at another port beside it",
            with(format!("elastane_session_7070=junk; {}; a=b", cookie(&one)), page(&one)),
            200,
        ),
        (
            "an attacker's session first",
            with(format!("{}; {}", cookie(&local), cookie(&one)), page(&one)),
            200,
        ),
    ] {
        assert_eq!(browser.get(&server, WHO).await, status, "{what}");
    }
    let refresh = format!("{}.{}", value(&one), page(&one));
    let body = json!({"grantType": "refresh_token", "refreshToken": refresh});
    let (status, _) = call(&server, "", ("POST", "/api/v1/token"), &body).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "a browser's session gives no tokens");
}

#[tokio::test]
async fn pages_from_elsewhere_use_no_session_and_begin_none() {
    let server = Server::with_teams().await;
    let (_, login) = ann(&server).await;
    let (own, _) = Browser::begin(&server, &login).await;
    for origin in [
        "http://evil.example",
        "http://localhost:8888",
        "http://lab--team-a--8888.localhost:7070",
        "null",
    ] {
        let there = Browser { origin: origin.to_owned(), ..own.clone() };
        assert_eq!(there.get(&server, WHO).await, 403, "{origin}");
        let (status, _) = there.ask(&server, ("DELETE", SESSION), &Value::Null).await;
        assert_eq!(status, 403, "{origin}");
        let (status, _) = there.ask(&server, ("POST", SESSION), &login).await;
        assert_eq!(status, 403, "{origin}");
    }
    for (site, status) in [("same-origin", 200), ("same-site", 403), ("cross-site", 403)] {
        let (origin, site) = (String::new(), site.to_owned());
        let there = Browser { origin, site: site.clone(), ..own.clone() };
        assert_eq!(there.get(&server, WHO).await, status, "{site}");
    }
    let silent = Browser { origin: String::new(), ..own.clone() };
    assert_eq!(silent.get(&server, WHO).await, 403, "a browser says it on this machine");
    // Over http to another machine no browser says from where a `GET` comes.
    let (host, origin) = ("gpu-box:7070".to_owned(), String::new());
    let away = Browser { host, origin, ..own.clone() };
    assert_eq!(away.get(&server, WHO).await, 200);
    assert_eq!(away.ask(&server, ("DELETE", SESSION), &Value::Null).await.0, 403);
    assert_eq!(own.get(&server, WHO).await, 200, "nobody ended it");
}

#[tokio::test]
async fn a_token_and_a_session_are_of_the_same_caller() {
    let server = Server::with_teams().await;
    let (_, login) = ann(&server).await;
    let (own, _) = Browser::begin(&server, &login).await;
    let (_, granted) = grant_password(&server, "ann@x.org", &text(&login, "password")).await;
    let with = |token: &str| Browser { token: token.to_owned(), ..own.clone() };
    let (_, bob) = user(&server, "bob@x.org").await;
    let (_, _, robot) = program(&server, "robot").await;
    assert_eq!(with(&text(&granted, "accessToken")).get(&server, WHO).await, 200);
    for (what, token, status) in [
        ("another user", bob.as_str(), 400),
        ("a program", &robot, 400),
        ("the local administrator", &server.token, 400),
        ("none of this server", "junk", 401),
    ] {
        assert_eq!(with(token).get(&server, WHO).await, status, "{what}");
    }
    let cookie_only = Browser { page: String::new(), ..with(&bob) };
    let (_, who) = cookie_only.ask(&server, ("GET", SESSION), &Value::Null).await;
    assert_eq!(who["principal"]["name"], "bob@x.org", "a cookie alone says nothing");
}

#[tokio::test]
async fn a_link_is_good_once_and_says_when_it_was_used() {
    let server = Server::with_teams().await;
    let once = link(&server, &json!({})).await;
    let (browser, said) = Browser::begin(&server, &json!({"once": once})).await;
    assert_eq!(said["principal"], json!({"kind": "local", "name": "ada"}));
    assert_eq!((&said["byLink"], &said["mustChangePassword"]), (&json!(true), &json!(false)));
    let rights = said["rights"].as_array().unwrap();
    assert_eq!((rights.len(), &rights[0]["scopeType"]), (1, &json!("tenant")));
    assert_eq!(rights[0]["actions"]["users"], json!(["create", "read", "update", "delete"]));
    assert_eq!(browser.get(&server, "/api/v1/audit/log").await, 200);
    let again = async |body: Value| Browser::new().ask(&server, ("POST", SESSION), &body).await;
    let (status, refused) = again(json!({"once": once})).await;
    let why = text(&refused, "message");
    let (begin, rest) = why.split_once(", at 2").unwrap_or_else(|| panic!("{why}"));
    assert_eq!((status, begin), (401, "this link was used already"));
    assert!(rest.ends_with("; make another with `elastane ui`"), "{why}");
    assert_eq!(again(json!({"once": "junk"})).await.0, 401);
    for body in [json!({}), json!({"once": "x", "username": "y"}), json!({"password": "x"})] {
        assert_eq!(again(body).await.0, 400);
    }
    for _ in 0..10 {
        again(json!({"once": "junk"})).await;
    }
    let (status, refused) = again(json!({"once": "junk"})).await;
    assert_eq!(status, 429, "{refused}");
    let right = link(&server, &json!({})).await;
    assert_eq!(again(json!({"once": right})).await.0, 201, "a right one is never refused for that");
}

#[tokio::test]
async fn who_may_make_a_link_for_whom() {
    let server = Server::with_teams().await;
    let (id, login) = ann(&server).await;
    let (own, _) = Browser::begin(&server, &login).await;
    let (_, _, robot) = program(&server, "robot").await;
    let make = async |token: &str, body: Value| {
        call(&server, token, ("POST", LINKS), &body).await.0.as_u16()
    };
    assert_eq!(make(&robot, json!({})).await, 403);
    assert_eq!(make(&robot, json!({"user": id})).await, 403);
    assert_eq!(make("", json!({})).await, 401);
    assert_eq!(own.ask(&server, ("POST", LINKS), &json!({})).await.0, 403);
    assert_eq!(make(&server.token, json!({"user": "none"})).await, 404);
    let (status, refused) = server.post(LINKS, json!({"user": id})).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert_eq!(
        Browser::local(&server).await.ask(&server, ("POST", LINKS), &json!({})).await.0,
        403,
        "its session would have no end"
    );
    let unopened = json!({"once": link(&server, &json!({})).await});
    let everywhere = ("DELETE", "/elastane/v1/session?everywhere=true");
    let local = Browser::local(&server).await;
    assert_eq!(local.ask(&server, everywhere, &Value::Null).await.0, 204);
    assert_eq!(Browser::new().ask(&server, ("POST", SESSION), &unopened).await.0, 401);
}

#[tokio::test]
async fn a_new_user_chooses_the_first_password_by_a_link() {
    let server = Server::with_teams().await;
    let (_, made) = server.post("/api/v1/users", json!({"email": "bob@x.org"})).await;
    let id = text(&made, "id");
    let (first, unused) = (link(&server, &json!({"user": id})).await, json!({"user": id}));
    let unused = link(&server, &unused).await;
    let (browser, said) = Browser::begin(&server, &json!({"once": first})).await;
    assert_eq!((&said["byLink"], &said["mustChangePassword"]), (&json!(true), &json!(true)));
    assert_eq!(browser.get(&server, WHO).await, 403, "the password comes first");
    assert_eq!(browser.get(&server, SESSION).await, 200);
    let change =
        async |body: Value| browser.ask(&server, ("POST", "/api/v1/me/password"), &body).await;
    let weak = change(json!({"newPassword": "12345678"})).await;
    assert_eq!(weak.0, 400, "{}", weak.1);
    assert_eq!(change(json!({"newPassword": "correct horse"})).await.0, 200);
    assert_eq!(browser.get(&server, SESSION).await, 401, "every session ended with that");
    let late = Browser::new().ask(&server, ("POST", SESSION), &json!({"once": unused})).await;
    assert_eq!(late.0, 401, "{}", late.1);
    let login = json!({"username": "bob@x.org", "password": "correct horse"});
    let (again, _) = Browser::begin(&server, &login).await;
    let body = json!({"newPassword": "battery staple"});
    let (status, _) = again.ask(&server, ("POST", "/api/v1/me/password"), &body).await;
    assert_eq!(status, 403, "only a link needs no password of before");
}

#[tokio::test]
async fn a_session_ends_here_or_everywhere_and_with_what_it_was_begun_by() {
    let server = Server::with_teams().await;
    let (id, login) = ann(&server).await;
    let begin = async || Browser::begin(&server, &login).await.0;
    let (one, two, three) = (begin().await, begin().await, begin().await);
    let (_, granted) = grant_password(&server, "ann@x.org", &text(&login, "password")).await;
    let token = text(&granted, "accessToken");
    let local = Browser::local(&server).await;
    let gone = one.raw(&server, ("DELETE", SESSION), &Value::Null).await;
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
    assert_eq!(
        gone.headers()["set-cookie"],
        "elastane_session_7070=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    );
    assert_eq!((one.get(&server, WHO).await, two.get(&server, WHO).await), (401, 200));
    let path = format!("{SESSION}?everywhere=true");
    assert_eq!(two.ask(&server, ("DELETE", &path), &Value::Null).await.0, 204);
    for ended in [&two, &three] {
        assert_eq!(ended.get(&server, WHO).await, 401);
    }
    assert_eq!(call(&server, &token, ("GET", WHO), &Value::Null).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(local.get(&server, WHO).await, 200, "others' stay");
    let four = begin().await;
    let reset = format!("/api/v1/users/{id}/password");
    assert_eq!(server.post(&reset, json!({})).await.0, StatusCode::OK);
    assert_eq!(four.get(&server, WHO).await, 401);
    let (_, _, robot) = program(&server, "robot").await;
    let (status, _) = call(&server, &robot, ("DELETE", SESSION), &Value::Null).await;
    assert_eq!(status, StatusCode::CONFLICT, "a program has none");
}

#[tokio::test]
async fn the_local_administrators_sessions_end_with_its_tokens() {
    let server = Server::with_teams().await;
    let browser = Browser::local(&server).await;
    let unused = link(&server, &json!({})).await;
    assert_eq!(browser.get(&server, WHO).await, 200);
    std::fs::remove_file(server.dir.path().join(auth::TOKEN_FILE)).unwrap();
    server.authority.renew_local(server.now()).unwrap();
    assert_eq!(browser.get(&server, WHO).await, 401);
    let late = Browser::new().ask(&server, ("POST", SESSION), &json!({"once": unused})).await;
    assert_eq!(late.0, 401, "{}", late.1);
}

#[tokio::test]
async fn twenty_sessions_are_kept_and_each_beginning_is_written_down() {
    let server = Server::with_teams().await;
    let (_, login) = ann(&server).await;
    let (first, _) = Browser::begin(&server, &login).await;
    let (second, _) = Browser::begin(&server, &login).await;
    for _ in 0..19 {
        Browser::begin(&server, &login).await;
    }
    assert_eq!((first.get(&server, WHO).await, second.get(&server, WHO).await), (401, 200));
    let wrong = json!({"username": "ann@x.org", "password": "wrong password"});
    assert_eq!(Browser::new().ask(&server, ("POST", SESSION), &wrong).await.0, 401);
    let once = link(&server, &json!({})).await;
    Browser::begin(&server, &json!({"once": once})).await;
    Browser::new().ask(&server, ("POST", SESSION), &json!({"once": once})).await;
    let seen = |log: &Value| -> BTreeSet<String> {
        let rows = log["audit_logs"].as_array().into_iter().flatten();
        let text = |row: &Value| {
            format!("{} {} {}\n", row["subject"], row["metadata"]["operation"], row["result"])
        };
        rows.map(text).filter(|row| row.contains("session")).collect()
    };
    // Rows are written beside the answers, in any order.
    let has_all = |log: &Value| seen(log).len() == 5;
    let log = server.until("/api/v1/audit/log?numberOfSamples=500", has_all).await;
    expect![[r#"
        "" "session.begin" "Failed"
        "ada" "session.create" "Succeeded"
        "ada" "session.link" "Succeeded"
        "ann@x.org" "session.begin" "Failed"
        "ann@x.org" "session.create" "Succeeded"
    "#]]
    .assert_eq(&seen(&log).into_iter().collect::<String>());
}

/// How a session ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Here,
    Everywhere,
    TooMany,
    Reset,
}

#[tokio::test]
async fn a_stream_ends_with_its_session() {
    use futures_util::StreamExt as _;
    for end in [End::Here, End::Everywhere, End::TooMany, End::Reset] {
        let server = Server::with_teams().await;
        let (id, login) = ann(&server).await;
        let begin = async || Browser::begin(&server, &login).await.0;
        let browser = begin().await;
        let stream = browser.raw(&server, ("GET", "/elastane/v1/changes"), &Value::Null).await;
        assert_eq!(stream.status(), StatusCode::OK);
        let mut stream = stream.into_body().into_data_stream();
        assert!(stream.next().await.is_some());
        let ended = match end {
            End::Here => browser.ask(&server, ("DELETE", SESSION), &Value::Null).await.0,
            End::Everywhere => {
                let path = format!("{SESSION}?everywhere=true");
                begin().await.ask(&server, ("DELETE", &path), &Value::Null).await.0
            }
            End::TooMany => {
                for _ in 0..20 {
                    begin().await;
                }
                204
            }
            End::Reset => {
                server.post(&format!("/api/v1/users/{id}/password"), json!({})).await.0.as_u16()
            }
        };
        assert!(matches!(ended, 200 | 204), "{end:?}: {ended}");
        let rest = async { while stream.next().await.is_some() {} };
        let limit = std::time::Duration::from_secs(120);
        tokio::time::timeout(limit, rest).await.unwrap_or_else(|_| panic!("{end:?}: it goes on"));
    }
}

#[tokio::test]
async fn a_websocket_by_a_ticket_ends_with_the_session_that_asked_for_it() {
    use futures_util::StreamExt as _;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
    let server = Server::with_teams().await;
    let id = server.train("a1", 1).await;
    server.phase(&id, "Running").await;
    let browser = Browser::local(&server).await;
    let workload = format!("/elastane/v1/workloads/{id}");
    let tickets = format!("{workload}/websocket-tickets");
    let (status, made) = browser.ask(&server, ("POST", &tickets), &Value::Null).await;
    assert_eq!(status, 200, "{made}");
    let port = server.listens().await;
    let ticket = text(&made, "ticket");
    let url = format!("ws://127.0.0.1:{port}{workload}/exec?command=sh&elastane_ticket={ticket}");
    let mut request = url.into_client_request().unwrap();
    let origin = format!("http://127.0.0.1:{port}");
    request.headers_mut().insert("origin", origin.parse().unwrap());
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut visit, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert!(matches!(visit.next().await, Some(Ok(Message::Binary(_)))), "it is there");
    assert_eq!(browser.ask(&server, ("DELETE", SESSION), &Value::Null).await.0, 204);
    let closed = async {
        loop {
            match visit.next().await.unwrap().unwrap() {
                Message::Close(frame) => return u16::from(frame.unwrap().code),
                _ => continue,
            }
        }
    };
    assert_eq!(closed.await, 1008);
}

#[tokio::test]
async fn over_https_a_cookie_is_bound_to_the_host_and_never_sent_without_encryption() {
    let server = Server::at("https://gpu-box").await;
    let (status, made) = server.post(LINKS, json!({})).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let url = text(&made, "url");
    let (_, once) = url.split_once("/login#once=").unwrap();
    let origin = "https://gpu-box".to_owned();
    let browser = Browser { origin, host: "gpu-box".to_owned(), ..Browser::new() };
    let begun = browser.raw(&server, ("POST", SESSION), &json!({"once": once})).await;
    let cookie = begun.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-elastane_session_443="), "{cookie}");
    assert!(cookie.contains("; Secure") && cookie.contains("; Path=/;"), "{cookie}");
    assert!(!cookie.contains("Domain"), "{cookie}");
    let page = text(&read(begun).await.1, "pageSecret");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let browser = Browser { cookie, page, ..browser };
    assert_eq!(browser.get(&server, WHO).await, 200);
}

/// Sessions of users are stored, those of the local administrator are of one start of the server.
async fn sessions_over_a_restart(database: Database) {
    let start = async |dir| Server::on(dir, Setup::with_samples(database.clone())).await;
    let server = start(tempfile::tempdir().unwrap()).await;
    let body = json!({"email": "ann@x.org", "resetPassword": false});
    let (_, made) = server.post("/api/v1/users", body).await;
    let login = json!({"username": "ann@x.org", "password": text(&made, "tempPassword")});
    let (kept, said) = Browser::begin(&server, &login).await;
    let (ended, _) = Browser::begin(&server, &login).await;
    let local = Browser::local(&server).await;
    let once = link(&server, &json!({})).await;
    assert_eq!(ended.ask(&server, ("DELETE", SESSION), &Value::Null).await.0, 204);
    let server = start(server.end().await).await;
    let (status, again) = kept.ask(&server, ("GET", SESSION), &Value::Null).await;
    assert_eq!((status, &again["principal"]["id"]), (200, &said["principal"]["id"]), "{again}");
    for over in [&ended, &local] {
        assert_eq!(over.get(&server, SESSION).await, 401);
    }
    let (status, _) = Browser::new().ask(&server, ("POST", SESSION), &json!({"once": once})).await;
    assert_eq!(status, 401, "a link is of one start too");
    assert_eq!(kept.ask(&server, ("DELETE", SESSION), &Value::Null).await.0, 204);
    let server = start(server.end().await).await;
    assert_eq!(kept.get(&server, SESSION).await, 401);
}

#[tokio::test]
async fn a_users_session_outlasts_a_restart_and_the_local_administrators_does_not() {
    sessions_over_a_restart(Database::Sqlite).await;
}

#[tokio::test]
async fn a_users_session_outlasts_a_restart_in_postgres() {
    let Some(server) = PgServer::shared() else { return };
    sessions_over_a_restart(Database::Postgres(server.database().await)).await;
}
