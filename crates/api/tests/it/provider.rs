//! People whom the login provider vouches for.

use axum::http::StatusCode;
use oidc::testing::{FakeProvider, Signer};
use serde_json::{Value, json};

use crate::iam::{call, get, grant, grant_password, text, user};
use crate::server::Server;

const MINE: &str = "/api/v1/authorization/me/access-rules";
/// Where a login ends that a stranger began.
const STRANGERS: [&str; 5] = [
    "https://evil.example/callback",
    "http://127.0.0.1.evil.example/callback",
    "http://evil.example@:80/",
    "callback",
    // A program of a user, at this server.
    "https://gpu-box/serve/p/evil/cb",
];
const REDIRECT: &str = "http://127.0.0.1:1/callback";

/// A server that creates users at their first login at the provider.
async fn server() -> (Server, FakeProvider) {
    let fake = FakeProvider::start().await;
    (Server::with_provider(&fake.issuer(), true).await, fake)
}

/// Exchanges an ID token with these claims.
async fn exchange(server: &Server, fake: &FakeProvider, claims: Value) -> (u16, Value) {
    fake.says().claims = claims;
    let body = json!({"grantType": "external_token_exchange", "externalToken": fake.id_token()});
    grant(server, body).await
}

async fn token(server: &Server, fake: &FakeProvider, claims: Value) -> String {
    let (status, granted) = exchange(server, fake, claims).await;
    assert_eq!(status, 200, "{granted}");
    text(&granted, "accessToken")
}

/// Begins a login.
async fn begin(server: &Server) -> Value {
    let body = json!({"redirectUri": REDIRECT});
    let (status, start) = call(server, "", ("POST", "/elastane/v1/login"), &body).await;
    assert_eq!(status, StatusCode::OK, "{start}");
    start
}

fn with_code(start: &Value) -> Value {
    json!({
        "grantType": "exchange_token", "code": "c", "redirectUri": REDIRECT,
        "codeVerifier": start["codeVerifier"], "nonce": start["nonce"],
    })
}

async fn give_group(server: &Server, group: &str, role: u64) -> (u16, Value) {
    let body = json!({
        "subjectId": group, "subjectType": "group", "roleId": role,
        "scopeType": "project", "scopeId": "1",
    });
    let (status, made) = server.post("/api/v1/authorization/access-rules", body).await;
    (status.as_u16(), made)
}

