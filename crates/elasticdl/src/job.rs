//! A job, independent of the form of its command line. Owns: the combined meaning of the flags.
//! Does not know about: how a job is submitted.

mod resources;
mod sharing;

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use elastic::High;

use resources::Of;
pub use resources::PodResources;
pub(crate) use resources::WORKER_REQUEST;
pub(crate) use sharing::{is_all_reduced, processes};

use crate::parse::{Form, Values};
use crate::values::{self, Volume, VolumeSource};

/// Volume claim that the first form mounts.
const SEED_CLAIM: &str = "fileserver-claim";
/// Priority classes of workers that are divided by priority.
const LOW: &str = "low";
const HIGH: &str = "high";
/// Default Python interpreter.
const PYTHON: &str = "python3";
/// Variable by which the server gives the parts of a job a certificate in addition to their token.
const TLS_VARIABLE: &str = "ELASTANE_JOB_TLS";

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Form of its command line.
    pub form: Form,
    /// Name.
    pub name: String,
    /// Project from its flags; `None` = that of the settings.
    pub project: Option<String>,
    /// Image of the master.
    pub image: String,
    /// Image of the workers.
    pub worker_image: String,
    /// Python interpreter of the workers.
    pub python: String,
    /// Resources of the master.
    pub master: PodResources,
    /// Resources of each worker.
    pub worker: PodResources,
    /// Number and resources of the parameter servers in pods of their own; `None` = there are no
    /// server pods.
    pub servers: Option<(u32, PodResources)>,
    /// Maximum number of workers.
    pub workers: u32,
    /// Minimum number of workers; `None` = the job waits for workers with its master alone.
    pub workers_min: Option<u32>,
    /// The priority class of the job.
    pub priority: Option<String>,
    /// Priority class of the workers beyond the minimum, if it differs.
    pub spare_priority: Option<&'static str>,
    /// Volumes of all pods.
    pub volumes: Vec<Volume>,
    /// Environment variables of all pods.
    pub variables: Vec<(String, String)>,
    /// Image pull policy; `None` if not given, as processes have no image.
    pub pull_policy: Option<String>,
    /// Credential of the pods for checkpoints in a bucket.
    pub checkpoint_credential: Option<String>,
    /// Number of restarts of a failed worker.
    pub relaunches: u32,
    /// Command of the workers in place of ElasticDL's training loop.
    pub command: Option<String>,
    /// Flags of the form that the master and the servers get, with their values.
    pub told: Vec<(&'static str, String)>,
}

/// Error of a combination of flags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A file that does not exist.
    #[error("--{flag}: {path} is not there; it is looked for from the present folder on")]
    NoFile {
        /// Flag that names the file.
        flag: &'static str,
        /// Path as typed.
        path: String,
    },
    /// Two flags of which only the first is given.
    #[error("--{0} goes with --{1}; give both, or none")]
    Alone(&'static str, &'static str),
    /// A missing flag.
    #[error("--{0} is missing: {1}")]
    Missing(&'static str, &'static str),
    /// A value that is not supported.
    #[error("--{flag}={value} cannot be had here: {why}")]
    NotHere {
        /// Flag.
        flag: &'static str,
        /// Value.
        value: String,
        /// Text that says what to do instead.
        why: &'static str,
    },
    /// A limit below the request.
    #[error(
        "--{flag}={value}: its {of} is below the request, --{request}={requested}; raise the limit, \
         or lower the request"
    )]
    BelowRequest {
        /// Flag of the limit.
        flag: &'static str,
        /// The limit as typed, or its default.
        value: String,
        /// The resource: `cpu`, `memory` or `gpu`.
        of: &'static str,
        /// Flag of the request.
        request: &'static str,
        /// The request as typed, or its default.
        requested: String,
    },
    /// A value of another form.
    #[error("--{0}: {1}")]
    Value(&'static str, String),
}

