//! Identity of callers: tokens of people and programs, and their expiry.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::iam::{call, get, give, grant, grant_client, grant_password, program, text, user};
use crate::server::{Server, read};

const MINE: &str = "/api/v1/authorization/me/access-rules/count";

#[tokio::test]
async fn a_given_password_is_good_for_choosing_another_only() {
    let server = Server::new().await;
    let (_, made) = server.post("/api/v1/users", json!({"email": "Ann@Example.org"})).await;
    assert_eq!(made["username"], "ann@example.org");
    let given = text(&made, "tempPassword");
    let (_, granted) = grant_password(&server, "ANN@example.org", &given).await;
    let token = text(&granted, "accessToken");
    let (status, refused) = get(&server, &token, MINE).await;
    assert_eq!(status, 403);
    assert!(text(&refused, "message").contains("POST /api/v1/me/password"), "{refused}");
    let change = async |current: &str, new: &str| {
        let body = json!({"currentPassword": current, "newPassword": new});
        call(&server, &token, ("POST", "/api/v1/me/password"), &body).await.0.as_u16()
    };
    assert_eq!(change("wrong password", "correct horse").await, 403);
    for guessed in ["short", "P@ssw0rd2026!", "Ann@Example1", "qwertzuiop", "abcabcabc"] {
        assert_eq!(change(&given, guessed).await, 400, "{guessed}");
    }
    assert_eq!(change(&given, &given).await, 400);
    assert_eq!(change(&given, "correct horse").await, 200);
    assert_eq!(get(&server, &token, MINE).await.0, 401, "what was given out for the old one ends");
    assert_eq!(grant_password(&server, "ann@example.org", &given).await.0, 401);
    let (_, granted) = grant_password(&server, "ann@example.org", "correct horse").await;
    assert_eq!(get(&server, &text(&granted, "accessToken"), MINE).await.0, 200);
}

#[tokio::test]
async fn a_users_tokens_end_with_logout_reset_and_deletion() {
    let server = Server::new().await;
    for (number, end) in ["logout", "password", ""].into_iter().enumerate() {
        let email = format!("ann{number}@example.org");
        let (id, token) = user(&server, &email).await;
        assert_eq!(get(&server, &token, MINE).await.0, 200);
        let method = if end.is_empty() { "DELETE" } else { "POST" };
        let path = format!("/api/v1/users/{id}/{end}");
        let (status, _) = server.raw(method, path.trim_end_matches('/'), "").await;
        assert!(status.is_success(), "{end}: {status}");
        let (status, body) = get(&server, &token, MINE).await;
        assert_eq!((status, &body["code"]), (401, &json!(401)), "{end}");
        assert!(text(&body, "message").contains("revoked"), "{body}");
    }
}

#[tokio::test]
async fn a_refresh_token_is_good_once_and_its_return_ends_the_session() {
    let server = Server::new().await;
    let (_, made) =
        server.post("/api/v1/users", json!({"email": "a@x.org", "resetPassword": false})).await;
    let (_, first) = grant_password(&server, "a@x.org", &text(&made, "tempPassword")).await;
    let refresh = async |token: &str| {
        grant(&server, json!({"grantType": "refresh_token", "refreshToken": token})).await
    };
    let (status, second) = refresh(&text(&first, "refreshToken")).await;
    assert_eq!(status, 200, "{second}");
    let (status, third) = refresh(&text(&second, "refreshToken")).await;
    assert_eq!(status, 200, "{third}");
    assert_eq!(get(&server, &text(&third, "accessToken"), MINE).await.0, 200);
    // The refresh token is no access token, and the other way round.
    assert_eq!(get(&server, &text(&third, "refreshToken"), MINE).await.0, 401);
    assert_eq!(refresh(&text(&third, "accessToken")).await.0, 401);
    assert_eq!(refresh(&text(&second, "refreshToken")).await.0, 401, "replayed");
    for granted in [&first, &second, &third] {
        assert_eq!(get(&server, &text(granted, "accessToken"), MINE).await.0, 401);
    }
    assert_eq!(refresh(&text(&third, "refreshToken")).await.0, 401);
}

