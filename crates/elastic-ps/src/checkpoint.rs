//! Checkpoints on a disk. Owns: the files, that one is complete or absent, the removal of old ones.
//! Does not know about: when one is taken, or which one a job restores.
//!
//! A file is written beside its place, synced, and renamed. Servers may have a folder each, or one
//! for all. A server that restores a version reads its own file, and removes its later ones, so no
//! attempt at a version is combined with another. A job that starts from a folder takes it only if
//! the files of all servers are in it, valid, and of the same job, generation and version.

use std::io;
use std::path::{Path, PathBuf};

use elastic_proto::v1::{CheckpointBody, CheckpointHeader};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use crate::files;
use crate::model::{Model, ModelError, Place};

/// The form of files without embedding tables, and the one of files that may have some: a build
/// that knows only the first would drop them.
pub(crate) const FORM: u32 = 1;
pub(crate) const FORM_WITH_TABLES: u32 = 2;
const DIGEST: usize = 32;
/// Bytes of a file that contain its header for certain.
const HEADER_BYTES_MAX: u64 = 4096;

/// Error of a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read or written.
    #[error("checkpoint {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not a valid checkpoint.
    #[error("checkpoint {path}: {what}")]
    Invalid {
        /// The file or folder.
        path: PathBuf,
        /// Description of the fault.
        what: String,
    },
    /// The folder has no complete checkpoint to start from.
    #[error("{path} has no whole checkpoint (version-V with variables-I-of-N.ckpt for each I)")]
    None {
        /// The folder.
        path: PathBuf,
    },
    /// The server has no folder for checkpoints.
    #[error("version {version} cannot be restored: this server has no folder of checkpoints")]
    NoFolder {
        /// Version that the master ordered.
        version: u64,
    },
}

fn at(path: &Path) -> impl Fn(io::Error) -> CheckpointError + '_ {
    |source| CheckpointError::Io { path: path.to_owned(), source }
}

fn invalid(path: &Path, what: impl Into<String>) -> CheckpointError {
    CheckpointError::Invalid { path: path.to_owned(), what: what.into() }
}

fn file(version: &Path, (index, servers): Place) -> PathBuf {
    version.join(format!("variables-{index}-of-{servers}.ckpt"))
}

fn folder(root: &Path, version: u64) -> PathBuf {
    root.join(format!("version-{version}"))
}

/// Checks the settings of a folder for checkpoints, without reading it.
pub(crate) fn check(root: impl AsRef<Path>) -> Result<(), CheckpointError> {
    files::check(root.as_ref()).map_err(at(root.as_ref()))
}

/// Writes the part of one server. The file is complete, also after a power cut, or absent.
pub(crate) fn write(
    root: &Path,
    header: &CheckpointHeader,
    body: &CheckpointBody,
) -> Result<(), CheckpointError> {
    let path = file(&folder(root, header.version), (header.index, header.servers));
    // Each attempt at a version has its own partial file.
    let beside = path.with_extension(format!("{}.partial", header.model_generation));
    let head = header.encode_to_vec();
    // A header is a few numbers and the id of a job.
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes();
    let body = body.encode_to_vec();
    let mut digest = Sha256::new();
    [&length[..], &head, &body].iter().for_each(|part| digest.update(part));
    let parts = [&digest.finalize()[..], &length, &head, &body];
    files::write(&path, &beside, &parts).map_err(at(&path))
}

/// Reads the part of one server, if it is what it should be.
fn read(path: &Path) -> Result<(CheckpointHeader, CheckpointBody), CheckpointError> {
    let bytes = files::read(path, None).map_err(at(path))?;
    let Some((digest, rest)) = bytes.split_at_checked(DIGEST) else {
        return Err(invalid(path, "it is cut short"));
    };
    if Sha256::digest(rest)[..] != *digest {
        return Err(invalid(path, "its content does not match its digest: it is damaged"));
    }
    let (header, body) = parts(rest).ok_or_else(|| invalid(path, "it is cut short"))?;
    let malformed = |error: prost::DecodeError| invalid(path, error.to_string());
    let header = CheckpointHeader::decode(header).map_err(malformed)?;
    if !(FORM..=FORM_WITH_TABLES).contains(&header.form) {
        let form = header.form;
        let what =
            format!("form {form}; this build reads forms up to {FORM_WITH_TABLES}: update it");
        return Err(invalid(path, what));
    }
    Ok((header, CheckpointBody::decode(body).map_err(malformed)?))
}

