//! Files that a container is given before it starts. Owns: which, and the archive the daemon unpacks.
//! Refuses to know: what is in them.

use std::path::Path;

use engine::{Error, RunSpec, SecretPlace};

use crate::around;
use crate::container::{CHECKPOINT_DIR, HOSTFILE, address};

/// Size of a record of an archive, in bytes.
const BLOCK: usize = 512;
/// Longest path that a plain header holds, in bytes.
const PATH_BYTES_MAX: usize = 100;
const FILE: u8 = b'0';
const FOLDER: u8 = b'5';

/// The archive of a run's files, to be unpacked at `/`; none if it has none. With `open` everybody
/// may write to the folder of checkpoints, which the daemon makes as root's.
pub(crate) fn archive(spec: &RunSpec, open: bool) -> Result<Option<Vec<u8>>, Error> {
    let mut archive = Vec::new();
    if open {
        push(&mut archive, Path::new(CHECKPOINT_DIR), FOLDER, 0o1777, b"")?;
    }
    let own_address = |member: &engine::Member| address(&spec.workload_name, member);
    if let Some(hosts) = spec.gang.as_ref().and_then(|gang| gang.hostfile(&own_address)) {
        push(&mut archive, Path::new(HOSTFILE), FILE, 0o644, hosts.as_bytes())?;
    }
    for secret in &spec.secrets {
        if let SecretPlace::File { path, mode } = &secret.to {
            push(&mut archive, path, FILE, *mode, secret.value.as_bytes())?;
        }
    }
    for (path, mode, text) in around::files(spec) {
        push(&mut archive, &path, FILE, mode, text.as_bytes())?;
    }
    if archive.is_empty() {
        return Ok(None);
    }
    // Two empty records are the end.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(Some(archive))
}

/// The archive of a file system with nothing in it but a place for what is passing.
pub(crate) fn empty_root() -> Result<Vec<u8>, Error> {
    let mut archive = Vec::new();
    push(&mut archive, Path::new("tmp"), FOLDER, 0o1777, b"")?;
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

/// Adds a file or folder (POSIX.1-1988, which everybody reads).
fn push(
    archive: &mut Vec<u8>,
    path: &Path,
    kind: u8,
    mode: u32,
    bytes: &[u8],
) -> Result<(), Error> {
    let name = path.to_string_lossy();
    let name = name.trim_start_matches('/');
    if name.is_empty() || name.len() > PATH_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "the path `{}` of a file is not allowed; it must have 1 to {PATH_BYTES_MAX} bytes",
            path.display()
        )));
    }
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, &format!("{:07o}", mode & 0o7777));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", bytes.len()));
    put(136, "00000000000");
    put(148, "        ");
    put(257, "ustar");
    put(263, "00");
    header[156] = kind;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(header);
    archive.extend(bytes);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use engine::Secret;

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
        let archive = archive(&spec, true).expect("paths are short").expect("there are files");
        let mut tar = Command::new("tar");
        let tar = tar.args(["--numeric-owner", "-tvf", "-"]);
        let mut tar = tar.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tar");
        tar.stdin.take().expect("piped").write_all(&archive).expect("read");
        let told = String::from_utf8(tar.wait_with_output().expect("tar").stdout).expect("text");
        let lines: Vec<Vec<&str>> =
            told.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
        assert_eq!((lines[0][0], lines[0][5]), ("drwxrwxrwt", "elastane/checkpoint"));
        assert_eq!((lines[1][0], lines[1][1], lines[1][2]), ("-r--------", "0/0", "4"));
        assert_eq!((lines[1][5], lines.len()), ("etc/deep/key", 2));
    }

    #[test]
    fn a_run_without_files_has_no_archive_and_no_path_is_cut() {
        assert_eq!(archive(&spec(), false).expect("nothing"), None);
        let mut spec = spec();
        let place = SecretPlace::File { path: "x".repeat(101).into(), mode: 0o400 };
        spec.secrets = vec![Secret { to: place, value: String::new() }];
        assert!(archive(&spec, false).is_err());
    }
}
