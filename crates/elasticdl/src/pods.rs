//! The pods of jobs, in the table that kubectl prints. Owns: its columns and words, and the
//! selection by labels. Does not know about: the processes of a pod.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use api_types::{Pod, Workload};
use clap_complete::engine::CompletionCandidate;
use cli_kit::change_wait::ChangeWait;
use cli_kit::complete::{line, names, value_of};
use cli_kit::exit::Error;
use cli_kit::message::print_note;
use cli_kit::output::{Format, OutputOptions, Style, show};
use cli_kit::table::{Table, age};
use client::{Client, Selection};
use runai::Connected;

/// Label of the jobs of this program.
const JOBS: (&str, &str) = ("app", "elasticdl");
/// Maximum number of failed jobs in the notes below a list.
const FAILURES_MAX: usize = 3;
/// Labels of pods that their jobs do not have.
const TYPE: &str = "elasticdl-replica-type";
const INDEX: &str = "elasticdl-replica-index";

/// Lists pods.
pub(crate) async fn list(
    selector: Option<String>,
    format: Format,
    project: Option<String>,
    raw: &mut dyn Write,
) -> Result<(), Error> {
    let asked = labels(selector.as_deref().unwrap_or_default()).map_err(Error::Usage)?;
    let find = async |client: &Client, project: &str| found(client, project, &asked).await;
    let name = |pod: &Pod| format!("pod/{}", pod.name);
    let nothing = async |_: &Client, _: &[Pod]| Ok(());
    shown(format, project, raw, (find, name, table, nothing)).await
}

/// Lists jobs.
pub(crate) async fn jobs(
    format: Format,
    project: Option<String>,
    raw: &mut dyn Write,
) -> Result<(), Error> {
    let find = async |client: &Client, project: &str| chosen(client, project, &[]).await;
    let name = |job: &Workload| format!("job/{}", job.name);
    shown(format, project, raw, (find, name, table_of_jobs, say_failures)).await
}

/// Names of jobs, for completion.
pub(crate) fn names_of_jobs() -> Vec<CompletionCandidate> {
    let project = value_of(&line(), &["-p", "--project"]);
    names(async {
        let Connected { client, project } = runai::connected(project).await?;
        let jobs = chosen(&client, &project.name, &[]).await?;
        Ok(jobs.into_iter().map(|job| (job.name, job.phase)).collect())
    })
}

/// Prints the failure reason of the last failed jobs, for which a status has no room.
async fn say_failures(client: &Client, jobs: &[Workload]) -> Result<(), Error> {
    let mut failed: Vec<_> = jobs.iter().filter(|job| job.phase == "Failed").collect();
    failed.sort_by_key(|job| std::cmp::Reverse(job.phase_updated_at));
    for job in failed.into_iter().take(FAILURES_MAX) {
        if let Some(why) = runai::why_failed(job, client).await? {
            let name = &job.name;
            print_note(&format!("{name} has failed: {why}; `elasticdl status {name}` has more"));
        }
    }
    Ok(())
}

/// Prints objects of a project. The functions find them, name one, make the table of all, and print
/// notes below it.
async fn shown<T: serde::Serialize>(
    format: Format,
    project: Option<String>,
    raw: &mut dyn Write,
    (find, name, table, notes): (
        impl AsyncFn(&Client, &str) -> Result<Vec<T>, Error>,
        impl Fn(&T) -> String,
        impl Fn(&[T], u64) -> Table,
        impl AsyncFn(&Client, &[T]) -> Result<(), Error>,
    ),
) -> Result<(), Error> {
    let how = OutputOptions::from(format);
    let Connected { client, project } = runai::connected(project).await?;
    let kinds = [api_types::ChangeKind::Workload, api_types::ChangeKind::Pod];
    let pulse = how.watch.then(|| ChangeWait::watch(&client, &kinds, Some(&project.name)));
    let look = async |out: &mut dyn Write| {
        let all = find(&client, &project.name).await?;
        if !how.shown.is_text() {
            return how.data(&all, &all.iter().map(&name).collect::<Vec<_>>(), out);
        }
        if all.is_empty() {
            print_note(&format!("No resources found in project {}.", project.name));
            return Ok(());
        }
        let now_ms = now_ms();
        let all = how.order(all, |all| table(all, now_ms))?;
        out.write_all(how.text(table(&all, now_ms), Style::Plain, &[]).as_bytes())?;
        if how.watch {
            return Ok(());
        }
        out.flush()?;
        notes(&client, &all).await
    };
    show(&how, raw, pulse, look).await
}

