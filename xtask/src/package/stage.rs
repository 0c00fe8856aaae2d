//! A folder in which a package is laid out. Owns: modes of files, and archives in which neither the
//! clock nor the user of the building machine shows.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Release, run_command};

/// The folder; gone when this is dropped.
#[derive(Debug)]
pub(super) struct Stage {
    root: PathBuf,
    epoch: String,
}

impl Stage {
    pub(super) fn new(release: &Release, name: &str) -> Result<Self> {
        let root = release.output.join(format!(".{name}-{}", std::process::id()));
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let stage = Self { root, epoch: release.epoch.clone() };
        stage.folder("", 0o755)?;
        Ok(stage)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Current path of a file of the package.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A folder, and those above it.
    pub(super) fn folder(&self, path: &str, mode: u32) -> Result<()> {
        let path = self.path(path);
        let above = path.ancestors().take_while(|it| it.starts_with(&self.root) && !it.exists());
        for folder in above.collect::<Vec<_>>().into_iter().rev() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            set_mode(folder, 0o755)?;
        }
        set_mode(&path, mode)
    }

    pub(super) fn write(&self, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
        if let Some((folder, _)) = path.rsplit_once('/')
            && !self.path(folder).exists()
        {
            self.folder(folder, 0o755)?;
        }
        let path = self.path(path);
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        set_mode(&path, mode)
    }

    pub(super) fn copy(&self, from: &Path, path: &str, mode: u32) -> Result<()> {
        let bytes = fs::read(from).with_context(|| from.display().to_string())?;
        self.write(path, &bytes, mode)
    }

    /// Compressed, as Debian wants its documents.
    pub(super) fn write_gz(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.write(path, bytes, 0o644)?;
        super::zip(&self.path(path)).map(drop)
    }

    pub(super) fn link(&self, path: &str, to: &str) -> Result<()> {
        let path = self.path(path);
        symlink(to, &path).with_context(|| path.display().to_string())
    }

    /// Archive of all files. The named folders are owned by that id, the others by root.
    pub(super) fn tar(&self, file: &Path, owned: &[(&str, u32)]) -> Result<()> {
        let add = |verb: &str, id: u32, paths: &[&str]| {
            let mut tar = Command::new("tar");
            tar.arg(verb).arg("--file").arg(file).arg("--directory").arg(&self.root);
            tar.args(["--format=ustar", "--sort=name", "--numeric-owner"]);
            tar.args([format!("--owner={id}"), format!("--group={id}")]);
            tar.arg(format!("--mtime=@{}", self.epoch));
            tar.args(
                owned.iter().filter(|_| id == 0).map(|(path, _)| format!("--exclude=./{path}")),
            );
            run_command(tar.args(paths))
        };
        add("--create", 0, &["."])?;
        for (path, id) in owned {
            add("--append", *id, &[&format!("./{path}")])?;
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A folder that stays is found and replaced by the next build.
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| path.display().to_string())
}
