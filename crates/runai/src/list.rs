//! Lists of workloads, projects, nodes and clusters, in both tables and as data.

use std::io::Write;

use api_types::{
    DisplayedCluster, GpuFault, NodeStatus, Nodepool, Project, ProjectEffective, Resources,
    Workload,
};
use client::{Client, Selection};

use super::context::{Context, now_ms};
use super::rows;
use cli_kit::exit::Error;
use cli_kit::message::print_note;
use cli_kit::output::{Style, columns};
use cli_kit::settings::TableStyle;
use cli_kit::table::{Grouped, Table, two_decimals};
use dialects::intent::{Dialect, ListWorkloads, Only, OutputOptions, Page};

pub(super) async fn workloads(
    list: &ListWorkloads,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let how = &list.how;
    let style = context.settings.table().or(list.table).unwrap_or(TableStyle::V2);
    let project = if list.all_projects { None } else { Some(context.chosen_project().await?) };
    let asked = selection(list, style, project)?;
    let (found, after) = context.client.select(&asked).await?;
    if found.is_empty() {
        if let Some(project) = project
            && context.client.project(project).await?.is_none()
        {
            return Err(context.no_project(project).await?);
        }
        if !list.only.nodes.is_empty() {
            named_nodes(&list.only.nodes, how, context, out).await?;
        }
    }
    let (now_ms, show_request) = (now_ms(), context.settings.show_request());
    let table = |workloads: &[Workload], wide: bool| match style {
        TableStyle::V1 => rows::table_v1(workloads, now_ms, wide),
        TableStyle::V2 => rows::table_v2(workloads, show_request, now_ms, wide),
    };
    let statuses = &list.only.statuses;
    let is_meant = |one: &Workload| statuses.is_empty() || rows::has_status(one, statuses);
    let (page, rest) = match list.needs_all() {
        // The server cannot sort by every column, so all rows are read.
        true => {
            let found = found.into_iter().filter(is_meant).collect();
            list.page.of(how.order(found, |all| table(all, true))?)
        }
        false => (found, usize::try_from(after).unwrap_or(usize::MAX)),
    };
    if !how.shown.is_text() {
        let name = |one: &Workload| format!("{}/{}", one.kind.to_lowercase(), one.name);
        return how.data(&page, &page.iter().map(name).collect::<Vec<_>>(), out);
    }
    let shown = table(&page, how.is_wide());
    let text = match style {
        TableStyle::V1 => {
            if !list.all_projects && !how.no_headers {
                writeln!(out, "Showing jobs for project {}", context.project()?)?;
            }
            let mut dropped_first = rows::V1_DROPPED_FIRST;
            if !list.all_projects {
                // The project is in the line above.
                dropped_first.rotate_right(1);
            }
            how.text(shown, Style::Plain, &dropped_first)
        }
        TableStyle::V2 => how.text(shown, Style::Ruled, &rows::V2_DROPPED_FIRST),
    };
    out.write_all(text.as_bytes())?;
    tell_rest(list.page, page.len(), rest);
    Ok(())
}

/// Query of a list: the printed rows only, unless they are sorted or filtered here.
pub(super) fn selection(
    list: &ListWorkloads,
    style: TableStyle,
    project: Option<&str>,
) -> Result<Selection, Error> {
    let Only { phases, statuses: _, nodes, users, labels } = &list.only;
    let mut conditions = Vec::new();
    let mut must = |field: &str, values: &[String]| {
        if !values.is_empty() {
            conditions.push(format!("{field}=={}", values.join("|")));
        }
    };
    must("projectName", project.map(str::to_owned).as_slice());
    if let Some((field, value)) = rows::condition_of(list.noun) {
        must(field, &[value.to_owned()]);
    }
    let phases: Vec<String> = phases.iter().map(|phase| rows::phase_named(phase)).collect();
    must("phase", &phases);
    must("nodes", nodes);
    must("submittedBy", users);
    labels.iter().for_each(|(name, value)| must("labels", &[format!("{name}={value}")]));
    if conditions.iter().any(|condition| condition.contains(',')) {
        let text = "a name of a project, node, user or label has no comma";
        return Err(Error::Usage(text.to_owned()));
    }
    let order = match style {
        TableStyle::V1 => "qualifiedName",
        TableStyle::V2 => "activity",
    };
    let Page { offset, limit, .. } = if list.needs_all() { Page::default() } else { list.page };
    let rows = |count| u64::try_from(count).unwrap_or(u64::MAX);
    Ok(Selection {
        conditions,
        sort_by: Some((order, false)),
        offset: rows(offset),
        limit: limit.map(rows),
    })
}