impl Job {
    /// The job of these flags; relative paths start at `folder`.
    ///
    /// # Errors
    /// The flags describe no valid job.
    pub fn new(form: Form, values: &Values, folder: &Path) -> Result<Self, JobError> {
        let seed = form == Form::Seed;
        let (base, name) = (values.text("image_base"), values.text("image_name"));
        let image = if seed || name.is_empty() { base } else { name };
        // A path is a local program; a name is an image.
        let is_program = image.starts_with('/') || image.starts_with("./");
        if is_program {
            let flag = if seed || name.is_empty() { "image_base" } else { "image_name" };
            exists(flag, &folder.join(image), image)?;
        }
        let (image, python) = match is_program {
            true => (String::new(), absolute(folder, image)),
            false => (image.to_owned(), PYTHON.to_owned()),
        };
        let workers = values.count(if seed { "num_worker" } else { "num_workers" });
        if workers == 0 {
            let flag = if seed { "num_worker" } else { "num_workers" };
            let why = "none is started by hand; give 1 or more";
            return Err(JobError::NotHere { flag, value: "0".to_owned(), why });
        }
        let Priorities { priority, spare_priority, workers_min } = priorities(values, workers)?;
        sharing::strategy(form, values)?;
        sharing::gradients(values)?;
        Ok(Self {
            form,
            name: values.text("job_name").to_owned(),
            project: project(values.text("namespace")),
            worker_image: values
                .some("worker_image")
                .filter(|_| !seed)
                .unwrap_or(&image)
                .to_owned(),
            image,
            python,
            master: resources::part(values, form, Of::Master)?,
            worker: resources::part(values, form, Of::Worker)?,
            servers: servers(values, form)?,
            workers,
            workers_min,
            priority,
            spare_priority,
            volumes: volumes(values, form)?,
            variables: variables(values)?,
            pull_policy: values
                .is_given("image_pull_policy")
                .then(|| values.text("image_pull_policy").to_owned()),
            checkpoint_credential: values.some("checkpoint_credential").map(str::to_owned),
            relaunches: match aux(values)? {
                true => 0,
                false if seed => 1,
                false => values.count("relaunch_on_worker_failure"),
            },
            command: values.some("job_command").map(str::to_owned),
            told: master_flags(form, values, folder)?,
        })
    }

    /// Name of its master.
    #[must_use]
    pub fn master_name(&self) -> String {
        match self.form {
            Form::Seed => format!("elasticdl-master-{}", self.name),
            _ => format!("elasticdl-{}-master", self.name),
        }
    }

    /// Names of its workers, `{}` in place of the number.
    #[must_use]
    pub fn worker_names(&self) -> String {
        match self.form {
            Form::Seed => format!("elasticdl-worker-{}-{{}}", self.name),
            _ => format!("elasticdl-{}-worker-{{}}", self.name),
        }
    }

    /// Names of its parameter servers, `{}` in place of the number.
    #[must_use]
    pub fn server_names(&self) -> String {
        format!("elasticdl-{}-ps-{{}}", self.name)
    }

    /// Its labels, in both published spellings.
    #[must_use]
    pub fn labels(&self) -> Vec<(&'static str, String)> {
        vec![
            ("app", "elasticdl".to_owned()),
            ("elasticdl_job_name", self.name.clone()),
            ("elasticdl-job-name", self.name.clone()),
        ]
    }
}

fn of<T>(flag: &'static str, value: Result<T, String>) -> Result<T, JobError> {
    value.map_err(|why| JobError::Value(flag, why))
}

fn absolute(folder: &Path, path: &str) -> String {
    let path: PathBuf = folder.join(path);
    path.strip_prefix("./").unwrap_or(&path).display().to_string()
}

fn exists(flag: &'static str, at: &Path, typed: &str) -> Result<(), JobError> {
    match at.exists() {
        true => Ok(()),
        false => Err(JobError::NoFile { flag, path: typed.to_owned() }),
    }
}

/// The project of a namespace; `None` for the default namespace, which stands for the project of
/// the settings.
fn project(namespace: &str) -> Option<String> {
    let own = namespace.strip_prefix("runai-").unwrap_or(namespace);
    Some(own).filter(|name| !name.is_empty() && *name != "default").map(str::to_owned)
}

/// Priorities of the pods of a job.
#[derive(Default)]
struct Priorities {
    priority: Option<String>,
    /// Priority class of workers beyond the minimum.
    spare_priority: Option<&'static str>,
    /// Minimum number of workers.
    workers_min: Option<u32>,
}

/// The priorities of a job. The master is never evicted alone, so it has the priority of the
/// required workers. Any of the workers can be these: a new one has the next number.
fn priorities(values: &Values, workers: u32) -> Result<Priorities, JobError> {
    let flag = "worker_pod_priority";
    let typed = High::from_str(values.text(flag));
    let typed = typed.map_err(|error| JobError::Value(flag, error.to_string()))?;
    if let High::Class(name) = &typed {
        let priority = Some(name.clone()).filter(|name| !name.is_empty());
        return Ok(Priorities { priority, ..Priorities::default() });
    }
    let classes = typed.assign(workers);
    let high = classes.iter().filter(|class| **class == Some(HIGH)).count();
    Ok(match u32::try_from(high) {
        Ok(0) | Err(_) => Priorities { priority: Some(LOW.to_owned()), ..Priorities::default() },
        Ok(high) => Priorities {
            priority: Some(HIGH.to_owned()),
            spare_priority: (high < workers).then_some(LOW),
            workers_min: Some(high),
        },
    })
}

