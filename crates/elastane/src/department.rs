//! `elastane department …` and `elastane node-pool …`: the division of the cluster and its users.

use std::io::Write;
use std::path::PathBuf;

use api_types::{
    ChangeKind, DepartmentCreationRequest, DepartmentForList, DepartmentUpdateRequest, Nodepool,
    NodepoolCreateFields, NodepoolUpdateFields, PoolLabel, QuotaChange, SharesOf,
};
use clap_complete::engine::ArgValueCandidates;
use client::Client;

use super::complete;
use super::quotas::{self, pool_named};
use super::share::{
    DEPARTMENT, Share, description_of_rules, has_more, must_change, new_limit, rules,
};
use super::unit_text::UnitText;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::message::Plain;
use cli_kit::output::{Format, One, OutputOptions, list, show};
use cli_kit::suggest;
use cli_kit::table::Table;

/// `department …`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Department {
    /// Create a department
    Create {
        /// Name
        name: String,
        /// Its share
        #[command(flatten)]
        share: Share,
    },
    /// List the departments
    #[command(visible_alias = "ls")]
    List(Format),
    /// Show everything about a department
    Describe {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::departments))]
        name: String,
        /// Form of the output.
        #[command(flatten)]
        one: One,
    },
    /// Change a department; what is not given stays as it is
    Update {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::departments))]
        name: String,
        /// Its share
        #[command(flatten)]
        share: Share,
        /// Change it even if the quota is then smaller than what its projects hold
        #[arg(short, long)]
        yes: bool,
    },
    /// Delete a department without projects
    Delete {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::departments))]
        name: String,
    },
}

/// `node-pool …`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum NodePool {
    /// Create a node pool of the nodes with a label
    Create {
        /// Name
        name: String,
        /// Label of its nodes
        #[arg(long, value_name = "KEY=VALUE", value_parser = dialects::key_value)]
        label: (String, String),
        /// Mode in which workloads with a part of a GPU divide its compute time: none, strict or
        /// fair
        #[arg(long, value_name = "MODE")]
        gpu_time_slicing: Option<String>,
        /// Enforcement of parts of GPUs: none to count them, or hard to give them out only where no
        /// user can work around the limit
        #[arg(long, value_name = "POLICY")]
        gpu_fractions: Option<String>,
        /// Create it even if projects then hold more than their quotas on its nodes
        #[arg(short, long)]
        yes: bool,
    },
    /// List the node pools
    #[command(visible_alias = "ls")]
    List(Format),
    /// Change a node pool
    #[command(group(
        clap::ArgGroup::new("change").args(["gpu_time_slicing", "gpu_fractions"]).multiple(true).required(true)
    ))]
    Update {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::pools))]
        name: String,
        /// Mode in which workloads with a part of a GPU that start there divide its compute time:
        /// none, strict or fair; `""` for what the server was started with
        #[arg(long, value_name = "MODE")]
        gpu_time_slicing: Option<String>,
        /// Enforcement of parts of GPUs that start there: none to count them, or hard to give them
        /// out only where no user can work around the limit; `""` for what the server was started
        /// with
        #[arg(long, value_name = "POLICY")]
        gpu_fractions: Option<String>,
    },
    /// Delete a node pool and the quotas in it; its nodes go to the pool `default`
    Delete {
        /// Name
        #[arg(add = ArgValueCandidates::new(complete::pools))]
        name: String,
        /// Delete it even if projects then hold more than their quotas on its nodes
        #[arg(short, long)]
        yes: bool,
    },
}

