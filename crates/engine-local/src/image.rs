//! Programs that stand in for images on a machine without containers. Owns: the image table, the
//! comparison of image names, and the resulting command line. Does not know what the replacement
//! programs do.

use std::collections::BTreeMap;
use std::path::Path;

use engine::image::{QUICKSTARTS, plain_name};
use engine::{Error, RunSpec};

/// The settings of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Replaced by a command of the user.
    pub entrypoint: Vec<String>,
    /// Replaced by arguments of the user.
    pub default_args: Vec<String>,
    /// Programs in the image: a command that starts with one runs through the entrypoint.
    pub programs: &'static [&'static str],
    /// The port its program serves at. Runs share the machine's ports, so each gets another in
    /// `PORT`; connections to this port of the run lead there.
    pub port: Option<u16>,
}

/// Image names and the programs that stand in for them. Names are compared without tag, digest and
/// the default registry, so `ubuntu:24.04` is `docker.io/library/ubuntu`.
#[derive(Debug, Clone)]
pub struct ImageTable(BTreeMap<String, Image>);

/// Images that are environments for a given command. Without a command and a terminal, their shell
/// finds no input and exits with 0 at once, as in a container.
const SHELLS: [&str; 9] =
    ["ubuntu", "debian", "busybox", "alpine", "fedora", "python", "bash", "centos", "rockylinux"];

/// A quickstart image and its replacement: its name, the subcommand of the quickstart program,
/// programs in the image, and its port.
type StandIn = (&'static str, &'static str, &'static [&'static str], Option<u16>);

const STAND_INS: [StandIn; 8] = [
    ("zembutsu/docker-sample-nginx", "page", &[], Some(80)),
    ("jupyter/scipy-notebook", "jupyter", &["start-notebook.sh", "start-notebook.py"], Some(8888)),
    ("gcr.io/run-ai-demo/quickstart-inference-marian", "inference", &[], Some(8888)),
    ("gcr.io/run-ai-demo/example-triton-server", "inference", &[], Some(8000)),
    ("runai.jfrog.io/demo/example-triton-server", "inference", &[], Some(8000)),
    ("gcr.io/run-ai-demo/quickstart-inference-marian-client", "inference-client", &[], None),
    ("gcr.io/run-ai-demo/example-triton-client", "inference-client", &["perf_analyzer"], None),
    ("runai.jfrog.io/demo/example-triton-client", "inference-client", &["perf_analyzer"], None),
];

impl ImageTable {
    /// The built-in table. `binary` is the `elastane` program.
    #[must_use]
    pub fn new(binary: &Path) -> Self {
        let program = [binary.display().to_string(), "quickstart-workload".to_owned()];
        let shell = Image { default_args: vec!["/bin/sh".into()], ..Image::default() };
        let quickstarts = QUICKSTARTS.iter().map(|(name, words)| {
            let words = words.iter().map(|word| (*word).to_owned());
            let entrypoint = program.iter().cloned().chain(words).collect();
            (*name, Image { entrypoint, ..Image::default() })
        });
        let shells = SHELLS.iter().map(|name| (*name, shell.clone()));
        let stand_ins = STAND_INS.iter().map(|(name, word, programs, port)| {
            let entrypoint = program.iter().cloned().chain([(*word).to_owned()]).collect();
            (*name, Image { entrypoint, programs, port: *port, ..Image::default() })
        });
        let all = quickstarts.chain(shells).chain(stand_ins);
        Self(all.map(|(name, image)| (plain_name(name).to_owned(), image)).collect())
    }

    /// Adds an image, or replaces its program.
    #[must_use]
    pub fn with(mut self, name: &str, image: Image) -> Self {
        self.0.insert(plain_name(name).to_owned(), image);
        self
    }

    /// The names in the table, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Command line of a specification: its own command, or the image's.
    pub(crate) fn argv(&self, spec: &RunSpec) -> Result<Vec<String>, Error> {
        let own = spec.command.as_deref().unwrap_or_default();
        let argv = match (own, self.runs(spec)) {
            (command, Some(image)) => {
                let args = if spec.args.is_empty() { &image.default_args } else { &spec.args };
                [image.entrypoint.as_slice(), command, args].concat()
            }
            ([], None) => return Err(self.unknown(&spec.image)),
            (command, None) => [command, &spec.args].concat(),
        };
        match argv.first() {
            Some(program) if !program.is_empty() => Ok(argv),
            _ => Err(Error::Invalid(
                "the command is empty; its first word must name a program".to_owned(),
            )),
        }
    }

