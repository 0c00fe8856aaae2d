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
    made.map_err(|error| with_advice(&job, error))?;
    writeln!(out, "Job {} was submitted to project {}", job.name, project.name)?;
    if !is_quiet() {
        print_note(&format!("`elasticdl pods -l elasticdl_job_name={}` lists its pods", job.name));
    }
    Ok(())
}

/// Adds advice on creating an unknown priority class.
fn with_advice(job: &Job, error: client::Error) -> Error {
    match (error.field_fault(), &job.priority) {
        (Some(fault), Some(class)) if fault.field == "spec.priorityClass" => Error::Usage(format!(
            "--worker_pod_priority: {}; `elasticdl apply -f FILE` adds {class} from a \
                 PriorityClass",
            fault.message
        )),
        _ => error.into(),
    }
}
