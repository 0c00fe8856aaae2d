//! Where the server is and with which token it is asked. Owns `server.json` and `token` in the
//! state directory, as far as clients read them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Client, Error};

/// Where a server without a state file is looked for.
const DEFAULT_URL: &str = "http://127.0.0.1:7070";
/// What a running server writes beside its database.
pub const SERVER_FILE: &str = "server.json";
/// The token that only the user of the server can read.
const TOKEN_FILE: &str = "token";

/// Contents of `server.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Where the server listens.
    pub url: String,
    /// Its process id.
    pub pid: u32,
}

/// A client and what is known about the server it talks to.
#[derive(Debug, Clone)]
pub struct Found {
    /// Ready to be used.
    pub client: Client,
    /// Whether the server is on this machine.
    pub local: bool,
}

/// The state directory of this user: `$ELASTANE_STATE_DIR`, `$XDG_STATE_HOME/elastane`, or
/// `~/.local/state/elastane`. None without a home.
#[must_use]
pub fn state_dir(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("ELASTANE_STATE_DIR")
        .or_else(|| set("XDG_STATE_HOME").map(|dir| dir.join("elastane")))
        .or_else(|| set("HOME").map(|home| home.join(".local/state/elastane")))
}

/// Finds the server: `url` if given, else the one that wrote `server.json`. The token is `token`
/// if given, else the local one, which is only ever sent to this machine.
///
/// # Errors
/// An address that cannot be one, or a state file that cannot be read.
pub fn find(
    url: Option<&str>,
    token: Option<&str>,
    state_dir: Option<&Path>,
) -> Result<Found, Error> {
    // Whatever address the state directory names: the server that wrote it is on this machine.
    let file = state_dir.map(read_server_file).transpose()?.flatten();
    let (url, local, own) = match (url, file) {
        (Some(url), _) => {
            let local = crate::request::is_loopback(url);
            (url.to_owned(), local, local)
        }
        (None, Some(file)) => (file.url, true, true),
        // Whoever listens there is not known to be this user's server.
        (None, None) => (DEFAULT_URL.to_owned(), true, false),
    };
    let token = match token {
        Some(token) => Some(token.to_owned()),
        None if own => state_dir.map(read_token).transpose()?.flatten(),
        None => None,
    };
    Ok(Found { client: Client::new(&url, token)?, local })
}

/// What the running server says about itself; none when there is no such file.
///
/// # Errors
/// The file is there and cannot be understood.
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

/// Tells clients where the server is; replaces the file as a whole.
///
/// # Errors
/// The file cannot be written.
pub fn write_server_file(state_dir: &Path, file: &ServerFile) -> Result<(), Error> {
    let path = state_dir.join(SERVER_FILE);
    let fault = |fault: String| Error::StateFile { path: path.display().to_string(), fault };
    let text = serde_json::to_string_pretty(file).map_err(|error| fault(error.to_string()))?;
    let draft = state_dir.join(format!(".{SERVER_FILE}.{}", file.pid));
    fs::write(&draft, text)
        .and_then(|()| fs::rename(&draft, &path))
        .map_err(|error| fault(error.to_string()))
}

fn read_token(state_dir: &Path) -> Result<Option<String>, Error> {
    let text = read_if_there(&state_dir.join(TOKEN_FILE))?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty()))
}

fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Error::StateFile { path: path.display().to_string(), fault: error.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(state_dir(&env(&pairs)), dir.map(PathBuf::from));
        }
    }

    #[test]
    fn the_local_token_never_leaves_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(TOKEN_FILE), "secret\n").unwrap();
        let token = |url| find(Some(url), None, Some(dir.path())).unwrap().client.token;
        assert_eq!(token("http://127.0.0.1:1").as_deref(), Some("secret"));
        assert_eq!(token("http://localhost:1").as_deref(), Some("secret"));
        assert_eq!(token("http://[::1]:1").as_deref(), Some("secret"));
        assert_eq!(token("http://127.0.0.1.example.org"), None);
        assert_eq!(token("http://gpu.example.org"), None);
        assert_eq!(find(None, None, Some(dir.path())).unwrap().client.token, None);
    }

    #[test]
    fn the_server_file_leads_to_the_server() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_server_file(dir.path()).unwrap(), None);
        let file = ServerFile { url: "http://127.0.0.1:9".into(), pid: 7 };
        write_server_file(dir.path(), &file).unwrap();
        assert_eq!(read_server_file(dir.path()).unwrap(), Some(file));
        let found = find(None, None, Some(dir.path())).unwrap();
        assert_eq!((found.client.base.as_str(), found.local), ("http://127.0.0.1:9", true));
        let wide = ServerFile { url: "http://192.0.2.7:9".into(), pid: 7 };
        write_server_file(dir.path(), &wide).unwrap();
        assert!(find(None, None, Some(dir.path())).unwrap().local);
    }

    #[test]
    fn a_damaged_server_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(SERVER_FILE), "{").unwrap();
        let said = find(None, None, Some(dir.path())).unwrap_err().to_string();
        assert!(said.contains(SERVER_FILE), "{said}");
    }
}