pub(super) async fn department(state_dir: PathBuf, verb: Department) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    match verb {
        Department::Create { name, share } => {
            let request = DepartmentCreationRequest {
                name,
                description: share.description.clone(),
                default_node_pools: share.default_node_pools.clone(),
                resources: quotas::request(&client, &share).await?.into_iter().collect(),
                scheduling_rules: rules(&share.limits, None),
                ..DepartmentCreationRequest::default()
            };
            let made = client.create_department(&request).await?;
            let quota = quota(&made, &share);
            writeln!(out, "department {} created, GPU quota {quota}", made.name)?;
        }
        Department::List(format) => {
            let how = OutputOptions::from(format);
            let name = |one: &DepartmentForList| format!("department/{}", one.name);
            let look = async |out: &mut dyn Write| {
                let departments = client.departments().await?;
                let pools = match departments.iter().any(|one| one.resources.len() > 1) {
                    true => client.node_pools().await?,
                    false => Vec::new(),
                };
                let table = |all: &[DepartmentForList]| departments_table(all, &pools);
                list(&how, departments, name, table, out)
            };
            show(
                &how,
                &mut std::io::stdout(),
                Some(ChangeWait::watch(&client, &[ChangeKind::Department], None)),
                look,
            )
            .await?;
        }
        Department::Describe { name, one } => describe(&client, &name, one).await?,
        Department::Update { name, share, yes } => {
            must_change(DEPARTMENT, &share)?;
            let mut there = existing(&client, &name).await?;
            if let Some(given) = quotas::request(&client, &share).await? {
                let asked = SharesOf { id: there.id.clone(), resources: vec![given.clone()] };
                let change = QuotaChange { department: Some(asked), ..QuotaChange::default() };
                quotas::check_shares(&client, &change, yes).await?;
                there = client.change_department_share(&there.id, (&[given], yes)).await?;
            }
            if has_more(&share) {
                let request = DepartmentUpdateRequest {
                    description: share.description.clone(),
                    default_node_pools: share.default_node_pools.clone(),
                    scheduling_rules: rules(&share.limits, Some(&there.scheduling_rules)),
                    ..DepartmentUpdateRequest::default()
                };
                there = client.update_department(&there.id, &request).await?;
            }
            let quota = share
                .gpu_quota
                .as_ref()
                .map_or_else(String::new, |_| format!(", GPU quota {}", quota(&there, &share)));
            let limit = new_limit(&share);
            writeln!(out, "department {} updated{quota}{limit}", there.name)?;
        }
        Department::Delete { name } => {
            client.delete_department(&existing(&client, &name).await?.id).await?;
            writeln!(out, "department {name} deleted")?;
        }
    }
    Ok(())
}

/// Prints all details of a department, with its shares by node pool.
async fn describe(client: &Client, name: &str, one: One) -> Result<(), Error> {
    let how = OutputOptions::from(one);
    let look = async |out: &mut dyn Write| {
        let department = existing(client, name).await?;
        let pools = match department.resources.len() > 1 {
            true => client.node_pools().await?,
            false => Vec::new(),
        };
        match how.shown.is_text() {
            true => Ok(write!(out, "{}", text(&department, &pools, how.is_wide()))?),
            false => how.data(&department, &[format!("department/{}", department.name)], out),
        }
    };
    let changes = ChangeWait::watch(client, &[ChangeKind::Department], None);
    show(&how, &mut std::io::stdout(), Some(changes), look).await
}

fn text(department: &DepartmentForList, pools: &[Nodepool], is_exact: bool) -> String {
    let projects: Vec<&str> = department.children.iter().map(|child| child.name.as_str()).collect();
    UnitText {
        name: &department.name,
        id: &department.id,
        description: &department.description,
        belongs: ("Projects", projects.join(", ")),
        created: (department.created_at, &department.created_by),
        quota: department.total_resources.gpu_quota,
        resources: &department.resources,
        used: &department.status.quota_status,
        used_by_pool: &department.status.node_pool_quota_statuses,
        default_node_pools: &department.default_node_pools,
        rules: &department.scheduling_rules,
    }
    .text(pools, is_exact)
}

fn quota(department: &DepartmentForList, share: &Share) -> String {
    let pool = share.node_pool.as_deref();
    quotas::gpu_quota(&department.resources, pool, department.total_resources.gpu_quota)
}