fn table_of_jobs(jobs: &[Workload], now_ms: u64) -> Table {
    let mut table = Table::new(&["NAME", "STATUS", "PODS", "PRIORITY", "AGE"]);
    for job in jobs {
        table.row([
            job.name.clone(),
            runai::image_pull(job).unwrap_or(&job.phase).to_owned(),
            format!("{}/{}", job.running_pods, job.requested_pods.number),
            job.priority_class_name.clone(),
            age(now_ms.saturating_sub(job.created_at.0.0)),
        ]);
    }
    table
}

/// `LABEL=VALUE,LABEL=VALUE`.
fn labels(text: &str) -> Result<Vec<(String, String)>, String> {
    let items = text.split(',').filter(|item| !item.is_empty());
    let pair = |item: &str| match item.split_once('=') {
        Some((key, value)) if !key.is_empty() => {
            Ok((key.to_owned(), value.trim_start_matches('=').to_owned()))
        }
        _ => Err(format!("--selector {}: write LABEL=VALUE", units::shown(item))),
    };
    items.map(pair).collect()
}

/// The jobs with these labels; labels of pods are ignored.
async fn chosen(
    client: &Client,
    project: &str,
    asked: &[(String, String)],
) -> Result<Vec<Workload>, Error> {
    let own = asked.iter().filter(|(key, _)| ![TYPE, INDEX].contains(&key.as_str()));
    let labels = own.map(|(key, value)| (key.as_str(), value.as_str())).chain([JOBS]);
    let labels = labels.map(|(key, value)| format!("labels=={key}={value}"));
    let conditions = std::iter::once(format!("projectName=={project}")).chain(labels).collect();
    let sort_by = Some(("name", false));
    let asked = Selection { conditions, sort_by, ..Selection::default() };
    Ok(client.select(&asked).await?.0)
}

/// The job of this name.
pub(crate) async fn job(client: &Client, project: &str, name: &str) -> Result<Workload, Error> {
    let found = chosen(client, project, &[]).await?.into_iter().find(|job| job.name == name);
    let none = || {
        let name = units::shown(name);
        Error::Failed(format!("no job {name} in project {project}; `elasticdl jobs` lists them"))
    };
    found.ok_or_else(none)
}

async fn found(
    client: &Client,
    project: &str,
    asked: &[(String, String)],
) -> Result<Vec<Pod>, Error> {
    let of = |key: &str| asked.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str());
    let (role, index) = (of(TYPE), of(INDEX));
    let mut all = Vec::new();
    for job in chosen(client, project, asked).await? {
        let pods = client.pods(&job.id).await?.into_iter();
        all.extend(pods.filter(|pod| {
            role.is_none_or(|role| pod.role == role)
                && index.is_none_or(|index| number_of(pod) == index)
        }));
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// The number of a pod among those of its role; there is one master.
fn number_of(pod: &Pod) -> &str {
    match pod.role.as_str() {
        "master" => "0",
        _ => pod.name.rsplit('-').next().unwrap_or_default(),
    }
}

/// The state of a pod in kubectl's words.
fn status(pod: &Pod) -> &str {
    match pod.state.as_str() {
        "Reserved" | "Suspended" => "Pending",
        "Starting" => "ContainerCreating",
        "Succeeded" => "Completed",
        "Failed" => "Error",
        other => other,
    }
}

fn table(pods: &[Pod], now_ms: u64) -> Table {
    let mut table = Table::new(&["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    for pod in pods {
        let ready = u32::from(pod.state == "Running");
        table.row([
            pod.name.clone(),
            format!("{ready}/1"),
            status(pod).to_owned(),
            pod.restarts.to_string(),
            age(now_ms.saturating_sub(pod.created_at.0.0)),
        ]);
    }
    table
}

fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
