//! Discovery of the server and its token. Owns the format of `server.json` and `token` in the state
//! directory, as far as clients read them.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Client, Error, listener};

/// Address of a server without a state file.
const DEFAULT_URL: &str = "http://127.0.0.1:7070";
/// File in the state directory with the address of the running server.
pub const SERVER_FILE: &str = "server.json";
/// State directory of the service that a system package installs.
const SERVICE_STATE_DIR: &str = "/var/lib/elastane";
/// File with the token, readable only by the user of the server.
const TOKEN_FILE: &str = "token";

/// Contents of `server.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Address of the server.
    pub url: String,
    /// Its process id.
    pub pid: u32,
}

/// A client, and the location of its server.
#[derive(Debug, Clone)]
pub struct LocatedClient {
    /// Client of the server.
    pub client: Client,
    /// True if the server is on this machine.
    pub local: bool,
}

/// The state directory of this user: `$ELASTANE_STATE_DIR`, that of the system's service if this
/// user may read it (root), `$XDG_STATE_HOME/elastane`, or `~/.local/state/elastane`. `None`
/// without a home directory.
#[must_use]
pub fn state_dir(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    state_dir_beside(Path::new(SERVICE_STATE_DIR), env)
}

fn state_dir_beside(service: &Path, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_service = || fs::read_dir(service).is_ok().then(|| service.to_owned());
    set("ELASTANE_STATE_DIR")
        .or_else(of_service)
        .or_else(|| set("XDG_STATE_HOME").map(|dir| dir.join("elastane")))
        .or_else(|| set("HOME").map(|home| home.join(".local/state/elastane")))
}

/// Finds the server: `url` if given, else the one that wrote `server.json`. The token is `token`
/// if given, else the local one.
///
/// The local token, and every request to the address in `server.json`, is only sent to a program of
/// the user who owns the token file: the client checks this before each request.
///
/// A remote server authenticates by a certificate of an authority in `ca`, or of one that this
/// machine trusts.
///
/// # Errors
/// An invalid address, or a state file that cannot be read.
pub fn find(
    url: Option<&str>,
    token: Option<&str>,
    state_dir: Option<&Path>,
    ca: Option<&Path>,
) -> Result<LocatedClient, Error> {
    let given = token.map(ToOwned::to_owned);
    // The file of another user's server is not read for an address that is given.
    let file = state_dir.filter(|_| url.is_none()).map(read_server_file).transpose()?.flatten();
    match (url, file, state_dir) {
        (Some(url), _, dir) => {
            let local = listener::is_loopback(url);
            let own = dir.filter(|dir| local && given.is_none() && is_readable(dir));
            let owner = own.map(owner).transpose()?.flatten();
            // A request to another user's server has no token, and that server refuses it.
            match (dir, owner.filter(|owner| listener::is_of_user(url, *owner))) {
                (Some(dir), Some(owner)) => {
                    let client = Client::of_user(url, read_token(dir)?, owner)?.renewed_in(dir);
                    Ok(LocatedClient { client, local })
                }
                _ => Ok(LocatedClient { client: Client::new(url, given, ca)?, local }),
            }
        }
        // Whatever its address: the server that wrote the file is on this machine.
        (None, Some(file), Some(dir)) => {
            let client = match owner(dir)? {
                Some(owner) => match given {
                    Some(token) => Client::of_user(&file.url, Some(token), owner)?,
                    None => Client::of_user(&file.url, read_token(dir)?, owner)?.renewed_in(dir),
                },
                // The file was removed after it had been read.
                None => Client::new(&file.url, None, ca)?,
            };
            Ok(LocatedClient { client, local: true })
        }
        // The listener is not known to be this user's server.
        (None, ..) => {
            Ok(LocatedClient { client: Client::new(DEFAULT_URL, given, ca)?, local: true })
        }
    }
}

/// False if this user may not search the folder.
fn is_readable(state_dir: &Path) -> bool {
    let found = fs::metadata(state_dir.join(TOKEN_FILE));
    !found.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// The owner of the token file, or of the state directory if there is no token; `None` without
/// both.
fn owner(state_dir: &Path) -> Result<Option<u32>, Error> {
    for path in [&state_dir.join(TOKEN_FILE), state_dir] {
        match fs::metadata(path) {
            Ok(meta) => return Ok(Some(meta.uid())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let path = path.display().to_string();
                return Err(Error::StateFile { path, fault: error.to_string() });
            }
        }
    }
    Ok(None)
}

/// The address and process of the running server; `None` without the file.
///
/// # Errors
/// The file exists and cannot be parsed.
pub fn read_server_file(state_dir: &Path) -> Result<Option<ServerFile>, Error> {
    let path = state_dir.join(SERVER_FILE);
    let fault = |fault: String| Error::StateFile { path: path.display().to_string(), fault };
    match read_if_there(&path)? {
        Some(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| fault(format!("{error}; `elastane up` writes a new one"))),
        None => Ok(None),
    }
}

/// Writes the address of the server for clients; replaces the file as a whole.
///
/// # Errors
/// The file cannot be written.
pub fn write_server_file(state_dir: &Path, file: &ServerFile) -> Result<(), Error> {
    let path = state_dir.join(SERVER_FILE);
    let fault = |fault: String| Error::StateFile { path: path.display().to_string(), fault };
    let text = serde_json::to_string_pretty(file).map_err(|error| fault(error.to_string()))?;
    let draft = state_dir.join(format!(".{SERVER_FILE}.{}", file.pid));
    let mut private = OpenOptions::new();
    private.write(true).create(true).truncate(true).mode(0o600);
    private
        .open(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&draft, &path))
        .map_err(|error| fault(error.to_string()))
}

