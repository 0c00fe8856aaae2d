//! The path below which a page of a run answers, by the command line of the program. Owns: the
//! flags of such programs, and the names of project and workload in their values. Does not know
//! about hosts and addresses.

use crate::RunSpec;

/// A program whose page has a path of its own.
struct Program {
    /// The flags of its path.
    path: &'static [&'static str],
    /// The flags of its port.
    port: &'static [&'static str],
    /// Port without these flags.
    usual_port: u16,
}

const PROGRAMS: [Program; 2] = [
    // Jupyter, as a server and as the notebook of earlier versions.
    Program {
        path: &["--ServerApp.base_url", "--NotebookApp.base_url"],
        port: &["--ServerApp.port", "--NotebookApp.port", "--port"],
        usual_port: 8888,
    },
    // TensorBoard.
    Program { path: &["--path_prefix"], port: &["--port"], usual_port: 6006 },
];
/// The variables of every run that published lines write into such a path.
const PROJECT: &str = "${RUNAI_PROJECT}";
const WORKLOAD: &str = "${RUNAI_JOB_NAME}";

/// The path of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasePath {
    /// The port at which the program answers.
    pub port: u16,
    /// The path, with a slash on both ends.
    pub path: String,
}

impl BasePath {
    /// Base path that the words of a command line give to a program, in a workload of this name;
    /// `None` if there is none, or if only the run itself can determine it.
    #[must_use]
    pub fn of<'w>(
        words: impl Iterator<Item = &'w String> + Clone,
        project: &str,
        workload: &str,
    ) -> Option<Self> {
        // A line for a shell is one word.
        let words = words.flat_map(|word| word.split_whitespace());
        PROGRAMS.iter().find_map(|program| {
            let value = value_of(words.clone(), program.path)?;
            let path = named(value, project, workload);
            let path = path.trim_matches('/');
            let is_path = |c: char| c.is_ascii_alphanumeric() || "-._~%/".contains(c);
            if path.is_empty() || !path.chars().all(is_path) {
                return None;
            }
            let port = value_of(words.clone(), program.port).and_then(|port| port.parse().ok());
            Some(Self { port: port.unwrap_or(program.usual_port), path: format!("/{path}/") })
        })
    }
}

/// The value of the first of these flags, without quotation marks.
fn value_of<'w>(words: impl Iterator<Item = &'w str>, flags: &[&str]) -> Option<&'w str> {
    let mut words = words.map(|word| word.trim_matches(['\'', '"']));
    let value = words.find_map(|word| {
        let (flag, value) =
            word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
        flags.contains(&flag).then_some(value)
    })?;
    let value = value.or_else(|| words.next())?;
    Some(value.trim_matches(['\'', '"']))
}

fn named(value: &str, project: &str, workload: &str) -> String {
    value.replace(PROJECT, project).replace(WORKLOAD, workload)
}

/// Fills the names of project and workload into the flags of a base path: published lines write
/// them as variables of a shell where there is no shell.
pub fn fill_base_path<'w>(words: impl IntoIterator<Item = &'w mut String>, spec: &RunSpec) {
    for word in words {
        let flag = word.split_once('=').map(|(flag, _)| flag);
        if flag.is_some_and(|flag| PROGRAMS.iter().any(|program| program.path.contains(&flag))) {
            *word = named(word, &spec.project_name, &spec.workload_name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<(u16, String)> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        BasePath::of(words.iter(), "team-a", "jup1").map(|of| (of.port, of.path))
    }

    #[test]
    fn a_page_is_where_the_command_line_says() {
        for (words, port, path) in [
            (
                &["start-notebook.sh", "--ServerApp.base_url=/team-a-jup1"][..],
                8888,
                "/team-a-jup1/",
            ),
            (
                &["--NotebookApp.base_url=/${RUNAI_PROJECT}/${RUNAI_JOB_NAME}", "--port=9999"],
                9999,
                "/team-a/jup1/",
            ),
            (&["bash", "-c", "jupyter lab --ServerApp.base_url='/lab/'"], 8888, "/lab/"),
            (&["tensorboard", "--path_prefix", "/tb", "--logdir", "/x"], 6006, "/tb/"),
        ] {
            assert_eq!(of(words), Some((port, path.to_owned())), "{words:?}");
        }
    }

    #[test]
    fn a_path_that_is_not_known_here_is_none() {
        for words in [
            &["start-notebook.sh"][..],
            &["--ServerApp.base_url=/"],
            &["--ServerApp.base_url=/$USER"],
            &["--ServerApp.base_url"],
            &["--path_prefix=/a?b"],
        ] {
            assert_eq!(of(words), None, "{words:?}");
        }
    }
}
