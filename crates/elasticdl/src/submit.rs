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

/// Fields of a request with their flag in the first form and in the later ones; empty where that form
/// has none. A field stands for those within it.
const FLAGS: [(&str, &str, &str); 24] = [
    ("name", "job_name", "job_name"),
    ("spec.priorityClass", "worker_pod_priority", "worker_pod_priority"),
    ("spec.numWorkers", "num_worker", "num_workers"),
    ("spec.image", "image_base", "worker_image"),
    ("masterSpec.image", "image_base", "image_name"),
    ("spec.compute.cpuCoreRequest", "worker_cpu_request", "worker_resource_request"),
    ("spec.compute.cpuCoreLimit", "worker_cpu_limit", "worker_resource_limit"),
    ("spec.compute.cpuMemoryRequest", "worker_memory_request", "worker_resource_request"),
    ("spec.compute.cpuMemoryLimit", "worker_memory_limit", "worker_resource_limit"),
    ("spec.compute.gpuDevicesRequest", "", "worker_resource_request"),
    ("masterSpec.compute.cpuCoreRequest", "master_cpu_request", "master_resource_request"),
    ("masterSpec.compute.cpuCoreLimit", "master_cpu_limit", "master_resource_limit"),
    ("masterSpec.compute.cpuMemoryRequest", "master_memory_request", "master_resource_request"),
    ("masterSpec.compute.cpuMemoryLimit", "master_memory_limit", "master_resource_limit"),
    ("masterSpec.compute.gpuDevicesRequest", "", "master_resource_request"),
    ("parameterServers.number", "", "num_ps_pods"),
    ("parameterServers.compute.cpuCoreRequest", "", "ps_resource_request"),
    ("parameterServers.compute.cpuCoreLimit", "", "ps_resource_limit"),
    ("parameterServers.compute.cpuMemoryRequest", "", "ps_resource_request"),
    ("parameterServers.compute.cpuMemoryLimit", "", "ps_resource_limit"),
    ("parameterServers.compute.gpuDevicesRequest", "", "ps_resource_request"),
    ("spec.environmentVariables", "", "envs"),
    ("masterSpec.environmentVariables", "", "envs"),
    ("spec.storage", "volume", "volume"),
];

/// The flag that sets a field of a request; `None` if no flag of the form does.
fn flag_of(field: &str, form: Form) -> Option<&'static str> {
    let known = FLAGS.iter().find(|(known, ..)| api_types::is_within(field, known));
    let (_, first, later) = known?;
    Some(if form == Form::Seed { *first } else { *later }).filter(|flag| !flag.is_empty())
}

/// Names the flag in an error about a field, and adds advice on an unknown priority class.
fn with_flag(job: &Job, error: client::Error) -> client::Error {
    let named = error.field_fault().and_then(|fault| {
        let flag = flag_of(&fault.field, job.form)?;
        let advice = match (flag, &job.priority) {
            ("worker_pod_priority", Some(class)) => {
                format!("; `elasticdl apply -f FILE` adds {class} from a PriorityClass")
            }
            _ => String::new(),
        };
        Some(format!("--{flag}: {}{advice}", fault.message))
    });
    match (error, named) {
        (client::Error::Api { code, .. }, Some(message)) => client::Error::refusal(code, message),
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::find;

    #[test]
    fn each_field_names_a_flag_of_its_form() {
        for (field, first, later) in FLAGS {
            for (form, flag) in [(Form::Seed, first), (Form::Train, later)] {
                let known = flag.is_empty() || find(&form.tables(), flag).is_some();
                assert!(known, "{field}: {form:?} has no flag --{flag}");
            }
        }
        let memory = "masterSpec.compute.cpuMemoryLimit";
        assert_eq!(flag_of(memory, Form::Seed), Some("master_memory_limit"));
        assert_eq!(flag_of("spec.storage.hostPath[0].path", Form::Predict), Some("volume"));
        assert_eq!(flag_of("spec.environmentVariables[1]", Form::Seed), None);
    }

    #[test]
    fn each_resource_that_a_job_asks_for_has_its_flag() {
        let compute = serde_json::to_value(api_types::Compute {
            gpu_devices_request: Some(1.into()),
            cpu_core_request: Some(api_types::number_from_millis(1)),
            cpu_memory_request: Some(String::new()),
            cpu_core_limit: Some(api_types::number_from_millis(1)),
            cpu_memory_limit: Some(String::new()),
            ..api_types::Compute::default()
        });
        for field in compute.unwrap().as_object().unwrap().keys() {
            for part in ["spec", "masterSpec", "parameterServers"] {
                let path = format!("{part}.compute.{field}");
                assert!(flag_of(&path, Form::Train).is_some(), "{path}");
            }
        }
    }
}
