//! Logins at a provider whose responses a test controls.

#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

use oidc::testing::{FakeProvider, Signer};
use oidc::{Error, Person, Provider, Redeemed, Settings};
use serde_json::{Value, json};
use units::Instant;

const REDIRECT: &str = "http://127.0.0.1:1/callback";

fn now() -> Instant {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Instant(u64::try_from(now.as_millis()).unwrap())
}

fn provider(fake: &FakeProvider, secret: Option<&str>) -> Provider {
    let client_secret = secret.map(str::to_owned);
    Provider::new(Settings { client_secret, ..Settings::new(&fake.issuer(), "elastane") }).unwrap()
}

/// Logs in as a user with these claims.
async fn login(fake: &FakeProvider, provider: &Provider, claims: Value) -> Result<Person, Error> {
    let start = provider.start(REDIRECT, now()).await?;
    fake.says().claims = json!({"nonce": start.nonce});
    fake.says().claims.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    let (verifier, nonce) = (&start.verifier, &start.nonce);
    let login = Redeemed { code: "code", redirect_uri: REDIRECT, verifier, nonce };
    provider.redeem(login, now()).await
}

#[tokio::test]
async fn a_login_begins_with_a_challenge_and_ends_with_its_verifier() {
    let fake = FakeProvider::start().await;
    let provider = provider(&fake, Some("a secret/7"));
    let start = provider.start(REDIRECT, now()).await.unwrap();
    let parts =
        ["/login?kind=any&response_type=code&client_id=elastane", "code_challenge_method=S256"];
    assert!(parts.iter().all(|part| start.url.contains(part)), "{}", start.url);
    assert!(!start.url.contains(&start.verifier));
    let person = login(&fake, &provider, json!({"groups": ["ml"]})).await.unwrap();
    assert_eq!((person.name.as_str(), person.subject.as_str()), ("ann@example.org", "7"));
    assert_eq!(person.groups, ["ml"]);
    let (authorization, form) = fake.says().asked.pop().unwrap();
    assert_eq!(authorization, "Basic ZWxhc3RhbmU6YStzZWNyZXQlMkY3", "elastane:a+secret%2F7");
    assert!(form.contains("code_verifier=") && !form.contains("secret"), "{form}");
}

#[tokio::test]
async fn the_client_proves_itself_as_the_provider_wants() {
    let fake = FakeProvider::start().await;
    fake.says().metadata = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
    login(&fake, &provider(&fake, Some("hush")), json!({"groups": []})).await.unwrap();
    let (authorization, form) = fake.says().asked.pop().unwrap();
    assert!(authorization.is_empty() && form.ends_with("client_secret=hush"), "{form}");
    login(&fake, &provider(&fake, None), json!({"groups": []})).await.unwrap();
    let (authorization, form) = fake.says().asked.pop().unwrap();
    assert!(authorization.is_empty() && form.ends_with("client_id=elastane"), "{form}");
}

#[tokio::test]
async fn a_token_of_another_login_is_refused() {
    let fake = FakeProvider::start().await;
    let provider = provider(&fake, None);
    let refused = login(&fake, &provider, json!({"nonce": "of another"})).await.unwrap_err();
    assert!(refused.to_string().contains("belongs to another login"), "{refused}");
    let expired = login(&fake, &provider, json!({"exp": 1_700_000_000})).await.unwrap_err();
    assert!(expired.to_string().contains("has expired"), "{expired}");
}

#[tokio::test]
async fn what_the_id_token_leaves_open_the_user_info_tells() {
    let fake = FakeProvider::start().await;
    let provider = provider(&fake, None);
    fake.says().user_info = json!({"sub": "7", "groups": ["ml"], "email": "bob@example.org"});
    let person = login(&fake, &provider, json!({})).await.unwrap();
    assert_eq!(
        (person.name.as_str(), person.groups.len()),
        ("ann@example.org", 1),
        "signed stands"
    );
    fake.says().user_info = json!({"sub": "8", "groups": ["admins"]});
    let other = login(&fake, &provider, json!({})).await.unwrap_err();
    assert!(other.to_string().contains("about another user"), "{other}");
}

