//! The root file system of the built-in images. Owns: which tools of this machine are in it, the
//! libraries that they need, and the archive of both. Does not know about containers.
//!
//! A busybox of the machine provides all tools but bash. Without one they are the machine's own,
//! each with the libraries that its loader lists. So `runai bash` and `runai exec` find the tools
//! of the images in the published guides, and nothing is downloaded.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::Error;
use tar::EntryType;

use crate::files::Archive;

/// Where programs are inspected for, before the folders of `PATH`.
const FOLDERS: [&str; 4] = ["/bin", "/usr/bin", "/sbin", "/usr/sbin"];
/// The tools where there is no busybox.
const TOOLS: [&str; 44] = [
    "sh", "ls", "cat", "cp", "mv", "rm", "ln", "mkdir", "rmdir", "touch", "chmod", "chown", "echo",
    "printf", "pwd", "date", "df", "du", "find", "grep", "sed", "awk", "head", "tail", "wc",
    "sort", "uniq", "cut", "tr", "tee", "seq", "xargs", "env", "id", "hostname", "uname", "ps",
    "top", "kill", "sleep", "test", "true", "false", "tar",
];
/// The terminal descriptions that bash needs.
const TERMINFO: [&str; 3] = ["/lib/terminfo", "/usr/share/terminfo", "/etc/terminfo"];
const TERMINALS: [&str; 7] =
    ["xterm", "xterm-256color", "linux", "screen", "screen-256color", "tmux", "vt100"];
/// Where loaders find libraries in unusual folders.
const LIBRARY_CACHE: &str = "/etc/ld.so.cache";
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";
/// Bash by another name, where the machine has none.
const BASH_SCRIPT: &str = "#!/bin/sh\nexec /bin/sh \"$@\"\n";

/// The archive of the file system. `nvidia_smi` is the script of that name. Reads programs of the
/// machine: blocks.
///
/// # Errors
/// The machine's programs cannot be read, or a path of theirs is too long.
pub(crate) fn archive(nvidia_smi: Option<&str>) -> Result<Vec<u8>, Error> {
    let mut root = Root::default();
    for folder in ["bin", "etc", "root", "usr", "usr/bin", "var"] {
        root.archive.add(Path::new(folder), EntryType::Directory, 0o755, (0, 0), b"")?;
    }
    root.archive.add(Path::new("tmp"), EntryType::Directory, 0o1777, (0, 0), b"")?;
    root.file("/etc/passwd", 0o644, PASSWD.as_bytes())?;
    root.file("/etc/group", 0o644, GROUP.as_bytes())?;
    match find("busybox") {
        Some(busybox) => root.busybox(&busybox)?,
        None => {
            for (name, path) in TOOLS.iter().filter_map(|name| Some((name, find(name)?))) {
                root.tool(name, &path)?;
            }
        }
    }
    if !root.has("/bin/sh") {
        tracing::warn!(
            "this machine has neither busybox nor sh to put into the built-in images, so no \
             command can be run in them; install busybox-static"
        );
    }
    match find("bash") {
        Some(bash) if root.tool("bash", &bash)? => root.terminals()?,
        _ => root.file("/bin/bash", 0o755, BASH_SCRIPT.as_bytes())?,
    }
    if root.has("/bin/env") {
        // Scripts begin with it.
        root.link("/usr/bin/env", "/bin/env")?;
    }
    if let Some(script) = nvidia_smi {
        root.file("/bin/nvidia-smi", 0o755, script.as_bytes())?;
    }
    root.archive.finish()
}

#[derive(Default)]
struct Root {
    archive: Archive,
    has: BTreeSet<PathBuf>,
}

impl Root {
    fn has(&self, path: &str) -> bool {
        self.has.contains(Path::new(path))
    }

    /// Adds a file, once.
    fn file(&mut self, path: impl AsRef<Path>, mode: u32, bytes: &[u8]) -> Result<(), Error> {
        if self.has.insert(path.as_ref().to_owned()) {
            self.archive.add(path.as_ref(), EntryType::Regular, mode, (0, 0), bytes)?;
        }
        Ok(())
    }

    fn link(&mut self, path: &str, to: &str) -> Result<(), Error> {
        if self.has.insert(path.into()) {
            self.archive.link(Path::new(path), to)?;
        }
        Ok(())
    }

    /// Busybox, under the names of all its tools.
    fn busybox(&mut self, path: &Path) -> Result<(), Error> {
        if !self.tool("busybox", path)? {
            return Ok(());
        }
        let listed = Command::new(path).arg("--list").output();
        let listed = listed.map_err(|error| failed("list the tools of", path, error))?;
        for name in String::from_utf8_lossy(&listed.stdout).lines() {
            if !name.is_empty() && !name.contains('/') {
                self.link(&format!("/bin/{name}"), "busybox")?;
            }
        }
        Ok(())
    }

