//! Submitting, and changing what was submitted. Owns: numbered names, and what is said afterwards.

use std::io::Write;
use std::time::Duration;

use api_types as wire;
use client::WorkloadKind;

use super::context::Context;
use super::intent::{Dialect, Kind, Name, Noun, Submit, Update};
use super::settle::settle_own;
use super::{inherit, request, visit};
use crate::exit::{self, Error};
use crate::plain::Plain;

/// Numbered names are retried when somebody else takes the number first.
const NUMBER_TRIES_MAX: usize = 20;

pub(super) async fn run(
    submit: Submit,
    context: &Context,
    raw: &mut dyn Write,
) -> Result<(), Error> {
    let out = &mut Plain(&mut *raw);
    let (spec, inherits) = (&submit.spec, &submit.inherits);
    // The first dialect knows no workload without an image (reference A.2).
    let without = submit.dialect == Dialect::V2 && !spec.command.is_empty();
    let inherited = inherits.template.is_some() || inherits.environment.is_some();
    if spec.image.is_none() && !without && !inherited {
        writeln!(std::io::stderr(), "\n-i, --image must be set\n")?;
        return Err(Error::Said(exit::FAILED));
    }
    let project = context.known_project().await?;
    if submit.dialect == Dialect::V1
        && submit.kind == Kind::Workspace
        && submit.spec.preemptible == Some(true)
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
            let noun = submit.kind.noun();
            writeln!(out, "Creating {} {name}...", noun.word())?;
            writeln!(out, "To track the workload's status, run 'runai {} list'", words(noun))?;
        }
    }
    out.flush()?;
    match submit.attach_within_s {
        None => settle_own(&id, context).await,
        Some(s) => visit::attach_to_new(&id, Duration::from_secs(s), context, raw).await,
    }
}

/// Gives an inference new values.
pub(super) async fn update(
    update: Update,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let there = context.existing(&update.of).await?;
    let change = request::change(&update.spec, &update.serving);
    let changed = context.client.update_inference(&there.id, &change).await?;
    writeln!(out, "Updating inference {}...", changed.name)?;
    out.flush()?;
    settle_own(&there.id, context).await
}

/// The words that stand before a verb.
const fn words(noun: Noun) -> &'static str {
    match noun {
        Noun::Job | Noun::Workload => "workload",
        Noun::Training | Noun::Standard | Noun::Distributed | Noun::Framework(_) => "training",
        Noun::Workspace => "workspace",
        Noun::Inference => "inference",
    }
}

/// Creates the workload under its name, or under the first free number.
async fn create(
    submit: &Submit,
    project: &wire::Project,
    context: &Context,
) -> Result<(String, String), Error> {
    let kind = match submit.kind {
        Kind::Training(_) => WorkloadKind::Training,
        Kind::Workspace => WorkloadKind::Workspace,
        Kind::Distributed(_) => WorkloadKind::Distributed,
        Kind::Inference(_) => WorkloadKind::Inference,
    };
    let inherited = inherit::by_id(submit, kind, project, &context.client).await?;
    let request = |name: &str| {
        let mut request = request::creation(submit, name, project.id.clone());
        request.cluster_id = Some(project.cluster_id.clone());
        request.template_id.clone_from(&inherited.template);
        request.spec.get_or_insert_default().assets.clone_from(&inherited.assets);
        request
    };
    let prefix = match &submit.name {
        Name::Given(name) => {
            let created = context.client.create(kind, &request(name)).await;
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
        match context.client.create(kind, &request(&name)).await {
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
