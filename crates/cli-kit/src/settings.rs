//! The researcher's local files: `config.json` and `authentication.json` in `~/.runai/`. Owns their
//! location, the values that are read from them, and how they are replaced (whole, private). Does
//! not know the meaning of the values to a server.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// Error of a local file.
#[derive(Debug, Error)]
pub enum Error {
    /// The file exists and cannot be read or written.
    #[error("failed to {what} {}: {source}", path.display())]
    Io {
        /// `read` or `write`.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file cannot be parsed.
    #[error("{} is damaged ({fault}); correct it or delete it, a new one is written", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Text of the parse error.
        fault: String,
    },
    /// An environment variable or a key has an invalid value.
    #[error("{what} is `{value}`; allowed are {allowed}")]
    Value {
        /// Name of the variable or key.
        what: &'static str,
        /// Value as set.
        value: String,
        /// Allowed values.
        allowed: &'static str,
    },
    /// Neither a home directory nor a path is given.
    #[error("HOME is not set; say where the files are with --config-path DIR")]
    NoHome,
}

/// Table layout of the workload lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableStyle {
    /// The wide table of the first command line.
    V1,
    /// The short table of the second.
    V2,
}

/// Reads an environment variable; a parameter so that tests need not touch the process.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings from the local files and the environment.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    config_file: PathBuf,
    config: Map<String, Value>,
    auth_file: PathBuf,
    token: Option<String>,
    table: Option<TableStyle>,
    url: Option<String>,
    url_of_environment: bool,
    show_request: bool,
}

impl Settings {
    /// Reads both files; one that does not exist counts as empty.
    ///
    /// # Errors
    /// A file that exists and cannot be parsed, or an invalid value.
    pub fn load(dir: Option<PathBuf>, file: Option<&str>, env: Env<'_>) -> Result<Self, Error> {
        let dir = match dir {
            Some(dir) => dir,
            None => PathBuf::from(env("HOME").ok_or(Error::NoHome)?).join(".runai"),
        };
        let config_file = dir.join(file.unwrap_or("config.json"));
        let config = read_object(&config_file)?.unwrap_or_default();
        let stored = text_at(&config, &["table"]).map(str::to_owned);
        let table = match env("RUNAI_TABLE") {
            Some(value) => Some(table_style("RUNAI_TABLE", value)?),
            None => stored.map(|value| table_style("table in config.json", value)).transpose()?,
        };
        let token = env("RUNAI_TOKEN").filter(|token| !token.is_empty());
        let auth_file = dir.join("authentication.json");
        let url = env("RUNAI_CP_URL").filter(|url| !url.is_empty());
        let url_of_environment = url.is_some();
        let url = url.or_else(|| text_at(&config, &["control_plane", "url"]).map(str::to_owned));
        let show_request = match env("RUNAI_GPU_ALLOC").as_deref() {
            None | Some("" | "request") => true,
            Some("allocated") => false,
            Some(value) => {
                let (what, allowed) = ("RUNAI_GPU_ALLOC", "`allocated` and `request`");
                return Err(Error::Value { what, value: value.to_owned(), allowed });
            }
        };
        Ok(Self {
            config_file,
            config,
            auth_file,
            token,
            table,
            url,
            url_of_environment,
            show_request,
        })
    }

