//! Submitting: from the intent to the request.

use std::io::Write;

use api_types as wire;
use client::WorkloadKind;

use super::context::Context;
use super::intent::{Dialect, Gpu, Kind, Name, Restart, Submit};
use super::settle::settle_own;
use crate::exit::{self, Error};

/// Numbered names are retried when somebody else takes the number first.
const NUMBER_TRIES_MAX: usize = 20;

pub(super) async fn run(
    submit: Submit,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if submit.image.is_none() {
        writeln!(std::io::stderr(), "\n-i, --image must be set\n")?;
        return Err(Error::Said(exit::FAILED));
    }
    let project = context.known_project().await?;
    if submit.dialect == Dialect::V1
        && submit.kind == Kind::Workspace
        && submit.preemptible == Some(true)
    {
        let mut stderr = std::io::stderr();
        writeln!(stderr, "Warning: the resources of this job may be preempted without notice")?;
    }
    let (name, id) = create(&submit, &project, context).await?;
    let project = &project.name;
    match submit.dialect {
        Dialect::V1 => {
            writeln!(out, "The job '{name}' has been submitted successfully")?;
            writeln!(
                out,
                "You can run `runai describe job {name} -p {project}` to check the job status"
            )?;
        }
        Dialect::V2 => {
            let noun = if submit.kind == Kind::Training { "training" } else { "workspace" };
            writeln!(out, "Creating {noun} {name}...")?;
            writeln!(out, "To track the workload's status, run 'runai {noun} list'")?;
        }
    }
    out.flush()?;
    settle_own(&id, context).await
}

/// Creates the workload under its name, or under the first free number.
async fn create(
    submit: &Submit,
    project: &wire::Project,
    context: &Context,
) -> Result<(String, String), Error> {
    let kind = match submit.kind {
        Kind::Training => WorkloadKind::Training,
        Kind::Workspace => WorkloadKind::Workspace,
    };
    let prefix = match &submit.name {
        Name::Given(name) => {
            let created = context.client.create(kind, &request(submit, name, project)).await;
            return match created {
                Ok(created) => Ok((created.name, created.workload_id)),
                Err(error) => Err(taken(error, name, &project.name)),
            };
        }
        Name::Numbered(prefix) => prefix,
    };
    let mut tries = 0;
    loop {
        let there = context.client.workloads(Some(&project.name)).await?;
        let name = (0_u64..)
            .map(|number| format!("{prefix}-{number}"))
            .find(|name| there.iter().all(|workload| workload.name != *name))
            .unwrap_or_else(|| prefix.clone());
        tries += 1;
        match context.client.create(kind, &request(submit, &name, project)).await {
            Ok(created) => return Ok((created.name, created.workload_id)),
            Err(client::Error::Api { code: 409, .. }) if tries < NUMBER_TRIES_MAX => {}
            Err(error) => return Err(taken(error, &name, &project.name)),
        }
    }
}

/// The server's own words, with the project that its hint leaves to whoever reads it.
fn taken(error: client::Error, name: &str, project: &str) -> Error {
    let short = format!("`runai delete {name}`");
    match error {
        client::Error::Api { code: 409, message, .. } if message.contains(&short) => {
            Error::Failed(message.replace(&short, &format!("`runai delete {name} -p {project}`")))
        }
        other => other.into(),
    }
}

/// The request of a submission.
pub(super) fn request(
    submit: &Submit,
    name: &str,
    project: &wire::Project,
) -> wire::CreationRequest {
    wire::CreationRequest {
        cluster_id: Some(project.cluster_id.clone()),
        ..request_in(submit, name, project.id.clone())
    }
}

/// The same, of a project of which only the number is known.
pub(super) fn request_in(submit: &Submit, name: &str, project_id: String) -> wire::CreationRequest {
    let pairs = |pairs: &[(String, String)]| {
        let each = |(name, value): &(String, String)| wire::NameValue {
            name: name.clone(),
            value: value.clone(),
            exclude: None,
        };
        (!pairs.is_empty()).then(|| pairs.iter().map(each).collect())
    };
    let words = |words: &[String]| (!words.is_empty()).then(|| shell_words::join(words));
    let variable = |(name, value): &(String, String)| wire::EnvironmentVariable {
        name: Some(name.clone()),
        value: Some(value.clone()),
        ..wire::EnvironmentVariable::default()
    };
    let variables: Vec<_> = submit.environment.iter().map(variable).collect();
    let spec = wire::WorkloadSpec {
        image: submit.image.clone(),
        command: words(&submit.command),
        args: words(&submit.args),
        compute: Some(compute(submit)),
        environment_variables: (!variables.is_empty()).then_some(variables),
        working_dir: submit.working_dir.clone(),
        priority_class: submit.priority.clone(),
        preemptibility: submit.preemptible.map(|preemptible| match preemptible {
            true => wire::Preemptibility::Preemptible,
            false => wire::Preemptibility::NonPreemptible,
        }),
        backoff_limit: submit.backoff_limit,
        restart_policy: submit.restart.map(|restart| match restart {
            Restart::Always => wire::RestartPolicy::Always,
            Restart::Never => wire::RestartPolicy::Never,
            Restart::OnFailure => wire::RestartPolicy::OnFailure,
        }),
        termination_grace_period_seconds: submit.grace_seconds,
        labels: pairs(&submit.labels),
        annotations: pairs(&submit.annotations),
        elastic: submit.elastic.then_some(true),
        command_line: Some(submit.command_line.clone()),
        ..wire::WorkloadSpec::default()
    };
    wire::CreationRequest {
        name: name.to_owned(),
        project_id,
        spec: Some(spec),
        ..wire::CreationRequest::default()
    }
}

fn compute(submit: &Submit) -> wire::Compute {
    let mut compute = wire::Compute {
        cpu_core_request: submit.cpu_millis.map(wire::number_from_millis),
        cpu_memory_request: submit.memory.clone(),
        ..wire::Compute::default()
    };
    match &submit.gpu {
        Gpu::None => {}
        Gpu::Devices(devices) => compute.gpu_devices_request = Some((*devices).into()),
        Gpu::Portion { devices, millis } => {
            compute.gpu_devices_request = Some((*devices).into());
            compute.gpu_request_type = Some(wire::GpuRequestType::Portion);
            compute.gpu_portion_request = Some(wire::number_from_millis(*millis));
        }
        Gpu::Memory { devices, size } => {
            compute.gpu_devices_request = Some((*devices).into());
            compute.gpu_request_type = Some(wire::GpuRequestType::Memory);
            compute.gpu_memory_request = Some(size.clone());
        }
    }
    compute
}
