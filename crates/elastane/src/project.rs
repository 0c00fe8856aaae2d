//! `elastane project …`: management of projects.

use std::io::Write;
use std::path::PathBuf;

use api_types::{
    self as wire, ChangeKind, ProjectCreationRequest, ProjectUpdateRequest, QuotaChange,
    ShareRequest, SharesOf,
};
use clap_complete::engine::ArgValueCandidates;

use super::complete;
use super::quotas;
use super::share::{PROJECT, Share, has_more, must_change, new_limit, rules};
use super::unit_text::UnitText;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::message::{Plain, print_always};
use cli_kit::output::{Format, One, OutputOptions, list, show};
use cli_kit::suggest;
use runai::{pools_of_quotas, projects_table};

/// `project …`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Project {
    /// Create a project
    Create {
        /// Name
        name: String,
        /// Department it belongs to [default: default]
        #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::departments))]
        department: Option<String>,
        /// Further namespaces of a Kubernetes cluster whose pods it is charged for
        #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
        namespaces: Option<Vec<String>>,
        /// Its share
        #[command(flatten)]
        share: Share,
    },
    /// List the projects
    #[command(visible_alias = "ls")]
    List(Format),
    /// Show everything about a project
    Describe {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::projects))]
        name: String,
        /// Form of the output.
        #[command(flatten)]
        one: One,
    },
    /// Change a project; what is not given stays as it is
    Update {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::projects))]
        name: String,
        /// Further namespaces of a Kubernetes cluster whose pods it is charged for, all of them; '' for
        /// none
        #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
        namespaces: Option<Vec<String>>,
        /// Its share
        #[command(flatten)]
        share: Share,
        /// Change it even if the quota is then smaller than what the project holds
        #[arg(short, long)]
        yes: bool,
    },
    /// Delete a project without workloads
    Delete {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::projects))]
        name: String,
    },
}

pub(super) async fn run(state_dir: PathBuf, verb: Project) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    match verb {
        Project::Create { name, department, namespaces, share } => {
            let given = quotas::request(&client, &share).await?;
            let mut request = creation(&name, named_only(namespaces), &share, given);
            if let Some(department) = department {
                request.parent_id =
                    Some(super::department::existing(&client, &department).await?.id);
            }
            let project = client.create_project(&request).await?;
            let quota = quota(&project, share.node_pool.as_deref());
            writeln!(out, "project {} created, GPU quota {quota}", project.name)?;
            warn(&project);
        }
        Project::List(format) => {
            let how = OutputOptions::from(format);
            let look = async |out: &mut dyn Write| {
                let mut projects = client.projects().await?;
                projects.sort_by(|a, b| a.name.cmp(&b.name));
                let pools = pools_of_quotas(&client, &projects).await?;
                let table = |projects: &[wire::Project]| projects_table(projects, &pools);
                list(&how, projects, named, table, out)
            };
            show(
                &how,
                &mut std::io::stdout(),
                Some(ChangeWait::watch(&client, &[ChangeKind::Project], None)),
                look,
            )
            .await?;
        }
        Project::Describe { name, one } => {
            let how = OutputOptions::from(one);
            let look = async |out: &mut dyn Write| {
                let project = existing(&client, &name).await?;
                let pools = pools_of_quotas(&client, std::slice::from_ref(&project)).await?;
                match how.shown.is_text() {
                    true => Ok(write!(out, "{}", description(&project, &pools, how.is_wide()))?),
                    false => how.data(&project, &[named(&project)], out),
                }
            };
            show(
                &how,
                &mut std::io::stdout(),
                Some(ChangeWait::watch(&client, &[ChangeKind::Project], None)),
                look,
            )
            .await?;
        }
        Project::Update { name, namespaces, share, yes } => {
            namespaces.as_ref().map_or_else(|| must_change(PROJECT, &share), |_| Ok(()))?;
            let asked = (&share, named_only(namespaces));
            let project = change(&client, existing(&client, &name).await?, asked, yes).await?;
            let quota = share.gpu_quota.as_ref().map_or_else(String::new, |_| {
                format!(", GPU quota {}", quota(&project, share.node_pool.as_deref()))
            });
            let limit = new_limit(&share);
            writeln!(out, "project {name} updated{quota}{limit}")?;
            warn(&project);
        }
        Project::Delete { name } => {
            let project = existing(&client, &name).await?;
            client.delete_project(&project.id).await?;
            writeln!(out, "project {name} deleted")?;
        }
    }
    Ok(())
}