/// Prints how to see the rows after a page.
pub(super) fn tell_rest(page: Page, count: usize, rest: usize) {
    if rest > 0 {
        let end = page.offset.saturating_add(count);
        let flags = match page.has_more_pages {
            true => format!("--offset {end}, or --no-pagination"),
            false => format!("--limit {}, or none", end.saturating_add(rest)),
        };
        print_note(&format!("{rest} more: {flags}"));
    }
}

pub(super) async fn projects(
    dialect: Dialect,
    page: Page,
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut projects = context.client.projects().await?;
    projects.sort_by(|a, b| a.name.cmp(&b.name));
    let default = context.settings.project();
    let pools = pools_of_quotas(&context.client, &projects).await?;
    let table = |projects: &[Project]| match dialect {
        Dialect::V1 => projects_v1(projects, &pools, default),
        Dialect::V2 => projects_v2(projects, &pools),
    };
    let (projects, rest) = page.of(how.order(projects, table)?);
    if !how.shown.is_text() {
        let name = |one: &Project| format!("project/{}", one.name);
        return how.data(&projects, &projects.iter().map(name).collect::<Vec<_>>(), out);
    }
    let drop_first = ["TRAIN AFFINITY", "INT AFFINITY", "INT LIMIT", "DEPARTMENT"];
    let text = match dialect {
        Dialect::V1 => how.text(table(&projects), Style::Plain, &drop_first),
        Dialect::V2 => how.text(table(&projects), Style::Ruled, &["GPU Allocation Ratio"]),
    };
    out.write_all(text.as_bytes())?;
    tell_rest(page, projects.len(), rest);
    Ok(())
}

/// The table of `runai list projects`; with several node pools the quota in each.
pub(super) fn projects_v1(
    projects: &[Project],
    pools: &[Nodepool],
    default: Option<&str>,
) -> Table {
    let mut columns = vec![
        "PROJECT",
        "DEPARTMENT",
        "DESERVED GPUs",
        "INT LIMIT",
        "INT AFFINITY",
        "TRAIN AFFINITY",
    ];
    let divided = pools.len() > 1;
    if divided {
        columns.insert(3, "IN NODE POOLS");
    }
    let mut table = Table::new(&columns);
    for project in projects {
        let mark = if default == Some(project.name.as_str()) { " (default)" } else { "" };
        // Effective rules, with those of the department.
        let ProjectEffective { scheduling_rules: rules, node_types: types, .. } =
            &project.effective;
        let by_pool = divided.then(|| quotas_by_pool(&project.resources, pools));
        let before = [
            format!("{}{mark}", project.name),
            project.parent.name.clone(),
            project.total_resources.gpu_quota.to_string(),
        ];
        let after = [
            rules.interactive_job_time_limit_seconds.map_or_else(|| "-".to_owned(), go_duration),
            joined(&types.workspace),
            joined(&types.training),
        ];
        table.cells(before.into_iter().chain(by_pool).chain(after));
    }
    table
}

fn joined(affinities: &[String]) -> String {
    if affinities.is_empty() { "-".to_owned() } else { affinities.join(";") }
}

/// Seconds in the form of a Go duration.
fn go_duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s}s"),
        (h, m, s) => format!("{h}h{m}m{s}s"),
    }
}

/// The node pools, if the quotas of projects are divided among several; empty otherwise.
///
/// # Errors
/// As every request.
pub async fn pools_of_quotas(
    client: &Client,
    projects: &[Project],
) -> Result<Vec<Nodepool>, client::Error> {
    match projects.iter().any(|project| project.resources.len() > 1) {
        true => client.node_pools().await,
        false => Ok(Vec::new()),
    }
}

/// The GPU quotas in each node pool: `a100 2, default 3 (no nodes)`.
#[must_use]
pub fn quotas_by_pool(resources: &[Resources], pools: &[Nodepool]) -> String {
    let quota = |of: &Resources| {
        let quota = of.gpu.deserved.as_ref().map_or_else(String::new, ToString::to_string);
        let pool = pools.iter().find(|pool| pool.id == of.node_pool.id);
        let name = of.node_pool.name.as_deref().unwrap_or(&of.node_pool.id);
        let empty = pool.is_some_and(|pool| pool.status.nodes.is_empty());
        format!("{name} {quota}{}", if empty { " (no nodes)" } else { "" })
    };
    resources.iter().map(quota).collect::<Vec<_>>().join(", ")
}

