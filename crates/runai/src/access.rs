//! Access to a workload after its submission: a notebook's token and forwarded ports. Owns: that
//! nothing is submitted whose ports cannot be forwarded, the maximum waits, and the published
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

/// Maximum wait for the workload to run, and then for the token of a notebook.
const WAIT: Duration = Duration::from_secs(60);
/// Text before the token in the output of a notebook.
const TOKEN: &str = "?token=";

/// Command that starts a notebook with a base URL of its own.
pub(super) fn start_at(path: &str) -> [String; 2] {
    ["start-notebook.sh".to_owned(), format!("--ServerApp.base_url={path}")]
}

/// Base URL path of a notebook.
pub(super) fn own_path(project: &str, name: &str) -> String {
    format!("/{project}-{name}")
}

/// Local ports that are open before the submission.
pub(super) struct LocalForward<'a> {
    access: &'a Access,
    listening: Vec<Forwarded>,
}

impl<'a> LocalForward<'a> {
    /// Listens on the local ports, before anything is submitted.
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

    /// Waits for the submitted workload, prints its addresses, and forwards ports until the user
    /// ends this program. Returns at once if it is reachable without this program.
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

    /// Addresses of the workload on this machine.
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

/// The token that a notebook writes at its start; `None` if it writes none for a while, or ends.
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

/// The token in a text, once a following character shows that it is complete.
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
