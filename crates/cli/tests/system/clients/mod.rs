//! Third-party programs against the built server: the published Python client calls it and
//! validates its responses, schemathesis sends valid and invalid requests of the server's own
//! description, moto has buckets that are copied, and users log in at a certified OpenID Connect
//! provider. Also our own Python packages with the frameworks that they support.
//!
//! They come from PyPI and npm into folders of their own. If they cannot be installed, each test is
//! counted as skipped with the reason.

mod login;

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::process::Command;

use fixture::STUCK_AFTER;

use crate::crash::number_from;
use crate::follow;
use crate::sandbox::{self, Sandbox};

/// Python packages to install, at the tested versions.
const PACKAGES: [&str; 5] = [
    "runapy==1.224.0",
    "schemathesis==4.32.5",
    "moto[s3]==5.2.5",
    "flask-cors==6.0.5",
    "numpy==1.26.4",
];
/// Packages for the tests of our own packages. PyTorch is that of the system, if it has one: on
/// PyPI it comes with gigabytes for GPUs. It needs a numpy below 2.
const FRAMEWORKS: [&str; 9] = [
    "numpy==1.26.4",
    "grpcio==1.85.1",
    "protobuf==5.29.6",
    "scikit-learn==1.9.1",
    "tensorflow-cpu==2.18.1",
    "tf-keras==2.18.0",
    "pyyaml==6.0.3",
    "runapy==1.224.0",
    "pytest==8.4.2",
];
/// Our own packages.
const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk");
/// Checks of schemathesis. Two are left out: that every request allowed by the schema is accepted
/// (a name in use and an unsupported field are refused with a reason), and that every other is
/// refused (serde also takes an object as the list of its values).
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,missing_required_header,\
    unsupported_method,allow_header_conformance,use_after_free,ensure_resource_availability,\
    ignored_auth";

/// Failure of a test, printed without escapes: the output of a program has many lines.
pub(crate) struct Failed(String);

impl fmt::Debug for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<T: Display> From<T> for Failed {
    fn from(why: T) -> Self {
        Self(why.to_string())
    }
}

/// Tests that get the folder of their programs, which is installed once; skipped if that fails.
macro_rules! tests_with {
    ($install:path: $($name:ident = $run:expr;)+) => {$(
        #[test]
        fn $name() -> Result<(), Failed> {
            let installed = fixture::shared(stringify!($install), || {
                $install().map(|path: PathBuf| path.display().to_string())
            });
            match installed {
                Ok(path) => $run(Path::new(&path)),
                Err(why) => {
                    skip::skipped(&why);
                    Ok(())
                }
            }
        }
    )+};
}

tests_with! { clients:
    runapy_plain = |bin: &Path| runapy(bin, "sync");
    runapy_threaded = |bin: &Path| runapy(bin, "threaded");
    runapy_asynchronous = |bin: &Path| runapy(bin, "async");
    generated_requests = schemathesis;
    copies_of_buckets = buckets;
    checkpoints_in_buckets = saved_in_buckets;
}

tests_with! { frameworks:
    sdk_python = |bin: &Path| suite(bin, "python");
    sdk_runai = |bin: &Path| suite(bin, "runai");
    walkthrough_elastic_keras = elastic_keras;
    jobs_with_checkpoints_in_buckets = jobs_saved_in_buckets;
    jobs_of_published_forms = |bin: &Path| published_forms(bin).map(|said| println!("{said}"));
}

tests_with! { provider_library:
    login_rs256 = |library: &Path| login::walk(library, "RS256");
    login_es256 = |library: &Path| login::walk(library, "ES256");
    login_hs256_is_refused = login::shared_key;
    login_without_a_browser = login::elsewhere;
    login_without_the_provider = login::provider_down;
}

/// The folder of the third-party programs, or the reason why there is none.
fn clients() -> Result<PathBuf, String> {
    environment("python-clients", &["python3", "-m", "venv", "--clear"], &PACKAGES)
}

