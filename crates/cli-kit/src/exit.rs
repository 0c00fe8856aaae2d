//! Errors of commands: one error type, one text, one exit code per kind of fault. Owns the exit
//! codes documented in `docs/reference/exit-codes.md`. Knows no command.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;

use crate::message::{print_always, print_prompt};

/// Refusal or failure of a valid command.
pub const FAILED: u8 = 1;
/// Invalid command line.
pub const USAGE: u8 = 2;
/// No server answers.
pub const NOT_RUNNING: u8 = 3;
/// A named object does not exist.
pub const NOT_FOUND: u8 = 4;
/// The server does not authenticate or authorize the caller.
pub const NOT_ALLOWED: u8 = 5;

/// Error of a command. The text is for the user.
#[derive(Debug, Error)]
pub enum Error {
    /// Refusal or failure.
    #[error("{0}")]
    Failed(String),
    /// Invalid command line.
    #[error("{0}")]
    Usage(String),
    /// A named object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A local file cannot be used.
    #[error("{0}")]
    LocalFile(#[from] crate::settings::Error),
    /// The server did not answer, or refused the request.
    #[error("{0}")]
    Server(#[from] client::Error),
    /// The output cannot be written.
    #[error("failed to write the output: {0}")]
    Output(#[from] std::io::Error),
    /// The text was printed already; only the exit code remains.
    #[error("")]
    Said(u8),
}

/// Maximum wait for a server that does not answer.
pub const AWAY_MAX: Duration = Duration::from_secs(300);

impl Error {
    /// True if the server is down, perhaps since the middle of its answer, and may restart.
    #[must_use]
    pub const fn is_away(&self) -> bool {
        use client::Error as C;
        matches!(
            self,
            Self::Server(
                C::NotRunning { .. }
                    | C::Unreachable { .. }
                    | C::Protocol { .. }
                    | C::Dropped { .. }
                    | C::Api { code: 503, .. }
            )
        )
    }

    /// True if a retry makes sense: the server is down for less than `AWAY_MAX`, or this is the
    /// first failure and the login has expired. `lost` is the time of the first failure; `None` =
    /// now.
    #[must_use]
    pub fn is_lost(&self, lost: Option<Instant>) -> bool {
        let ran_out = matches!(self, Self::Server(client::Error::NotLoggedIn { .. }));
        match lost {
            None => self.is_away() || ran_out,
            Some(since) => self.is_away() && since.elapsed() < AWAY_MAX,
        }
    }

    /// Exit code for this error.
    #[must_use]
    pub fn code(&self) -> u8 {
        use client::Error as C;

        use crate::settings::Error as S;
        match self {
            Self::Usage(_) | Self::Server(C::BadUrl { .. }) | Self::LocalFile(S::Value { .. }) => {
                USAGE
            }
            Self::NotFound(_) | Self::Server(C::Api { code: 404, .. }) => NOT_FOUND,
            Self::Server(C::NotRunning { .. } | C::Unreachable { .. }) => NOT_RUNNING,
            Self::Server(C::Api { code: 401 | 403, .. } | C::NotLoggedIn { .. }) => NOT_ALLOWED,
            Self::Said(code) => *code,
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
            Self::Failed(_) | Self::LocalFile(_) | Self::Server(_) | Self::Output(_) => FAILED,
        }
    }

    /// Prints the text, if it is not printed yet, and returns the exit code.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        let quiet = self.code() == 0 || matches!(self, Self::Said(_));
        if !quiet {
            print_always(&format!("error: {self}"));
        }
        ExitCode::from(self.code())
    }
}

/// Removes the parser's hint to pass an unknown flag as a word behind `--`: it is rarely meant.
#[must_use]
pub fn without_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        error.remove(clap::error::ContextKind::Suggested);
    }
    error
}

/// Prints the message of the command line parser (an error, a help page) to its stream.
#[must_use]
pub fn parser_said(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if error.use_stderr() {
        print_prompt(&text.to_string());
        return ExitCode::from(USAGE);
    }
    drop(write!(std::io::stdout(), "{text}"));
    ExitCode::SUCCESS
}

