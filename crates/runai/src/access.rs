//! Coming to what was just submitted: a notebook's token, and ports that are brought here. Owns:
//! that nothing is submitted whose ports cannot be brought, how long is waited, and the published
//! lines. Does not know how bytes are carried (`forward`).

use std::io::Write;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::context::Context;
use super::forward::{self, Forwarded};
use super::wait;
use cli_kit::exit::Error;
use cli_kit::message::print_note;
use dialects::intent::Access;

/// How long it is waited for to run, and then for a notebook to tell its token.
const WAIT: Duration = Duration::from_secs(60);
/// What stands before a token in what a notebook writes.
const TOKEN: &str = "?token=";

/// What a notebook is started with to serve at a path of its own.
pub(super) fn start_at(path: &str) -> [String; 2] {
    ["start-notebook.sh".to_owned(), format!("--ServerApp.base_url={path}")]
}

/// The path of a notebook of its own.
pub(super) fn own_path(project: &str, name: &str) -> String {
    format!("/{project}-{name}")
}

/// A way in that is open at this end.
pub(super) struct LocalForward<'a> {
    access: &'a Access,
    listening: Vec<Forwarded>,
}

impl<'a> LocalForward<'a> {
    /// Listens here, before anything is submitted.
    pub(super) async fn open(access: &'a Access) -> Result<Self, Error> {
        let mut listening = Vec::new();
        for (local, there) in &access.ports {
            let here = match forward::listen(&access.address, *local).await {
                Err(error) if access.any_port => {
                    let here = forward::listen(&access.address, 0).await.map_err(|_| error)?;
                    print_note(&format!("Port {local} of this machine is taken; using another"));
                    here
                }
                other => other?,
            };
            listening.push(Forwarded { here, there: *there });
        }
        Ok(Self { access, listening })
    }

    /// Waits for what was submitted, prints where it is reached, and forwards ports until the user
    /// ends this program. What is reached without this program is left at once.
    pub(super) async fn enter(
        self,
        id: &str,
        context: &Context,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let asked = self.access.ports.iter();
        let rest: String = asked.map(|(here, there)| format!(" --port {here}:{there}")).collect();
        let back = if rest.is_empty() { ("describe", "") } else { ("port-forward", rest.as_str()) };
        let Some(workload) = wait::to_run(id, WAIT, back, context).await? else { return Ok(()) };
        let (name, project) = (&workload.name, &workload.project_name);
        if self.access.notebook {
            match token_of(id, context).await? {
                Some(token) => writeln!(out, "Jupyter notebook token: {token}")?,
                None => print_note(&format!(
                    "It has written no token so far; `runai logs {name} -p {project}` shows it"
                )),
            }
        }
        let points = match self.listening.is_empty() {
            true => workload.urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect(),
            false => self.points()?,
        };
        writeln!(out, "Open access point(s) to service from {}", points.join(","))?;
        out.flush()?;
        if self.listening.is_empty() {
            return Ok(());
        }
        forward::carry_all(self.listening, id.to_owned(), None, context).await
    }

    /// Where it is reached from this machine.
    fn points(&self) -> Result<Vec<String>, Error> {
        let firsts = self.listening.iter().filter_map(|one| one.here.first());
        let point = |listener: &tokio::net::TcpListener| {
            let here = listener.local_addr()?;
            Ok(match self.access.address.as_str() {
                "localhost" => format!("localhost:{}", here.port()),
                _ => here.to_string(),
            })
        };
        firsts.map(point).collect()
    }
}

/// The token that a notebook writes at its start; none if it writes none for a while, or ends.
async fn token_of(id: &str, context: &Context) -> Result<Option<String>, Error> {
    let until = Instant::now() + WAIT;
    let follow = client::Logs { follow: true, ..client::Logs::default() };
    let mut stream = context.client.logs(id, None, &follow).await?;
    let mut written = String::new();
    while let Ok(next) = timeout_at(until, stream.next()).await {
        let Some(bytes) = next? else { break };
        written += &String::from_utf8_lossy(&bytes);
        if let Some(token) = token_in(&written) {
            return Ok(Some(token.to_owned()));
        }
        // A token is on one line.
        let line = written.rfind('\n').map_or(0, |end| end + 1);
        written.drain(..line);
    }
    Ok(None)
}

/// The token in a text, once something behind it says that it is whole.
fn token_in(text: &str) -> Option<&str> {
    let (_, after) = text.split_once(TOKEN)?;
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.~%".contains(c))?;
    Some(&after[..end]).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_when_it_is_whole() {
        assert_eq!(token_in("    http://127.0.0.1:8888/lab?token=0a1b\n"), Some("0a1b"));
        assert_eq!(token_in("http://x/?token=0a1b&y=1"), Some("0a1b"));
        assert_eq!(token_in("http://x/?token=0a"), None, "there may be more of it");
        assert_eq!(token_in("?token=\n"), None, "it was started without one");
        assert_eq!(token_in("ready\n"), None);
    }
}
