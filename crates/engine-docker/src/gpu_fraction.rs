//! GPU fractions of containers. Owns: what the container of a run gets for its part of a GPU or for
//! simulated ones (mounts, search paths, a look before its command starts), and the folder of its
//! pages. Does not know about: how limits are kept, and when a container is made.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::models::{ContainerCreateBody, Mount, MountType};
use engine::{Error, ListedRun, RunKey, RunSpec};
use engine_fractions::{Added, Fraction, FractionOptions, Fractions, Runs};
use trees::Trash;

use crate::image::ImageDefaults;
use crate::program::Program;
use crate::run_registry::has_ended;

/// The folder of the platform in a container. The user mounts nothing below it.
pub(crate) const PLATFORM_DIR: &str = "/run/elastane";
/// Where a container has the server's program with its libraries.
const PROGRAM_DIR: &str = "/run/elastane/program";
/// Programs of a container with simulated GPUs, and where it finds them.
const PROGRAMS: [&str; 2] = ["nvidia-smi", "gpu-check"];
const PROGRAMS_DIR: &str = "/usr/local/bin";
/// Variable with the folders that loaders search first.
const SEARCH: &str = "LD_LIBRARY_PATH";
/// File in the folder of a run with its [`Fraction`], for the next server.
const RECORD: &str = "run.json";

/// The GPU fractions of this server's containers.
#[derive(Debug)]
pub(crate) struct GpuFractions {
    pub(crate) fractions: Fractions,
    /// The folders of runs.
    runs: PathBuf,
    /// The scripts of [`PROGRAMS`].
    scripts: PathBuf,
    program: Program,
    trash: Arc<Trash>,
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let what = what.into();
    move |source| Error::Io { what, source }
}

pub(crate) fn bind((from, to): &(PathBuf, PathBuf), read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(from.display().to_string()),
        target: Some(to.display().to_string()),
        read_only: Some(read_only),
        ..Mount::default()
    }
}

impl GpuFractions {
    /// Writes what containers get below the state directory, and tries the limits. Blocks.
    ///
    /// # Errors
    /// It cannot be written, or what the administrator chose cannot be used here.
    pub(crate) fn open(
        state: &Path,
        options: Option<&FractionOptions>,
        trash: Arc<Trash>,
    ) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(failed("find this program's file"))?;
        let folder = state.join("fraction");
        let fractions = match options {
            Some(options) => Fractions::open(&folder, &program, Runs::Containers, options)?,
            None => Fractions::none("nothing is started"),
        };
        let program = Program::this(&[]).map_err(failed("find this program's libraries"))?;
        let (runs, scripts) = (state.join("container-fractions"), folder.join("programs"));
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(&runs).map_err(failed("make a folder"))?;
        fs::create_dir_all(&scripts).map_err(failed("make a folder"))?;
        for name in PROGRAMS {
            let path = scripts.join(name);
            let text = program.script_in(Path::new(PROGRAM_DIR), name);
            let write = || {
                fs::write(&path, text)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            };
            write().map_err(failed(format!("write {}", path.display())))?;
        }
        Ok(Self { fractions, runs, scripts, program, trash })
    }

    /// The folder of a run.
    fn folder(&self, key: RunKey) -> PathBuf {
        self.runs.join(key.to_string())
    }

    /// The folder of its pages, which its container sees.
    pub(crate) fn pages(&self, key: RunKey) -> PathBuf {
        self.folder(key).join("pages")
    }

    /// Additions to a run for its GPUs; `None` if it needs none.
    pub(crate) fn of(&self, spec: &RunSpec) -> Result<Option<Added>, Error> {
        self.fractions.of(spec, &self.pages(spec.key))
    }

    /// Creates the folders and files that the container mounts. Blocks while a simulated GPU
    /// starts.
    pub(crate) fn prepare(&self, key: RunKey, fraction: &Fraction) -> Result<(), Error> {
        let pages = self.pages(key);
        fs::create_dir_all(&pages).map_err(failed(format!("make {}", pages.display())))?;
        self.fractions.prepare(key, fraction, &pages, None)?;
        let record = self.folder(key).join(RECORD);
        let text = serde_json::to_vec(fraction).map_err(io::Error::other);
        let written = text.and_then(|text| fs::write(&record, text));
        written.map_err(failed(format!("write {}", record.display())))
    }

    /// Follows the continuing runs of an earlier server, and deletes folders of runs without a
    /// container. Blocks.
    pub(crate) fn adopt(&self, containers: &[ListedRun]) -> Result<(), Error> {
        let read = || failed(format!("read {}", self.runs.display()));
        for entry in fs::read_dir(&self.runs).map_err(read())? {
            let entry = entry.map_err(read())?;
            let key = entry.file_name().to_str().and_then(|name| name.parse::<RunKey>().ok());
            if !containers.iter().any(|run| Some(run.key) == key) {
                discard(&self.trash, &entry.path());
            }
        }
        for run in containers.iter().filter(|run| !has_ended(&run.state)) {
            let key = run.key;
            let adopted = match self.recorded(key) {
                Ok(Some(fraction)) => {
                    let adopted = self.fractions.adopt(key, &fraction, &self.pages(key));
                    adopted.map_err(|error| crate::chain(&error))
                }
                Ok(None) => Ok(()),
                Err(why) => Err(why),
            };
            if let Err(why) = adopted {
                tracing::warn!("what {key} has of GPUs is not measured: {why}");
            }
        }
        Ok(())
    }

    /// The run's fraction, as the server that started the run recorded it; `None` without a record.
    fn recorded(&self, key: RunKey) -> Result<Option<Fraction>, String> {
        match fs::read(self.folder(key).join(RECORD)) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The container of a run is gone.
    pub(crate) fn forget(&self, key: RunKey) {
        self.fractions.forget(key);
        discard(&self.trash, &self.folder(key));
    }

    /// Completes a container. A container with limits or simulated GPUs runs the check before its
    /// command, which is the image's if the run has none.
    pub(crate) fn complete(
        &self,
        body: &mut ContainerCreateBody,
        added: &Added,
        image: &ImageDefaults,
    ) {
        let Added { fraction, delivery } = added;
        let host = body.host_config.get_or_insert_default();
        let mounts = host.mounts.get_or_insert_default();
        mounts.extend(delivery.mounts.iter().map(|pair| bind(pair, true)));
        mounts.extend(delivery.writable.iter().map(|pair| bind(pair, false)));
        let inside = Path::new(PROGRAM_DIR);
        let simulated = !fraction.simulated.is_empty();
        let look = match fraction.check_before_command() {
            Some(look) => look,
            None if simulated => vec![PROGRAMS[1].to_owned()],
            None => return,
        };
        mounts.extend(self.program.files_in(inside).iter().map(|pair| bind(pair, true)));
        if simulated {
            let script = |name| (self.scripts.join(name), Path::new(PROGRAMS_DIR).join(name));
            mounts.extend(PROGRAMS.map(script).iter().map(|pair| bind(pair, true)));
        }
        let command = image.command(body);
        if command.is_empty() {
            return; // the daemon says so
        }
        let search = delivery.before.get(SEARCH).map(String::as_str);
        let mut entrypoint = self.program.argv_in(inside, search);
        entrypoint.extend(look);
        entrypoint.push("--".to_owned());
        body.entrypoint = Some(entrypoint);
        body.cmd = Some(command);
    }
}

/// Discards the files of a run.
pub(crate) fn discard(trash: &Trash, path: &Path) {
    if let Err(error) = trash.discard(path) {
        tracing::warn!("cannot delete {}: {error}", path.display());
    }
}