/// The login provider's library, or the reason why there is none.
fn provider_library() -> Result<PathBuf, String> {
    login::library()
}

/// The folder of a Python with frameworks and our own packages, or the reason why there is none.
fn frameworks() -> Result<PathBuf, String> {
    // The PyTorch of the system works only with the system's Python.
    let system = ["/usr/bin/python3", "-m", "venv", "--clear", "--without-pip"];
    let bin = environment(
        "python-frameworks",
        &[&system[..], &["--system-site-packages"]].concat(),
        &FRAMEWORKS,
    )?;
    let packages = ["python", "runai"].map(|name| format!("{SDK}/{name}"));
    pip(
        &bin,
        ["--force-reinstall", "--no-deps"].into_iter().chain(packages.iter().map(String::as_str)),
    )?;
    Ok(bin)
}

/// The `bin` folder of a virtual environment with packages, which is created if needed.
fn environment(name: &str, venv: &[&str], packages: &[&str]) -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (bin, done, wanted) = (dir.join("bin"), dir.join("installed"), packages.join("\n"));
    if std::fs::read_to_string(&done).is_ok_and(|packages| packages == wanted) {
        return Ok(bin);
    }
    step(venv[0], Command::new(venv[0]).args(&venv[1..]).arg(&dir))?;
    pip(&bin, packages.iter().copied())?;
    std::fs::write(done, wanted).map_err(|error| error.to_string())?;
    Ok(bin)
}

/// Installs packages with the Python of a folder.
fn pip<'a>(bin: &Path, packages: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--python"]).arg(bin.join("python3"));
    step("pip", command.args(["install", "--quiet", "--retries", "1"]).args(packages))
}

/// Runs an installation step.
fn step(what: &str, command: &mut Command) -> Result<(), String> {
    match command.output() {
        Err(_) => Err(format!("no {what}")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
            Err(format!("{what} failed: {last}"))
        }
    }
}

fn server() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x16GiB");
    sandbox
}

/// Runs a program to its end; prints its output if it fails.
fn passes(sandbox: &Sandbox, line: &str) -> Result<(), Failed> {
    let output = sandbox.shell(line);
    if output.code == Some(0) { Ok(()) } else { Err(Failed::from(output.text)) }
}

fn runapy(bin: &Path, variant: &str) -> Result<(), Failed> {
    let sandbox = server();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/clients/runapy_walk.py");
    let credentials = sandbox.state_dir().join("admin-credentials.json");
    let python = bin.join("python");
    let [python, script, credentials] = [&python, &script, &credentials].map(|path| path.display());
    let url = format!("http://127.0.0.1:{}", sandbox.port());
    passes(&sandbox, &format!("{python} {script} {url} {credentials} {variant}"))
}

fn buckets(bin: &Path) -> Result<(), Failed> {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x16GiB --runtime process");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/clients/s3_walk.py");
    let (python, token) = (bin.join("python"), sandbox.state_dir().join("token"));
    let [python, script, token] = [&python, &script, &token].map(|path| path.display());
    let url = format!("http://127.0.0.1:{}", sandbox.port());
    passes(&sandbox, &format!("{python} {script} {url} {token}"))
}

fn saved_in_buckets(bin: &Path) -> Result<(), Failed> {
    let sandbox = Sandbox::new();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/clients/s3_checkpoints.py");
    let python = bin.join("python");
    let [python, script] = [&python, &script].map(|path| path.display());
    let line = format!("mkdir pod && PYTHONPATH={SDK}/python/src {python} {script} pod");
    passes(&sandbox, &line)
}

