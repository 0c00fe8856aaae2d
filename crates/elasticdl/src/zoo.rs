//! Images of model zoos. Owns: the Dockerfile that `init` writes, and the calls of `docker`. Does
//! not know about: the content of a zoo.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use cli_kit::exit::Error;

use crate::parse::Values;

/// Name of the file that `init` writes.
const FILE: &str = "Dockerfile";

/// Writes the Dockerfile of a zoo into the current folder.
pub(crate) fn init(values: &Values, out: &mut dyn Write) -> Result<(), Error> {
    if Path::new(FILE).exists() {
        return Err(Error::Failed(format!("{FILE} is there already; move it away, or edit it")));
    }
    let zoo = values.text("model_zoo");
    let needs = Path::new(zoo).join("requirements.txt");
    if !needs.is_file() {
        let path = needs.display();
        return Err(Error::Usage(format!(
            "--model_zoo: {path} is not there; write what the models need into it, or make it empty"
        )));
    }
    std::fs::write(FILE, dockerfile(values))?;
    writeln!(out, "{FILE} was written; `elasticdl zoo build . --image NAME` makes the image")?;
    Ok(())
}

fn dockerfile(values: &Values) -> String {
    let (base, zoo) = (values.text("base_image"), values.text("model_zoo"));
    let index = values.text("extra_pypi_index");
    let pip = format!("RUN pip install --no-cache-dir --extra-index-url={index}");
    let own = match values.some("local_pkg_dir") {
        Some(folder) => {
            format!("COPY {folder} /local_pkg\nRUN pip install --no-cache-dir /local_pkg/*.whl\n")
        }
        None => format!("{pip} elastane\n"),
    };
    format!(
        "FROM {base}\n{own}COPY {zoo} /model_zoo\n{pip} -r /model_zoo/requirements.txt\n\
         # Behind installed packages: a folder of the zoo may have the name of one.\n\
         RUN printf '/\\n/model_zoo\\n' > \"$(python3 -c 'import sysconfig; \
         print(sysconfig.get_path(\"purelib\"))')/model_zoo.pth\"\n"
    )
}

/// Builds the image of a zoo.
pub(crate) fn build(path: &str, values: &Values) -> Result<(), Error> {
    let file = Path::new(path).join(FILE);
    if !file.is_file() {
        let path = file.display();
        return Err(Error::Usage(format!("{path} is not there; `elasticdl zoo init` writes it")));
    }
    let mut docker = Command::new("docker");
    docker.args(["build", "--tag", values.text("image"), path]);
    if values.is_given("docker_base_url") {
        docker.env("DOCKER_HOST", values.text("docker_base_url"));
    }
    let done = docker.status();
    let done = done.map_err(|error| Error::Failed(format!("cannot run `docker`: {error}")))?;
    match done.success() {
        true => Ok(()),
        false => Err(Error::Failed(format!("`docker build` failed ({done})"))),
    }
}

/// The error of `push`: images are not pushed.
pub(crate) fn push(image: &str) -> Error {
    Error::Failed(format!(
        "the push is refused: no image goes to a registry from here; `docker push {image}` does it"
    ))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::dockerfile;
    use crate::parse::{Invocation, parse};

    #[test]
    fn the_dockerfile_says_what_the_flags_say() {
        let text = |line: &str| {
            let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            match parse(&argv).expect(line).asked {
                Invocation::ZooInit(values) => dockerfile(&values),
                other => panic!("{other:?}"),
            }
        };
        expect_test::expect![[r#"
            FROM python:3.6
            RUN pip install --no-cache-dir --extra-index-url=https://pypi.org/simple elastane
            COPY . /model_zoo
            RUN pip install --no-cache-dir --extra-index-url=https://pypi.org/simple -r /model_zoo/requirements.txt
            # Behind installed packages: a folder of the zoo may have the name of one.
            RUN printf '/\n/model_zoo\n' > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/model_zoo.pth"
        "#]]
        .assert_eq(&text("elasticdl zoo init"));
        let own = text("elasticdl zoo init --base_image=debian --local_pkg_dir=wheels");
        assert!(own.starts_with("FROM debian\nCOPY wheels /local_pkg\n"), "{own}");
    }
}
