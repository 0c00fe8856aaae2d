//! `elastane project …`: what an administrator does with projects.

use std::io::Write;
use std::path::PathBuf;

use api_types::{
    Project, ProjectCreationRequest, ProjectUpdateRequest, ResourceShare, ResourcesMemory,
    ShareRequest, Units, number_from_millis,
};
use serde_json::Number;

use super::args::{self, Limit, Share};
use cli_kit::exit::Error;
use cli_kit::output::{How, list, show};
use cli_kit::plain::Plain;
use cli_kit::suggest;
use runai::projects_table;

pub(super) async fn run(state_dir: PathBuf, verb: args::Project) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    match verb {
        args::Project::Create { name, share } => {
            let request = creation(&name, &share);
            let project = client.create_project(&request).await?;
            writeln!(out, "project {} created, GPU quota {}", project.name, quota(&project))?;
            warn(&project)?;
        }
        args::Project::List(format) => {
            let how = How::from(format);
            let look = async |out: &mut dyn Write| {
                let mut projects = client.projects().await?;
                projects.sort_by(|a, b| a.name.cmp(&b.name));
                list(&how, projects, named, projects_table, out)
            };
            show(&how, &mut std::io::stdout(), look).await?;
        }
        args::Project::Describe { name, one } => {
            let how = How::from(one);
            let look = async |out: &mut dyn Write| {
                let project = existing(&client, &name).await?;
                match how.shown.is_text() {
                    true => Ok(write!(out, "{}", description(&project))?),
                    false => how.data(&project, &[named(&project)], out),
                }
            };
            show(&how, &mut std::io::stdout(), look).await?;
        }
        args::Project::Update { name, share } => {
            let project = existing(&client, &name).await?;
            let project = client.update_project(&project.id, &update(&project, &share)).await?;
            writeln!(out, "project {name} updated, GPU quota {}", quota(&project))?;
            warn(&project)?;
        }
        args::Project::Delete { name } => {
            let project = existing(&client, &name).await?;
            client.delete_project(&project.id).await?;
            writeln!(out, "project {name} deleted")?;
        }
    }
    Ok(())
}

fn named(project: &Project) -> String {
    format!("project/{}", project.name)
}

pub(super) async fn existing(client: &client::Client, name: &str) -> Result<Project, Error> {
    if let Some(project) = client.project(name).await? {
        return Ok(project);
    }
    let projects = client.projects().await?;
    let near = suggest::hint(name, projects.iter().map(|project| project.name.as_str()));
    Err(Error::NotFound(format!(
        "project {} was not found{near}; run `elastane project list` to see those there are",
        units::shown(name)
    )))
}

fn quota(project: &Project) -> String {
    project.total_resources.gpu_quota.to_string()
}

/// Says what is odd about a project as it is now.
fn warn(project: &Project) -> std::io::Result<()> {
    match project.status.phase_message.as_str() {
        "" => Ok(()),
        odd => writeln!(Plain(std::io::stderr()), "warning: {odd}"),
    }
}

fn creation(name: &str, share: &Share) -> ProjectCreationRequest {
    ProjectCreationRequest {
        name: name.to_owned(),
        description: share.description.clone(),
        resources: vec![resources(share, None)],
        ..ProjectCreationRequest::default()
    }
}

/// An update replaces all values: those not given are taken from the project as it is.
pub(super) fn update(project: &Project, share: &Share) -> ProjectUpdateRequest {
    ProjectUpdateRequest {
        description: share.description.clone(),
        resources: vec![resources(share, project.resources.first())],
        ..ProjectUpdateRequest::default()
    }
}

fn resources(share: &Share, now: Option<&api_types::Resources>) -> ShareRequest {
    let gpu = now.map(|now| now.gpu.clone()).unwrap_or_default();
    let cpu = now.and_then(|now| now.cpu.deserved.clone());
    let memory = now.map(|now| (now.memory.deserved.clone(), now.memory.units));
    let (memory, units) = memory.unwrap_or((None, Units::Mib));
    let memory = match share.memory_quota {
        None => memory,
        Some(Limit::None) => Some(unlimited()),
        Some(Limit::At(bytes)) => Some(in_units(bytes, units)),
    };
    ShareRequest {
        gpu: Some(ResourceShare {
            deserved: share.gpu_quota.map(number_from_millis).or(gpu.deserved),
            limit: either(share.gpu_limit, number_from_millis, gpu.limit),
            over_quota_weight: share.over_quota_weight.map(Number::from).or(gpu.over_quota_weight),
        }),
        cpu: Some(ResourceShare {
            deserved: either(share.cpu_quota, Number::from, cpu),
            ..ResourceShare::default()
        }),
        memory: Some(ResourcesMemory {
            deserved: memory,
            limit: None,
            over_quota_weight: None,
            units,
        }),
        ..ShareRequest::default()
    }
}

fn either(
    given: Option<Limit>,
    number: impl FnOnce(u64) -> Number,
    now: Option<Number>,
) -> Option<Number> {
    match given {
        None => now,
        Some(Limit::None) => Some(unlimited()),
        Some(Limit::At(amount)) => Some(number(amount)),
    }
}

fn unlimited() -> Number {
    Number::from(-1)
}

/// Bytes in a unit of the interface, to the thousandth.
fn in_units(bytes: u64, units: Units) -> Number {
    let millis = u128::from(bytes) * 1000 / u128::from(units.bytes());
    number_from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

fn description(project: &Project) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: String| {
        text.push_str(format!("{:<20}{value}", format!("{key}:")).trim_end());
        text.push('\n');
    };
    let used = &project.status.quota_status;
    let share = project.resources.first();
    let number = |number: Option<&Number>| match number {
        Some(number) if !number.to_string().starts_with('-') => number.to_string(),
        _ => "none".to_owned(),
    };
    line("Name", project.name.clone());
    line("Id", project.id.clone());
    line("Description", project.description.clone());
    line("Namespace", project.status.namespace.clone());
    line("Created", format!("{} by {}", project.created_at, project.created_by));
    line("GPU quota", quota(project));
    line("GPU limit", number(share.and_then(|share| share.gpu.limit.as_ref())));
    line("Over-quota weight", number(share.and_then(|s| s.gpu.over_quota_weight.as_ref())));
    line("GPUs allocated", used.allocated.gpu.to_string());
    line("GPUs requested", used.requested.gpu.to_string());
    line("CPU quota (milli)", number(share.and_then(|share| share.cpu.deserved.as_ref())));
    let memory = share.map(|share| (number(share.memory.deserved.as_ref()), share.memory.units));
    if let Some((amount, units)) = memory {
        let unit = if amount == "none" { String::new() } else { format!(" {units:?}") };
        line("Memory quota", format!("{amount}{unit}"));
    }
    text
}