/// The table of `runai project list`; with several node pools the quota in each.
pub fn projects_v2(projects: &[Project], pools: &[Nodepool]) -> Table {
    let mut columns = vec!["Name", "GPU Quota", "Allocated GPUs", "GPU Allocation Ratio"];
    let divided = pools.len() > 1;
    if divided {
        columns.insert(2, "In Node Pools");
    }
    let mut table = Table::new(&columns);
    for project in projects {
        let quota = project.total_resources.gpu_quota.0;
        let held = project.status.quota_status.allocated.gpu.0;
        let by_pool = divided.then(|| quotas_by_pool(&project.resources, pools));
        let before = [project.name.clone(), two_decimals(quota)].into_iter();
        let after = [two_decimals(held), percent(held, quota)];
        table.cells(before.chain(by_pool).chain(after));
    }
    table
}

/// `100.00%`, truncated after two decimals; `-` if the whole is 0.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let hundredths = u128::from(part) * 10_000 / u128::from(whole);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

pub(super) async fn clusters(
    dialect: Dialect,
    page: Page,
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let project = context.settings.project().unwrap_or("-");
    // There is one cluster, so it is the current one.
    let table = |clusters: &[DisplayedCluster]| {
        let mut table = match dialect {
            Dialect::V1 => Table::new(&["CLUSTER", "CURRENT PROJECT"]),
            Dialect::V2 => Table::new(&["Name", "ID", "Status"]),
        };
        for cluster in clusters {
            let name = format!("{} (current)", cluster.name);
            match dialect {
                Dialect::V1 => table.row([name, project.to_owned()]),
                Dialect::V2 => {
                    table.row([name, cluster.uuid.clone(), cluster.status.state.clone()]);
                }
            }
        }
        table
    };
    let (clusters, rest) = page.of(how.order(context.client.clusters().await?, table)?);
    if !how.shown.is_text() {
        let name = |one: &DisplayedCluster| format!("cluster/{}", one.name);
        return how.data(&clusters, &clusters.iter().map(name).collect::<Vec<_>>(), out);
    }
    match dialect {
        Dialect::V1 => {
            if !how.no_headers {
                writeln!(out, "Configured clusters on this computer are:")?;
            }
            write!(out, "{}", how.text(table(&clusters), Style::Plain, &[]))?;
        }
        Dialect::V2 => write!(out, "{}", how.text(table(&clusters), Style::Ruled, &[]))?,
    }
    tell_rest(page, clusters.len(), rest);
    Ok(())
}

pub(super) async fn nodes(
    dialect: Dialect,
    names: &[String],
    page: Page,
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let table = |nodes: &[NodeStatus]| nodes_table(nodes, how.is_wide());
    let nodes = how.order(named_nodes(names, how, context, out).await?, table)?;
    let (nodes, rest) = page.of(nodes);
    if !how.shown.is_text() {
        return how.data(&nodes, &node_names(&nodes), out);
    }
    let grouped = nodes_v1(&nodes, how.is_wide());
    let fits = how.is_wide() || columns().is_none_or(|columns| grouped.line_chars() <= columns);
    let text = match dialect {
        Dialect::V1 if fits && how.no_headers => grouped.headless().plain(),
        Dialect::V1 if fits => grouped.plain(),
        Dialect::V1 => how.text(table(&nodes), Style::Plain, &NODES_DROPPED_FIRST),
        Dialect::V2 => how.text(table(&nodes), Style::Ruled, &NODES_DROPPED_FIRST),
    };
    out.write_all(text.as_bytes())?;
    tell_rest(page, nodes.len(), rest);
    Ok(())
}

/// Columns that the short list of nodes can do without.
const NODES_DROPPED_FIRST: [&str; 3] = ["Node Pool", "GPU Type", "GPUs"];

pub(super) fn node_names(nodes: &[NodeStatus]) -> Vec<String> {
    nodes.iter().map(|node| format!("node/{}", node.name)).collect()
}