fn schemathesis(bin: &Path) -> Result<(), Failed> {
    let sandbox = server();
    passes(&sandbox, "elastane project create team-a --gpu-quota 2")?;
    let token = sandbox.state_dir().join("token");
    let (program, token) = (bin.join("schemathesis"), token.display());
    // Two are left out, one stops the server and one never ends; and those that are only refused.
    // No phase `coverage`: it tries every parameter of every list and takes longer than all the
    // rest.
    let line = format!(
        "{} run http://127.0.0.1:{}/elastane/v1/openapi.json --header \"Authorization: Bearer $(cat {token})\" \
         --exclude-path /elastane/v1/down --exclude-path /elastane/v1/events --exclude-deprecated --checks {CHECKS} \
         --phases fuzzing,stateful --max-examples 5 --workers 2 --seed 1 --no-color",
        program.display(),
        sandbox.port()
    );
    passes(&sandbox, &line)
}

/// Runs the tests of one of our own packages. Tests that it skips are counted.
fn suite(bin: &Path, package: &str) -> Result<(), Failed> {
    let sandbox = Sandbox::new();
    let (python, folder) = (bin.join("python3"), format!("{SDK}/{package}"));
    // More threads than free cores would wait for each other.
    let output = sandbox.shell(&format!(
        "cd {folder} && OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=3 PYTHONDONTWRITEBYTECODE=1 {} -m pytest \
         -q -rs -p no:cacheprovider --basetemp=$HOME/pytest tests",
        python.display()
    ));
    output.text.lines().filter(|line| line.starts_with("SKIPPED")).for_each(skip::skipped);
    if output.code == Some(0) && output.text.contains(" passed") {
        return Ok(());
    }
    Err(Failed::from(output.text))
}

/// A job whose workers have frameworks, and whose checkpoints are in a bucket of moto.
fn jobs_saved_in_buckets(bin: &Path) -> Result<(), Failed> {
    let moto = match fixture::shared("clients", || clients().map(|it| it.display().to_string())) {
        Ok(bin) => Path::new(&bin).join("python"),
        Err(why) => {
            skip::skipped(&why);
            return Ok(());
        }
    };
    let sandbox = Sandbox::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/clients/s3_training.py");
    let python = bin.join("python");
    let [moto, script, python] = [&moto, &script, &python].map(|path| path.display());
    passes(&sandbox, &format!("{moto} {script} {SDK}/python/examples {python}"))
}

/// The walk-through of an elastic Keras training. Runs have other accounts, so its Python has to be
/// in a readable folder.
fn elastic_keras(bin: &Path) -> Result<(), Failed> {
    if let Err(why) = sandbox::open_to_others(bin) {
        skip::skipped(&why);
        return Ok(());
    }
    let sandbox = Sandbox::new().with_programs(bin);
    passes(&sandbox, &format!("cp {SDK}/runai/examples/* . && chmod -R a+rX ."))?;
    let followed = follow::follow_on(sandbox, &follow::read("elastic-keras"), |_| STUCK_AFTER);
    followed.map_err(|what| Failed::from(format!("docs/walkthroughs/elastic-keras.md, {what}")))
}

/// Jobs of models and loops in each published form: some by default, all of them in a soak. Returns
/// the tables.
fn published_forms(bin: &Path) -> Result<String, Failed> {
    if let Err(why) = sandbox::open_to_others(bin) {
        skip::skipped(&why);
        return Ok(String::new());
    }
    let mut sandbox = Sandbox::new().with_programs(bin);
    sandbox.start_server("elastane up --nodes 1x0,cpu=64,memory=200GB");
    passes(&sandbox, "elastane project create default && runai config project default")?;
    let is_soak = number_from("ELASTANE_SOAK_ROUNDS", 0) > 0;
    let runs: &[&str] = if is_soak {
        &["--all --framework keras-3", "--all --framework keras-legacy", "--all --framework torch"]
    } else {
        &[""]
    };
    let mut said = String::new();
    for flags in runs {
        let line =
            format!("mkdir run && cd run && python3 {SDK}/python/tests/form_jobs.py {flags}");
        let output = sandbox.shell(&line);
        if output.code != Some(0) {
            return Err(Failed::from(output.text));
        }
        said.push_str(&output.text);
        passes(&sandbox, "rm -r run")?;
    }
    Ok(said)
}
