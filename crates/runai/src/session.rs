//! The session that is stored between commands. Owns: that it is renewed before it expires, by one
//! command at a time.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use api_types::{TokenRequest, TokenResponse};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use super::context::{Context, now_ms};
use cli_kit::exit::Error;
use cli_kit::settings::Session;

/// Seconds before its end at which a token is renewed: longer than a command waits for an answer.
const RENEWED_EARLY_S: u64 = 300;

impl Context {
    /// A new context: the server may have moved, and the session been renewed.
    pub(super) async fn renewed(&self) -> Result<Self, Error> {
        let mut context = Self::open(&self.global, &|name| std::env::var(name).ok())?;
        renew(&mut context).await?;
        Ok(context)
    }
}

/// Renews the token if it is about to expire.
pub(super) async fn renew(context: &mut Context) -> Result<(), Error> {
    // A refresh token is sent only to the server that issued it.
    let old = |session: &Session| {
        session.url.is_some() && session.refresh.is_some() && runs_out(&session.access)
    };
    if !context.session.as_ref().is_some_and(old) {
        return Ok(());
    }
    let path = context.settings.auth_file().to_owned();
    // A refresh token can be used once, and reuse ends the session: of several commands one renews,
    // and the others read the result. Signals and keys are handled while waiting for the lock.
    let own = path.clone();
    let lock = tokio::task::spawn_blocking(move || lock(&own)).await;
    let _turn = lock.map_err(|error| Error::Failed(format!("failed to wait: {error}")))??;
    let Some(mut session) = context.settings.session(context.client.url())? else { return Ok(()) };
    if let (true, Some(refresh_token)) = (old(&session), session.refresh.take()) {
        let grant_type = "refresh_token".to_owned();
        let request = TokenRequest { grant_type, refresh_token, ..TokenRequest::default() };
        let granted = context.client.clone().with_token(None).grant(&request).await?;
        let TokenResponse { access_token, refresh_token, .. } = granted;
        (session.access, session.refresh) = (access_token, refresh_token);
        session.write(&path)?;
    }
    context.client = context.client.clone().with_token(Some(session.access.clone()));
    context.session = Some(session);
    Ok(())
}

/// Locks the session; the lock is held until the file is dropped.
fn lock(session: &Path) -> Result<File, Error> {
    let path = session.with_extension("lock");
    let fault = |error| Error::Failed(format!("failed to lock {}: {error}", path.display()));
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(fault)?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| fault(error.into()))?;
    Ok(file)
}

fn runs_out(token: &str) -> bool {
    let end_s = claims(token).and_then(|claims| claims.get("exp")?.as_u64());
    end_s.is_none_or(|end_s| end_s <= now_ms() / 1000 + RENEWED_EARLY_S)
}

/// The claims of a JWT.
pub(super) fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    let bytes = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use dialects::Global;

    #[tokio::test]
    async fn whoever_waits_for_a_turn_to_renew_keeps_nobody_from_work() {
        let home = tempfile::tempdir().unwrap();
        let url = "http://127.0.0.1:9";
        let session = Session {
            access: "without.an.end".to_owned(),
            refresh: Some("r".to_owned()),
            url: Some(url.to_owned()),
            way: None,
        };
        let file = home.path().join("authentication.json");
        session.write(&file).unwrap();
        let global = Global { config_path: Some(home.path().to_owned()), ..Global::default() };
        let env = |name: &str| (name == "RUNAI_CP_URL").then(|| url.to_owned());
        let mut context = Context::open(&global, &env).unwrap();
        let turn = lock(&file).unwrap();
        let mut renewed = pin!(renew(&mut context));
        tokio::select! {
            biased;
            _ = &mut renewed => panic!("it is not its turn"),
            () = std::future::ready(()) => {}
        }
        drop(turn);
        let refused = renewed.await.unwrap_err().to_string();
        assert!(refused.contains("not running"), "{refused}");
    }
}