/// The named nodes, or all without names. Prints unknown names with the existing ones; an error if
/// all are unknown.
pub(super) async fn named_nodes(
    names: &[String],
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<Vec<NodeStatus>, Error> {
    let mut nodes = context.client.status().await?.nodes;
    if names.is_empty() {
        return Ok(nodes);
    }
    let missing: Vec<&str> = names
        .iter()
        .filter(|name| nodes.iter().all(|node| node.name != **name))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        let there: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let lines = [
            format!("No match found for node(s) '[{}]'", missing.join(" ")),
            format!("Available node(s): [{}]", there.join(" ")),
        ];
        for line in lines {
            // Programs read standard output as data.
            match how.shown.is_text() {
                true => writeln!(out, "{line}")?,
                false => print_note(&line),
            }
        }
        if missing.len() == names.len() {
            out.flush()?;
            return Err(Error::Said(cli_kit::exit::NOT_FOUND));
        }
    }
    nodes.retain(|node| names.contains(&node.name));
    Ok(nodes)
}

fn gpus_free(node: &NodeStatus) -> u64 {
    let each = (0..).zip(&node.gpu_used);
    let in_service = each.filter(|(gpu, _)| fault(node, *gpu).is_none());
    let instance = |gpu: u32| node.mig_instances.iter().find(|one| one.index == gpu);
    let free = in_service.map(|(gpu, used)| match instance(gpu) {
        Some(one) if one.in_use => 0,
        Some(one) => one.share.0,
        None => 1000_u64.saturating_sub(used.0),
    });
    free.sum()
}

/// The fault of a GPU; `None` if it has none.
pub(super) fn fault(node: &NodeStatus, gpu: u32) -> Option<&GpuFault> {
    node.gpu_faults.iter().find(|fault| fault.gpu == gpu)
}

fn gpus_used(node: &NodeStatus) -> u64 {
    node.gpu_used.iter().map(|used| used.0).sum()
}

pub(super) fn gpus_in_service(node: &NodeStatus) -> usize {
    node.gpu_used.len().saturating_sub(node.gpu_faults.len())
}

fn gpu_type(node: &NodeStatus) -> String {
    if node.gpu_used.is_empty() { "<none>".to_owned() } else { node.gpu_type.clone() }
}

/// The labels of a node in one cell.
fn labels(node: &NodeStatus) -> String {
    let labels: Vec<_> = node.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if labels.is_empty() { "-".to_owned() } else { labels.join(",") }
}

pub(super) fn nodes_v1(nodes: &[NodeStatus], is_wide: bool) -> Grouped {
    let groups: [(&str, &[&str]); 5] = [
        ("", &["NAME", "STATUS", "IP Address", "ROLE"]),
        ("CPU", &["ALLOCATABLE", "ALLOCATED"]),
        ("MEMORY", &["ALLOCATABLE", "ALLOCATED"]),
        ("GPU", &["TYPE", "ALLOCATABLE", "FREE"]),
        ("", &["LABELS"]),
    ];
    let shown = if is_wide { groups.len() } else { groups.len() - 1 };
    let mut table = Grouped::new(&groups[..shown]);
    for node in nodes {
        let cell = |text: &str| text.to_owned();
        let cells = [
            vec![node.name.clone(), node.conditions(), cell("-"), cell("<none>")],
            vec![units::format_millis(node.cpu_millis), units::format_millis(node.cpu_used_millis)],
            vec![
                units::format_bytes(node.memory_bytes),
                units::format_bytes(node.memory_used_bytes),
            ],
            vec![
                gpu_type(node),
                gpus_in_service(node).to_string(),
                units::format_millis(gpus_free(node)),
            ],
            vec![labels(node)],
        ];
        table.row(cells.into_iter().take(shown));
    }
    table
}

pub(super) fn nodes_table(nodes: &[NodeStatus], is_wide: bool) -> Table {
    let columns =
        ["Name", "Node Pool", "GPU Type", "GPUs", "Allocated", "Free", "Status", "Labels"];
    let shown = if is_wide { columns.len() } else { columns.len() - 1 };
    let mut table = Table::new(&columns[..shown]);
    for node in nodes {
        let cells = [
            node.name.clone(),
            node.pool.clone(),
            gpu_type(node),
            node.gpu_used.len().to_string(),
            two_decimals(gpus_used(node)),
            two_decimals(gpus_free(node)),
            node.conditions(),
            labels(node),
        ];
        table.cells(cells.into_iter().take(shown));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        let told = [59, 60, 200, 3600, 90_061].map(go_duration);
        assert_eq!(told, ["59s", "1m0s", "3m20s", "1h0m0s", "25h1m1s"]);
    }
}
