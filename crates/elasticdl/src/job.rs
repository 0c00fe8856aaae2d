//! A job, independent of the form of its command line. Owns: the combined meaning of the flags.
//! Does not know about: how a job is submitted.

mod sharing;

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use elastic::High;

pub(crate) use sharing::{is_all_reduced, processes};

use crate::parse::{Form, Values};
use crate::values::{self, Resources, Volume, VolumeSource};

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

/// Flag with the resources of a worker, and so its number of GPUs.
pub(crate) const WORKER_REQUEST: &str = "worker_resource_request";

/// Resource requests and limits of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodResources {
    /// Requests.
    pub request: Resources,
    /// Limits.
    pub limit: Resources,
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

/// Part of a job to which flags apply.
#[derive(Debug, Clone, Copy)]
enum Of {
    Master,
    Worker,
    Server,
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
            master: part(values, form, Of::Master)?,
            worker: part(values, form, Of::Worker)?,
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
            number => Ok(Some((number, part(values, form, Of::Server)?))),
        },
    }
}

fn part(values: &Values, form: Form, part: Of) -> Result<PodResources, JobError> {
    let [cpu, cpu_max, memory, memory_max, request, limit] = match part {
        Of::Master => [
            "master_cpu_request",
            "master_cpu_limit",
            "master_memory_request",
            "master_memory_limit",
            "master_resource_request",
            "master_resource_limit",
        ],
        Of::Worker => [
            "worker_cpu_request",
            "worker_cpu_limit",
            "worker_memory_request",
            "worker_memory_limit",
            WORKER_REQUEST,
            "worker_resource_limit",
        ],
        // The first form has no parameter servers.
        Of::Server => ["", "", "", "", "ps_resource_request", "ps_resource_limit"],
    };
    if form == Form::Seed {
        let amount = |cpu: &'static str, memory: &'static str| {
            Ok(Resources {
                cpu_millis: Some(of(cpu, values::millicores(values.text(cpu)))?),
                memory_bytes: Some(of(memory, values::memory(values.text(memory)))?),
                ..Resources::default()
            })
        };
        let pod =
            PodResources { request: amount(cpu, memory)?, limit: amount(cpu_max, memory_max)? };
        return pod.checked(values, &[(cpu, cpu_max), (memory, memory_max)]);
    }
    let asked = of(request, values::resources(values.text(request)))?;
    let most = match values.some(limit) {
        Some(text) => of(limit, values::resources(text))?,
        None => asked,
    };
    PodResources { request: asked, limit: most }.checked(values, &[(request, limit); 3])
}