fn parts(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = rest.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// The header alone, without reading the content.
fn header(path: &Path) -> Option<CheckpointHeader> {
    let start = files::read(path, Some(HEADER_BYTES_MAX)).ok()?;
    CheckpointHeader::decode(parts(start.get(DIGEST..)?)?.0).ok()
}

/// Model that a server of this job has written itself.
pub(crate) fn load_own(
    root: &Path,
    version: u64,
    job_id: &str,
    place: Place,
) -> Result<Model, CheckpointError> {
    let path = file(&folder(root, version), place);
    let (header, body) = read_as(&path, version, place)?;
    if header.job_id != job_id {
        return Err(invalid(&path, format!("it is of another job, {}", header.job_id)));
    }
    Model::of_bodies(vec![body], place).map_err(|error| invalid(&path, error.to_string()))
}

/// Contents of a file whose header matches its name.
fn read_as(
    path: &Path,
    version: u64,
    (index, servers): Place,
) -> Result<(CheckpointHeader, CheckpointBody), CheckpointError> {
    let (header, body) = read(path)?;
    if (header.index, header.servers, header.version) != (index, servers, version) {
        return Err(invalid(path, "its header is that of another file"));
    }
    Ok((header, body))
}

/// Part of a model for this place, from a checkpoint of any job and any number of servers.
fn load(root: &Path, version: u64, place: Place) -> Result<Model, CheckpointError> {
    let folder = folder(root, version);
    let servers = servers_of(&folder)?;
    let mut bodies = Vec::new();
    let mut first: Option<CheckpointHeader> = None;
    for index in 0..servers {
        let path = file(&folder, (index, servers));
        let (header, body) = read_as(&path, version, (index, servers))?;
        let first = first.get_or_insert_with(|| header.clone());
        let attempt = |of: &CheckpointHeader| (of.job_id.clone(), of.model_generation);
        if attempt(first) != attempt(&header) {
            return Err(invalid(&path, "it and file 0 are of different attempts"));
        }
        bodies.push(body);
    }
    let wrong = |error: ModelError| invalid(&folder, error.to_string());
    Model::of_bodies(bodies, place).map_err(wrong)
}

/// Number of servers that have written a folder.
fn servers_of(folder: &Path) -> Result<u32, CheckpointError> {
    let servers = names(folder)?.iter().find_map(|name| {
        let (_, servers) =
            name.strip_prefix("variables-")?.strip_suffix(".ckpt")?.split_once("-of-")?;
        servers.parse().ok()
    });
    servers.ok_or_else(|| invalid(folder, "it has no file variables-I-of-N.ckpt"))
}

fn names(folder: &Path) -> Result<Vec<String>, CheckpointError> {
    files::names(folder).map_err(at(folder))
}

/// All versions in a folder, whole or not, oldest first.
fn versions(root: &Path) -> Result<Vec<u64>, CheckpointError> {
    let names = names(root)?;
    let mut versions: Vec<u64> = names.iter().filter_map(|name| version_of(name)).collect();
    versions.sort_unstable();
    Ok(versions)
}

fn version_of(name: &str) -> Option<u64> {
    name.strip_prefix("version-")?.parse().ok()
}

/// The newest that is whole, of any job, with its version; or the one whose own folder this is.
pub(crate) fn newest(root: &Path, place: Place) -> Result<(u64, Model), CheckpointError> {
    let versions = versions(root)?;
    let own = root.file_name().and_then(|name| version_of(name.to_str()?));
    // A folder of checkpoints may have such a name too.
    if let (true, Some(version), Some(parent)) = (versions.is_empty(), own, root.parent()) {
        return load(parent, version, place).map(|model| (version, model));
    }
    for version in versions.into_iter().rev() {
        match load(root, version, place) {
            Ok(model) => return Ok((version, model)),
            Err(error) => tracing::warn!(%error, "this checkpoint is passed over"),
        }
    }
    Err(CheckpointError::None { path: root.to_owned() })
}

/// The versions of which a server has written its file for this job, oldest first.
pub(crate) fn written(root: &Path, job_id: &str, place: Place) -> Vec<u64> {
    let is_own = |version: &u64| {
        let header = header(&file(&folder(root, *version), place));
        header.is_some_and(|header| header.job_id == job_id)
    };
    versions(root).unwrap_or_default().into_iter().filter(is_own).collect()
}

/// Removes the file of a server, and the folder with the last one. A missing file is no error.
pub(crate) fn remove(root: &Path, version: u64, place: Place) -> Result<(), CheckpointError> {
    let path = file(&folder(root, version), place);
    files::remove(&path).map_err(at(&path))
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::optimizer::Rule;
    use elastic_proto::v1::{Optimizer, Sgd};

    use std::fs;

    use super::*;

    fn save(root: &Path, version: u64) {
        let rule = Some(Rule::Sgd(Sgd { momentum: 0.0, nesterov: false }));
        let header =
            CheckpointHeader { form: FORM, version, servers: 1, ..CheckpointHeader::default() };
        let body = CheckpointBody {
            optimizer: Some(Optimizer { learning_rate: 0.5, rule }),
            ..CheckpointBody::default()
        };
        write(root, &header, &body).expect("written");
    }

    #[test]
    fn a_job_begins_from_a_folder_of_checkpoints_or_from_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let found = |root: &Path| newest(root, (0, 1)).map(|(version, _)| version);
        // As a folder of all checkpoints may be called.
        let root = folder.path().join("version-2");
        save(&root, 30);
        save(&root, 50);
        assert_eq!(found(&root).expect("the newest"), 50);
        assert_eq!(found(&root.join("version-30")).expect("that one"), 30);
        fs::create_dir(folder.path().join("version-7")).expect("a folder");
        let none = found(&folder.path().join("version-7")).expect_err("it is empty").to_string();
        assert!(none.contains("version-7"), "{none}");
    }
}
