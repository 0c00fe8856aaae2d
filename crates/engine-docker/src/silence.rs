//! Daemons that do not answer. Owns: which faults of a request count as such, and the messages.
//! Does not know about: waiting until a daemon is back.

use std::error::Error as Cause;
use std::io::{self, ErrorKind};

use bollard::errors::Error as Fault;
use engine::Error;

/// No answer to a request, or an answer that breaks off.
#[derive(Debug)]
struct Silent {
    who: &'static str,
    /// Message of the operating system, where there is one.
    cause: Option<String>,
}

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} does not answer", self.who)?;
        self.cause.as_ref().map_or(Ok(()), |cause| write!(f, ": {cause}"))
    }
}

impl Cause for Silent {}

/// True if the daemon did not answer, or broke off its answer.
pub(crate) fn is_silent(fault: &Fault) -> bool {
    match fault {
        Fault::HyperLegacyError { .. }
        | Fault::HyperResponseError { .. }
        | Fault::RequestTimeoutError => true,
        Fault::IOError { err } => matches!(
            err.kind(),
            ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
                | ErrorKind::TimedOut
        ),
        _ => false,
    }
}

/// The error of such a fault.
pub(crate) fn of(fault: &Fault) -> io::Error {
    let mut cause = match fault {
        Fault::IOError { err } => Some(err.to_string()),
        _ => None,
    };
    let mut next: Option<&(dyn Cause + 'static)> = fault.source();
    while let Some(one) = next {
        let system = one.downcast_ref::<io::Error>().map(ToString::to_string);
        (cause, next) = (system.or(cause), one.source());
    }
    io::Error::new(ErrorKind::NotConnected, Silent { who: "the container daemon", cause })
}

/// The error with the name of the product, `Docker` or `Podman`, for users.
pub(crate) fn named(who: &'static str, error: Error) -> Error {
    match error {
        Error::Io { what, source } => match source.downcast::<Silent>() {
            Ok(Silent { cause, .. }) => {
                let source = io::Error::new(ErrorKind::NotConnected, Silent { who, cause });
                Error::Io { what, source }
            }
            Err(source) => Error::Io { what, source },
        },
        other => other,
    }
}

/// Message of the operating system about a daemon that does not answer.
pub(crate) fn cause(error: &io::Error) -> Option<&str> {
    error.get_ref()?.downcast_ref::<Silent>()?.cause.as_deref()
}

#[cfg(test)]
mod tests {
    use bollard::{API_DEFAULT_VERSION, Docker};

    use super::*;

    #[tokio::test]
    async fn a_daemon_that_is_away_is_named_with_the_cause_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        let path = socket.to_string_lossy();
        // Three cases: a killed daemon left the socket, the socket was removed, the daemon hangs.
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let docker = Docker::connect_with_unix(&path, 5, API_DEFAULT_VERSION).unwrap();
        let killed = docker.version().await.unwrap_err();
        std::fs::remove_file(&socket).unwrap();
        let removed = docker.version().await.unwrap_err();
        for (who, fault, told) in [
            ("Docker", removed, "Docker does not answer: No such file or directory (os error 2)"),
            ("Podman", killed, "Podman does not answer: Connection refused (os error 111)"),
            ("Docker", Fault::RequestTimeoutError, "Docker does not answer"),
        ] {
            let error = named(who, crate::failed("run a command", fault));
            assert_eq!(crate::chain(&error), format!("failed to run a command: {told}"));
        }
    }

    #[test]
    fn an_answer_that_refuses_keeps_the_words_of_the_daemon() {
        let fault =
            Fault::DockerResponseServerError { status_code: 500, message: "no space".to_owned() };
        assert!(!is_silent(&fault));
        let error = named("Docker", crate::failed("make a volume", fault));
        assert_eq!(crate::chain(&error), "failed to make a volume: no space");
    }
}
