//! Guessing is slow, and failed guesses of others lock no user out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::iam::{program, text};
use crate::server::{Server, read};

/// Asks for a token from an address.
async fn grant(server: &Server, address: &str, body: &Value) -> (u16, HeaderMap, Value) {
    let address: SocketAddr = format!("{address}:1").parse().unwrap();
    let request = Request::post("/api/v1/token").header("host", "localhost");
    let request = request.header("content-type", "application/json");
    let mut request = request.body(Body::from(body.to_string())).unwrap();
    request.extensions_mut().insert(ConnectInfo(address));
    let answer = server.send(request).await;
    let headers = answer.headers().clone();
    let (status, body) = read(answer).await;
    (status.as_u16(), headers, body)
}

async fn status(server: &Server, address: &str, body: &Value) -> u16 {
    grant(server, address, body).await.0
}

fn secret(id: &str, secret: &str) -> Value {
    json!({"grantType": "client_credentials", "clientId": id, "clientSecret": secret})
}

fn password(name: &str, password: &str) -> Value {
    json!({"grantType": "password", "username": name, "password": password})
}

/// A user, and what its right password is sent as.
async fn ann(server: &Server) -> (String, Value) {
    let body = json!({"email": "ann@example.org", "resetPassword": false});
    let (_, made) = server.post("/api/v1/users", body).await;
    (text(&made, "id"), password("ann@example.org", &text(&made, "tempPassword")))
}

#[tokio::test]
async fn invented_names_keep_nobody_out() {
    let server = Server::new().await;
    let (id, right, _) = program(&server, "ci").await;
    let (_, ann) = ann(&server).await;
    for n in 0..350 {
        assert_eq!(status(&server, "127.0.0.1", &secret(&format!("x{n}"), "wrong")).await, 401);
    }
    let guesses = (0..12).map(|n| password(&format!("x{n}@example.org"), "wrong password"));
    for body in guesses {
        assert_eq!(status(&server, "127.0.0.1", &body).await, 401);
    }
    assert_eq!(status(&server, "127.0.0.1", &secret(&id, &right)).await, 200);
    assert_eq!(status(&server, "127.0.0.1", &ann).await, 200);
}

#[tokio::test]
async fn a_program_with_the_right_secret_is_never_refused_for_wrong_ones() {
    let server = Server::new().await;
    let (id, right, _) = program(&server, "ci").await;
    for _ in 0..10 {
        assert_eq!(status(&server, "10.0.0.1", &secret(&id, "wrong")).await, 401);
    }
    let (refused, headers, body) = grant(&server, "10.0.0.1", &secret(&id, "wrong")).await;
    assert_eq!((refused, &body["code"]), (429, &json!(429)));
    let wait = headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
    assert!((1..=300).contains(&wait), "{wait}");
    assert_eq!(status(&server, "10.0.0.1", &secret(&id, &right)).await, 200);
}

#[tokio::test]
async fn a_password_is_guessed_ten_times_in_five_minutes_from_an_address() {
    let server = Server::new().await;
    let (_, right) = ann(&server).await;
    let wrong = password("Ann@example.org", "wrong password");
    let all = join_all((0..30).map(|_| status(&server, "10.0.0.1", &wrong))).await;
    let looked_at = all.iter().filter(|status| **status == 401).count();
    // Two are looked at at a time.
    assert!((10..=11).contains(&looked_at), "at once is not more guesses: {all:?}");
    assert!(all.iter().all(|status| matches!(status, 401 | 429)), "{all:?}");
    assert_eq!(status(&server, "10.0.0.1", &right).await, 429, "no answer to a right one either");
    assert_eq!(status(&server, "10.0.0.2", &right).await, 200);
}

#[tokio::test]
async fn a_password_is_guessed_as_often_at_the_page_as_by_programs() {
    let server = Server::new().await;
    let (_, right) = ann(&server).await;
    let login = |password: &str| json!({"username": "ann@example.org", "password": password});
    let at_the_page = async |password: &str| {
        let address: SocketAddr = "10.0.0.1:1".parse().unwrap();
        let request = Request::post("/elastane/v1/session").header("host", "localhost:7070");
        let request = request.header("origin", "http://localhost:7070");
        let request = request.header("content-type", "application/json");
        let mut request = request.body(Body::from(login(password).to_string())).unwrap();
        request.extensions_mut().insert(ConnectInfo(address));
        read(server.send(request).await).await.0.as_u16()
    };
    for _ in 0..5 {
        assert_eq!(at_the_page("wrong password").await, 401);
        let wrong = password("ann@example.org", "wrong password");
        assert_eq!(status(&server, "10.0.0.1", &wrong).await, 401);
    }
    let known = right["password"].as_str().unwrap();
    assert_eq!(at_the_page(known).await, 429, "ten guesses, of either kind");
    assert_eq!(status(&server, "10.0.0.1", &right).await, 429);
    assert_eq!(status(&server, "10.0.0.2", &right).await, 200);
}

