//! Submission of a job. Owns: the messages afterwards, and `--yaml`. Does not know about: the
//! content of the request.

use std::io::Write;

use cli_kit::exit::Error;
use cli_kit::message::{is_quiet, print_note};
use client::WorkloadKind;
use runai::Connected;

use crate::job::Job;
use crate::parse::{Form, Values};
use crate::request::request;

/// Submits a job, or writes its request to a file.
pub(crate) async fn run(
    form: Form,
    values: &Values,
    project: Option<String>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let folder = std::env::current_dir()?;
    let job = Job::new(form, values, &folder).map_err(|error| Error::Usage(error.to_string()))?;
    let Connected { client, project } = runai::connected(project.or(job.project.clone())).await?;
    let words: Vec<String> = std::env::args_os().map(|w| w.to_string_lossy().into()).collect();
    let asked = request(&job, &project, &shell_words::join(words));
    if let Some(file) = values.some("yaml") {
        let value =
            serde_json::to_value(&asked).map_err(|error| Error::Failed(error.to_string()))?;
        std::fs::write(file, cli_kit::yaml::document(&value))
            .map_err(|error| Error::Failed(format!("--yaml: cannot write {file}: {error}")))?;
        writeln!(out, "Job {} is described in {file}; nothing was submitted", job.name)?;
        return Ok(());
    }
    let made = client.create(WorkloadKind::Distributed, &asked).await;
    made.map_err(|error| with_flag(&job, error))?;
    writeln!(out, "Job {} was submitted to project {}", job.name, project.name)?;
    if !is_quiet() {
        print_note(&format!("`elasticdl pods -l elasticdl_job_name={}` lists its pods", job.name));
    }
    Ok(())
}

/// Fields of a request with their flag in the first form and in the later ones. A field stands for
/// those within it.
const FLAGS: [(&str, &str, &str); 14] = [
    ("name", "job_name", "job_name"),
    ("spec.priorityClass", "worker_pod_priority", "worker_pod_priority"),
    ("spec.numWorkers", "num_worker", "num_workers"),
    ("spec.image", "image_base", "image_name"),
    ("masterSpec.image", "image_base", "image_name"),
    ("spec.compute.cpuCoreLimit", "worker_cpu_limit", "worker_resource_limit"),
    ("spec.compute.cpuMemoryLimit", "worker_memory_limit", "worker_resource_limit"),
    ("spec.compute.cpuMemoryRequest", "worker_memory_request", "worker_resource_request"),
    ("spec.compute", "worker_cpu_request", "worker_resource_request"),
    ("masterSpec.compute", "master_cpu_request", "master_resource_request"),
    ("parameterServers.number", "num_ps_pods", "num_ps_pods"),
    ("parameterServers.compute", "ps_resource_request", "ps_resource_request"),
    ("spec.environmentVariables", "envs", "envs"),
    ("spec.storage", "volume", "volume"),
];

/// Names the flag in an error about a field, and adds advice on an unknown priority class.
fn with_flag(job: &Job, error: client::Error) -> Error {
    let Some(fault) = error.field_fault() else { return error.into() };
    let known = FLAGS.iter().find(|(known, ..)| api_types::is_within(&fault.field, known));
    let Some((field, first, later)) = known else {
        return error.into();
    };
    let flag = if job.form == Form::Seed { first } else { later };
    let advice = match (*field, &job.priority) {
        ("spec.priorityClass", Some(class)) => {
            format!("; `elasticdl apply -f FILE` adds {class} from a PriorityClass")
        }
        _ => String::new(),
    };
    Error::Usage(format!("--{flag}: {}{advice}", fault.message))
}
