//! `elastane man DIR`: manual pages of both programs. Owns: their destination; their content is
//! that of the command tree.

use std::fs;
use std::path::Path;

use clap::CommandFactory as _;

use super::args::Cli;
use cli_kit::exit::Error;

/// Writes a page for each program and each command that is not hidden, such as
/// `runai-training-submit.1`.
///
/// # Errors
/// The pages cannot be written to the folder.
pub(super) fn run(dir: &Path) -> Result<(), Error> {
    let failed = |error| Error::Failed(format!("cannot write to {}: {error}", dir.display()));
    fs::create_dir_all(dir).map_err(failed)?;
    for program in [Cli::command(), dialects::tree()] {
        clap_mangen::generate_to(program, dir).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of each command that is not hidden.
    fn pages(command: &clap::Command, name: &str) -> Vec<String> {
        let below = command.get_subcommands();
        let below = below.filter(|it| !it.is_hide_set() && it.get_name() != "help");
        let below = below.flat_map(|it| pages(it, &format!("{name}-{}", it.get_name())));
        [format!("{name}.1")].into_iter().chain(below).collect()
    }

    #[test]
    fn every_command_has_a_page_and_no_page_is_without_a_command() {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path()).unwrap();
        let mut wanted = pages(&Cli::command(), "elastane");
        wanted.extend(pages(&dialects::tree(), "runai"));
        wanted.sort();
        let there = fs::read_dir(dir.path()).unwrap();
        let mut there: Vec<_> =
            there.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        assert_eq!(there, wanted);
        assert!(there.contains(&"runai-training-pytorch-submit.1".to_owned()));
        for page in &wanted {
            let text = fs::read_to_string(dir.path().join(page)).unwrap().replace("\\-", "-");
            let name = page.strip_suffix(".1").unwrap();
            for part in [format!(".TH {name} 1 "), ".SH NAME".into(), ".SH SYNOPSIS".into()] {
                assert!(text.contains(&part), "{page}: {part}\n{text}");
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        let said = run(Path::new("/dev/null/man1")).unwrap_err().to_string();
        assert!(said.contains("/dev/null/man1"), "{said}");
    }
}