fn departments_table(departments: &[DepartmentForList], pools: &[Nodepool]) -> Table {
    let mut columns = vec!["Department", "GPU Quota", "Allocated GPUs", "Projects", "Time Limits"];
    let divided = pools.len() > 1;
    if divided {
        columns.insert(2, "In Node Pools");
    }
    let mut table = Table::new(&columns);
    for one in departments {
        let projects: Vec<&str> = one.children.iter().map(|child| child.name.as_str()).collect();
        let by_pool = divided.then(|| runai::quotas_by_pool(&one.resources, pools));
        let before = [one.name.clone(), one.total_resources.gpu_quota.to_string()].into_iter();
        let after = [
            one.status.quota_status.allocated.gpu.to_string(),
            projects.join(","),
            description_of_rules(&one.scheduling_rules),
        ];
        table.cells(before.chain(by_pool).chain(after));
    }
    table
}

/// The department of this name.
pub(super) async fn existing(client: &Client, name: &str) -> Result<DepartmentForList, Error> {
    let departments = client.departments().await?;
    let names: Vec<String> = departments.iter().map(|one| one.name.clone()).collect();
    departments.into_iter().find(|one| one.name == name).ok_or_else(|| {
        let advice = "`elastane department list` lists them";
        let hint = suggest::hint_or(name, names.iter().map(String::as_str), advice);
        Error::NotFound(format!("department {} was not found{hint}", units::shown(name)))
    })
}

pub(super) async fn node_pool(state_dir: PathBuf, verb: NodePool) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    match verb {
        NodePool::Create {
            name,
            label: (label_key, label_value),
            gpu_time_slicing,
            gpu_fractions,
            yes,
        } => {
            let label = PoolLabel {
                name: name.clone(),
                label_key: label_key.clone(),
                label_value: label_value.clone(),
            };
            let change = QuotaChange { create_node_pool: Some(label), ..QuotaChange::default() };
            quotas::show_effects(&client, &change, yes).await?;
            let request = NodepoolCreateFields {
                name,
                label_key,
                label_value,
                gpu_time_slicing,
                gpu_fractions,
                ..NodepoolCreateFields::default()
            };
            let made = client.create_node_pool(&request, yes).await?;
            let nodes = made.status.nodes.join(", ");
            let has = if nodes.is_empty() { "no node has its label yet" } else { &nodes };
            writeln!(out, "node pool {} created: {has}", made.name)?;
        }
        NodePool::List(format) => {
            let how = OutputOptions::from(format);
            let name = |pool: &Nodepool| format!("nodepool/{}", pool.name);
            let look = async |out: &mut dyn Write| {
                list(&how, client.node_pools().await?, name, pools_table, out)
            };
            show(
                &how,
                &mut std::io::stdout(),
                Some(ChangeWait::watch(&client, &[ChangeKind::NodePool, ChangeKind::Node], None)),
                look,
            )
            .await?;
        }
        NodePool::Update { name, gpu_time_slicing, gpu_fractions } => {
            let request = NodepoolUpdateFields {
                gpu_time_slicing,
                gpu_fractions,
                ..NodepoolUpdateFields::default()
            };
            let pool = pool_named(&client, &name).await?;
            client.update_node_pool(&pool.id, &request).await?;
            writeln!(out, "node pool {name} changed")?;
        }
        NodePool::Delete { name, yes } => {
            let id = pool_named(&client, &name).await?.id;
            let change =
                QuotaChange { delete_node_pool: Some(id.clone()), ..QuotaChange::default() };
            quotas::show_effects(&client, &change, yes).await?;
            client.delete_node_pool(&id, yes).await?;
            writeln!(out, "node pool {name} deleted")?;
        }
    }
    Ok(())
}

fn pools_table(pools: &[Nodepool]) -> Table {
    let mut table =
        Table::new(&["Node Pool", "Label", "Phase", "Time Slicing", "Fractions", "Nodes"]);
    for pool in pools {
        let label = match pool.is_default {
            true => "-".to_owned(),
            false => format!("{}={}", pool.label_key, pool.label_value),
        };
        let nodes = pool.status.nodes.join(",");
        // A dash stands for the default of the server.
        let shown = |set: &Option<String>| set.clone().unwrap_or_else(|| "-".to_owned());
        let (time_slicing, fractions) = (shown(&pool.gpu_time_slicing), shown(&pool.gpu_fractions));
        table.row([pool.name.clone(), label, pool.phase.clone(), time_slicing, fractions, nodes]);
    }
    table
}