fn named(project: &wire::Project) -> String {
    format!("project/{}", project.name)
}

pub(super) async fn existing(client: &client::Client, name: &str) -> Result<wire::Project, Error> {
    if let Some(project) = client.project(name).await? {
        return Ok(project);
    }
    let projects = client.projects().await?;
    let names = projects.iter().map(|project| project.name.as_str());
    let advice = "`elastane project list` lists them";
    let hint = suggest::hint_or(name, names, advice);
    Err(Error::NotFound(format!("project {} was not found{hint}", units::shown(name))))
}

fn quota(project: &wire::Project, pool: Option<&str>) -> String {
    quotas::gpu_quota(&project.resources, pool, project.total_resources.gpu_quota)
}

/// Prints warnings about the current state of a project.
fn warn(project: &wire::Project) {
    match project.status.phase_message.as_str() {
        "" => {}
        odd => print_always(&format!("warning: {odd}")),
    }
}

fn creation(
    name: &str,
    namespaces: Option<Vec<String>>,
    share: &Share,
    given: Option<ShareRequest>,
) -> ProjectCreationRequest {
    ProjectCreationRequest {
        name: name.to_owned(),
        description: share.description.clone(),
        default_node_pools: share.default_node_pools.clone(),
        // The request needs one entry, if only for the default pool.
        resources: vec![given.unwrap_or_default()],
        scheduling_rules: rules(&share.limits, None),
        namespaces,
        ..ProjectCreationRequest::default()
    }
}

/// The names in a list; an empty one has none.
fn named_only(list: Option<Vec<String>>) -> Option<Vec<String>> {
    list.map(|names| names.into_iter().filter(|name| !name.is_empty()).collect())
}

/// Changes only the given values.
async fn change(
    client: &client::Client,
    now: wire::Project,
    (share, namespaces): (&Share, Option<Vec<String>>),
    yes: bool,
) -> Result<wire::Project, Error> {
    let mut project = now;
    if let Some(given) = quotas::request(client, share).await? {
        let asked = SharesOf { id: project.id.clone(), resources: vec![given.clone()] };
        let change = QuotaChange { project: Some(asked), ..QuotaChange::default() };
        quotas::check_shares(client, &change, yes).await?;
        project = client.change_project_share(&project.id, (&[given], yes)).await?;
    }
    if has_more(share) || namespaces.is_some() {
        let request = ProjectUpdateRequest {
            namespaces,
            description: share.description.clone(),
            default_node_pools: share.default_node_pools.clone(),
            scheduling_rules: rules(&share.limits, Some(&project.scheduling_rules)),
            ..ProjectUpdateRequest::default()
        };
        project = client.update_project(&project.id, &request).await?;
    }
    Ok(project)
}

/// Its namespace, and further ones.
fn namespaces(project: &wire::Project) -> String {
    let own = std::iter::once(&project.status.namespace);
    own.chain(&project.namespaces).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn description(project: &wire::Project, pools: &[wire::Nodepool], is_exact: bool) -> String {
    UnitText {
        name: &project.name,
        id: &project.id,
        description: &project.description,
        belongs: ("Namespace", namespaces(project)),
        created: (project.created_at, &project.created_by),
        quota: project.total_resources.gpu_quota,
        resources: &project.resources,
        used: &project.status.quota_status,
        used_by_pool: &project.status.node_pool_quota_statuses,
        default_node_pools: &project.default_node_pools,
        rules: &project.scheduling_rules,
    }
    .text(pools, is_exact)
}
