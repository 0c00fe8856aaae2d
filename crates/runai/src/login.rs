//! `login` and `logout`. Owns: the prompts, and the stored session. Does not know about: providers;
//! the server talks to them.

use std::io::{ErrorKind, IsTerminal as _, Write};
use std::path::Path;

use api_types::{LoginRequest, LoginStart, TokenRequest, TokenResponse, UserChangePasswordRequest};
use client::Client;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::context::Context;
use super::loopback::{Loopback, code_in};
use cli_kit::browser::opens;
use cli_kit::exit::Error;
use cli_kit::message::{print_note, print_prompt};
use cli_kit::settings::Session;
use dialects::intent::Login;

/// Error text for a server without a login provider.
pub(super) const NO_PROVIDER: &str = "this server has no login provider; log in with a password \
    (`runai login user`), or as a service account (`runai login application`). The user who runs the \
    server needs no login on its machine";
/// The page of a server that shows the code to copy.
const CODE_PAGE: &str = "/elastane/v1/login/code";

pub(super) async fn run(
    way: Login,
    context: &mut Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let client = context.client.clone().with_token(None);
    let word = way.word().to_owned();
    let TokenResponse { access_token, refresh_token, .. } = match way {
        Login::Browser => browser(&client, out).await?,
        Login::RemoteBrowser => remote_browser(&client, out).await?,
        Login::User { name, password, new_password } => {
            let (name, password) = (ask("User", name, false)?, ask("Password", password, true)?);
            user(&client, (name, password), new_password).await?
        }
        Login::Application { name, secret } => {
            let (client_id, client_secret) =
                (ask("Name or client id", name, false)?, ask("Secret", secret, true)?);
            let grant_type = "client_credentials".to_owned();
            let request =
                TokenRequest { grant_type, client_id, client_secret, ..TokenRequest::default() };
            granted(&client, &request).await?
        }
    };
    let url = client.url().to_owned();
    if context.settings.url().is_some() {
        // The address given for this login becomes a setting for later commands.
        context.settings.set_url(&url)?;
    }
    let (access, refresh) = (access_token, refresh_token);
    let session = Session { access, refresh, url: Some(url), way: Some(word) };
    session.write(context.settings.auth_file())?;
    writeln!(out, "Logged in successfully")?;
    if context.settings.token().is_some() {
        print_note("note: RUNAI_TOKEN is set and goes before this login");
    }
    Ok(())
}

/// Deletes the local session, then ends it at the server.
pub(super) async fn out(context: &Context, out: &mut dyn Write) -> Result<(), Error> {
    if context.settings.token().is_some() {
        let why = "RUNAI_TOKEN is set, which is not a login; unset it".to_owned();
        return Err(Error::Failed(why));
    }
    if context.session.is_some() {
        forget(context.settings.auth_file())?;
        match context.client.logout().await {
            // The session had ended already.
            Ok(()) | Err(client::Error::NotLoggedIn { .. }) => {}
            Err(error) => {
                let why = format!("logged out here; the server was not told: {error}");
                return Err(Error::Failed(why));
            }
        }
    }
    writeln!(out, "Logged out successfully")?;
    Ok(())
}

/// Deletes the stored session. Another process may have deleted it already.
fn forget(session: &Path) -> Result<(), Error> {
    match std::fs::remove_file(session) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::Failed(format!("failed to delete {}: {error}", session.display())))
        }
        _ => Ok(()),
    }
}

async fn browser(client: &Client, out: &mut dyn Write) -> Result<TokenResponse, Error> {
    let loopback = Loopback::open().await?;
    let redirect_uri = loopback.address();
    let start = begin(client, &redirect_uri).await?;
    writeln!(out, "A browser opens. If none does, go to\n\n  {}\n", start.url)?;
    out.flush()?;
    if !opens(&start.url) {
        writeln!(out, "No browser was found here. Elsewhere: `runai login remote-browser`")?;
        out.flush()?;
    }
    let code = loopback.code(&start.state).await?;
    redeem(client, start, redirect_uri, code).await
}

