//! The environment variables of a process. Owns: which variables belong to whom, and their
//! precedence.
//!
//! Three layers, later ones win: a few variables of the server's own environment (`INHERITED`),
//! the user's variables, the platform's. The platform wins because its variables state what was
//! granted: a run that sets its own GPUs would use another's. `PATH` and `HOME` are not the
//! platform's; a user may set them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::{
    Container, Error, Framework, Gang, IsolationKind, JOB_TOKEN_FILE, JOB_TOKEN_VARIABLE, Member,
    RunSpec, Secret, SecretPlace,
};

use engine_channel::{CHANNEL_VARIABLE, MEMORY_VARIABLE, SOCKET};

use crate::container;
use crate::isolation::{Account, first_closed};
use crate::secrets::{FOLDER_VARIABLE, below};

/// Where a run finds its copies: `/code` is at `$ELASTANE_MOUNTS_DIR/code`.
const COPIES_VARIABLE: &str = "ELASTANE_MOUNTS_DIR";
/// The variables of the server's environment that a run inherits.
const INHERITED: [&str; 8] = ["PATH", "LANG", "LC_ALL", "TZ", "TERM", "USER", "LOGNAME", "SHELL"];
/// `PATH` if the server was started without one.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where Python finds the packages of a user.
const PACKAGES: &str = "PYTHONUSERBASE";
/// The shell of an account that has none of its own.
const SHELL_DEFAULT: &str = "/bin/sh";

/// The folders that a run's variables name.
#[derive(Debug, Clone)]
pub(crate) struct Folders<'a> {
    /// Its home, kept from one generation to the next.
    pub(crate) home: PathBuf,
    /// Data for later generations.
    pub(crate) checkpoint: PathBuf,
    /// Programs that replace the driver's on simulated devices.
    pub(crate) shims: &'a Path,
    /// Where the server's programs are.
    pub(crate) programs: &'a Path,
    /// Where its secret files are.
    pub(crate) secrets: PathBuf,
    /// Where its copies of repositories and buckets are.
    pub(crate) copies: PathBuf,
    /// The hostfile of MPI, for runs that need one.
    pub(crate) hostfile: PathBuf,
    /// Where the socket of its channel is.
    pub(crate) channel: PathBuf,
    /// Programs of the platform, where the search path has no others of their names.
    pub(crate) tools: &'a Path,
    /// For copies of its checkpoints in memory, if the machine has that.
    pub(crate) memory: Option<PathBuf>,
}

/// The variables of this process's environment that runs inherit.
pub(crate) fn inherited() -> BTreeMap<String, String> {
    let mut kept: BTreeMap<String, String> = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect();
    kept.entry("PATH".to_owned()).or_insert_with(|| PATH_DEFAULT.to_owned());
    // Python packages of the server's user are found although `HOME` differs.
    if let Ok(home) = std::env::var("HOME") {
        kept.insert(PACKAGES.to_owned(), format!("{home}/.local"));
    }
    kept
}

/// Inherited variables for a run with another account.
pub(crate) fn of_account(
    inherited: &BTreeMap<String, String>,
    account: Option<&Account>,
) -> BTreeMap<String, String> {
    let mut env = inherited.clone();
    let Some(account) = account else { return env };
    env.extend(["USER", "LOGNAME"].map(|name| (name.to_owned(), account.name.clone())));
    let shell = account.shell.clone().unwrap_or_else(|| SHELL_DEFAULT.to_owned());
    env.insert("SHELL".to_owned(), shell);
    if let Some(path) = env.get_mut("PATH") {
        *path = enterable(path, account);
    }
    // Not those of the server's user.
    match &account.home {
        Some(home) => {
            env.insert(PACKAGES.to_owned(), home.join(".local").display().to_string());
        }
        None => drop(env.remove(PACKAGES)),
    }
    env
}

/// The folders of a search path that an account can enter: a closed one would turn the error for a
/// missing program into "permission denied".
fn enterable(path: &str, account: &Account) -> String {
    let folders: Vec<_> = std::env::split_paths(path).collect();
    let open = folders.iter().filter(|folder| first_closed(folder, account).is_none());
    let joined = std::env::join_paths(open).ok().and_then(|path| path.into_string().ok());
    joined.filter(|path| !path.is_empty()).unwrap_or_else(|| PATH_DEFAULT.to_owned())
}

/// Checks what cannot be passed to a process.
///
/// # Errors
/// Names the variable, the argument or the field.
pub(crate) fn check(
    spec: &RunSpec,
    argv: &[String],
    account: Option<&Account>,
    isolation: IsolationKind,
) -> Result<(), Error> {
    container::check(&spec.container, account, isolation)?;
    engine::environment::check(spec, argv)
}

