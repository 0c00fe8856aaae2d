//! The libraries as files. Owns: where each is, that a file is whole before a program can find it,
//! and where the real driver has its own. Does not know about: which run gets which.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fraction_libs::{PRELOAD, PROXY_CUDA, PROXY_NVML, SIMULATED_CUDA, SIMULATED_NVML, with_real};

use crate::{Error, failed};

/// The names that programs ask the loader for.
pub(crate) const NAMES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// The files of the driver that is installed, without links, in the order of [`NAMES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealDriver(pub [PathBuf; 2]);

impl RealDriver {
    /// Paths at which the loader of this machine finds it; `None` without a driver.
    #[must_use]
    pub fn find() -> Option<Self> {
        let listed = ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"].into_iter().find_map(
            |program| {
                let mut command = Command::new(program);
                let output = command.arg("-p").stdin(Stdio::null()).stderr(Stdio::null()).output();
                output.ok().filter(|output| output.status.success())
            },
        )?;
        Self::listed(&String::from_utf8_lossy(&listed.stdout))
    }

    fn listed(cache: &str) -> Option<Self> {
        let find = |name: &str| {
            let line = |line: &str| {
                let (found, path) = line.trim().split_once(" => ")?;
                let is = found.split(' ').next() == Some(name) && found.contains("x86-64");
                is.then(|| PathBuf::from(path).canonicalize().ok()).flatten()
            };
            cache.lines().find_map(line)
        };
        let [cuda, nvml] = NAMES.map(find);
        Some(Self([cuda?, nvml?]))
    }
}

/// Path of the libraries in containers.
const IN_CONTAINERS: &str = "/run/elastane/gpu/lib";
/// File with libraries that glibc's loader loads into every program of a container, regardless of
/// the environment.
const PRELOAD_LIST: &str = "ld.so.preload";

/// The libraries in a folder of the server, which every account may read.
#[derive(Debug, Clone)]
pub struct Libraries {
    folder: PathBuf,
    /// Path of the folder as runs see it.
    seen: PathBuf,
    real: Option<RealDriver>,
}

impl Libraries {
    /// Writes libraries that are missing or differ. A running program keeps the one it has loaded.
    ///
    /// # Errors
    /// A file cannot be written, or the path of the folder does not fit.
    pub fn write(folder: &Path, real: Option<RealDriver>) -> Result<Self, Error> {
        Self { folder: folder.to_owned(), seen: folder.to_owned(), real }.write_all()
    }

    /// [`Self::write`] for containers, which see the folder at another path and have their own
    /// driver.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn write_for_containers(folder: &Path) -> Result<Self, Error> {
        let all = Self { folder: folder.to_owned(), seen: IN_CONTAINERS.into(), real: None };
        let list = format!("{}\n", all.preload().display());
        put(&folder.join(PRELOAD_LIST), list.as_bytes())?;
        all.write_all()
    }

    fn write_all(self) -> Result<Self, Error> {
        let libraries = self;
        let put = |path: &Path, bytes: &[u8]| put(&libraries.outside(path), bytes);
        let simulated = libraries.simulated();
        put(&libraries.preload(), PRELOAD)?;
        put(&simulated.join(NAMES[0]), SIMULATED_CUDA)?;
        put(&simulated.join(NAMES[1]), SIMULATED_NVML)?;
        let mut fronts =
            vec![(libraries.before_simulated(), NAMES.map(|name| simulated.join(name)))];
        if let Some(RealDriver(files)) = &libraries.real {
            fronts.push((libraries.before_real(), files.clone()));
            let [cuda, nvml] = libraries.real_moved();
            put(&cuda, b"")?;
            put(&nvml, b"")?;
            fronts.push((libraries.in_place(), [cuda, nvml]));
        }
        for (folder, behind) in fronts {
            for ((name, proxy), real) in NAMES.iter().zip([PROXY_CUDA, PROXY_NVML]).zip(behind) {
                let library = with_real(proxy, &real).ok_or(Error::Path(real))?;
                put(&folder.join(name), &library)?;
            }
        }
        Ok(libraries)
    }

    /// Where the server has what runs see at this path.
    fn outside(&self, seen: &Path) -> PathBuf {
        seen.strip_prefix(&self.seen)
            .map_or_else(|_| seen.to_owned(), |path| self.folder.join(path))
    }

    /// The folder, and where runs see it.
    pub(crate) fn mount(&self) -> (PathBuf, PathBuf) {
        (self.folder.clone(), self.seen.clone())
    }

    /// File with the list of preloaded libraries, for containers.
    pub(crate) fn preload_list(&self) -> PathBuf {
        self.folder.join(PRELOAD_LIST)
    }

    /// The driver that is installed.
    #[must_use]
    pub fn real(&self) -> Option<&RealDriver> {
        self.real.as_ref()
    }

    /// Path of the preloaded library.
    pub(crate) fn preload(&self) -> PathBuf {
        self.seen.join("libelastane-fraction.so")
    }

    /// The folder of the simulated driver.
    pub(crate) fn simulated(&self) -> PathBuf {
        self.seen.join("simulated")
    }

    /// The folder of the proxies in front of the simulated driver.
    pub(crate) fn before_simulated(&self) -> PathBuf {
        self.seen.join("limited-simulated")
    }

    /// The folder of the proxies in front of the installed driver, for a search path.
    pub(crate) fn before_real(&self) -> PathBuf {
        self.seen.join("limited")
    }

    /// The folder of the proxies that are mounted over the files of the installed driver.
    pub(crate) fn in_place(&self) -> PathBuf {
        self.seen.join("mounted")
    }

    /// Where those find the files they are mounted over.
    pub(crate) fn real_moved(&self) -> [PathBuf; 2] {
        NAMES.map(|name| self.seen.join("real").join(name))
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            open_folder(folder)?;
        }
        let aside = path.with_extension("new");
        fs::write(&aside, bytes)?;
        fs::set_permissions(&aside, fs::Permissions::from_mode(0o755))?;
        fs::rename(&aside, path)
    };
    write().map_err(failed("write", path))
}