#[tokio::test]
async fn the_return_of_an_older_refresh_token_ends_the_session_too() {
    let server = Server::new().await;
    let (_, made) =
        server.post("/api/v1/users", json!({"email": "a@x.org", "resetPassword": false})).await;
    let (_, first) = grant_password(&server, "a@x.org", &text(&made, "tempPassword")).await;
    let refresh = async |token: &str| {
        grant(&server, json!({"grantType": "refresh_token", "refreshToken": token})).await
    };
    let mut last = first.clone();
    for _ in 0..3 {
        last = refresh(&text(&last, "refreshToken")).await.1;
    }
    // The session id alone, from an access token, ends nothing.
    let refresh_token = text(&first, "refreshToken");
    let session = refresh_token.split('.').next().unwrap();
    for forged in [session.to_owned(), format!("{session}."), format!("{session}.x.y")] {
        assert_eq!(refresh(&forged).await.0, 401);
    }
    assert_eq!(get(&server, &text(&last, "accessToken"), MINE).await.0, 200);
    assert_eq!(refresh(&refresh_token).await.0, 401);
    assert_eq!(get(&server, &text(&last, "accessToken"), MINE).await.0, 401);
    assert_eq!(refresh(&text(&last, "refreshToken")).await.0, 401);
}

#[tokio::test]
async fn of_many_refreshes_at_once_one_succeeds() {
    let server = Server::new().await;
    let (_, made) =
        server.post("/api/v1/users", json!({"email": "a@x.org", "resetPassword": false})).await;
    let (_, first) = grant_password(&server, "a@x.org", &text(&made, "tempPassword")).await;
    let body = json!({"grantType": "refresh_token", "refreshToken": text(&first, "refreshToken")});
    let all = (0..8).map(|_| grant(&server, body.clone()));
    let outcomes = futures_util::future::join_all(all).await;
    let good = outcomes.iter().filter(|(status, _)| *status == 200).count();
    assert!(good <= 1, "{outcomes:?}");
    assert!(outcomes.iter().all(|(status, _)| matches!(status, 200 | 401)), "{outcomes:?}");
}

#[tokio::test]
async fn a_programs_tokens_end_with_its_secret_and_when_it_is_switched_off() {
    let server = Server::new().await;
    let (id, secret, token) = program(&server, "ci").await;
    assert_eq!(get(&server, &token, MINE).await.0, 200);
    let path = format!("/api/v1/service-accounts/{id}");
    let switch = async |on: bool| {
        let (status, body) = server.raw("PATCH", &path, &json!({"enabled": on}).to_string()).await;
        assert_eq!((status, body), (StatusCode::OK, Value::Null));
        assert_eq!(server.get(&path).await["enabled"], on);
    };
    switch(false).await;
    assert_eq!(get(&server, &token, MINE).await.0, 401);
    assert_eq!(grant_client(&server, &id, &secret).await.0, 401);
    switch(true).await;
    assert_eq!(get(&server, &token, MINE).await.0, 401, "it does not come back");
    let (_, granted) = grant_client(&server, &id, &secret).await;
    let token = text(&granted, "accessToken");
    let (_, renewed) = server.post(&format!("{path}/secret"), Value::Null).await;
    assert_eq!(get(&server, &token, MINE).await.0, 401);
    assert_eq!(grant_client(&server, &id, &secret).await.0, 401, "the old secret is replayed");
    let (status, granted) = grant_client(&server, &id, &text(&renewed, "clientSecret")).await;
    assert_eq!(status, 200);
    let (status, _) = server.raw("DELETE", &path, "").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(get(&server, &text(&granted, "accessToken"), MINE).await.0, 401);
}

#[tokio::test]
async fn a_key_speaks_for_its_user_and_ends_with_it() {
    let server = Server::with_teams().await;
    let (id, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "1")).await;
    let keys = "/api/v1/access-keys";
    let (status, made) = call(&server, &token, ("POST", keys), &json!({"name": "laptop"})).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let (client, secret) = (text(&made, "clientId"), text(&made, "clientSecret"));
    let (_, granted) = grant_client(&server, &client, &secret).await;
    let by_key = text(&granted, "accessToken");
    let job = server.job("t", &json!({"image": "i"}));
    let (status, made) =
        call(&server, &by_key, ("POST", "/api/v1/workloads/trainings"), &job).await;
    assert_eq!((status.as_u16(), &made["createdBy"]), (202, &json!("ann@example.org")));
    let (_, other) = user(&server, "bob@example.org").await;
    assert_eq!(get(&server, &other, keys).await.1, json!({"accessKeys": []}));
    let own = get(&server, &token, keys).await.1;
    assert_eq!(own["accessKeys"][0]["clientId"], json!(client));
    let all = server.get("/api/v1/administration/access-keys").await;
    assert_eq!(all["accessKeys"][0]["createdBy"], "ann@example.org");
    let one = format!("{keys}/{client}");
    for method in ["GET", "DELETE"] {
        let refused = call(&server, &other, (method, &one), &Value::Null).await;
        assert_eq!(refused.0, StatusCode::NOT_FOUND, "{method}");
    }
    let (status, again) = call(&server, &token, ("POST", keys), &json!({"name": "laptop"})).await;
    assert_eq!(status, StatusCode::CONFLICT, "{again}");
    server.raw("DELETE", &format!("/api/v1/users/{id}"), "").await;
    assert_eq!(get(&server, &by_key, MINE).await.0, 401);
    assert_eq!(grant_client(&server, &client, &secret).await.0, 401);
}

