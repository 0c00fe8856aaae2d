//! Files that a container is given before it starts. Owns: which, and the archive the daemon unpacks.
//! Refuses to know: what is in them.

use std::path::Path;

use engine::{Error, RunSpec, SecretPlace};

use crate::container::{OWN_DIR, address};
use crate::user::Who;

/// Size of a record of an archive, in bytes.
pub(crate) const BLOCK: usize = 512;
/// Longest path that a plain header holds, in bytes.
pub(crate) const PATH_BYTES_MAX: usize = 100;
pub(crate) const FILE: u8 = b'0';
pub(crate) const LINK: u8 = b'2';
pub(crate) const FOLDER: u8 = b'5';

/// The archives of a run's files, and where each is unpacked. What every run has is in its volume, which
/// may be written to also where the rest may not; the daemon makes that as root's.
pub(crate) fn archives(spec: &RunSpec, who: Who) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let root = (0, 0);
    let mut own = Archive::default();
    own.add(Path::new("checkpoint"), FOLDER, 0o1777, root, b"")?;
    let own_address = |member: &engine::Member| address(&spec.workload_name, member);
    if let Some(hosts) = spec.gang.as_ref().and_then(|gang| gang.hostfile(&own_address)) {
        own.add(Path::new("hostfile"), FILE, 0o644, root, hosts.as_bytes())?;
    }
    let mut others = Archive::default();
    for secret in &spec.secrets {
        if let SecretPlace::File { path, mode } = &secret.to {
            others.add(path, FILE, *mode, who.ids(), secret.value.as_bytes())?;
        }
    }
    let all =
        [(OWN_DIR, own), ("/", others)].into_iter().filter(|(_, archive)| !archive.0.is_empty());
    Ok(all.map(|(folder, archive)| (folder, archive.finish())).collect())
}

/// Files and folders as the daemon takes them (POSIX.1-1988 with GNU's large numbers, which everybody reads).
#[derive(Debug, Default)]
pub(crate) struct Archive(Vec<u8>);

impl Archive {
    /// Adds a file or folder of a user and group.
    pub(crate) fn add(
        &mut self,
        path: &Path,
        kind: u8,
        mode: u32,
        owner: (u32, u32),
        bytes: &[u8],
    ) -> Result<(), Error> {
        let entry = Entry { kind, mode, owner, ..Entry::of("") };
        self.entry(path, entry, bytes)
    }

    /// Adds a symbolic link of root's.
    pub(crate) fn link(&mut self, path: &Path, to: &str) -> Result<(), Error> {
        if to.len() > PATH_BYTES_MAX {
            return Err(Error::Invalid(format!("a link to `{to}` is too long")));
        }
        let entry = Entry { kind: LINK, mode: 0o777, link: to.as_bytes(), ..Entry::of("") };
        self.entry(path, entry, b"")
    }

    /// Adds an entry by its path.
    fn entry(&mut self, path: &Path, entry: Entry<'_>, bytes: &[u8]) -> Result<(), Error> {
        let name = path.to_string_lossy();
        let name = name.trim_start_matches('/');
        if name.is_empty() || name.len() > PATH_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "the path `{}` of a file is not allowed; it must have 1 to {PATH_BYTES_MAX} bytes",
                path.display()
            )));
        }
        let size = bytes.len() as u64;
        self.0.extend(Entry { name: name.as_bytes(), size, ..entry }.header());
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }

    /// Two empty records are the end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

/// What an archive says of one file or folder; names have at most [`PATH_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: u8,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    /// Bytes that follow.
    pub(crate) size: u64,
    /// What a link leads to.
    pub(crate) link: &'a [u8],
}

impl<'a> Entry<'a> {
    /// An empty file of root's.
    pub(crate) const fn of(name: &'a str) -> Self {
        let name = name.as_bytes();
        Self { name, kind: FILE, mode: 0o644, owner: (0, 0), size: 0, link: b"" }
    }

    /// The record before its contents.
    pub(crate) fn header(&self) -> [u8; BLOCK] {
        let mut header = [0; BLOCK];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, self.name);
        put(100, format!("{:07o}", self.mode & 0o7777).as_bytes());
        // As binary numbers: in octal they would end at 2 million and 8 GiB.
        for (at, length, number) in [
            (108, 8, u64::from(self.owner.0)),
            (116, 8, u64::from(self.owner.1)),
            (124, 12, self.size),
        ] {
            let bytes = number.to_be_bytes();
            put(at, &[0x80]);
            put(at + 4, &bytes[bytes.len() - (length - 4)..]);
        }
        put(136, b"00000000000");
        put(148, b"        ");
        put(157, self.link);
        put(257, b"ustar");
        put(263, b"00");
        header[156] = self.kind;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header
    }
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
        let [own, others] = &archives(&spec, Who::of(&spec, "")).expect("paths are short")[..]
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
    fn no_path_is_cut() {
        let mut spec = spec();
        let place = SecretPlace::File { path: "x".repeat(101).into(), mode: 0o400 };
        spec.secrets = vec![Secret { to: place, value: String::new() }];
        assert!(archives(&spec, Who::of(&spec, "")).is_err());
    }
}