/// Makes a folder that every account may enter and read, whatever the umask.
///
/// # Errors
/// The system's error.
pub fn open_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// Makes the folder over which the pages of a run are mounted. It and its parent, which an earlier
/// server may have left closed, are open to every account.
///
/// # Errors
/// The system's error.
pub fn open_point(point: &Path) -> io::Result<()> {
    point.parent().map_or(Ok(()), open_folder)?;
    open_folder(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_pages_is_open_whatever_made_it() {
        let top = tempfile::tempdir().unwrap();
        let (way, point) = (top.path().join("elastane"), top.path().join("elastane/fraction"));
        fs::create_dir(&way).unwrap();
        fs::set_permissions(&way, fs::Permissions::from_mode(0o700)).unwrap();
        open_point(&point).unwrap();
        for folder in [&way, &point] {
            assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o755);
        }
    }

    #[test]
    fn files_are_written_once_and_mended() {
        let top = tempfile::tempdir().unwrap();
        let real = RealDriver(NAMES.map(|name| top.path().join(name)));
        let libraries = Libraries::write(top.path(), Some(real.clone())).unwrap();
        let file = libraries.before_real().join(NAMES[0]);
        let whole = fs::read(&file).unwrap();
        let path = real.0[0].as_os_str().as_encoded_bytes();
        assert!(whole.windows(path.len()).any(|part| part == path), "it leads to the real one");
        fs::write(&file, "broken").unwrap();
        Libraries::write(top.path(), Some(real)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), whole);
        let inside = top.path().join("inside");
        let contained = Libraries::write_for_containers(&inside).unwrap();
        let front = fs::read(inside.join("limited-simulated").join(NAMES[0])).unwrap();
        let behind = b"/run/elastane/gpu/lib/simulated/libcuda.so.1";
        assert!(front.windows(behind.len()).any(|part| part == behind), "as containers see it");
        let listed = fs::read_to_string(contained.preload_list()).unwrap();
        assert_eq!(listed, "/run/elastane/gpu/lib/libelastane-fraction.so\n");
        let long = top.path().join("x".repeat(200)).join("y".repeat(200));
        let long = (0..4).fold(long, |path, _| path.join("z".repeat(200)));
        assert!(matches!(Libraries::write(&long, None), Err(Error::Path(_))));
    }

    #[test]
    fn the_driver_is_found_in_the_list_of_the_loader() {
        let top = tempfile::tempdir().unwrap();
        let of = |name: &str| top.path().canonicalize().unwrap().join(name);
        for name in ["libcuda.so.580", "libnvidia-ml.so.580"] {
            fs::write(of(name), "").unwrap();
        }
        for (link, file) in [(NAMES[0], "libcuda.so.580"), (NAMES[1], "libnvidia-ml.so.580")] {
            std::os::unix::fs::symlink(of(file), of(link)).unwrap();
        }
        let line =
            |name: &str, kind: &str| format!("\t{name} ({kind}) => {}\n", of(name).display());
        let cuda = line(NAMES[0], "libc6") + &line(NAMES[0], "libc6,x86-64");
        assert_eq!(RealDriver::listed(&cuda), None);
        let both = cuda + &line(NAMES[1], "libc6,x86-64");
        let expected = RealDriver([of("libcuda.so.580"), of("libnvidia-ml.so.580")]);
        assert_eq!(RealDriver::listed(&both), Some(expected));
    }
}
