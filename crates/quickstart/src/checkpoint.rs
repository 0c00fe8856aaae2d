//! The checkpoint file. Owns: its format, and that a reader finds the old one, the new one or a
//! clear complaint, never half of one. Does not know about: what is trained.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const FILE: &str = "quickstart.json";
const VERSION: u32 = 1;

/// State that a training resumes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Seed of the data.
    pub seed: u64,
    /// Steps done.
    pub step: u64,
    /// Learned weights.
    pub weights: Vec<f32>,
    /// Momentum of each weight.
    pub momentum: Vec<f32>,
}

impl Snapshot {
    /// A sum over every bit (FNV-1a), to notice a file that parses and yet is not what was written.
    fn checksum(&self) -> u64 {
        let numbers = self.weights.iter().chain(&self.momentum).map(|value| value.to_bits().into());
        [self.seed, self.step].into_iter().chain(numbers).fold(
            0xcbf2_9ce4_8422_2325,
            |sum, word| {
                word.to_le_bytes()
                    .iter()
                    .fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
            },
        )
    }
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    checksum: String,
    snapshot: Snapshot,
}

/// Result of reading the checkpoint.
#[derive(Debug)]
pub(crate) enum LoadedCheckpoint {
    /// No checkpoint.
    Nothing,
    /// A good one.
    Snapshot(Snapshot),
    /// An unusable checkpoint; it was moved out of the way.
    Damaged {
        /// Description of the damage.
        why: String,
        /// File that it was moved to.
        kept_as: PathBuf,
    },
}

/// Error of a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} {}: {source}; set ELASTANE_CHECKPOINT_DIR to a folder that can be written", path.display())]
pub(crate) struct Error {
    what: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error { what, path, source }
}

/// The folder a checkpoint is kept in.
#[derive(Debug)]
pub(crate) struct Vault {
    file: PathBuf,
}

impl Vault {
    /// Opens the folder, creating it if need be.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(failed("create", dir))?;
        Ok(Self { file: dir.join(FILE) })
    }

    /// File of the checkpoint.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the checkpoint. A checkpoint not shaped like `expected` counts as damaged.
    pub(crate) fn load(&self, expected: &Snapshot) -> Result<LoadedCheckpoint, Error> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(LoadedCheckpoint::Nothing);
            }
            Err(error) => return Err(failed("read", &self.file)(error)),
        };
        match understand(&bytes, expected) {
            Ok(snapshot) => Ok(LoadedCheckpoint::Snapshot(snapshot)),
            Err(why) => {
                let kept_as = self.set_aside()?;
                Ok(LoadedCheckpoint::Damaged { why, kept_as })
            }
        }
    }

    /// Moves a bad file to a name that is free, so that an earlier bad one is kept too.
    fn set_aside(&self) -> Result<PathBuf, Error> {
        let mut number = 1_u32;
        loop {
            let aside = self.file.with_extension(format!("damaged-{number}.json"));
            if !aside.exists() {
                fs::rename(&self.file, &aside).map_err(failed("set aside", &self.file))?;
                return Ok(aside);
            }
            number += 1;
        }
    }

    /// Replaces the checkpoint: written beside it, then renamed over it. It is not forced to the
    /// disk, because stopping must be quick; a power cut costs at most a damaged file, which is
    /// detected.
    pub(crate) fn save(&self, snapshot: &Snapshot) -> Result<(), Error> {
        let document = Document {
            version: VERSION,
            checksum: format!("{:016x}", snapshot.checksum()),
            snapshot: snapshot.clone(),
        };
        let new = self.file.with_extension("new");
        let write = || -> std::io::Result<()> {
            fs::write(&new, serde_json::to_vec(&document)?)?;
            fs::rename(&new, &self.file)
        };
        write().map_err(failed("write the checkpoint", &self.file))
    }
}

fn understand(bytes: &[u8], expected: &Snapshot) -> Result<Snapshot, String> {
    let document: Document = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if document.version != VERSION {
        return Err(format!("version {} instead of {VERSION}", document.version));
    }
    let snapshot = document.snapshot;
    let shape = |snapshot: &Snapshot| (snapshot.weights.len(), snapshot.momentum.len());
    if shape(&snapshot) != shape(expected) {
        return Err(format!("{:?} numbers instead of {:?}", shape(&snapshot), shape(expected)));
    }
    if document.checksum != format!("{:016x}", snapshot.checksum()) {
        return Err("checksum does not match".to_owned());
    }
    Ok(snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot { seed: 3, step: 41, weights: vec![0.1, -1.5e-7, 3.25], momentum: vec![0.0; 3] }
    }

    #[test]
    fn what_is_saved_is_loaded_bit_for_bit() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let vault = Vault::open(&dir.path().join("new/folder")).expect("opens");
        assert!(matches!(vault.load(&snapshot()), Ok(LoadedCheckpoint::Nothing)));
        vault.save(&snapshot()).expect("saves");
        match vault.load(&snapshot()) {
            Ok(LoadedCheckpoint::Snapshot(found)) => assert_eq!(found, snapshot()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_damaged_checkpoint_is_kept_aside() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let vault = Vault::open(dir.path()).expect("opens");
        let spoil: [fn(&str) -> String; 4] = [
            |text| text[..text.len() / 2].to_owned(),
            |text| text.replace("\"step\":41", "\"step\":42"),
            |text| text.replace("\"version\":1", "\"version\":9"),
            |text| text.replace("3.25", "3.25,1.0"),
        ];
        for (round, spoil) in spoil.into_iter().enumerate() {
            vault.save(&snapshot()).expect("saves");
            let good = fs::read_to_string(&vault.file).expect("text");
            let bad = spoil(&good);
            assert_ne!(good, bad);
            fs::write(&vault.file, &bad).expect("writes");
            match vault.load(&snapshot()) {
                Ok(LoadedCheckpoint::Damaged { kept_as, .. }) => {
                    assert_eq!(fs::read_to_string(kept_as).expect("kept"), bad, "round {round}");
                }
                other => panic!("{other:?}"),
            }
            assert!(!vault.file.exists());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("file");
        fs::write(&file, "").expect("writes");
        let error =
            Vault::open(&file.join("below")).expect_err("a file is not a folder").to_string();
        assert!(error.contains("ELASTANE_CHECKPOINT_DIR"), "{error}");
    }
}
