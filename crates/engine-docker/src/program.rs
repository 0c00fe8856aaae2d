//! A program of this machine that replaces an image. Owns: the program's files, which are mounted
//! into the container. So nothing is pulled.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use bollard::models::{ContainerCreateBody, Mount, MountType};
use engine::RunSpec;

/// A program, its arguments and the files it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    argv: Vec<String>,
    files: BTreeSet<PathBuf>,
}

/// Option of glibc's loader with the folders of libraries.
const LIBRARY_PATH: &str = "--library-path";

/// Where the program of an elastic training is in a container.
const JOB_PROGRAM_DIR: &str = "/elastane/job";

fn mount(path: &Path, there: &Path) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(path.display().to_string()),
        target: Some(there.display().to_string()),
        read_only: Some(true),
        ..Mount::default()
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Program {
    /// The running program, with these arguments, and its libraries.
    ///
    /// # Errors
    /// Its file or libraries cannot be found.
    pub fn this(args: &[&str]) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        Ok(Self::of(&program, &maps, args))
    }

    /// The program of this name beside the running one, which has the same libraries.
    ///
    /// # Errors
    /// It is not there, or the libraries cannot be found.
    pub fn beside(name: &str) -> io::Result<Self> {
        let program = std::env::current_exe()?.with_file_name(name);
        std::fs::metadata(&program)?;
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        Ok(Self::of(&program, &maps, &[]))
    }

    fn of(program: &Path, maps: &str, args: &[&str]) -> Self {
        let mapped =
            maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let library = |path: &&Path| name(path).is_some_and(|name| name.contains(".so"));
        let libraries: BTreeSet<&Path> = mapped.filter(library).collect();
        let loader = |path: &&&Path| name(path).is_some_and(|name| name.starts_with("ld-"));
        let mut argv = Vec::new();
        if let Some(loader) = libraries.iter().find(loader) {
            let folders: BTreeSet<_> = libraries.iter().filter_map(|path| path.parent()).collect();
            let folders: Vec<_> = folders.iter().map(|path| path.display().to_string()).collect();
            argv = vec![loader.display().to_string(), LIBRARY_PATH.into(), folders.join(":")];
        }
        argv.push(program.display().to_string());
        argv.extend(args.iter().map(ToString::to_string));
        let files = libraries.into_iter().chain([program]).map(Path::to_owned).collect();
        Self { argv, files }
    }

    /// A script that starts it with the script's arguments.
    pub(crate) fn script(&self) -> String {
        let words: Vec<_> = self.argv.iter().map(|word| quoted(word)).collect();
        format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))
    }

    /// Its files, and where they are when all are in one folder, apart from those of an image.
    pub(crate) fn files_in(&self, folder: &Path) -> Vec<(PathBuf, PathBuf)> {
        let at = |path: &PathBuf| (path.clone(), folder.join(path.file_name().unwrap_or_default()));
        self.files.iter().map(at).collect()
    }

    /// The words that start it there. `search`: where it looks for libraries besides.
    pub(crate) fn argv_in(&self, folder: &Path, search: Option<&str>) -> Vec<String> {
        let there = |path: &str| match Path::new(path).file_name() {
            Some(name) => folder.join(name).display().to_string(),
            None => path.to_owned(),
        };
        match self.argv.as_slice() {
            [loader, option, _, program, words @ ..] if option == LIBRARY_PATH => {
                let folder = folder.display().to_string();
                let path = search.map_or_else(|| folder.clone(), |more| format!("{folder}:{more}"));
                let first = [there(loader), option.clone(), path, there(program)];
                first.into_iter().chain(words.iter().cloned()).collect()
            }
            [program, words @ ..] => {
                std::iter::once(there(program)).chain(words.iter().cloned()).collect()
            }
            [] => Vec::new(),
        }
    }

    /// A script that starts it there with this word and the script's arguments, and has it look for
    /// libraries where the script's caller does.
    pub(crate) fn script_in(&self, folder: &Path, word: &str) -> String {
        const SEARCH: &str = "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}";
        let argv = self.argv_in(folder, None);
        let mut words: Vec<_> = argv.iter().map(|word| quoted(word)).collect();
        if argv.get(1).is_some_and(|option| option == LIBRARY_PATH)
            && let Some(path) = words.get_mut(2)
        {
            path.push_str(&format!("\"{SEARCH}\""));
        }
        format!("#!/bin/sh\nexec {} {word} \"$@\"\n", words.join(" "))
    }

    /// Replaces the first word of the command of a container, whose image stays as it is.
    pub(crate) fn replace_command(&self, body: &mut ContainerCreateBody) {
        let folder = Path::new(JOB_PROGRAM_DIR);
        let words = body.entrypoint.take().unwrap_or_default();
        let words = words.into_iter().skip(1);
        body.entrypoint = Some(self.argv_in(folder, None).into_iter().chain(words).collect());
        let shown = |(path, there): (PathBuf, PathBuf)| mount(&path, &there);
        let host = body.host_config.get_or_insert_default();
        host.mounts.get_or_insert_default().extend(self.files_in(folder).into_iter().map(shown));
    }

    /// Replaces the image's program in a container. `image`: the base image.
    pub(crate) fn replace_image(
        &self,
        body: &mut ContainerCreateBody,
        spec: &RunSpec,
        image: String,
    ) {
        body.image = Some(image);
        body.entrypoint = Some(self.argv.clone());
        body.cmd = Some(spec.args.clone());
        let shown = |path: &PathBuf| mount(path, path);
        let host = body.host_config.get_or_insert_default();
        host.mounts.get_or_insert_default().extend(self.files.iter().map(shown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0-55d1 r-xp 00000000 fe:00 1 /opt/elastane
7f00-7f01 r-xp 00000000 fe:00 2 /usr/lib/x/libc.so.6
7f02-7f03 r--p 00000000 fe:00 2 /usr/lib/x/libc.so.6
7f04-7f05 r-xp 00000000 fe:00 3 /lib64/ld-linux-x86-64.so.2
7f06-7f07 rw-p 00000000 00:00 0 [heap]
7f08-7f09 r--p 00000000 fe:00 4 /usr/share/locale/de";

    #[test]
    fn a_program_goes_with_its_libraries_and_their_loader() {
        let program = Program::of(Path::new("/opt/elastane"), MAPS, &["work"]);
        let argv =
            "/lib64/ld-linux-x86-64.so.2 --library-path /lib64:/usr/lib/x /opt/elastane work";
        assert_eq!(program.argv.join(" "), argv);
        let files: Vec<_> = program.files.iter().map(|path| path.display().to_string()).collect();
        let want = "/lib64/ld-linux-x86-64.so.2 /opt/elastane /usr/lib/x/libc.so.6";
        assert_eq!(files.join(" "), want);
        let alone = Program::of(Path::new("/opt/elastane"), "", &[]);
        assert_eq!(alone.argv, ["/opt/elastane"]);
        assert_eq!(alone.argv_in(Path::new("/p"), Some("/lib")), ["/p/elastane"]);
        let moved = program.argv_in(Path::new("/p"), Some("/lib"));
        assert_eq!(
            moved.join(" "),
            "/p/ld-linux-x86-64.so.2 --library-path /p:/lib /p/elastane work"
        );
        let files = program.files_in(Path::new("/p"));
        assert!(files.contains(&("/usr/lib/x/libc.so.6".into(), "/p/libc.so.6".into())));
        let script = program.script_in(Path::new("/p"), "look");
        let path = r#"'--library-path' '/p'"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" '/p/elastane'"#;
        assert!(script.contains(path) && script.ends_with(" 'work' look \"$@\"\n"), "{script}");
        let odd = Program::of(Path::new("/opt/it's"), "", &["nvidia-smi"]);
        assert_eq!(odd.script(), "#!/bin/sh\nexec '/opt/it'\\''s' 'nvidia-smi' \"$@\"\n");
    }
}