#[tokio::test]
async fn a_logout_ends_this_session_and_no_other() {
    let server = Server::new().await;
    let (_, made) =
        server.post("/api/v1/users", json!({"email": "a@x.org", "resetPassword": false})).await;
    let password = text(&made, "tempPassword");
    let (_, one) = grant_password(&server, "a@x.org", &password).await;
    let (_, other) = grant_password(&server, "a@x.org", &password).await;
    let out = async |token: &str| {
        call(&server, token, ("POST", "/elastane/v1/logout"), &Value::Null).await.0.as_u16()
    };
    assert_eq!(out(&text(&one, "accessToken")).await, 204);
    assert_eq!(get(&server, &text(&one, "accessToken"), MINE).await.0, 401);
    assert_eq!(get(&server, &text(&other, "accessToken"), MINE).await.0, 200);
    let refresh = json!({"grantType": "refresh_token", "refreshToken": one["refreshToken"]});
    assert_eq!(grant(&server, refresh).await.0, 401);
    let (_, _, program) = program(&server, "ci").await;
    assert_eq!(out(&program).await, 204, "it has none, and keeps its token");
    assert_eq!(get(&server, &program, MINE).await.0, 200);
}

#[tokio::test]
async fn a_program_may_be_called_by_its_name() {
    let server = Server::new().await;
    let (_, secret, _) = program(&server, "ci").await;
    let (status, granted) = grant_client(&server, "ci", &secret).await;
    assert_eq!(status, 200, "{granted}");
    assert_eq!(get(&server, &text(&granted, "accessToken"), MINE).await.0, 200);
    assert_eq!(grant_client(&server, "ci", "wrong").await.0, 401);
    assert_eq!(grant_client(&server, "cj", &secret).await.0, 401);
}

fn unsigned(claims: &Value, alg: &str) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.", part(&json!({"alg": alg, "typ": "JWT"})), part(claims))
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let server = Server::new().await;
    let claims = json!({
        "sub": "ada", "principal": "local", "proof": "", "iat": 0, "exp": 9_999_999_999_u64,
        "jti": "00000000-0000-4000-8000-000000000000",
    });
    let (_, _, own) = program(&server, "ci").await;
    let parts: Vec<&str> = own.split('.').collect();
    let body = BASE64_URL_SAFE_NO_PAD.encode(claims.to_string());
    let swapped = format!("{}.{body}.{}", parts[0], parts[2]);
    let forged = ["none", "None", "HS256", "RS256"].map(|alg| unsigned(&claims, alg));
    for token in forged.iter().chain([&swapped, &own[1..].to_owned(), &format!("{own}A")]) {
        let (status, body) = get(&server, token, "/api/v1/clusters").await;
        assert_eq!((status, &body["code"]), (401, &json!(401)), "{token}");
    }
}

