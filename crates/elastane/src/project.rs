//! `elastane project …`: what an administrator does with projects.

use std::io::Write;
use std::path::PathBuf;

use api_types::{
    ChangeKind, Project, ProjectCreationRequest, ProjectUpdateRequest, ResourceShare,
    ResourcesMemory, SchedulingRules, ShareRequest, Units, number_from_millis,
};
use serde_json::Number;

use super::args::{self, Limit, Share, TimeLimits};
use cli_kit::exit::Error;
use cli_kit::output::{How, list, show};
use cli_kit::plain::Plain;
use cli_kit::pulse::Pulse;
use cli_kit::suggest;
use cli_kit::when::moment;
use runai::projects_table;

pub(super) async fn run(state_dir: PathBuf, verb: args::Project) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    match verb {
        args::Project::Create { name, department, share } => {
            let mut request = creation(&name, &share);
            if let Some(department) = department {
                request.parent_id =
                    Some(super::department::existing(&client, &department).await?.id);
            }
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
            show(
                &how,
                &mut std::io::stdout(),
                Some(Pulse::watch(&client, &[ChangeKind::Project], None)),
                look,
            )
            .await?;
        }
        args::Project::Describe { name, one } => {
            let how = How::from(one);
            let look = async |out: &mut dyn Write| {
                let project = existing(&client, &name).await?;
                match how.shown.is_text() {
                    true => Ok(write!(out, "{}", description(&project, how.is_wide()))?),
                    false => how.data(&project, &[named(&project)], out),
                }
            };
            show(
                &how,
                &mut std::io::stdout(),
                Some(Pulse::watch(&client, &[ChangeKind::Project], None)),
                look,
            )
            .await?;
        }
        args::Project::Update { name, share } => {
            let project = existing(&client, &name).await?;
            let project = change(&client, project, &share).await?;
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
    let names = projects.iter().map(|project| project.name.as_str());
    let advice = "run `elastane project list` to see those there are";
    let hint = suggest::hint_or(name, names, advice);
    Err(Error::NotFound(format!("project {} was not found{hint}", units::shown(name))))
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
        default_node_pools: share.default_node_pools.clone(),
        // One entry is needed, for the default pool.
        resources: vec![given(share).unwrap_or_default()],
        scheduling_rules: rules(&share.limits, None),
        ..ProjectCreationRequest::default()
    }
}

/// Changes what is given, and nothing else.
async fn change(client: &client::Client, now: Project, share: &Share) -> Result<Project, Error> {
    let mut project = now;
    if let Some(given) = given(share) {
        project = client.change_project_share(&project.id, &[given]).await?;
    }
    if has_more(share) {
        let request = ProjectUpdateRequest {
            description: share.description.clone(),
            default_node_pools: share.default_node_pools.clone(),
            scheduling_rules: rules(&share.limits, Some(&project.scheduling_rules)),
            ..ProjectUpdateRequest::default()
        };
        project = client.update_project(&project.id, &request).await?;
    }
    Ok(project)
}

/// Whether something is given that is no share.
pub(super) fn has_more(share: &Share) -> bool {
    share.description.is_some()
        || share.default_node_pools.is_some()
        || share.limits != TimeLimits::default()
}

/// What is given of the share in the default node pool; none where nothing of it is.
pub(super) fn given(share: &Share) -> Option<ShareRequest> {
    let gpu = ResourceShare {
        deserved: share.gpu_quota.map(number_from_millis),
        limit: share.gpu_limit.map(|limit| bound(limit, number_from_millis)),
        over_quota_weight: share.over_quota_weight.map(Number::from),
    };
    let cpu = share.cpu_quota.map(|quota| ResourceShare {
        deserved: Some(bound(quota, Number::from)),
        ..ResourceShare::default()
    });
    let memory = share.memory_quota.map(|quota| ResourcesMemory {
        deserved: Some(bound(quota, |bytes| in_units(bytes, Units::Mib))),
        limit: None,
        over_quota_weight: None,
        units: Units::Mib,
    });
    let gpu = Some(gpu).filter(|gpu| *gpu != ResourceShare::default());
    let given = ShareRequest { gpu, cpu, memory, ..ShareRequest::default() };
    (given != ShareRequest::default()).then_some(given)
}