    /// The default project.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        text_at(&self.config, &["project"]).or_else(|| text_at(&self.config, &["project", "name"]))
    }

    /// Address of the server, if it is set.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// True if the address is from the environment.
    #[must_use]
    pub const fn url_of_environment(&self) -> bool {
        self.url_of_environment
    }

    /// The chosen cluster, by id.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        text_at(&self.config, &["cluster", "uuid"])
    }

    /// Path of the settings file.
    #[must_use]
    pub fn config_file(&self) -> &Path {
        &self.config_file
    }

    /// The bearer token from the environment.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The session at this server. A session of another server is not sent to it, unless the file
    /// does not name its server; a token from the environment takes precedence, and then there is
    /// none.
    ///
    /// # Errors
    /// The file exists and cannot be parsed.
    pub fn session(&self, url: &str) -> Result<Option<Session>, Error> {
        if self.token.is_some() {
            return Ok(None);
        }
        let session = Session::read(&self.auth_file)?;
        Ok(session.filter(|own| own.url.as_deref().is_none_or(|own| own == url)))
    }

    /// Path of the session file.
    #[must_use]
    pub fn auth_file(&self) -> &Path {
        &self.auth_file
    }

    /// Stores the address of the server.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_url(&mut self, url: &str) -> Result<(), Error> {
        let known = self.config.get("control_plane").and_then(Value::as_object);
        let mut place = known.cloned().unwrap_or_default();
        place.insert("url".to_owned(), json!(url));
        self.config.insert("control_plane".to_owned(), Value::Object(place));
        self.save()
    }

    /// Table layout, if it is set.
    #[must_use]
    pub fn table(&self) -> Option<TableStyle> {
        self.table
    }

    /// True if a pending workload shows its requested GPUs in place of the allocated ones.
    #[must_use]
    pub fn show_request(&self) -> bool {
        self.show_request
    }

    /// Makes a project the default one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_project(&mut self, name: &str) -> Result<(), Error> {
        self.config.insert("project".to_owned(), json!({ "name": name }));
        self.save()
    }

    /// Makes a cluster the current one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_cluster(&mut self, uuid: &str) -> Result<(), Error> {
        self.config.insert("cluster".to_owned(), json!({ "uuid": uuid }));
        self.save()
    }

    fn save(&self) -> Result<(), Error> {
        let path = &self.config_file;
        let text = format!("{:#}\n", Value::Object(self.config.clone()));
        write_private(path, text.as_bytes()).map_err(|source| Error::Io {
            what: "write",
            path: path.clone(),
            source,
        })
    }
}

/// Session of a logged-in user.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// The bearer token.
    pub access: String,
    /// Refresh token, usable once; `None` for a service account.
    pub refresh: Option<String>,
    /// Address of the server that issued the tokens; `None` if another program wrote the file.
    pub url: Option<String>,
    /// Login method.
    pub way: Option<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.url)
    }
}

impl Session {
    /// Reads the stored session; `None` if there is none.
    ///
    /// # Errors
    /// The file exists and cannot be parsed.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Some(object) = read_object(path)? else { return Ok(None) };
        let token = |name: &'static str| decoded(&object, path, name);
        let Some(access) = token("accessToken")? else { return Ok(None) };
        let text = |name: &str| text_at(&object, &[name]).map(str::to_owned);
        let (url, way) = (text("url"), text("way"));
        Ok(Some(Self { access, refresh: token("refreshToken")?, url, way }))
    }

    /// Stores the session, readable by its owner only.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let encode = |token: &String| URL_SAFE_NO_PAD.encode(token);
        let content = json!({
            "accessToken": encode(&self.access),
            "refreshToken": self.refresh.as_ref().map(encode),
            "url": self.url, "way": self.way,
        });
        write_private(path, format!("{content:#}\n").as_bytes()).map_err(|source| Error::Io {
            what: "write",
            path: path.to_owned(),
            source,
        })
    }
}

/// Tokens are stored base64url-encoded, as in the original command line.
fn decoded(
    object: &Map<String, Value>,
    path: &Path,
    name: &'static str,
) -> Result<Option<String>, Error> {
    let Some(encoded) = text_at(object, &[name]) else { return Ok(None) };
    let damaged = |fault: String| Error::Damaged { path: path.to_owned(), fault };
    let bytes = URL_SAFE_NO_PAD
        .decode(encoded.trim_end_matches('='))
        .or_else(|_| STANDARD.decode(encoded))
        .map_err(|_| damaged(format!("{name} is not base64url")))?;
    let token = String::from_utf8(bytes).map_err(|_| damaged(format!("{name} is not text")))?;
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// Replaces a file as a whole, readable by its owner only; creates its folder if needed.
///
/// # Errors
/// The folder or the file cannot be written; the old file is untouched then.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = dir.join(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file =
            fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&draft)))
}