#[tokio::test]
async fn who_is_guessed_at_from_everywhere_gets_in_where_it_was_before() {
    let server = Server::new().await;
    let (_, right) = ann(&server).await;
    assert_eq!(status(&server, "10.0.0.1", &right).await, 200);
    let wrong = password("ann@example.org", "wrong password");
    for n in 0..100 {
        assert_eq!(status(&server, &format!("10.1.0.{}", n / 10), &wrong).await, 401, "{n}");
    }
    // While they were refused some of them ran out.
    let mut others = (1..=100).map(|n| format!("10.2.0.{n}"));
    while status(&server, &others.next().unwrap(), &wrong).await != 429 {}
    assert_eq!(status(&server, "10.0.0.1", &right).await, 200);
}

#[tokio::test]
async fn a_person_is_known_at_several_networks() {
    let server = Server::new().await;
    let (_, right) = ann(&server).await;
    for address in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
        assert_eq!(status(&server, address, &right).await, 200);
    }
    let wrong = password("ann@example.org", "wrong password");
    for n in 0..100 {
        status(&server, &format!("10.1.0.{}", n / 10), &wrong).await;
    }
    for address in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
        assert_eq!(status(&server, address, &right).await, 200, "{address}");
    }
}

#[tokio::test]
async fn a_flood_of_wrong_passwords_does_not_come_before_others() {
    let server = Arc::new(Server::new().await);
    let (_, right) = ann(&server).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let mut flood = Vec::new();
    for n in 0..200 {
        let (server, refused) = (server.clone(), refused.clone());
        let guess = password(&format!("x{n}@example.org"), "wrong password");
        flood.push(tokio::spawn(async move {
            let code = status(&server, "10.0.0.1", &guess).await;
            refused.fetch_add(usize::from(code == 401), Ordering::Relaxed);
        }));
    }
    tokio::task::yield_now().await;
    assert_eq!(status(&server, "10.0.0.2", &right).await, 200);
    let before = refused.load(Ordering::Relaxed);
    assert!(before < 50, "{before} of the flood came first");
    flood.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn what_may_not_be_a_password_is_not_hashed_and_counts() {
    let server = Server::new().await;
    let (_, right) = ann(&server).await;
    let long = password("ann@example.org", &"x".repeat(50_000));
    for _ in 0..10 {
        assert_eq!(status(&server, "10.0.0.1", &long).await, 401);
    }
    assert_eq!(status(&server, "10.0.0.1", &right).await, 429);
}

#[tokio::test]
async fn many_logins_and_logouts_at_once_succeed() {
    let server = Server::new().await;
    let (id, right) = ann(&server).await;
    // More logins than are hashed at once, and fewer than a busy machine hashes in the maximum wait
    // of 10 s.
    let all = join_all((0..12).map(|_| status(&server, "10.0.0.1", &right))).await;
    assert!(all.iter().all(|status| *status == 200), "{all:?}");
    let logout = format!("/api/v1/users/{id}/logout");
    let all = join_all((0..10).map(|_| server.post(&logout, Value::Null))).await;
    assert!(all.iter().all(|(status, _)| status.is_success()), "{all:?}");
}

#[tokio::test]
async fn guesses_do_not_fill_the_audit_log() {
    let server = Server::new().await;
    for _ in 0..250 {
        status(&server, "10.0.0.1", &secret("nobody", "wrong")).await;
    }
    status(&server, "10.0.0.2", &secret("last", "wrong")).await;
    let log = "/api/v1/audit/log?numberOfSamples=500&filterBy=result==Failed";
    let rows = |log: &Value| log["audit_logs"].as_array().unwrap().clone();
    let log = server.until(log, |log| rows(log).iter().any(|row| row["subject"] == "last")).await;
    // One more for each second and a half that this took.
    assert!((201..240).contains(&rows(&log).len()), "{}", rows(&log).len());
}