    /// The port of the image, where its own program runs.
    pub(crate) fn port(&self, spec: &RunSpec) -> Option<u16> {
        self.runs(spec)?.port
    }

    /// The image whose program a specification runs.
    fn runs(&self, spec: &RunSpec) -> Option<&Image> {
        let image = self.0.get(plain_name(&spec.image))?;
        let own = spec.command.as_deref().unwrap_or_default();
        own.first().is_none_or(|first| image.programs.contains(&first.as_str())).then_some(image)
    }

    fn unknown(&self, image: &str) -> Error {
        let known: Vec<&str> = self.names().collect();
        Error::Invalid(format!(
            "image `{image}` brings no command on this machine: without a container runtime, \
             images are names in a table ({}). Give the command to run on the host \
             (`--command -- <program> <arguments>`), or use one of these images",
            known.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::tests::spec;

    fn argv(image: &str, command: Option<&[&str]>, args: &[&str]) -> Result<Vec<String>, String> {
        let own = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut spec = spec();
        (spec.image, spec.command, spec.args) = (image.to_owned(), command.map(own), own(args));
        ImageTable::new(Path::new("/bin/elastane")).argv(&spec).map_err(|error| error.to_string())
    }

    #[test]
    fn the_quickstart_is_this_program() {
        let line = ["/bin/elastane", "quickstart-workload"].map(str::to_owned).to_vec();
        assert_eq!(argv("gcr.io/run-ai-demo/quickstart", None, &[]), Ok(line.clone()));
        assert_eq!(argv("runai.jfrog.io/demo/quickstart:latest", None, &[]), Ok(line.clone()));
        let with = [line, vec!["--steps".to_owned()]].concat();
        assert_eq!(argv("gcr.io/run-ai-demo/quickstart", None, &["--steps"]), Ok(with));
    }

    #[test]
    fn a_program_of_an_image_runs_by_its_stand_in() {
        let line = |words: &[&str]| {
            let all = [&["/bin/elastane", "quickstart-workload"], words].concat();
            Ok(all.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        let notebook = "jupyter/scipy-notebook:latest";
        assert_eq!(argv(notebook, None, &[]), line(&["jupyter"]));
        let words = ["jupyter", "start-notebook.sh", "--x"];
        assert_eq!(argv(notebook, Some(&["start-notebook.sh"]), &["--x"]), line(&words));
        assert_eq!(argv(notebook, Some(&["sh"]), &[]), Ok(vec!["sh".to_owned()]));
        let client = "gcr.io/run-ai-demo/quickstart-inference-marian-client";
        let words = ["inference-client", "--port", "80"];
        assert_eq!(argv(client, None, &["--port", "80"]), line(&words));
    }

    #[test]
    fn an_image_has_a_port_where_its_own_program_runs() {
        let table = ImageTable::new(Path::new("/bin/elastane"));
        let mut spec = spec();
        spec.image = "zembutsu/docker-sample-nginx".to_owned();
        assert_eq!(table.port(&spec), Some(80));
        spec.command = Some(vec!["sleep".to_owned()]);
        assert_eq!(table.port(&spec), None);
    }

    #[test]
    fn a_command_replaces_the_entrypoint_and_arguments_the_default_ones() {
        assert_eq!(argv("ubuntu", None, &[]), Ok(vec!["/bin/sh".to_owned()]));
        let line = Ok(vec!["sleep".to_owned(), "9".to_owned()]);
        assert_eq!(argv("ubuntu", None, &["sleep", "9"]), line);
        assert_eq!(argv("nobody/knows", Some(&["sleep"]), &["9"]), line);
    }

    #[test]
    fn an_unknown_image_without_a_command_says_what_to_type() {
        let error = argv("nobody/knows:3", None, &[]).expect_err("unknown");
        for part in ["nobody/knows:3", "--command -- ", "gcr.io/run-ai-demo/quickstart"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(argv("ubuntu", Some(&[""]), &[]).expect_err("empty").contains("is empty"));
    }
}