fn read_text(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { what: "read", path: path.to_owned(), source }),
    }
}

fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, Error> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    let damaged = |fault: String| Error::Damaged { path: path.to_owned(), fault };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(damaged("it is not a JSON object".to_owned())),
        Err(error) => Err(damaged(error.to_string())),
    }
}

fn text_at<'v>(object: &'v Map<String, Value>, path: &[&str]) -> Option<&'v str> {
    let (first, rest) = path.split_first()?;
    let mut value = object.get(*first)?;
    for key in rest {
        value = value.get(key)?;
    }
    value.as_str().filter(|text| !text.is_empty())
}

fn table_style(what: &'static str, value: String) -> Result<TableStyle, Error> {
    match value.as_str() {
        "v1" => Ok(TableStyle::V1),
        "v2" => Ok(TableStyle::V2),
        _ => Err(Error::Value { what, value, allowed: "`v1` and `v2`" }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn load(dir: &Path, env: &[(&str, &str)]) -> Result<Settings, Error> {
        let lookup = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::load(Some(dir.to_owned()), None, &lookup)
    }

    #[test]
    fn the_default_project_is_remembered_and_other_keys_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        fs::write(&file, r#"{"cluster":{"uuid":"u1"},"theirs":7}"#).unwrap();
        load(dir.path(), &[]).unwrap().set_project("team-a").unwrap();

        assert_eq!(load(dir.path(), &[]).unwrap().project(), Some("team-a"));
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"theirs\": 7") && text.contains("u1"), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a draft was left behind");
    }

    #[test]
    fn a_missing_folder_is_made_private() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/.runai");
        load(&inner, &[]).unwrap().set_project("team-b").unwrap();
        assert_eq!(load(&inner, &[]).unwrap().project(), Some("team-b"));
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn damaged_files_are_named() {
        for (name, text, fault) in [
            ("config.json", "{", "EOF while parsing"),
            ("config.json", "[]", "not a JSON object"),
            ("authentication.json", r#"{"accessToken":"*"}"#, "not base64url"),
            ("authentication.json", r#"{"accessToken":"_w"}"#, "not text"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(name), text).unwrap();
            let read = load(dir.path(), &[]).and_then(|settings| settings.session("http://x"));
            let said = read.unwrap_err().to_string();
            assert!(said.contains(name) && said.contains(fault), "{said}");
        }
    }

    #[test]
    fn a_session_is_for_its_server_and_the_environment_wins() {
        let dir = tempfile::tempdir().unwrap();
        let url = "https://gpu.example.org";
        let session = |env: &[(&str, &str)], url: &str| {
            let settings = load(dir.path(), env).unwrap();
            settings.session(url).unwrap().map(|session| session.access)
        };
        let encoded = URL_SAFE_NO_PAD.encode("h.p?~.s");
        let file = dir.path().join("authentication.json");
        // As the original command line writes it.
        fs::write(&file, json!({ "accessToken": encoded }).to_string()).unwrap();
        assert_eq!(session(&[], url).as_deref(), Some("h.p?~.s"));
        assert_eq!(session(&[("RUNAI_TOKEN", "other")], url), None);
        let own = Session {
            access: "a".into(),
            refresh: Some("r".into()),
            url: Some(url.into()),
            way: Some("user".into()),
        };
        own.write(&file).unwrap();
        assert_eq!(Session::read(&file).unwrap(), Some(own));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(session(&[], url).as_deref(), Some("a"));
        assert_eq!(session(&[], "https://other.example.org"), None);
    }

    #[test]
    fn a_variable_without_a_meaning_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (name, value) in [("RUNAI_TABLE", "v3"), ("RUNAI_GPU_ALLOC", "both")] {
            let said = load(dir.path(), &[(name, value)]).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains(value), "{said}");
        }
    }
}