impl PodResources {
    /// These amounts, if no limit is below its request; with the flags of requests and limits of
    /// cpu, memory and gpu, as far as the form has them.
    fn checked(
        self,
        values: &Values,
        flags: &[(&'static str, &'static str)],
    ) -> Result<Self, JobError> {
        let Self { request: asked, limit: most } = self;
        let amounts = [
            ("cpu", asked.cpu_millis, most.cpu_millis),
            ("memory", asked.memory_bytes, most.memory_bytes),
            ("gpu", asked.gpus.map(u64::from), most.gpus.map(u64::from)),
        ];
        for ((of, asked, most), &(request, flag)) in amounts.into_iter().zip(flags) {
            if most.is_some_and(|most| asked.is_some_and(|asked| most < asked)) {
                let (value, requested) = (values.text(flag), values.text(request));
                let (value, requested) = (value.to_owned(), requested.to_owned());
                return Err(JobError::BelowRequest { flag, value, of, request, requested });
            }
        }
        Ok(self)
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
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::parse::{Invocation, parse};

    fn job(line: &str) -> Result<Job, String> {
        let words = std::iter::once("elasticdl").chain(line.split_whitespace());
        let argv: Vec<OsString> = words.map(OsString::from).collect();
        let Invocation::Job(form, values) = parse(&argv).expect(line).asked else {
            panic!("{line} is no job");
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        Job::new(form, &values, folder).map_err(|error| error.to_string())
    }

    const SEED: &str = "--job_name=j --model_file=src/lib.rs --image_base=i --train_data_dir=/d \
                        --record_per_task=100 --num_epoch=1 --grads_to_wait=2 --minibatch_size=10";
    const REDUCED: &str = "train --job_name=j --model_zoo=src --model_def=m.f --training_data=/d \
                           --distribution_strategy=AllreduceStrategy";
    const TRAIN: &str = "train --job_name=j --model_zoo=src --model_def=m.f --training_data=/d";

    #[test]
    fn the_first_form_has_names_of_its_own() {
        let cores = "--worker_cpu_request=3000m --worker_cpu_limit=3000m";
        let job = job(&format!("{SEED} --num_worker=2 {cores}")).expect("job");
        assert_eq!(job.master_name(), "elasticdl-master-j");
        assert_eq!(job.worker_names(), "elasticdl-worker-j-{}");
        assert_eq!(job.worker.request.cpu_millis, Some(3000));
        assert_eq!((job.workers, job.workers_min, job.priority), (2, None, None));
        let model = job.told.iter().find(|(name, _)| *name == "model_file").expect("told");
        assert!(model.1.starts_with('/') && model.1.ends_with("/src/lib.rs"), "{}", model.1);
        // This flag marks a job of this program for its master.
        assert!(job.told.contains(&("bad_records_max", "0".to_owned())), "{:?}", job.told);
        let pods = ["cpu", "memory", "image", "priority"];
        assert!(job.told.iter().all(|(name, _)| pods.iter().all(|part| !name.contains(part))));
    }

    #[test]
    fn the_final_form_has_others() {
        let job = job(&format!("{TRAIN} --namespace=runai-team-a --envs=A=1,B=2")).expect("job");
        assert_eq!(job.master_name(), "elasticdl-j-master");
        assert_eq!(job.worker_names(), "elasticdl-j-worker-{}");
        assert_eq!(job.project.as_deref(), Some("team-a"));
        assert_eq!(job.worker.limit, job.worker.request);
        assert_eq!(job.variables.len(), 2);
        assert!(job.told.contains(&("bad_records_max", "0".to_owned())), "{:?}", job.told);
    }

    #[test]
    fn a_limit_below_its_request_names_both_flags() {
        for (line, told) in [
            (
                format!("{TRAIN} --worker_resource_limit=memory=1Gi"),
                "--worker_resource_limit=memory=1Gi: its memory is below the request, \
                 --worker_resource_request=cpu=1,memory=4096Mi; raise the limit, or lower the request",
            ),
            (
                format!("{SEED} --num_worker=1 --worker_cpu_request=2000m"),
                "--worker_cpu_limit=1000m: its cpu is below the request, \
                 --worker_cpu_request=2000m; raise the limit, or lower the request",
            ),
            (
                format!("{TRAIN} --num_ps_pods=1 --ps_resource_limit=cpu=0.5"),
                "--ps_resource_limit=cpu=0.5: its cpu is below the request, \
                 --ps_resource_request=cpu=1,memory=4096Mi; raise the limit, or lower the request",
            ),
        ] {
            let Err(error) = job(&line) else { panic!("{line}") };
            assert_eq!(error.to_string(), told);
        }
    }

    #[test]
    fn workers_of_high_priority_are_those_it_never_goes_on_without() {
        for (typed, class, spare, least) in [
            ("high=0.5", "high", Some("low"), Some(2)),
            ("0.5", "high", Some("low"), Some(3)),
            ("1", "high", None, Some(5)),
            ("0", "low", None, None),
            ("low-priority", "low-priority", None, None),
        ] {
            let line = format!("{TRAIN} --num_workers=5 --worker_pod_priority={typed}");
            let job = job(&line).expect(&line);
            let found = (job.priority.as_deref(), job.spare_priority, job.workers_min);
            assert_eq!(found, (Some(class), spare, least), "{typed}");
        }
    }

    #[test]
    fn a_loop_of_its_own_needs_no_data_and_may_add_up_its_gradients() {
        let line = "train --job_name=j --distribution_strategy=AllreduceStrategy --num_workers=2 \
                    --need_elasticdl_job_service=true --job_command=true";
        let job = job(line).expect("job");
        assert_eq!((job.command.as_deref(), job.servers), (Some("true"), None));
    }

    #[test]
    fn an_interpreter_is_no_image() {
        let job = job(&SEED.replace("image_base=i", "image_base=/bin/sh --num_worker=1"));
        let job = job.expect("job");
        assert_eq!((job.image.as_str(), job.python.as_str()), ("", "/bin/sh"));
    }

    #[test]
    fn what_makes_no_job_is_refused_by_the_name_of_the_flag() {
        let seed = format!("{SEED} --num_worker=1");
        for (line, said) in [
            (SEED.to_owned(), "--num_worker=0 cannot be had here"),
            (seed.replace("src/lib.rs", "nope.py"), "--model_file: nope.py is not there"),
            (seed.replace("image_base=i", "image_base=/nope"), "--image_base: /nope is not there"),
            (format!("{seed} --mount_path=/a"), "--mount_path goes with --volume_name"),
            (TRAIN.replace("--model_def=m.f", ""), "--model_def is missing"),
            (TRAIN.replace("--training_data=/d", ""), "--training_data is missing"),
            (format!("{TRAIN} --distribution_strategy=Local"), "use ParameterServerStrategy with"),
            (format!("{REDUCED} --num_ps_pods=1"), "--num_ps_pods=1 cannot be had here: with All"),
            (format!("{REDUCED} --use_async"), "--use_async=true cannot be had here: with All"),
            (
                format!("{REDUCED} --grads_to_wait=2"),
                "of the gradients of all workers; leave it out",
            ),
            (format!("{REDUCED} --checkpoint_steps=9"), "add --checkpoint_dir, a folder that all"),
            (format!("{REDUCED} --sync_version_tolerance=2"), "no gradient is old; leave it out"),
            (format!("{REDUCED} --staleness_max=2"), "no gradient is old; leave it out"),
            (format!("{REDUCED} --relaunch_timeout_worker"), "wait for the slowest one, so all"),
            (format!("{TRAIN} --aux_params=relaunch=1"), "disable_relaunch is"),
            (
                format!("{TRAIN} --gradients=wait --sync_version_tolerance=1"),
                "leave --sync_version_tolerance out",
            ),
            (format!("{TRAIN} --gradients=reject --use_async"), "--use_async rejects none"),
            (format!("{TRAIN} --staleness_max=3"), "--staleness_max=3 cannot be had here"),
            (
                format!("{TRAIN} --use_async --staleness_max=3 --get_model_steps=2"),
                "waits for its turn before each minibatch",
            ),
            (
                format!(
                    "{TRAIN} --use_async --staleness_max=3 --gradients=reject --get_model_steps=5"
                ),
                "own steps make its gradients older",
            ),
            (
                format!("{TRAIN} --volume=claim_name=c,mount_path=/c,sub_path=a"),
                "leave sub_path out",
            ),
        ] {
            let error = job(&line).expect_err(&line);
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
