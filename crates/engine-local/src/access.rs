//! Programs that the account of a run cannot execute. Owns: finding the folder or file that is
//! closed to the account, and the advice. Does not know about: how programs are started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::isolation::{Account, permits};

/// Maximum number of symbolic links on the way to a program, as in the kernel.
const LINKS_MAX: u32 = 40;
/// Length of the first line of a script that the kernel reads.
const FIRST_LINE_BYTES: u64 = 256;
/// Permission bits of a mode.
const READ: u32 = 4;
const EXECUTE: u32 = 1;

/// A folder or file without a permission that the account needs.
struct Closed {
    path: PathBuf,
    owner: u32,
    /// Argument of `chmod` that opens it.
    mode: &'static str,
}

/// Describes what keeps an account from executing a program, and how to open it; `None` if the
/// permissions on the way to it do not explain that.
pub(crate) fn refusal(account: &Account, program: &Path) -> Option<String> {
    let Closed { path, owner, mode } = find(account, program, true)?;
    let (program, path) = (program.display(), path.display());
    let Account { name, uid, .. } = account;
    Some(format!(
        "`{program}` cannot be executed by the account {name} with the number {uid}, under which \
         this run has its processes: {path} is closed to it; it is of the account with the number \
         {owner}; type chmod {mode} {path}"
    ))
}

/// `scripts`: the interpreter that a script names in its first line is examined too.
fn find(account: &Account, program: &Path, scripts: bool) -> Option<Closed> {
    let mut rest: VecDeque<OsString> = parts(program);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = rest.pop_front() {
        let folder = fs::metadata(&at).ok()?;
        if !permits(&at, &folder, account, EXECUTE) {
            return Some(Closed { path: at, owner: folder.uid(), mode: "a+x" });
        }
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        if !fs::symlink_metadata(&next).ok()?.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        let target = fs::read_link(&next).ok().filter(|_| links <= LINKS_MAX)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    let file = fs::metadata(&at).ok().filter(Metadata::is_file)?;
    let interpreter = interpreter(&at);
    let may = |permission| permits(&at, &file, account, permission);
    if !may(EXECUTE) || (interpreter.is_some() && !may(READ)) {
        return Some(Closed { path: at, owner: file.uid(), mode: "a+rx" });
    }
    interpreter.filter(|_| scripts).and_then(|program| find(account, &program, false))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let is_named =
        |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_named).map(|part| part.as_os_str().to_owned()).collect()
}

/// The program in the first line of a script.
fn interpreter(file: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(file).ok()?.take(FIRST_LINE_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    (!word.is_empty()).then(|| OsString::from_vec(word.to_vec()).into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
    }

    #[test]
    fn the_folder_or_file_that_is_closed_is_named_with_its_owner_and_the_remedy() {
        let temporary = tempfile::tempdir().expect("a folder");
        let root = temporary.path().canonicalize().expect("it exists");
        let [home, bin, open] = ["home", "home/bin", "open"].map(|name| root.join(name));
        fs::create_dir_all(&bin).expect("created");
        fs::create_dir(&open).expect("created");
        let (python, link, script) =
            (bin.join("python3"), open.join("python3"), open.join("train"));
        fs::write(&python, "\u{7f}ELF").expect("written");
        fs::write(&script, format!("#! {} -u\n", link.display())).expect("written");
        symlink("../home/bin/../bin/python3", &link).expect("linked");
        for path in [&root, &home, &bin, &open, &script] {
            set_mode(path, 0o755);
        }
        // No account of a test.
        let account = Account::private(54_321);
        let own = fs::metadata(&python).expect("it exists").uid();
        let said = |program: &Path| refusal(&account, program);
        let closes = |path: &Path, mode: u32, program: &Path| {
            let before = fs::metadata(path).expect("it exists").mode();
            set_mode(path, mode);
            let said = refusal(&account, program).expect("it is closed");
            set_mode(path, before);
            // Who may list a folder is not for this to decide.
            let remedy = if path.is_dir() { "a+x" } else { "a+rx" };
            let end = format!(
                "{0} is closed to it; it is of the account with the number {own}; type chmod \
                 {remedy} {0}",
                path.display()
            );
            assert!(said.ends_with(&end), "{said}");
            assert!(said.contains("elastane-54321 with the number 54321"), "{said}");
        };
        closes(&python, 0o644, &python);
        set_mode(&python, 0o711);
        for program in [&python, &link, &script] {
            assert_eq!(said(program), None);
            closes(&home, 0o700, program);
            closes(&python, 0o700, program);
        }
        closes(&script, 0o711, &script);
        assert_eq!(said(&open.join("absent")), None);
        set_mode(&home, 0o700);
        let owner = Account { uid: own, ..account.clone() };
        assert_eq!(refusal(&owner, &link), None);
    }
}