/// An error with the causes that its own text does not name.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use client::{Credential, Error as C};
    use expect_test::expect;
    use testkit::{assert_plain, texts};

    use super::*;
    use crate::settings::Error as S;

    fn not_logged_in(credential: Credential) -> C {
        let (url, message) = ("http://gpu:7070".to_owned(), "MESSAGE".to_owned());
        C::NotLoggedIn { url, message, credential }
    }

    /// All errors of requests and settings in one place, for review.
    #[test]
    fn every_error_says_what_is_wrong_and_what_to_do() {
        let (url, path) = (|| "http://gpu:7070".to_owned(), || "/s/config.json".into());
        let fault = || "FAULT".to_owned();
        let server = [
            C::NotRunning { url: url() },
            C::Unreachable { url: url(), fault: fault() },
            C::Api { code: 409, message: fault(), details: Some(fault()), field_fault: None },
            not_logged_in(Credential::None),
            not_logged_in(Credential::Variable),
            not_logged_in(Credential::Login),
            not_logged_in(Credential::StateDir),
            C::Protocol { url: url(), fault: fault() },
            C::Dropped { url: url(), fault: fault() },
            C::BadUrl { url: url(), fault: "FAULT" },
            C::Untrusted { url: url(), fault: fault(), hint: "HINT" },
            C::Authorities { path: path(), fault: fault() },
            C::Tls(fault()),
            C::StateFile { path: "/s/token".into(), fault: fault() },
        ];
        let settings = [
            S::Io { what: "read", path: path(), source: std::io::ErrorKind::NotFound.into() },
            S::Damaged { path: path(), fault: fault() },
            S::Value { what: "RUNAI_X", value: "y".into(), allowed: "a and b" },
            S::NoHome,
        ];
        // Each variant is among them.
        let listed = texts!(
            C {
                NotRunning,
                Unreachable,
                Api,
                NotLoggedIn,
                Protocol,
                Dropped,
                BadUrl,
                Untrusted,
                Authorities,
                Tls,
                StateFile,
            },
            &server,
            ToString::to_string,
        );
        assert_plain(&listed);
        let listed = texts!(S { Io, Damaged, Value, NoHome }, &settings, ToString::to_string);
        assert_plain(&listed);
        let all = server.map(Error::Server).into_iter().chain(settings.map(Error::LocalFile));
        let text: String = all.map(|error| format!("{}: {error}\n", error.code())).collect();
        expect![[r#"
            3: no server listens at http://gpu:7070; check the address (RUNAI_CP_URL, `runai config set --cp-url URL`), or ask whether the server runs
            3: http://gpu:7070 cannot be reached: FAULT
            1: FAULT (FAULT)
            5: you are not logged in: `runai login user -u NAME` (at http://gpu:7070)
            5: RUNAI_TOKEN is not accepted: correct it, or `unset RUNAI_TOKEN` and `runai login user -u NAME` (at http://gpu:7070: MESSAGE)
            5: your login has ended: `runai login user -u NAME` (at http://gpu:7070: MESSAGE)
            5: the token of the state directory is not accepted: `runai login user -u NAME` (at http://gpu:7070: MESSAGE)
            1: http://gpu:7070 gave an answer that cannot be used: FAULT
            1: connection lost: http://gpu:7070: FAULT
            2: `http://gpu:7070` is not an address of a server: FAULT
            1: the certificate of http://gpu:7070 is not trusted (FAULT); HINT
            1: cannot use /s/config.json as the authorities of ELASTANE_CA: FAULT
            1: cannot set up TLS: FAULT
            1: failed to use /s/token: FAULT
            1: failed to read /s/config.json: entity not found
            1: /s/config.json is damaged (FAULT); correct it or delete it, a new one is written
            2: RUNAI_X is `y`; allowed are a and b
            1: HOME is not set; say where the files are with --config-path DIR
        "#]].assert_eq(&text);
    }
}
