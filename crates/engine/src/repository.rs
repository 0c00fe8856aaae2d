//! Copies of Git repositories. Owns: running the machine's `git` so that it only makes a copy, and
//! what its faults mean. Does not know for which run the copy is, where it is mounted, and when it
//! is tried again.
//!
//! Nothing of the server gets into it: no configuration, no hooks, no keys, no protocol that could
//! read the machine. The password is in the environment of `git` only; it is not on a command line,
//! nor in the copy.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Repository;
use crate::fetch_job::{FetchError, FetchJob, bytes_on_disk, outgrown, too_large};

mod stderr_parser;

use stderr_parser::StderrParser;

/// Exit status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
/// Runs `git` for as long as the caller holds the other end of the input: when that is closed, by
/// intent or because the server was killed, all of its processes are. They are a group of their
/// own.
const SCRIPT: &str = r#"umask 022
exec 3<&0
{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
git "$@" </dev/null 3<&-
code=$?
{ kill -KILL $! && wait $!; } 2>/dev/null
exit $code"#;
/// Variables of the server's environment that `git` needs: search path, proxies and trusted
/// certificates.
const INHERITED: [&str; 12] = [
    "PATH",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// `HOME` is no folder, so that neither `git` nor what it uses finds a file of the server's user
/// there.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("HOME", "/dev/null"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", "http:https:git"),
];
/// Nothing goes on in the background, and nothing of the repository is run or followed.
const OPTIONS: [&str; 8] = [
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "submodule.recurse=false",
];
/// Tells `git` the login, for the server of the address only.
const HELPER: &str = r#"!login() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$ELASTANE_GIT_USER" "$ELASTANE_GIT_PASSWORD"; }; login"#;

/// Copies a repository.
pub(crate) async fn attempt<T: Fn(String) + Sync>(
    repository: &Repository,
    job: &mut FetchJob<'_, T>,
) -> Result<(), FetchError> {
    job.make_folder().await?;
    let mut copying = Copying { repository, job };
    copying.git(&["init", "--quiet", "--template=", "."]).await?;
    copying.git(&["remote", "add", "origin", &repository.address]).await?;
    let [little, all] = plans(repository);
    let checkout = match copying.fetch(&little).await {
        Err(FetchError::Final(why)) if stderr_parser::all_may_help(&why, repository) => {
            copying.fetch(&all).await?;
            all.checkout
        }
        done => done.map(|()| little.checkout)?,
    };
    copying.git(&["checkout", "--progress", "--detach", checkout, "--"]).await?;
    let (to, most) = (copying.job.to.to_owned(), copying.job.bytes_max);
    let bytes = tokio::task::spawn_blocking(move || bytes_on_disk(&to, most)).await;
    match bytes.map_err(io::Error::other)? {
        bytes if bytes > most => Err(too_large(most)),
        _ => Ok(()),
    }
}

/// Arguments to fetch a repository, and the revision to check out.
struct Plan<'a> {
    fetch: Vec<String>,
    checkout: &'a str,
}

/// The smallest fetch, and the fallback for servers that do not support it.
fn plans(repository: &Repository) -> [Plan<'_>; 2] {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let branch = repository.branch.as_ref().map(|branch| format!("refs/heads/{branch}"));
    match &repository.revision {
        // A branch, a tag or a full commit id; a short id is meaningful only beside all others.
        Some(revision) => [
            Plan {
                fetch: words(&["--depth=1", "--no-tags", "origin", revision]),
                checkout: "FETCH_HEAD",
            },
            Plan {
                fetch: words(&["--tags", "origin", "+refs/heads/*:refs/remotes/origin/*"]),
                checkout: revision,
            },
        ],
        None => {
            let name = branch.as_deref().unwrap_or("HEAD");
            [&["--depth=1", "--no-tags", "origin", name][..], &["--no-tags", "origin", name]]
                .map(|fetch| Plan { fetch: words(fetch), checkout: "FETCH_HEAD" })
        }
    }
}

/// A copy that is being made.
struct Copying<'a, 'b, T> {
    repository: &'a Repository,
    job: &'a mut FetchJob<'b, T>,
}

impl<T: Fn(String) + Sync> Copying<'_, '_, T> {
    async fn fetch(&mut self, plan: &Plan<'_>) -> Result<(), FetchError> {
        let fixed = ["fetch", "--progress", "--no-recurse-submodules"];
        let words: Vec<_> =
            fixed.into_iter().chain(plan.fetch.iter().map(String::as_str)).collect();
        self.git(&words).await
    }

    /// Runs `git` in the folder of the copy, to its end.
    async fn git(&mut self, words: &[&str]) -> Result<(), FetchError> {
        let mut child = command(self.repository, self.job.to, words)?.spawn()?;
        let lifeline = child.stdin.take();
        let mut said = StderrParser::default();
        let ended = self.follow(&mut child, &mut said).await;
        if ended.is_err() {
            drop(lifeline);
            child.wait().await?;
            return ended.map(drop);
        }
        let status = ended?;
        match status.code() {
            Some(0) => Ok(()),
            Some(NOT_FOUND) => {
                let why = "there is no `git` on the machine of the server; install it there \
                           (`apt install git`), and submit again";
                Err(FetchError::Final(why.to_owned()))
            }
            _ => Err(said.fault(self.repository)),
        }
    }

    /// Reads the output of `git` until it ends.
    async fn follow(
        &mut self,
        child: &mut Child,
        said: &mut StderrParser,
    ) -> Result<ExitStatus, FetchError> {
        let mut errors = child.stderr.take().ok_or_else(|| io::Error::other("no output"))?;
        let mut piece = [0; 4096];
        let bytes_max = self.job.bytes_max;
        let mut outgrown = pin!(outgrown(self.job.to, bytes_max));
        loop {
            let heard = tokio::select! {
                heard = timeout(self.job.silence_max, errors.read(&mut piece)) => heard,
                _ = &mut *self.job.stop => return Err(FetchError::Stopped),
                () = &mut outgrown => return Err(too_large(bytes_max)),
            };
            let Ok(heard) = heard else {
                let seconds = self.job.silence_max.as_secs();
                return Err(FetchError::Passing(format!("nothing came for {seconds} s")));
            };
            match piece.get(..heard?) {
                None | Some([]) => return Ok(child.wait().await?),
                Some(bytes) => said.take(bytes),
            }
            self.job.progress(|| said.progress());
        }
    }
}

fn command(repository: &Repository, folder: &Path, words: &[&str]) -> Result<Command, FetchError> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "git"]).args(OPTIONS).current_dir(folder).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(ENVIRONMENT);
    if let Some(login) = &repository.login {
        if [&login.user, &login.password].iter().any(|text| text.contains(['\n', '\r', '\0'])) {
            let why = "its login has a line break, which no server takes; change the credential";
            return Err(FetchError::Final(why.to_owned()));
        }
        let Some(origin) = origin(&repository.address) else {
            return Err(FetchError::Final("its address has no plain name of a server".to_owned()));
        };
        command.args(["-c", &format!("credential.{origin}.helper={HELPER}")]);
        command.env("ELASTANE_GIT_USER", &login.user);
        command.env("ELASTANE_GIT_PASSWORD", &login.password);
    }
    command.args(words).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    Ok(command)
}

/// Protocol, server and port of an address; `None` if they are not plainly that. As a part of an
/// option they could inject other settings.
fn origin(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let origin = address.get(..address.len() - rest.len() + host.len());
    origin.filter(|_| !host.is_empty() && host.chars().all(plain))
}

#[cfg(test)]
mod tests;