/// The complete environment of a run.
pub(crate) fn environment(
    inherited: &BTreeMap<String, String>,
    spec: &RunSpec,
    folders: &Folders<'_>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut env = inherited.clone();
    env.insert("HOME".into(), folders.home.display().to_string());
    env.extend(spec.env.clone());
    engine::environment::complete(&mut env, spec)?;
    env.insert("ELASTANE_CHECKPOINT_DIR".into(), folders.checkpoint.display().to_string());
    env.insert(CHANNEL_VARIABLE.into(), folders.channel.join(SOCKET).display().to_string());
    match &folders.memory {
        Some(folder) => drop(env.insert(MEMORY_VARIABLE.into(), folder.display().to_string())),
        None => drop(env.remove(MEMORY_VARIABLE)),
    }
    put_last(&mut env, folders.tools);
    let in_file = |secret: &Secret| matches!(secret.to, SecretPlace::File { .. });
    if spec.secrets.iter().any(in_file) {
        env.insert(FOLDER_VARIABLE.into(), folders.secrets.display().to_string());
    }
    if engine::copy::copies(&spec.container).next().is_some() {
        env.insert(COPIES_VARIABLE.into(), folders.copies.display().to_string());
    }
    if let Some(gang) = &spec.gang {
        gang.complete(&mut env, &address, spec.devices.len());
        if gang.framework == Framework::Mpi {
            let path = folders.hostfile.display().to_string();
            env.extend(Gang::HOSTFILE_NAMES.map(|name| (name.to_owned(), path.clone())));
        }
        if gang.framework == Framework::ElasticDl {
            let path = below(&folders.secrets, Path::new(JOB_TOKEN_FILE));
            env.insert(JOB_TOKEN_VARIABLE.into(), path.display().to_string());
        }
        if gang.runs_job_program() {
            put_first(&mut env, folders.programs);
        }
    }
    if spec.devices.iter().any(|device| device.simulated) {
        put_first(&mut env, folders.shims);
    }
    Ok(env)
}

/// Has programs be looked for in this folder first.
fn put_first(env: &mut BTreeMap<String, String>, folder: &Path) {
    let path = env.get("PATH").map_or(PATH_DEFAULT, String::as_str);
    let path = format!("{}:{path}", folder.display());
    env.insert("PATH".into(), path);
}

/// The working directory of a run: inside a copy, if the container's would be.
pub(crate) fn working_dir(copies: &Path, folder: &Path, container: &Container) -> PathBuf {
    let copied = engine::copy::copies(container).any(|(to, _)| folder.starts_with(to));
    if copied { below(copies, folder) } else { folder.to_owned() }
}

/// Has programs be looked for in this folder last.
fn put_last(env: &mut BTreeMap<String, String>, folder: &Path) {
    let path = env.get("PATH").map_or(PATH_DEFAULT, String::as_str);
    let path = format!("{path}:{}", folder.display());
    env.insert("PATH".into(), path);
}

