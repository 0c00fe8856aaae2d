//! Users, programs and keys as tests use them.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, read};

/// Sends a request with this token, or none.
pub(crate) async fn call(
    server: &Server,
    token: &str,
    route: (&str, &str),
    body: &Value,
) -> (StatusCode, Value) {
    call_at(server, "localhost", token, route, body).await
}

/// Sends a request to this host.
pub(crate) async fn call_at(
    server: &Server,
    host: &str,
    token: &str,
    (method, path): (&str, &str),
    body: &Value,
) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.header("content-type", "application/json");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    read(server.send(request.body(Body::from(body)).unwrap()).await).await
}

/// A request without a body.
pub(crate) async fn get(server: &Server, token: &str, path: &str) -> (u16, Value) {
    let (status, body) = call(server, token, ("GET", path), &Value::Null).await;
    (status.as_u16(), body)
}

/// Asks for a token.
pub(crate) async fn grant(server: &Server, body: Value) -> (u16, Value) {
    let (status, body) = call(server, "", ("POST", "/api/v1/token"), &body).await;
    (status.as_u16(), body)
}

/// The token of a program, by its id and secret.
pub(crate) async fn grant_client(server: &Server, id: &str, secret: &str) -> (u16, Value) {
    let body = json!({"grantType": "app_token", "AppId": id, "AppSecret": secret});
    grant(server, body).await
}

/// The token of a person.
pub(crate) async fn grant_password(server: &Server, name: &str, password: &str) -> (u16, Value) {
    let body = json!({"grantType": "password", "username": name, "password": password});
    grant(server, body).await
}

/// A text in an answer.
pub(crate) fn text(answer: &Value, field: &str) -> String {
    answer[field].as_str().unwrap_or_else(|| panic!("no {field} in {answer}")).to_owned()
}

/// A service account: its id, secret and a token.
pub(crate) async fn program(server: &Server, name: &str) -> (String, String, String) {
    let (status, made) = server.post("/api/v1/service-accounts", json!({"name": name})).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let (id, secret) = (text(&made, "clientId"), text(&made, "clientSecret"));
    let (_, granted) = grant_client(server, &id, &secret).await;
    (id, secret, text(&granted, "accessToken"))
}

/// A user who has chosen the password `correct horse`: its id and a token.
pub(crate) async fn user(server: &Server, email: &str) -> (String, String) {
    let body = json!({"email": email, "resetPassword": false});
    let (status, made) = server.post("/api/v1/users", body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let (_, granted) = grant_password(server, email, &text(&made, "tempPassword")).await;
    (text(&made, "id"), text(&granted, "accessToken"))
}

/// Gives a role.
pub(crate) async fn give(server: &Server, subject: &str, role: u64, scope: (&str, &str)) -> u64 {
    let kind = if subject.contains('@') { "user" } else { "service-account" };
    let body = json!({
        "subjectId": subject, "subjectType": kind, "roleId": role,
        "scopeType": scope.0, "scopeId": scope.1,
    });
    let (status, made) = server.post("/api/v1/authorization/access-rules", body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["id"].as_u64().unwrap()
}