async fn remote_browser(client: &Client, out: &mut dyn Write) -> Result<TokenResponse, Error> {
    let redirect_uri = format!("{}{CODE_PAGE}", client.url());
    let start = begin(client, &redirect_uri).await?;
    writeln!(out, "Open this address in a browser and log in:\n\n  {}\n", start.url)?;
    out.flush()?;
    let pasted = ask("Code", None, false)?;
    // The address of the page, pasted in place of the code, is accepted too.
    let code = match pasted.split_once('?') {
        Some((_, query)) => code_in(query, &start.state).unwrap_or_else(|| {
            Err(Error::Failed("this code is of another login; begin again".to_owned()))
        })?,
        None => pasted,
    };
    redeem(client, start, redirect_uri, code).await
}

async fn begin(client: &Client, redirect_uri: &str) -> Result<LoginStart, Error> {
    let request = LoginRequest { redirect_uri: redirect_uri.to_owned() };
    client.begin_login(&request).await.map_err(|error| match error {
        client::Error::Api { code: 404, .. } => Error::Failed(NO_PROVIDER.to_owned()),
        other => other.into(),
    })
}

async fn redeem(
    client: &Client,
    start: LoginStart,
    redirect_uri: String,
    code: String,
) -> Result<TokenResponse, Error> {
    let LoginStart { nonce, code_verifier, .. } = start;
    let grant_type = "exchange_token".to_owned();
    let empty = TokenRequest::default();
    let request = TokenRequest { grant_type, code, redirect_uri, code_verifier, nonce, ..empty };
    granted(client, &request).await
}

/// Login with a password. An initial password has to be replaced by a new one.
async fn user(
    client: &Client,
    (username, password): (String, String),
    new_password: Option<String>,
) -> Result<TokenResponse, Error> {
    let with = |password: String| TokenRequest {
        grant_type: "password".to_owned(),
        username: username.clone(),
        password,
        ..TokenRequest::default()
    };
    let first = granted(client, &with(password.clone())).await?;
    let own = client.clone().with_token(Some(first.access_token.clone()));
    match own.count_own_rules().await {
        Err(client::Error::Api { code: 403, .. }) => {}
        other => return Ok(other.map(|_| first)?),
    }
    let is_silent = new_password.is_none() && !std::io::stdin().is_terminal();
    let asked = ask("This password was given out. A new one", new_password, true);
    let new_password = asked.map_err(|error| match error {
        Error::Usage(_) if is_silent => Error::Usage(
            "this password was given out and must be changed first: give the next one with \
             --new-password"
                .to_owned(),
        ),
        other => other,
    })?;
    let change = UserChangePasswordRequest {
        current_password: password,
        new_password: new_password.clone(),
    };
    own.change_password(&change).await?;
    granted(client, &with(new_password)).await
}

/// Requests a token. A refused login is reported without advice on how to log in.
async fn granted(client: &Client, request: &TokenRequest) -> Result<TokenResponse, Error> {
    client.grant(request).await.map_err(|error| match error {
        client::Error::NotLoggedIn { message, .. } => {
            Error::Server(client::Error::refusal(401, message))
        }
        other => other.into(),
    })
}

/// The given value, or a line of the input. Secret input is not shown on the terminal.
fn ask(what: &str, given: Option<String>, secret: bool) -> Result<String, Error> {
    let unread = |error| Error::Failed(format!("{what}: cannot be read: {error}"));
    match given.map_or_else(|| line(what, secret).map_err(unread), Ok)?.as_str() {
        "" => Err(Error::Usage(format!("{what}: nothing was given"))),
        text => Ok(text.to_owned()),
    }
}

fn line(what: &str, secret: bool) -> std::io::Result<String> {
    let stdin = std::io::stdin();
    let before = (secret && stdin.is_terminal()).then(|| tcgetattr(&stdin)).transpose();
    let before = before?;
    if stdin.is_terminal() {
        print_prompt(&format!("{what}: "));
    }
    if let Some(before) = &before {
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Flush, &silent)?;
    }
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    if let Some(before) = &before {
        tcsetattr(&stdin, OptionalActions::Now, before)?;
        print_prompt("\n");
    }
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