/// The address at which the pods of a gang reach each other: all nodes of this engine are one
/// machine.
pub(crate) fn address(_: &Member) -> String {
    "127.0.0.1".to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use engine::{Device, RunKey};
    use uuid::Uuid;

    pub(crate) fn spec() -> RunSpec {
        RunSpec {
            key: RunKey { pod: Uuid::from_u128(7), generation: 2 },
            workload_id: Uuid::from_u128(3),
            pod_name: "train-0-2".into(),
            ..engine_conformance::spec("ubuntu")
        }
    }

    fn device(index: u32, millis: u64, simulated: bool) -> Device {
        let uuid = format!("GPU-{index}");
        let memory_bytes = 16 << 30;
        let memory = engine::Bounds::of(memory_bytes * millis / 1000);
        Device { index, uuid, simulated, millis, memory_bytes, memory }
    }

    fn seen(spec: &RunSpec) -> BTreeMap<String, String> {
        let inherited = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        let folders = Folders {
            home: "/h".into(),
            checkpoint: "/c".into(),
            shims: Path::new("/shims"),
            programs: Path::new("/programs"),
            secrets: "/s".into(),
            copies: "/m".into(),
            hostfile: "/hosts".into(),
            channel: "/channel".into(),
            tools: Path::new("/tools"),
            memory: Some("/memory".into()),
        };
        environment(&inherited, spec, &folders).expect("an environment")
    }

    #[test]
    fn a_run_knows_who_it_is_and_what_it_was_granted() {
        let mut spec = spec();
        spec.devices = vec![device(2, 1000, false), device(3, 1000, false)];
        let env = seen(&spec);
        for (name, value) in [
            ("RUNAI_PROJECT", "team-a"),
            ("JOB_NAME", "train"),
            ("POD_INDEX", "0"),
            ("RUNAI_NUM_OF_GPUS", "2"),
            ("GPU_PORTION", "1"),
            ("CUDA_VISIBLE_DEVICES", "2,3"),
            ("NVIDIA_VISIBLE_DEVICES", "GPU-2,GPU-3"),
            ("PATH", "/bin:/tools"),
            ("HOME", "/h"),
            ("ELASTANE_CHANNEL", "/channel/socket"),
            ("ELASTANE_MEMORY_DIR", "/memory"),
            ("ELASTANE_RUN", "00000000-0000-0000-0000-000000000007.2"),
        ] {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(
            !env.contains_key("GPU_MEMORY_LIMIT") && !env.contains_key("ELASTANE_SIMULATED_GPUS")
        );
    }

    #[test]
    fn a_pod_of_an_indexed_job_has_its_number_in_a_variable_and_in_its_words() {
        let mut spec = spec();
        spec.pod_index = 3;
        let filled = |spec: &RunSpec| {
            let mut words = ["shard-$(JOB_COMPLETION_INDEX)".to_owned()];
            engine::environment::fill_completion_index(&mut words, spec);
            (seen(spec).remove("JOB_COMPLETION_INDEX"), words.concat())
        };
        assert_eq!(filled(&spec), (None, "shard-$(JOB_COMPLETION_INDEX)".to_owned()));
        spec.env.insert("JOB_COMPLETION_INDEX".to_owned(), String::new());
        assert_eq!(filled(&spec), (Some("3".to_owned()), "shard-3".to_owned()));
    }

    #[test]
    fn half_a_simulated_gpu_is_told_its_half() {
        let mut spec = spec();
        spec.devices = vec![device(0, 500, true)];
        let env = seen(&spec);
        assert_eq!(env["GPU_MEMORY_LIMIT"], (8_u64 << 30).to_string());
        assert_eq!(env["RUNAI_NUM_OF_GPUS"], "0.5");
        assert_eq!(env["ELASTANE_SIMULATED_GPUS"], "1");
        assert_eq!(env["PATH"], "/shims:/bin:/tools");
    }

    #[test]
    fn a_run_after_a_resize_knows_its_size_before() {
        let mut spec = spec();
        spec.env = BTreeMap::from([("ELASTANE_RESIZED_FROM".to_owned(), "8".to_owned())]);
        assert!(!seen(&spec).contains_key("ELASTANE_RESIZED_FROM"), "the user does not know it");
        spec.devices = vec![device(2, 1000, true)];
        spec.resized_from = Some(2000);
        let env = seen(&spec);
        assert_eq!((&*env["ELASTANE_RESIZED_FROM"], &*env["RUNAI_NUM_OF_GPUS"]), ("2", "1"));
    }

    #[test]
    fn the_user_wins_over_the_machine_and_the_platform_over_the_user() {
        let mut spec = spec();
        spec.env = BTreeMap::from(
            [
                ("PATH", "/mine"),
                ("HOME", "/my"),
                ("CUDA_VISIBLE_DEVICES", "0,1,2,3"),
                ("ELASTANE_RUN", "x"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let env = seen(&spec);
        assert_eq!((&*env["PATH"], &*env["HOME"]), ("/mine:/tools", "/my"));
        assert_eq!(env["CUDA_VISIBLE_DEVICES"], "");
        assert_eq!(env["NVIDIA_VISIBLE_DEVICES"], "void");
        assert_ne!(env["ELASTANE_RUN"], "x");
    }

    #[test]
    fn what_no_process_can_be_given_is_refused() {
        let none = IsolationKind::None;
        let check = |spec: &RunSpec, argv: &[String]| check(spec, argv, None, none);
        let mut spec = spec();
        spec.env = BTreeMap::from([("A=B".to_owned(), String::new())]);
        assert!(check(&spec, &[]).is_err());
        spec.env = BTreeMap::from([("A".to_owned(), "a\0b".to_owned())]);
        assert!(check(&spec, &[]).is_err());
        spec.env.clear();
        assert!(check(&spec, &["a\0".to_owned()]).is_err());
        assert!(check(&spec, &["a".to_owned()]).is_ok());
    }

    #[test]
    fn a_run_of_another_account_is_not_told_of_the_servers_user() {
        let closed = tempfile::tempdir().expect("a folder");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&closed, mode).expect("changed");
        let path = format!("{}/bin:/bin", closed.path().display());
        let words = [("PATH", path.as_str()), ("USER", "operator"), (PACKAGES, "/operator/.local")];
        let own = words.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = of_account(&BTreeMap::from(own), Some(&Account::private(1_900_000_007)));
        assert!(
            !env.contains_key(PACKAGES) && !env.values().any(|value| value.contains("operator"))
        );
        let names = ["PATH", "USER", "LOGNAME", "SHELL"].map(|name| env[name].as_str());
        assert_eq!(names, ["/bin", "elastane-1900000007", "elastane-1900000007", "/bin/sh"]);
    }
}
