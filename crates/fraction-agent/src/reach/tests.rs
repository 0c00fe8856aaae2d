//! Programs and scripts of all kinds, and files that are none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A program with this interpreter.
fn elf(interpreter: Option<&str>) -> Vec<u8> {
    let mut elf = vec![0; HEADER_BYTES + SEGMENT_BYTES];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[18] = 62;
    elf[32] = u8::try_from(HEADER_BYTES).unwrap();
    elf[54] = u8::try_from(SEGMENT_BYTES).unwrap();
    elf[56] = 1;
    if let Some(path) = interpreter {
        let at = elf.len();
        elf[HEADER_BYTES] = 3;
        elf[HEADER_BYTES + 8] = u8::try_from(at).unwrap();
        elf[HEADER_BYTES + 32] = u8::try_from(path.len() + 1).unwrap();
        elf.extend(path.bytes().chain([0]));
    }
    elf
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn of(&self, program: &str) -> Option<Unreached> {
        unreached(program.as_ref(), Some(self.0.path().as_os_str()), self.0.path())
    }
}

const GLIBC: &str = "/lib64/ld-linux-x86-64.so.2";

#[test]
fn a_program_is_reached_by_the_loader_that_it_asks_for() {
    let folder = Folder::new();
    folder.put("glibc", &elf(Some(GLIBC)));
    folder.put("musl", &elf(Some("/lib/ld-musl-x86_64.so.1")));
    folder.put("static", &elf(None));
    let mut other = elf(Some(GLIBC));
    other[18] = 183;
    folder.put("arm", &other);
    assert_eq!(folder.of("glibc"), None);
    assert_eq!(folder.of("./glibc"), None);
    assert_eq!(folder.of("musl"), Some(Unreached::OtherLibrary));
    assert_eq!(folder.of("static"), Some(Unreached::Static));
    assert_eq!(folder.of("arm"), Some(Unreached::OtherProcessor));
    folder.put("ld-linux-x86-64.so.2", &elf(None));
    folder.put("ld-musl-x86_64.so.1", &elf(None));
    assert_eq!(folder.of("ld-linux-x86-64.so.2"), None, "a loader that is started itself");
    assert_eq!(folder.of("ld-musl-x86_64.so.1"), Some(Unreached::OtherLibrary));
    let other_name = folder.0.path().join("ld.so");
    std::os::unix::fs::symlink("ld-linux-x86-64.so.2", other_name).unwrap();
    assert_eq!(folder.of("ld.so"), None);
    let own = std::env::current_exe().unwrap();
    assert_eq!(unreached(own.as_os_str(), None, Path::new("/")), None);
    assert_eq!(unreached("sh".as_ref(), None, Path::new("/")), None);
}

#[test]
fn a_script_is_what_interprets_it() {
    let folder = Folder::new();
    let still = folder.put("static", &elf(None));
    let script = folder.put("script", format!("#! {still}\t-x\nbody\n").as_bytes());
    folder.put("second", format!("#!{script}").as_bytes());
    folder.put("text", b"echo a shell runs this\n");
    folder.put("empty", b"");
    for (name, expected) in
        [("script", Some(Unreached::Static)), ("second", Some(Unreached::Static)), ("text", None)]
    {
        assert_eq!(folder.of(name), expected, "{name}");
    }
    assert_eq!(folder.of("empty"), None);
    folder.put("loop", format!("#!{}/loop\n", folder.0.path().display()).as_bytes());
    assert_eq!(folder.of("loop"), None, "the kernel refuses it");
    folder.put("nothing", b"#! \nx\n");
    assert_eq!(folder.of("nothing"), Some(Unreached::Unknown));
    folder.put("lost", b"#!/no/such/thing\n");
    assert_eq!((folder.of("lost"), folder.of("no-such-program")), (None, None));
}

#[test]
fn a_file_that_is_cut_or_says_anything_is_unknown() {
    let folder = Folder::new();
    let whole = elf(Some(GLIBC));
    for bytes in 4..whole.len() {
        folder.put("cut", &whole[..bytes]);
        assert_eq!(folder.of("cut"), Some(Unreached::Unknown), "{bytes}");
    }
    for at in 6..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] = 255;
        folder.put("wrong", &wrong);
        let _any = folder.of("wrong"); // it ends
    }
    let pipe = folder.0.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o755);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(folder.of("./pipe"), Some(Unreached::Unknown));
    assert_eq!(folder.of("pipe"), None, "no program is found by its name");
}

#[test]
fn numbers_are_those_of_the_reasons() {
    for one in Unreached::ALL {
        assert_eq!(Unreached::numbered(one.number()), Some(one));
    }
    assert_eq!((Unreached::numbered(0), Unreached::numbered(77)), (None, None));
}