/// True if failed workers are not restarted.
fn aux(values: &Values) -> Result<bool, JobError> {
    let flag = "aux_params";
    let mut disabled = false;
    for (name, value) in of(flag, values::parameters(values.text(flag)))? {
        match name.as_str() {
            "disable_relaunch" => disabled = value.eq_ignore_ascii_case("true"),
            _ => {
                let why = format!("`{}` is not known; disable_relaunch is", units::shown(&name));
                return Err(JobError::Value(flag, why));
            }
        }
    }
    Ok(disabled)
}

/// Parameter servers in pods of their own. The first form has none: its master holds the model.
fn servers(values: &Values, form: Form) -> Result<Option<(u32, PodResources)>, JobError> {
    match form {
        Form::Seed => Ok(None),
        _ => match values.count("num_ps_pods") {
            0 => Ok(None),
            number => Ok(Some((number, resources::part(values, form, Of::Server)?))),
        },
    }
}

/// Environment variables of all pods.
fn variables(values: &Values) -> Result<Vec<(String, String)>, JobError> {
    let mut all = of("envs", values::variables(values.text("envs")))?;
    if values.is_on("tls") {
        all.push((TLS_VARIABLE.to_owned(), "true".to_owned()));
    }
    Ok(all)
}

fn volumes(values: &Values, form: Form) -> Result<Vec<Volume>, JobError> {
    let mut all = of("volume", values::volumes(values.text("volume")))?;
    let cut = all
        .iter()
        .any(|one| matches!(one.source, VolumeSource::Claim(_)) && !one.sub_path.is_empty());
    if cut {
        let why = "a part of a claim cannot be mounted; leave sub_path out";
        return Err(JobError::Value("volume", why.to_owned()));
    }
    if form != Form::Seed {
        return Ok(all);
    }
    match (values.some("volume_name"), values.some("mount_path")) {
        (None, None) => {}
        (Some(_), Some(path)) => all.push(Volume {
            source: VolumeSource::Claim(SEED_CLAIM.to_owned()),
            mount_path: path.to_owned(),
            sub_path: String::new(),
        }),
        (Some(_), None) => return Err(JobError::Alone("volume_name", "mount_path")),
        (None, Some(_)) => return Err(JobError::Alone("mount_path", "volume_name")),
    }
    Ok(all)
}

/// Flags for the master, which describe the training.
fn master_flags(
    form: Form,
    values: &Values,
    folder: &Path,
) -> Result<Vec<(&'static str, String)>, JobError> {
    const PATHS: [&str; 2] = ["model_file", "model_zoo"];
    /// Flags about pods, which the master does not create.
    const OF_PODS: [&str; 16] = [
        "job_name",
        "image_base",
        "image_name",
        "worker_image",
        "repository",
        "namespace",
        "volume",
        "volume_name",
        "mount_path",
        "image_pull_policy",
        "restart_policy",
        "envs",
        "checkpoint_credential",
        "aux_params",
        "yaml",
        "job_command",
    ];
    if form != Form::Seed && values.some("model_def").is_none() && !values.is_given("job_command") {
        return Err(JobError::Missing(
            "model_def",
            "it says which model, as in mnist.custom_model",
        ));
    }
    // A loop of its own (`--job_command`) knows its data itself.
    if form == Form::Train
        && values.some("training_data").is_none()
        && !values.is_given("job_command")
    {
        return Err(JobError::Missing("training_data", "it says what the model is trained with"));
    }
    let mut told = Vec::new();
    for (name, value) in values.iter().filter(|(_, value)| !value.is_empty()) {
        // The number of processes is larger than that of the pods.
        let counts = name == WORKER_REQUEST && form != Form::Seed && processes(values) > 1;
        let about_pods = OF_PODS.contains(&name)
            || ["_cpu_", "_memory_", "_resource_", "_pod_priority"]
                .iter()
                .any(|part| name.contains(part));
        if about_pods && !counts {
            continue;
        }
        let is_path = PATHS.contains(&name);
        if is_path {
            let flag = PATHS.into_iter().find(|path| *path == name).unwrap_or("model_file");
            exists(flag, &folder.join(value), value)?;
        }
        told.push((name, if is_path { absolute(folder, value) } else { value.to_owned() }));
    }
    Ok(told)
}

#[cfg(test)]
mod tests;
