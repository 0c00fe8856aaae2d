//! Reach of a preloaded library: whether a program loads it. Owns: reading the file of a program as
//! the kernel does, through interpreters of scripts. Does not know about: programs that the program
//! starts later, and what follows from the answer.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Maximum depth of interpreters that are scripts themselves, as the kernel has it.
const SCRIPTS_MAX: usize = 5;
/// Maximum length of the first line of a script, as the kernel has it.
const LINE_BYTES_MAX: u64 = 256;
/// Interpreter of a text without such a line.
const SHELL: &str = "/bin/sh";
/// Maximum length of a path.
const PATH_BYTES_MAX: u64 = 4096;
/// `PT_INTERP`, and `EM_X86_64`.
const INTERPRETER: u32 = 3;
const X86_64: u16 = 62;
/// Start of the name of glibc's loader.
const LOADER: &[u8] = b"ld-linux";
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;

/// Reason why a preloaded library does not reach a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreached {
    /// It is a static program.
    Static,
    /// It is for a C library other than glibc.
    OtherLibrary,
    /// It is not for x86-64.
    OtherProcessor,
    /// Its file cannot be read, or has no information about it.
    Unknown,
}

impl Unreached {
    const ALL: [Self; 4] = [Self::Static, Self::OtherLibrary, Self::OtherProcessor, Self::Unknown];

    /// As a number above 0.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Static => 1,
            Self::OtherLibrary => 2,
            Self::OtherProcessor => 3,
            Self::Unknown => 4,
        }
    }

    /// The reason with this number.
    pub(crate) fn numbered(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.number() == number)
    }
}

/// Continues a sentence after "its program".
impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "is static",
            Self::OtherLibrary => "is for another C library than glibc, such as musl",
            Self::OtherProcessor => "is not for x86-64",
            Self::Unknown => "cannot be read",
        })
    }
}

/// Reason why a library does not reach the program of this name; `None` if it does, or if there is
/// no such program, which its start reports. `search`: the value of `PATH`; `folder`: working
/// directory.
#[must_use]
pub fn unreached(program: &OsStr, search: Option<&OsStr>, folder: &Path) -> Option<Unreached> {
    let mut path = find(program, search, folder)?;
    for _ in 0..=SCRIPTS_MAX {
        match look(&path) {
            Ok(Kind::Script(interpreter)) => path = folder.join(interpreter),
            // A loader that is started itself loads as it does for others.
            Ok(Kind::Program(Some(Unreached::Static))) => {
                // Another name may lead to it.
                let file = path.canonicalize().unwrap_or(path);
                return of_loader(name(&file));
            }
            Ok(Kind::Program(unreached)) => return unreached,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => return Some(Unreached::Unknown),
        }
    }
    // A chain that the kernel does not follow either.
    None
}

fn name(path: &Path) -> &[u8] {
    path.file_name().map_or(&[], OsStr::as_bytes)
}

/// Reason for a loader that is started as a program, by its name; `None` for glibc's.
fn of_loader(name: &[u8]) -> Option<Unreached> {
    match name {
        name if name.starts_with(LOADER) => None,
        name if name.starts_with(b"ld-musl") => Some(Unreached::OtherLibrary),
        _ => Some(Unreached::Static),
    }
}

/// The file, as `execvp` finds it.
fn find(program: &OsStr, search: Option<&OsStr>, folder: &Path) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(folder.join(program));
    }
    let search = search.unwrap_or_else(|| OsStr::new("/bin:/usr/bin"));
    let paths = std::env::split_paths(search).map(|path| folder.join(path).join(program));
    let runs = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    paths.into_iter().find(runs)
}

enum Kind {
    Script(PathBuf),
    Program(Option<Unreached>),
}

fn look(path: &Path) -> io::Result<Kind> {
    // To open a device may do something, and a pipe would be waited for: only files are.
    let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    if !found.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
        .map_err(|error| io::Error::other(format!("cannot be read: {error}")))?;
    let mut first = Vec::new();
    (&file).take(LINE_BYTES_MAX).read_to_end(&mut first)?;
    if first.starts_with(b"\x7fELF") {
        return program(&file, &first).map(Kind::Program);
    }
    let Some(line) = first.strip_prefix(b"#!") else { return Ok(Kind::Script(SHELL.into())) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty());
    let interpreter = words.next().ok_or(io::ErrorKind::InvalidData)?;
    Ok(Kind::Script(OsStr::from_bytes(interpreter).into()))
}

/// Reason by the header of a program; `None` if it loads the library.
fn program(file: &File, first: &[u8]) -> io::Result<Option<Unreached>> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let header = first.get(..HEADER_BYTES).ok_or_else(short)?;
    // 64 bits, and the lowest byte first.
    if header.get(4..6) != Some(&[2, 1]) || number(header, 18, 2) != u64::from(X86_64) {
        return Ok(Some(Unreached::OtherProcessor));
    }
    let (at, bytes, count) = (number(header, 32, 8), number(header, 54, 2), number(header, 56, 2));
    if bytes != SEGMENT_BYTES as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    for index in 0..count {
        let mut segment = [0; SEGMENT_BYTES];
        let at = at.checked_add(index * bytes).ok_or(io::ErrorKind::InvalidData)?;
        file.read_exact_at(&mut segment, at)?;
        if number(&segment, 0, 4) != u64::from(INTERPRETER) {
            continue;
        }
        let (at, bytes) = (number(&segment, 8, 8), number(&segment, 32, 8));
        if bytes > PATH_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut path = vec![0; usize::try_from(bytes).unwrap_or(0)];
        file.read_exact_at(&mut path, at)?;
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is_glibc = name.starts_with(LOADER);
        return Ok((!is_glibc).then_some(Unreached::OtherLibrary));
    }
    Ok(Some(Unreached::Static))
}

/// A number of `count` bytes at `at` in a header; 0 if the header is shorter.
fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    let bytes = bytes.get(at..at + count).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests;