    /// A program of the machine with its libraries; false: it is none, or a library is missing.
    fn tool(&mut self, name: &str, from: &Path) -> Result<bool, Error> {
        let bytes = fs::read(from).map_err(|error| failed("read", from, error))?;
        let libraries = match elf_loader(&bytes) {
            Elf::Static => Vec::new(),
            Elf::By(loader) => match libraries(&loader, from) {
                Ok(libraries) => libraries,
                Err(error) => {
                    tracing::warn!("{name} is not put into the built-in images: {error}");
                    return Ok(false);
                }
            },
            Elf::Not => return Ok(false),
        };
        for library in &libraries {
            if !self.has.contains(library) {
                let bytes = fs::read(library).map_err(|error| failed("read", library, error))?;
                self.file(library, 0o755, &bytes)?;
            }
        }
        if !libraries.is_empty()
            && let Ok(cache) = fs::read(LIBRARY_CACHE)
        {
            self.file(LIBRARY_CACHE, 0o644, &cache)?;
        }
        self.file(Path::new("/bin").join(name), 0o755, &bytes)?;
        Ok(true)
    }

    fn terminals(&mut self) -> Result<(), Error> {
        for (folder, terminal) in
            TERMINFO.iter().flat_map(|folder| TERMINALS.iter().map(move |name| (folder, name)))
        {
            let path = Path::new(folder).join(&terminal[..1]).join(terminal);
            if let Ok(bytes) = fs::read(&path) {
                self.file(path, 0o644, &bytes)?;
            }
        }
        Ok(())
    }
}

fn failed(what: &str, path: &Path, source: io::Error) -> Error {
    let what = format!("{what} {} for the built-in images", path.display());
    Error::Io { what, source }
}

/// A program of this machine.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = FOLDERS.iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    all.map(|folder| folder.join(name)).find(is_program)
}

/// The kind of a file.
#[derive(Debug, PartialEq, Eq)]
enum Elf {
    /// A program that needs no library.
    Static,
    /// A program that this loader starts.
    By(PathBuf),
    /// No program for 64 bits.
    Not,
}

/// Which loader a program names: its segment of type `PT_INTERP`.
fn elf_loader(bytes: &[u8]) -> Elf {
    const PT_INTERP: u64 = 3;
    // 64 bits, least byte first.
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return Elf::Not;
    }
    let number = |at: usize, length: usize| {
        let field = bytes.get(at..at.checked_add(length)?)?;
        let value = field.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        Some(value)
    };
    let place = |at, length| usize::try_from(number(at, length)?).ok();
    let headers = || Some((place(0x20, 8)?, place(0x36, 2)?, place(0x38, 2)?));
    let Some((first, size, count)) = headers() else { return Elf::Not };
    for header in (0..count).filter_map(|at| first.checked_add(size.checked_mul(at)?)) {
        if number(header, 4) != Some(PT_INTERP) {
            continue;
        }
        let text = || {
            let (from, length) = (place(header + 8, 8)?, place(header + 32, 8)?);
            let text = bytes.get(from..from.checked_add(length)?)?;
            std::str::from_utf8(text).ok()
        };
        return text().map_or(Elf::Not, |text| Elf::By(text.trim_end_matches('\0').into()));
    }
    Elf::Static
}

/// The libraries of a program, including the loader, as the loader lists them.
fn libraries(loader: &Path, program: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = Command::new(loader).arg("--list").arg(program).env_clear().output();
    let listed = listed.map_err(|error| format!("{}: {error}", loader.display()))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    if !listed.status.success() || text.contains("not found") {
        return Err(format!("{} does not find all libraries of it", loader.display()));
    }
    let all = listed_paths(&text).map(PathBuf::from).chain([loader.to_owned()]);
    Ok(all.collect::<BTreeSet<_>>().into_iter().collect())
}

/// The paths in what a loader lists: `libc.so.6 => /lib/libc.so.6 (0x7f00)`.
fn listed_paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let path = line.split_once("=>").map_or(line, |(_, path)| path).trim();
        let path = path.rsplit_once(" (").map_or(path, |(path, _)| path);
        path.starts_with('/').then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_a_program_is_in_its_headers() {
        let mut elf = vec![0_u8; 0x40 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[0x20], elf[0x36], elf[0x38]) = (0x40, 56, 2);
        assert_eq!(elf_loader(&elf), Elf::Static);
        let (second, at) = (0x40 + 56, elf.len());
        elf.extend(b"/lib/ld.so\0");
        (elf[second], elf[second + 8], elf[second + 32]) = (3, u8::try_from(at).unwrap(), 11);
        assert_eq!(elf_loader(&elf), Elf::By("/lib/ld.so".into()));
        elf[second + 32] = 99;
        assert_eq!(elf_loader(&elf), Elf::Not, "its name is cut off");
        assert_eq!(elf_loader(b"#!/bin/sh\n"), Elf::Not);
        assert_eq!(elf_loader(b"\x7fELF\x02\x01"), Elf::Not);
    }

    #[test]
    fn libraries_are_where_the_loader_says() {
        let text = "\tlinux-vdso.so.1 (0x7f00)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x7f01)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f02)\n\tstatically linked\n";
        let paths: Vec<_> = listed_paths(text).collect();
        assert_eq!(paths, ["/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }

    #[test]
    fn this_machines_shell_comes_with_what_it_needs() {
        let mut root = Root::default();
        let shell = find("sh").expect("every machine that builds this has one");
        assert!(root.tool("sh", &shell).unwrap());
        let Elf::By(loader) = elf_loader(&fs::read(&shell).unwrap()) else { return };
        assert!(root.has.contains(&loader), "{:?}", root.has);
        assert!(root.has.iter().any(|path| path.to_string_lossy().contains("libc")));
    }
}
