//! Requirements of a program on its machine. Owns: asking the loader, and the oldest C library that
//! has every function the program calls.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// How a program is linked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Linked {
    /// The program contains everything.
    Static,
    /// The program needs these files, the loader among them.
    With(BTreeSet<PathBuf>),
}

/// How this program is linked, according to `ldd`.
pub(super) fn of(program: &Path) -> Result<Linked> {
    fs::metadata(program).with_context(|| program.display().to_string())?;
    let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output();
    let output = output.context("failed to start ldd")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if said.contains("statically linked") || errors.contains("not a dynamic executable") {
        return Ok(Linked::Static);
    }
    ensure!(
        output.status.success() && !said.contains("not found"),
        "{} does not find all its libraries: {said}{errors}",
        program.display()
    );
    let paths: BTreeSet<_> = listed(&said).map(PathBuf::from).collect();
    if paths.is_empty() {
        bail!("ldd lists no library of {}: {said}", program.display());
    }
    Ok(Linked::With(paths))
}

/// The paths in lines such as `libc.so.6 => /lib/libc.so.6 (0x7f00)`.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let path = line.split_once("=>").map_or(line, |(_, path)| path).trim();
        let path = path.rsplit_once(" (").map_or(path, |(path, _)| path);
        path.starts_with('/').then_some(path)
    })
}

/// The field `Depends` of a package with this program.
pub(super) fn depends(program: &[u8]) -> Result<String> {
    let (major, minor) = newest_symbols(program).context("no version of glibc is named in it")?;
    let unwinder = contains(program, b"libgcc_s.so.1").then_some(", libgcc-s1 (>= 4.2)");
    Ok(format!("libc6 (>= {major}.{minor}){}", unwinder.unwrap_or_default()))
}

/// The newest `GLIBC_2.34` among the versions of the symbols it needs.
fn newest_symbols(program: &[u8]) -> Option<(u32, u32)> {
    const PREFIX: &[u8] = b"GLIBC_";
    let at = |start: usize| {
        let rest = &program[start + PREFIX.len()..];
        let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.'))?;
        let mut numbers = std::str::from_utf8(&rest[..end]).ok()?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    };
    let starts = (0..program.len()).filter(|start| program[*start..].starts_with(PREFIX));
    starts.filter_map(at).max()
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_where_the_loader_says() {
        let text = "\tlinux-vdso.so.1 (0x7f00)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x7f01)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f02)\n";
        let paths: Vec<_> = listed(text).collect();
        assert_eq!(paths, ["/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }

    #[test]
    fn a_package_depends_on_the_newest_symbols_of_its_program() {
        let elf = b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.3.4\0GLIBC_PRIVATE\0libgcc_s.so.1\0";
        assert_eq!(depends(elf).unwrap(), "libc6 (>= 2.34), libgcc-s1 (>= 4.2)");
        assert_eq!(depends(b"\0GLIBC_2.36\0").unwrap(), "libc6 (>= 2.36)");
        assert!(depends(b"nothing").is_err());
    }

    #[test]
    fn a_program_of_this_machine_has_a_loader() {
        let Linked::With(libraries) = of(&std::env::current_exe().unwrap()).unwrap() else {
            panic!("tests are linked with the machine's libraries");
        };
        assert!(libraries.iter().any(|path| path.to_string_lossy().contains("libc.so")));
        assert!(of(Path::new("/nowhere/elastane")).is_err());
    }
}