#[tokio::test]
async fn the_user_info_verifies_the_address_beside_it_and_no_other() {
    let fake = FakeProvider::start().await;
    let provider = provider(&fake, None);
    for (email, verified) in [("ann@example.org", true), ("bob@example.org", false)] {
        fake.says().user_info = json!({"sub": "7", "email": email, "email_verified": true});
        fake.says().left_out = vec!["email_verified"];
        let person = login(&fake, &provider, json!({"groups": []})).await.unwrap();
        assert_eq!((person.name.as_str(), person.is_verified), ("ann@example.org", verified));
    }
}

#[tokio::test]
async fn new_keys_are_found_and_forged_tokens_do_not_make_it_ask_for_ever() {
    let fake = FakeProvider::start().await;
    let provider = provider(&fake, None);
    provider.vouched(&fake.id_token(), now()).await.unwrap();
    fake.says().signer = Signer::new("two");
    let token = fake.id_token();
    let at = now();
    provider.vouched(&token, at).await.unwrap();
    assert_eq!(fake.says().keys_asked, 2);
    let forged = Signer::new("three").sign(&json!({}));
    for _ in 0..5 {
        provider.vouched(&forged, at).await.unwrap_err();
    }
    assert_eq!(fake.says().keys_asked, 2);
    fake.says().signer = Signer::new("four");
    let later = now().plus_ms(11_000);
    provider.vouched(&fake.id_token(), later).await.unwrap();
    // A key that was taken back is good for an hour at most.
    let old = fake.id_token();
    fake.says().signer = Signer::new("five");
    provider.vouched(&old, later).await.unwrap();
    let much_later = later.plus_ms(3_600_000);
    provider.vouched(&old, much_later).await.unwrap_err();
}

#[tokio::test]
async fn what_a_provider_refuses_says_whose_fault_it_is() {
    let fake = FakeProvider::start().await;
    let provider = provider(&fake, None);
    let html = json!("<html>");
    for (status, body, said) in [
        (
            400,
            json!({"error": "invalid_grant"}),
            "refuses this login (invalid_grant); log in again",
        ),
        (400, json!({"error": "x", "error_description": "a\nb"}), "(x a\\nb)"),
        (401, json!({"error": "invalid_client"}), "does not take the client id or secret"),
        (503, json!({"error": "busy"}), "does not answer (status 503"),
        (200, html.clone(), "its answer to a code cannot be read"),
        (400, html, "does not answer (status 400"),
    ] {
        fake.says().refusal = Some((status, body));
        let error = login(&fake, &provider, json!({})).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_or_is_another_is_told() {
    let gone = Provider::new(Settings::new("http://127.0.0.1:1", "elastane")).unwrap();
    let error = gone.start(REDIRECT, now()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(
        error.to_string().contains("127.0.0.1:1 does not answer (Connection refused"),
        "{error}"
    );
    for (change, said) in [
        (json!({"issuer": "https://other.example.org"}), "it calls itself `https://other"),
        (
            json!({"authorization_endpoint": "http://x.org"}),
            "`http://x.org` is not an https address",
        ),
        (json!({"token_endpoint": 7}), "cannot be read"),
    ] {
        let fake = FakeProvider::start().await;
        fake.says().metadata = change;
        let error = provider(&fake, None).start(REDIRECT, now()).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn after_a_failure_it_is_asked_again_in_a_moment() {
    let fake = FakeProvider::start().await;
    let provider = provider(&fake, None);
    fake.says().metadata = json!({"jwks_uri": format!("{}/nowhere", fake.issuer())});
    provider.start(REDIRECT, now()).await.unwrap();
    let token = fake.id_token();
    let at = now();
    let error = provider.vouched(&token, at).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere has status 404"), "{error}");
    fake.says().metadata = json!({});
    let later = now().plus_ms(3_700_000);
    assert_eq!(provider.vouched(&token, at).await, Err(error), "not asked yet");
    fake.says().claims = json!({"exp": later.0 / 1000 + 60});
    provider.vouched(&fake.id_token(), later).await.unwrap();
}