pub(crate) fn read_token(state_dir: &Path) -> Result<Option<String>, Error> {
    let text = read_if_there(&state_dir.join(TOKEN_FILE))?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty()))
}

fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let fault = match error.kind() {
                ErrorKind::PermissionDenied => format!(
                    "{error}; it is the state directory of another user: `unset \
                     ELASTANE_STATE_DIR`, and log in with `runai login user -u NAME`"
                ),
                _ => error.to_string(),
            };
            Err(Error::StateFile { path: path.display().to_string(), fault })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned())
    }

    #[test]
    fn the_state_directory_follows_the_environment() {
        let home = ("HOME", "/h");
        let xdg = ("XDG_STATE_HOME", "/x");
        let own = ("ELASTANE_STATE_DIR", "/own");
        for (pairs, dir) in [
            (vec![home], Some("/h/.local/state/elastane")),
            (vec![home, xdg], Some("/x/elastane")),
            (vec![home, xdg, own], Some("/own")),
            (vec![home, ("ELASTANE_STATE_DIR", "")], Some("/h/.local/state/elastane")),
            (vec![], None),
        ] {
            let absent = Path::new("/nowhere/elastane");
            assert_eq!(state_dir_beside(absent, &env(&pairs)), dir.map(PathBuf::from));
        }
    }

    #[test]
    fn who_may_read_the_state_of_the_service_uses_it() {
        let service = tempfile::tempdir().unwrap();
        let chosen = |service: &Path, pairs: &[(&str, &str)]| {
            state_dir_beside(service, &env(pairs)).unwrap()
        };
        let home = [("HOME", "/h"), ("XDG_STATE_HOME", "/x")];
        assert_eq!(chosen(service.path(), &home), service.path());
        let own = [("HOME", "/h"), ("ELASTANE_STATE_DIR", "/own")];
        assert_eq!(chosen(service.path(), &own), Path::new("/own"));
        // A folder that this user may not read cannot be listed, like a file.
        let file = service.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(chosen(&file, &home), Path::new("/x/elastane"));
    }

    /// A state directory with a token.
    fn dir_with_token() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(TOKEN_FILE), "secret\n").unwrap();
        dir
    }

    fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn the_local_token_never_leaves_the_machine() {
        let dir = dir_with_token();
        let (_server, port) = listen();
        let token = |host| {
            let url = format!("http://{host}:{port}");
            find(Some(&url), None, Some(dir.path()), None).unwrap().client.token
        };
        assert_eq!(token("127.0.0.1").as_deref(), Some("secret"));
        assert_eq!(token("localhost").as_deref(), Some("secret"));
        assert_eq!(token("127.0.0.1.example.org"), None);
        assert_eq!(token("gpu.example.org"), None);
        assert_eq!(find(None, None, Some(dir.path()), None).unwrap().client.token, None);
    }

    #[test]
    fn the_local_token_is_read_again_for_each_request_and_a_given_one_never() {
        let dir = dir_with_token();
        let (_server, port) = listen();
        let url = format!("http://127.0.0.1:{port}");
        write_server_file(dir.path(), &ServerFile { url: url.clone(), pid: 7 }).unwrap();
        let found = |url, token| find(url, token, Some(dir.path()), None).unwrap().client;
        let clients = [found(None, None), found(Some(&url), None), found(None, Some("given"))];
        fs::write(dir.path().join(TOKEN_FILE), "renewed\n").unwrap();
        let sent = clients.map(|client| {
            let request = client.request(reqwest::Method::GET, "/x").build().unwrap();
            request.headers()["authorization"].to_str().unwrap().to_owned()
        });
        assert_eq!(sent, ["Bearer renewed", "Bearer renewed", "Bearer given"]);
    }

    #[test]
    fn an_address_nobody_of_ours_listens_at_gets_nothing() {
        let dir = dir_with_token();
        let (server, port) = listen();
        let url = format!("http://127.0.0.1:{port}");
        write_server_file(dir.path(), &ServerFile { url: url.clone(), pid: 7 }).unwrap();
        let found = |url| find(url, None, Some(dir.path()), None).unwrap().client;
        let living = found(None);
        assert_eq!(living.token.as_deref(), Some("secret"));
        living.check_listener().expect("our own");
        // The server was killed, and another user's program listens at its address.
        let stranger = Client { owner: living.owner.map(|uid| uid + 1), ..living.clone() };
        let said = stranger.check_listener().unwrap_err().to_string();
        assert!(said.contains("is not running at"), "{said}");
        assert!(found(Some(&url)).owner.is_some(), "an explicit address is watched, too");
        // The server was killed, and there is no listener.
        drop(server);
        assert!(matches!(living.check_listener(), Err(Error::NotRunning { .. })));
        assert_eq!(found(Some(&url)).token, None);
    }

    #[test]
    fn the_server_file_leads_to_the_server() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_server_file(dir.path()).unwrap(), None);
        let file = ServerFile { url: "http://127.0.0.1:9".into(), pid: 7 };
        write_server_file(dir.path(), &file).unwrap();
        assert_eq!(read_server_file(dir.path()).unwrap(), Some(file));
        let mode = fs::metadata(dir.path().join(SERVER_FILE)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let found = find(None, None, Some(dir.path()), None).unwrap();
        assert_eq!((found.client.base.as_str(), found.local), ("http://127.0.0.1:9", true));
        let wide = ServerFile { url: "http://192.0.2.7:9".into(), pid: 7 };
        write_server_file(dir.path(), &wide).unwrap();
        assert!(find(None, None, Some(dir.path()), None).unwrap().local);
    }

    #[test]
    fn a_damaged_server_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(SERVER_FILE), "{").unwrap();
        let said = find(None, None, Some(dir.path()), None).unwrap_err().to_string();
        assert!(said.contains(SERVER_FILE), "{said}");
    }
}
