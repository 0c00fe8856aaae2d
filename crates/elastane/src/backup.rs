//! `elastane backup` and `elastane restore`: the state as a file. Owns: the file, which holds
//! secrets, so that no other user can read it and none is incomplete or overwritten.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;
use store::SavedFile;

use super::args::{Backup, Restore};
use super::config::{self, Config};
use super::initial_nodes;
use super::settings::{Flags, Storage};
use cli_kit::exit::{Error, chain};
use cli_kit::message::with_progress;

/// File of private ids, which is merged and not replaced.
const ACCOUNTS_FILE: &str = "accounts.json";

pub(super) async fn backup(state_dir: Option<PathBuf>, flags: Backup) -> Result<(), Error> {
    let Backup { file, place } = flags;
    if file == Path::new("-") {
        let why = "a backup is written to a file, not to the output; name one that only you can \
                   read, or write ./- for one of that name";
        return Err(Error::Usage(why.to_owned()));
    }
    let config = resolve(state_dir.as_deref(), place)?;
    if file.symlink_metadata().is_ok() {
        return Err(Error::Failed(format!("{} exists already; name another file", file.display())));
    }
    let part = PathBuf::from(format!("{}.part", file.display()));
    let saved = save(&config, &part).await;
    let saved = saved.and_then(|contents| Ok(fs::rename(&part, &file).map(|()| contents)?));
    let contents = match saved {
        Ok(contents) => contents,
        Err(error) => {
            // The file is useless; if it cannot be deleted either, the first error is reported.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    };
    writeln!(
        std::io::stdout(),
        "saved cluster {} ({} rows) to {}; only you can read it, it holds secrets",
        contents.cluster,
        contents.rows,
        file.display()
    )?;
    Ok(())
}

async fn save(config: &Config, part: &Path) -> Result<store::Contents, Error> {
    let failed =
        |error: std::io::Error| Error::Failed(format!("cannot write {}: {error}", part.display()));
    // A leftover file may have another mode.
    let _ = fs::remove_file(part);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    let mut out = BufWriter::new(file.map_err(failed)?);
    let version = env!("CARGO_PKG_VERSION");
    let dir = &config.settings.state_dir;
    let files = files_in(dir)?;
    let work = store::backup(dir, &config.database, version, files, &mut out);
    let contents =
        with_progress("Saving the state; a server that runs goes on meanwhile", work).await;
    let contents = contents.map_err(|error| Error::Failed(chain(&error)))?;
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(failed)?;
    Ok(contents)
}

/// Files of the state directory that belong to the state.
fn files_in(state_dir: &Path) -> Result<Vec<SavedFile>, Error> {
    let read = |name: &str| {
        let path = state_dir.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Some(Ok(SavedFile { name: name.to_owned(), text })),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                Some(Err(Error::Failed(format!("cannot read {}: {error}", path.display()))))
            }
        }
    };
    store::FILES.into_iter().filter_map(read).collect()
}

/// Writes these files to a state directory. Private ids that this machine has assigned are kept.
fn put_into(state_dir: &Path, files: Vec<SavedFile>) -> std::io::Result<()> {
    for SavedFile { name, text } in files {
        if name == ACCOUNTS_FILE {
            let merged = engine_local::restore_private_ids(state_dir, &text);
            merged.map_err(|error| std::io::Error::other(chain(&error)))?;
        } else {
            initial_nodes::write_whole(&state_dir.join(name), text.trim_end())?;
        }
    }
    Ok(())
}

pub(super) async fn restore(state_dir: Option<PathBuf>, flags: Restore) -> Result<(), Error> {
    let Restore { file, replace, place } = flags;
    let config = resolve(state_dir.as_deref(), place)?;
    let input = File::open(&file)
        .map_err(|error| Error::Failed(format!("cannot read {}: {error}", file.display())))?;
    // New files are private to their user, as with `up`.
    umask(Mode::RWXG | Mode::RWXO);
    let (dir, database) = (&config.settings.state_dir, &config.database);
    let beside = |files| put_into(dir, files);
    let work = store::restore(dir, database, BufReader::new(input), replace, beside);
    let restored = with_progress("Bringing the state back", work).await;
    let (contents, kept) = restored.map_err(|error| match error {
        store::BackupError::Damaged { .. } => Error::Failed(format!("{} {error}", file.display())),
        other => Error::Failed(chain(&other)),
    })?;
    let kept =
        kept.map_or(String::new(), |kept| format!("; what was there is in {}", kept.display()));
    writeln!(
        std::io::stdout(),
        "restored cluster {} ({} rows){kept}; start it with `elastane up --state-dir {}`",
        contents.cluster,
        contents.rows,
        dir.display()
    )?;
    Ok(())
}

/// The configuration as for `up`, from flags, environment and file.
fn resolve(state_dir: Option<&Path>, place: Flags<Storage>) -> Result<Config, Error> {
    config::resolve(state_dir, place.typed, &super::env)
        .map_err(|error| Error::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_state_directory_go_into_a_backup_and_come_back() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(files_in(from.path()).unwrap(), [], "there need not be any");
        let ids = r#"{"next": 1900000001, "ids": {"ann": 1900000000}}"#;
        for (name, text) in
            [("nodes", "gpus 2x16GiB\n"), ("node-name", "a\n"), (ACCOUNTS_FILE, ids)]
        {
            fs::write(from.path().join(name), text).unwrap();
        }
        fs::write(to.path().join("nodes"), "gpus 9x16GiB\n").unwrap();
        put_into(to.path(), files_in(from.path()).unwrap()).unwrap();
        let there = |name: &str| fs::read_to_string(to.path().join(name)).unwrap();
        assert_eq!((there("nodes"), there("node-name")), ("gpus 2x16GiB\n".into(), "a\n".into()));
        assert!(there(ACCOUNTS_FILE).contains("1900000000"));
    }
}
