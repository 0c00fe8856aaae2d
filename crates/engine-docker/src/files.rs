//! Files that a container gets before it starts. Owns: which, and the archive that the daemon
//! unpacks. Does not know their content.

use std::io;
use std::path::Path;

use engine::{Error, RunSpec, SecretPlace};
use tar::{Builder, EntryType, Header};

use crate::names::{OWN_DIR, address};
use crate::user::ContainerUser;

/// The archives of a run's files, and where each is unpacked. Files of every run are in its
/// volume, which is writable even if the root file system is not; the daemon creates it as root.
pub(crate) fn archives(
    spec: &RunSpec,
    who: ContainerUser,
) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let root = (0, 0);
    let mut own = Archive::default();
    own.add(Path::new("checkpoint"), EntryType::Directory, 0o1777, root, b"")?;
    let own_address = |member: &engine::Member| address(&spec.workload_name, member);
    if let Some(hosts) = spec.gang.as_ref().and_then(|gang| gang.hostfile(&own_address)) {
        own.add(Path::new("hostfile"), EntryType::Regular, 0o644, root, hosts.as_bytes())?;
    }
    let mut others = Archive::default();
    for secret in &spec.secrets {
        if let SecretPlace::File { path, mode } = &secret.to {
            others.add(path, EntryType::Regular, *mode, who.ids(), secret.value.as_bytes())?;
        }
    }
    let all =
        [(OWN_DIR, own), ("/", others)].into_iter().filter(|(_, archive)| !archive.is_empty());
    all.map(|(folder, archive)| Ok((folder, archive.finish()?))).collect()
}

/// Files and folders as an archive for the daemon.
pub(crate) struct Archive(Builder<Vec<u8>>);

impl Default for Archive {
    fn default() -> Self {
        Self(Builder::new(Vec::new()))
    }
}

impl Archive {
    fn is_empty(&self) -> bool {
        self.0.get_ref().is_empty()
    }

    /// Adds a file or folder of a user and group.
    pub(crate) fn add(
        &mut self,
        path: &Path,
        kind: EntryType,
        mode: u32,
        owner: (u32, u32),
        bytes: &[u8],
    ) -> Result<(), Error> {
        let mut header = header(kind, mode, owner, bytes.len() as u64);
        let added = self.0.append_data(&mut header, relative(path), bytes);
        added.map_err(|error| invalid(path, &error))
    }

    /// Adds a symbolic link of root's.
    pub(crate) fn link(&mut self, path: &Path, to: &str) -> Result<(), Error> {
        let mut header = header(EntryType::Symlink, 0o777, (0, 0), 0);
        let added = header
            .set_link_name_literal(to)
            .and_then(|()| self.0.append_data(&mut header, relative(path), io::empty()));
        added.map_err(|error| invalid(path, &error))
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, Error> {
        let finished = self.0.into_inner();
        finished.map_err(|source| Error::Io { what: "end an archive".to_owned(), source })
    }
}

fn invalid(path: &Path, error: &io::Error) -> Error {
    Error::Invalid(format!("the path `{}` of a file is not allowed: {error}", path.display()))
}

/// Names in an archive have no leading slash.
pub(crate) fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// The metadata of a file or folder in an archive.
pub(crate) fn header(kind: EntryType, mode: u32, owner: (u32, u32), size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode & 0o7777);
    header.set_uid(owner.0.into());
    header.set_gid(owner.1.into());
    header.set_size(size);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use engine::{Secret, User};

    use super::*;
    use crate::container::tests::spec;

    #[test]
    fn tar_reads_what_is_written() {
        let mut spec = spec();
        let place = SecretPlace::File { path: "/etc/deep/key".into(), mode: 0o400 };
        spec.secrets = vec![
            Secret { to: place, value: "hush".to_owned() },
            Secret { to: SecretPlace::Variable("A".to_owned()), value: "b".to_owned() },
        ];
        spec.container.user = User { uid: Some(1234), gid: Some(3_000_000_000), groups: vec![] };
        let [own, others] =
            &archives(&spec, ContainerUser::of(&spec, "")).expect("paths are short")[..]
        else {
            panic!("files in the volume and beside it")
        };
        assert_eq!((own.0, listed(&own.1)), ("/elastane", "drwxrwxrwt 0/0 0 checkpoint\n".into()));
        let key = "-r-------- 1234/3000000000 4 etc/deep/key\n".to_owned();
        assert_eq!((others.0, listed(&others.1)), ("/", key));
    }

    /// Permissions, owner, size and path, as `tar` reads them.
    fn listed(archive: &[u8]) -> String {
        let mut tar = Command::new("tar");
        let tar = tar.args(["--numeric-owner", "-tvf", "-"]);
        let mut tar = tar.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tar");
        tar.stdin.take().expect("piped").write_all(archive).expect("read");
        let told = String::from_utf8(tar.wait_with_output().expect("tar").stdout).expect("text");
        let words =
            |line: &str| line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let line = |line: &str| match &words(line)[..] {
            [mode, owner, size, _day, _hour, path] => format!("{mode} {owner} {size} {path}\n"),
            other => panic!("{other:?}"),
        };
        told.lines().map(line).collect()
    }

    #[test]
    fn a_long_path_is_kept_and_one_that_leads_elsewhere_is_refused() {
        let with = |path: String| {
            let mut spec = spec();
            let place = SecretPlace::File { path: path.into(), mode: 0o400 };
            spec.secrets = vec![Secret { to: place, value: String::new() }];
            archives(&spec, ContainerUser::of(&spec, ""))
        };
        let long = "x".repeat(101);
        assert!(listed(&with(format!("/{long}")).unwrap()[1].1).ends_with(&format!(" {long}\n")));
        assert!(with("/etc/../../x".to_owned()).is_err());
    }
}