/// Limits in time replace all there are: those not given stay as they are. None if none is given.
pub(super) fn rules(limits: &TimeLimits, now: Option<&SchedulingRules>) -> Option<SchedulingRules> {
    if *limits == TimeLimits::default() {
        return None;
    }
    let now = now.copied().unwrap_or_default();
    let either = |given: Option<Limit>, now: Option<u64>| match given {
        None => now,
        Some(Limit::None) => None,
        Some(Limit::At(seconds)) => Some(seconds),
    };
    // A workspace may be idle for as long, whether it is preemptible or not.
    let idle = limits.workspace_idle_limit;
    let (non_preemptible, preemptible) = (
        now.interactive_job_max_idle_duration_seconds,
        now.interactive_job_preempt_idle_duration_seconds,
    );
    Some(SchedulingRules {
        training_job_time_limit_seconds: either(
            limits.training_time_limit,
            now.training_job_time_limit_seconds,
        ),
        interactive_job_time_limit_seconds: either(
            limits.workspace_time_limit,
            now.interactive_job_time_limit_seconds,
        ),
        training_job_max_idle_duration_seconds: either(
            limits.training_idle_limit,
            now.training_job_max_idle_duration_seconds,
        ),
        interactive_job_max_idle_duration_seconds: either(idle, non_preemptible),
        interactive_job_preempt_idle_duration_seconds: either(idle, preemptible),
    })
}

/// The limits in time that there are, or `-`.
pub(super) fn description_of_rules(rules: &SchedulingRules) -> String {
    let limits = [
        ("training", rules.training_job_time_limit_seconds),
        ("workspace", rules.interactive_job_time_limit_seconds),
        ("idle training", rules.training_job_max_idle_duration_seconds),
        ("idle workspace", rules.interactive_job_max_idle_duration_seconds),
        ("idle preemptible workspace", rules.interactive_job_preempt_idle_duration_seconds),
    ];
    let told = limits.into_iter().filter_map(|(what, seconds)| {
        let seconds = seconds?;
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let parts = [(hours, 'h'), (minutes, 'm'), (rest, 's')];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let time: String = parts.map(|(count, unit)| format!("{count}{unit}")).collect();
        Some(format!("{what} {time}"))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "-".to_owned() } else { told.join(", ") }
}

fn bound(given: Limit, number: impl FnOnce(u64) -> Number) -> Number {
    match given {
        Limit::None => unlimited(),
        Limit::At(amount) => number(amount),
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

fn description(project: &Project, is_exact: bool) -> String {
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
    let created = moment(project.created_at.0.0, is_exact);
    line("Created", format!("{created} by {}", project.created_by));
    line("GPU quota", quota(project));
    line("GPU limit", number(share.and_then(|share| share.gpu.limit.as_ref())));
    line("Over-quota weight", number(share.and_then(|s| s.gpu.over_quota_weight.as_ref())));
    line("GPUs allocated", used.allocated.gpu.to_string());
    line("GPUs requested", used.requested.gpu.to_string());
    let pools = project.default_node_pools.join(", ");
    line("Default node pools", if pools.is_empty() { "all".to_owned() } else { pools });
    line("Time limits", description_of_rules(&project.scheduling_rules));
    line("CPU quota (milli)", number(share.and_then(|share| share.cpu.deserved.as_ref())));
    let memory = share.map(|share| (number(share.memory.deserved.as_ref()), share.memory.units));
    if let Some((amount, units)) = memory {
        let unit = if amount == "none" { String::new() } else { format!(" {units:?}") };
        line("Memory quota", format!("{amount}{unit}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_names_only_what_is_given() {
        assert_eq!(given(&Share::default()), None);
        let share = Share { gpu_quota: Some(3000), ..Share::default() };
        let only = ResourceShare { deserved: Some(3.into()), ..ResourceShare::default() };
        let want = ShareRequest { gpu: Some(only), ..ShareRequest::default() };
        assert_eq!(given(&share), Some(want));
        let share = Share { cpu_quota: Some(Limit::None), ..Share::default() };
        let got = given(&share).unwrap();
        assert_eq!((got.gpu, got.cpu.unwrap().deserved), (None, Some(unlimited())));
    }
}