#[tokio::test]
async fn what_a_namesake_made_is_not_ones_own() {
    let server = Server::with_teams().await;
    for name in ["ann@example.org", "ci"] {
        let made = async || {
            if name.contains('@') {
                user(&server, name).await
            } else {
                let (id, _, token) = program(&server, name).await;
                (id, token)
            }
        };
        let (id, token) = made().await;
        let subject = if name.contains('@') { name } else { &id };
        give(&server, subject, 7, ("project", "1")).await;
        let job = server.job(&format!("of-{}", &name[..2]), &json!({"image": "i"}));
        let trainings = "/api/v1/workloads/trainings";
        let (status, made_job) = call(&server, &token, ("POST", trainings), &job).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made_job}");
        let one = format!("{trainings}/{}", text(&made_job, "workloadId"));
        let suspend = format!("{one}/suspend");
        let (status, _) = call(&server, &token, ("POST", &suspend), &Value::Null).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        let family = if name.contains('@') { "users" } else { "service-accounts" };
        server.raw("DELETE", &format!("/api/v1/{family}/{id}"), "").await;
        // Times are in milliseconds.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let (id, token) = made().await;
        let subject = if name.contains('@') { name } else { &id };
        give(&server, subject, 7, ("project", "1")).await;
        assert_eq!(get(&server, &token, &one).await.0, 200);
        let (status, refused) = call(&server, &token, ("DELETE", &one), &Value::Null).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
        assert!(text(&refused, "message").contains("of others"), "{refused}");
        // The role for one's own would not do.
        let roles = refused["missingPermission"]["roles"].as_array().unwrap();
        let has = |role: &str| roles.contains(&json!(role));
        assert!(has("L1 researcher") && !has("L2 researcher") && !has("Viewer"), "{refused}");
    }
}

#[tokio::test]
async fn a_reset_password_ends_the_access_keys_too() {
    let server = Server::new().await;
    let (id, token) = user(&server, "ann@example.org").await;
    let (_, key) =
        call(&server, &token, ("POST", "/api/v1/access-keys"), &json!({"name": "laptop"})).await;
    let (client, secret) = (text(&key, "clientId"), text(&key, "clientSecret"));
    let (_, granted) = grant_client(&server, &client, &secret).await;
    let by_key = text(&granted, "accessToken");
    assert_eq!(get(&server, &by_key, MINE).await.0, 200);
    server.post(&format!("/api/v1/users/{id}/password"), Value::Null).await;
    assert_eq!(get(&server, &by_key, MINE).await.0, 401);
    assert_eq!(grant_client(&server, &client, &secret).await.0, 401);
}

#[tokio::test]
async fn names_of_administrators_and_names_in_use_are_taken() {
    let server = Server::new().await;
    let make = async |name: &str| {
        server.post("/api/v1/service-accounts", json!({"name": name})).await.0.as_u16()
    };
    assert_eq!(make("ci").await, 201);
    for (name, status) in [
        ("ci", 409),
        ("ada", 409),
        ("elastane-admin", 409),
        ("elastane", 409),
        ("CI", 400),
        ("a", 400),
    ] {
        assert_eq!(make(name).await, status, "{name}");
    }
    let make =
        async |email: &str| server.post("/api/v1/users", json!({"email": email})).await.0.as_u16();
    assert_eq!(make("ann@example.org").await, 201);
    assert_eq!(make("ANN@example.org").await, 409);
    assert_eq!(make("ann").await, 400);
}

#[tokio::test]
async fn the_forms_of_oauth_2_are_understood() {
    let server = Server::new().await;
    let (id, secret, _) = program(&server, "ci").await;
    let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
    let request = Request::post("/api/v2/token")
        .header("host", "localhost")
        .header("content-type", "application/x-www-form-urlencoded");
    let (status, granted) = read(server.send(request.body(Body::from(form)).unwrap()).await).await;
    assert_eq!((status.as_u16(), &granted["token_type"]), (200, &json!("Bearer")), "{granted}");
    assert_eq!(get(&server, &text(&granted, "access_token"), MINE).await.0, 200);
    let json = json!({"grant_type": "client_credentials", "client_id": id, "client_secret": "x"});
    let (status, _) = call(&server, "", ("POST", "/api/v2/token"), &json).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn secrets_are_shown_once_and_kept_as_hashes() {
    let server = Server::new().await;
    let (_, made) = server.post("/api/v1/users", json!({"email": "a@x.org"})).await;
    let password = text(&made, "tempPassword");
    let (_, granted) = grant_password(&server, "a@x.org", &password).await;
    let (_, secret, token) = program(&server, "ci").await;
    let refresh = text(&granted, "refreshToken");
    let mut refresh = refresh.split('.').skip(1);
    let (own, next) = (refresh.next().unwrap(), refresh.next().unwrap());
    let secrets = [password.as_str(), &secret, &token, own, next];
    for path in ["/api/v1/users", "/api/v1/service-accounts", "/api/v1/administration/access-keys"]
    {
        let shown = server.get(path).await.to_string();
        assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{path}");
        assert!(!shown.contains("ash") && !shown.contains("ecret"), "{path}: {shown}");
    }
    for entry in std::fs::read_dir(server.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!secrets.iter().any(|secret| content.contains(secret)), "{}", path.display());
    }
}