#[tokio::test]
async fn no_login_ends_at_a_stranger() {
    let fake = FakeProvider::start().await;
    let server = Server::with_provider(&fake.issuer(), true).await;
    for redirect in STRANGERS {
        let body = json!({"redirectUri": redirect});
        let (status, said) = call(&server, "", ("POST", "/elastane/v1/login"), &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{redirect}: {said}");
        assert!(text(&said, "message").starts_with("redirectUri: "), "{said}");
    }
    let body = json!({"redirectUri": "https://gpu-box/elastane/v1/login/code"});
    assert_eq!(call(&server, "", ("POST", "/elastane/v1/login"), &body).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_code_becomes_a_session_that_can_be_refreshed_and_ended() {
    let (server, fake) = server().await;
    let start = begin(&server).await;
    assert!(text(&start, "url").starts_with(&fake.issuer()), "{start}");
    fake.says().claims = json!({"nonce": start["nonce"], "groups": []});
    let (status, granted) = grant(&server, with_code(&start)).await;
    assert_eq!(status, 200, "{granted}");
    assert!(granted["expiresIn"].as_u64().unwrap() <= 24 * 3600, "{granted}");
    let refresh = json!({"grantType": "refresh_token", "refreshToken": granted["refreshToken"]});
    let (status, granted) = grant(&server, refresh).await;
    assert_eq!(status, 200, "{granted}");
    let token = text(&granted, "accessToken");
    assert_eq!(get(&server, &token, MINE).await.0, 200);
    let users = server.get("/api/v1/users").await;
    let ann = json!({"username": "ann@example.org", "isLocal": false, "createdBy": "elastane"});
    for (field, value) in ann.as_object().unwrap() {
        assert_eq!(&users[0][field], value, "{users}");
    }
    server.post(&format!("/api/v1/users/{}/logout", text(&users[0], "id")), Value::Null).await;
    assert_eq!(get(&server, &token, MINE).await.0, 401);
}

#[tokio::test]
async fn a_code_of_another_login_is_good_for_nothing() {
    let (server, fake) = server().await;
    let (own, other) = (begin(&server).await, begin(&server).await);
    fake.says().claims = json!({"nonce": other["nonce"]});
    let (status, refused) = grant(&server, with_code(&own)).await;
    assert_eq!(status, 401, "{refused}");
    assert!(text(&refused, "message").contains("belongs to another login"), "{refused}");
    fake.says().refusal = Some((400, json!({"error": "invalid_grant"})));
    let (status, refused) = grant(&server, with_code(&own)).await;
    assert_eq!(status, 401, "{refused}");
    for field in ["code", "redirectUri", "codeVerifier", "nonce"] {
        let mut body = with_code(&own);
        body[field] = Value::Null;
        let (status, refused) = grant(&server, body).await;
        assert_eq!(status, 400, "{refused}");
        assert!(text(&refused, "message").starts_with(field), "{refused}");
    }
}

#[tokio::test]
async fn forged_and_foreign_id_tokens_are_refused() {
    let (server, fake) = server().await;
    for claims in [json!({"aud": "other"}), json!({"iss": "https://x.org"}), json!({"exp": 1})] {
        let (status, refused) = exchange(&server, &fake, claims).await;
        assert_eq!((status, &refused["code"]), (401, &json!(401)), "{refused}");
    }
    let forged = Signer::new("one").sign(&json!({"sub": "7"}));
    let body = json!({"grantType": "external_token_exchange", "externalToken": forged});
    assert_eq!(grant(&server, body).await.0, 401);
    assert_eq!(server.get("/api/v1/users").await, json!([]));
}

#[tokio::test]
async fn only_users_there_are_log_in_unless_told_otherwise() {
    let fake = FakeProvider::start().await;
    let server = Server::with_provider(&fake.issuer(), false).await;
    let (status, refused) = exchange(&server, &fake, json!({})).await;
    assert_eq!(status, 403);
    assert!(text(&refused, "message").contains("no user ann@example.org"), "{refused}");
    server.post("/api/v1/users", json!({"email": "ann@example.org"})).await;
    let token = token(&server, &fake, json!({"email": "Ann@Example.org"})).await;
    assert_eq!(get(&server, &token, MINE).await.0, 200, "no password has to be changed first");
}

#[tokio::test]
async fn an_account_is_one_user_whatever_its_address_and_an_address_one_account() {
    let (server, fake) = server().await;
    token(&server, &fake, json!({"sub": "7"})).await;
    token(&server, &fake, json!({"sub": "7", "email": "ann.smith@example.org"})).await;
    let users = server.get("/api/v1/users").await;
    assert_eq!(users.as_array().unwrap().len(), 1, "{users}");
    let (status, refused) = exchange(&server, &fake, json!({"sub": "8"})).await;
    assert_eq!(status, 409);
    assert!(text(&refused, "message").contains("another account"), "{refused}");
    for email in ["ada", "ann", "elastane@"] {
        assert_ne!(exchange(&server, &fake, json!({"sub": "9", "email": email})).await.0, 200);
    }
}

#[tokio::test]
async fn an_address_that_the_provider_did_not_verify_gets_no_account() {
    let (server, fake) = server().await;
    let (_, victim) = server.post("/api/v1/users", json!({"email": "boss@x.org"})).await;
    let says =
        |verified: Value| json!({"sub": "9", "email": "boss@x.org", "email_verified": verified});
    for verified in [json!(false), json!("false"), Value::Null, json!(1)] {
        let (status, refused) = exchange(&server, &fake, says(verified)).await;
        assert_eq!(status, 403, "{refused}");
        let said = text(&refused, "message");
        assert!(said.contains("verified the e-mail address boss@x.org"), "{said}");
        assert!(said.contains("--oidc-trust-email"), "{said}");
    }
    fake.says().left_out = vec!["email_verified"];
    let silent = json!({"sub": "9", "email": "boss@x.org"});
    assert_eq!(exchange(&server, &fake, silent).await.0, 403);
    let new = json!({"sub": "9", "email": "new@x.org"});
    assert_eq!(exchange(&server, &fake, new).await.0, 403, "neither a user to come");
    let users = server.get("/api/v1/users").await;
    assert_eq!(users.as_array().unwrap().len(), 1, "{users}");
    assert_eq!((&users[0]["id"], &users[0]["isLocal"]), (&victim["id"], &json!(true)));
    // An account that is linked needs no address any more.
    token(&server, &fake, says(json!(true))).await;
    token(&server, &fake, says(json!(false))).await;
}

#[tokio::test]
async fn tokens_of_other_programs_are_exchanged_only_where_that_is_switched_on() {
    let fake = FakeProvider::start().await;
    let off = |login: &mut iam::LoginProvider| login.exchanges_tokens = false;
    let server = Server::with_login(&fake.issuer(), off).await;
    let (status, refused) = exchange(&server, &fake, json!({})).await;
    assert_eq!(status, 403, "{refused}");
    assert!(text(&refused, "message").contains("--oidc-token-exchange"), "{refused}");
    let start = begin(&server).await;
    fake.says().claims = json!({"nonce": start["nonce"], "groups": []});
    assert_eq!(grant(&server, with_code(&start)).await.0, 200, "logging in goes on");
}

#[tokio::test]
async fn groups_have_roles_for_as_long_as_the_provider_says() {
    let fake = FakeProvider::start().await;
    let server = Server::with_provider(&fake.issuer(), true).await;
    for team in ["team-a", "team-b"] {
        server.post("/api/v1/org-unit/projects", server.team(team)).await;
    }
    let (status, rule) = give_group(&server, "/ml", 6).await;
    assert_eq!((status, &rule["subjectType"]), (201, &json!("group")), "{rule}");
    assert_eq!(give_group(&server, "/ml", 6).await.0, 409);
    assert_eq!(give_group(&server, "", 6).await.0, 400);
    let ann = token(&server, &fake, json!({"groups": ["/ml", "staff"]})).await;
    let submit = async |token: &str, name: &str| {
        let job = server.job(name, &json!({"image": "i"}));
        let path = ("POST", "/api/v1/workloads/trainings");
        call(&server, token, path, &job).await.0.as_u16()
    };
    assert_eq!(submit(&ann, "one").await, 202);
    assert_eq!(
        get(&server, &ann, MINE).await.1["accessRules"]["accessRules"][0]["subjectId"],
        "/ml"
    );
    assert_eq!(server.get("/api/v1/users").await[0]["groups"], json!(["/ml", "staff"]));
    // Her keys are her own, not her groups'.
    let path = ("POST", "/api/v1/access-keys");
    let (_, key) = call(&server, &ann, path, &json!({"name": "laptop"})).await;
    let body = json!({"grantType": "client_credentials", "clientId": key["clientId"],
        "clientSecret": key["clientSecret"]});
    let by_key = text(&grant(&server, body).await.1, "accessToken");
    assert_eq!(submit(&by_key, "two").await, 403);
    let later = token(&server, &fake, json!({"groups": ["staff"]})).await;
    for token in [&ann, &later] {
        assert_eq!(submit(token, "three").await, 403, "she has left the group");
    }
    token(&server, &fake, json!({"groups": ["/ml"]})).await;
    server.raw("DELETE", &format!("/api/v1/authorization/access-rules/{}", rule["id"]), "").await;
    assert_eq!(submit(&ann, "four").await, 403, "the rule is gone");
}

#[tokio::test]
async fn without_the_provider_passwords_go_on_and_it_is_told_what_happened() {
    let server = Server::with_provider("http://127.0.0.1:1", true).await;
    let body = json!({"redirectUri": REDIRECT});
    let (status, refused) = call(&server, "", ("POST", "/elastane/v1/login"), &body).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let said = "http://127.0.0.1:1 does not answer (Connection refused";
    assert!(text(&refused, "message").contains(said), "{refused}");
    let exchange = json!({"grantType": "external_token_exchange", "externalToken": "a.b.c"});
    assert_eq!(grant(&server, exchange.clone()).await.0, 503);
    user(&server, "ann@example.org").await;
    let plain = Server::new().await;
    let (status, refused) = grant(&plain, exchange).await;
    assert_eq!(status, 404);
    assert!(text(&refused, "message").contains("no login provider"), "{refused}");
    let (status, refused) = give_group(&plain, "ml", 6).await;
    assert_eq!(status, 400, "{refused}");
}

#[tokio::test]
async fn refused_logins_are_limited_and_written_down_without_secrets() {
    let (server, fake) = server().await;
    let (_, made) =
        server.post("/api/v1/users", json!({"email": "bob@x.org", "resetPassword": false})).await;
    fake.says().claims = json!({"aud": "other"});
    let foreign = fake.id_token();
    let body = json!({"grantType": "external_token_exchange", "externalToken": foreign});
    for _ in 0..30 {
        assert_eq!(grant(&server, body.clone()).await.0, 401);
    }
    assert_eq!(grant(&server, body).await.0, 429);
    assert_eq!(grant_password(&server, "bob@x.org", &text(&made, "tempPassword")).await.0, 200);
    let log = "/api/v1/audit/log?numberOfSamples=500&filterBy=result==Failed";
    let rows = |log: &Value| log["audit_logs"].as_array().unwrap().clone();
    let log = server.until(log, |log| rows(log).len() == 31).await;
    assert!(log.to_string().contains("issued for another program (other)"), "{log}");
    assert!(!log.to_string().contains(&foreign));
}

#[tokio::test]
async fn the_page_for_those_without_a_browser_shows_the_code_and_nothing_else() {
    let server = Server::new().await;
    for (query, shown) in [
        ("code=a%3Cb%3E&state=s", "<pre>a&lt;b&gt;</pre>"),
        ("error=access_denied&error_description=%3Cscript%3E", "access_denied: &lt;script&gt;"),
        ("", "gave no code"),
    ] {
        let request = server.request("GET", &format!("/elastane/v1/login/code?{query}"));
        let answer = server.send(request.body(axum::body::Body::empty()).unwrap()).await;
        let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        let page = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
        let page = String::from_utf8_lossy(&page).into_owned();
        assert!(page.contains(shown), "{page}");
    }
}

#[tokio::test]
async fn two_first_logins_of_one_person_at_once_are_one_user() {
    let (server, fake) = server().await;
    fake.says().claims = json!({});
    let body = json!({"grantType": "external_token_exchange", "externalToken": fake.id_token()});
    let (one, other) = tokio::join!(grant(&server, body.clone()), grant(&server, body));
    assert_eq!((one.0, other.0), (200, 200), "{one:?} {other:?}");
    assert_eq!(server.get("/api/v1/users").await.as_array().unwrap().len(), 1);
}
