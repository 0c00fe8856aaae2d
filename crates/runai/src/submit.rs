//! Submission and update of workloads. Owns: numbered names, and the messages afterwards.

use std::io::Write;
use std::time::Duration;

use api_types as wire;
use client::WorkloadKind;

use super::access::{self, LocalForward};
use super::context::Context;
use super::inherit::Inherited;
use super::stabilize::wait_until_stable;
use super::{exec_session, inherit, terminal, what_if};
use cli_kit::exit::Error;
use cli_kit::message::{Plain, is_quiet, print_always, print_note};
use dialects::intent::{Dialect, Kind, Mode, Name, Noun, Submit, Update};

/// Error text for a submission without an image.
pub(super) const NO_IMAGE: &str =
    "the image is missing; name one with -i, --image IMAGE, such as -i ubuntu";
/// Numbered names are retried when another submission takes the number first.
const NUMBER_TRIES_MAX: usize = 20;

pub(super) async fn run(
    mut submit: Submit,
    context: &Context,
    raw: &mut dyn Write,
) -> Result<(), Error> {
    // Piped input has an end, which a remote terminal would never see.
    if matches!(submit.mode, Mode::Attach { .. }) && !terminal::is_here() {
        submit.spec.stdio.tty = false;
    }
    let out = &mut Plain(&mut *raw);
    let (spec, inherits) = (&submit.spec, &submit.inherits);
    // The first dialect has no workload without an image (reference A.2).
    let without = submit.dialect == Dialect::V2 && !spec.command.is_empty();
    let inherited = inherits.template.is_some() || inherits.environment.is_some();
    if spec.image.is_none() && !without && !inherited {
        return Err(Error::Usage(NO_IMAGE.to_owned()));
    }
    let project = context.known_project().await?;
    if submit.dialect == Dialect::V1
        && submit.kind == Kind::Workspace
        && submit.spec.preemptible == Some(true)
    {
        print_note("Warning: the resources of this job may be preempted without notice");
    }
    submit.notes.iter().for_each(|note| print_note(note));
    let asked = ResolvedSubmission::of(&submit, &project, context).await?;
    match submit.mode {
        Mode::DryRun => return what_if::dry_run(&asked.foretold(context).await?.0, out),
        Mode::WhatIf => {
            let (request, would) = asked.foretold(context).await?;
            return what_if::run(&request.name, &would, out);
        }
        Mode::Submit | Mode::Attach { .. } => {}
    }
    let entrance = match &submit.access {
        Some(access) => Some(LocalForward::open(access).await?),
        None => None,
    };
    let wire::TypedWorkload { name, workload_id: id, warnings, .. } = asked.create(context).await?;
    let project = &project.name;
    match submit.dialect {
        Dialect::V1 => {
            writeln!(out, "The job '{name}' has been submitted successfully")?;
            if !is_quiet() {
                let hint = format!("`runai describe job {name} -p {project}`");
                writeln!(out, "You can run {hint} to check the job status")?;
            }
        }
        Dialect::V2 => {
            let noun = submit.kind.noun();
            writeln!(out, "Creating {} {name}...", noun.word())?;
            if !is_quiet() {
                writeln!(out, "To track the workload's status, run 'runai {} list'", words(noun))?;
            }
        }
    }
    out.flush()?;
    warn(&warnings);
    let may_follow = submit.spec.priority.is_some() || submit.inherits.template.is_some();
    if may_follow && submit.spec.preemptible.is_none() {
        warn_unless_preemptible(&id, context).await?;
    }
    match (submit.mode, entrance) {
        (Mode::Attach { within_s }, _) => {
            exec_session::attach_to_new(&id, Duration::from_secs(within_s), context, raw).await
        }
        (_, Some(entrance)) => entrance.enter(&id, context, out).await,
        (_, None) => wait_until_stable(&id, context).await,
    }
}

/// Prints the warnings of the server about an accepted submission.
pub(super) fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| print_always(&format!("Warning: {warning}")));
}

/// Warns that the priority of a training makes it non-preemptible: a high priority does so by
/// default, and then quota is a limit.
pub(super) async fn warn_unless_preemptible(id: &str, context: &Context) -> Result<(), Error> {
    let workload = context.client.workload(id).await?;
    if let Some(warning) = not_preemptible(&workload) {
        print_always(&warning);
    }
    Ok(())
}

fn not_preemptible(workload: &wire::Workload) -> Option<String> {
    let is_training = matches!(workload.kind.as_str(), "Training" | "Distributed");
    (is_training && !workload.preemptible).then(|| {
        format!(
            "Warning: with priority {} this training is not preemptible: it can only use GPUs within \
             the quota of project {}. Add `--preemptibility preemptible` to let it use more and be \
             preempted",
            workload.priority_class_name, workload.project_name
        )
    })
}

/// Updates an existing workload.
pub(super) async fn update(
    update: Update,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let there = context.existing(&update.of).await?;
    let (kind, word) = match there.kind.as_str() {
        "Workspace" => (WorkloadKind::Workspace, "workspace"),
        "Distributed" => (WorkloadKind::Distributed, "training"),
        "Inference" => (WorkloadKind::Inference, "inference"),
        _ => (WorkloadKind::Training, "training"),
    };
    let change = dialects::change(&update);
    let changed = context.client.update(kind, &there.id, &change).await;
    let changed = changed.map_err(|error| with_flags(error, Dialect::V2))?;
    writeln!(out, "Updating {word} {}...", changed.name)?;
    out.flush()?;
    if let Some(notice) = context.client.notice() {
        print_note(&notice);
    }
    wait_until_stable(&there.id, context).await
}

/// Command words before the verb.
const fn words(noun: Noun) -> &'static str {
    match noun {
        Noun::Job | Noun::Workload => "workload",
        Noun::Training | Noun::Standard | Noun::Distributed | Noun::Framework(_) => "training",
        Noun::Workspace => "workspace",
        Noun::Inference => "inference",
    }
}

/// A submission with its resolved ids and project.
struct ResolvedSubmission<'a> {
    submit: &'a Submit,
    project: &'a wire::Project,
    kind: WorkloadKind,
    inherited: Inherited,
}

impl<'a> ResolvedSubmission<'a> {
    async fn of(
        submit: &'a Submit,
        project: &'a wire::Project,
        context: &Context,
    ) -> Result<Self, Error> {
        let kind = match submit.kind {
            Kind::Training(_) => WorkloadKind::Training,
            Kind::Workspace => WorkloadKind::Workspace,
            Kind::Distributed(_) => WorkloadKind::Distributed,
            Kind::Inference(_) => WorkloadKind::Inference,
        };
        let inherited = inherit::by_id(submit, kind, project, &context.client).await?;
        Ok(Self { submit, project, kind, inherited })
    }

    fn request(&self, name: &str) -> wire::CreationRequest {
        let mut request = dialects::creation(self.submit, name, self.project.id.clone());
        request.cluster_id = Some(self.project.cluster_id.clone());
        request.template_id.clone_from(&self.inherited.template);
        let spec = request.spec.get_or_insert_default();
        spec.assets.clone_from(&self.inherited.assets);
        if self.submit.access.as_ref().is_some_and(|access| access.own_path) {
            let path = access::own_path(&self.project.name, name);
            spec.args = Some(shell_words::join(access::start_at(&path)));
        }
        request
    }

    /// Predicted outcome of the submission, and its body. The server validates it like a
    /// submission.
    async fn foretold(
        &self,
        context: &Context,
    ) -> Result<(wire::CreationRequest, wire::WouldHappen), Error> {
        let name = free_name(&self.submit.name, self.project, context).await?;
        let request = self.request(&name);
        let mut asked = wire::WhatIf::default();
        let of_kind = match self.kind {
            WorkloadKind::Training => &mut asked.trainings,
            WorkloadKind::Workspace => &mut asked.workspaces,
            WorkloadKind::Distributed => &mut asked.distributed,
            WorkloadKind::Inference => &mut asked.inferences,
        };
        of_kind.push(request.clone());
        match context.client.what_if(&asked).await {
            Ok(would) => Ok((request, would)),
            Err(error) => Err(error.into()),
        }
    }

    async fn create(&self, context: &Context) -> Result<wire::TypedWorkload, Error> {
        let create = async |name: &str| {
            let created = context.client.create(self.kind, &self.request(name)).await;
            created.map_err(|error| with_flags(error, self.submit.dialect))
        };
        create_named(&self.submit.name, self.project, context, create).await
    }
}

/// The error with the flag that was typed in place of the field of the request.
fn with_flags(error: client::Error, dialect: Dialect) -> client::Error {
    let named = error.field_fault().and_then(|fault| {
        let flag = dialects::flag_of_field(&fault.field, dialect)?;
        Some(format!("{flag}: {}", fault.message))
    });
    match (error, named) {
        (client::Error::Api { code, .. }, Some(message)) => client::Error::refusal(code, message),
        (error, _) => error,
    }
}

/// Creates a workload under its name, or under the first number that is free.
pub(super) async fn create_named<T>(
    name: &Name,
    project: &wire::Project,
    context: &Context,
    create: impl AsyncFn(&str) -> Result<T, client::Error>,
) -> Result<T, Error> {
    let numbered = matches!(name, Name::Numbered(_));
    let mut tries = 0;
    loop {
        let name = free_name(name, project, context).await?;
        tries += 1;
        match create(&name).await {
            Ok(created) => return Ok(created),
            Err(client::Error::Api { code: 409, .. }) if numbered && tries < NUMBER_TRIES_MAX => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The given name, or the prefix with the first free number.
async fn free_name(
    name: &Name,
    project: &wire::Project,
    context: &Context,
) -> Result<String, Error> {
    let prefix = match name {
        Name::Given(name) => return Ok(name.clone()),
        Name::Numbered(prefix) => prefix,
    };
    let there = context.client.workloads(Some(&project.name)).await?;
    let mut names = (0_u64..).map(|number| format!("{prefix}-{number}"));
    let free = names.find(|name| there.iter().all(|workload| workload.name != *name));
    Ok(free.unwrap_or_else(|| prefix.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples::workload;

    #[test]
    fn a_training_that_its_priority_makes_non_preemptible_is_told_of() {
        let mut training = workload("t Training Pending team-a");
        assert_eq!(not_preemptible(&training), None);
        (training.preemptible, training.priority_class_name) = (false, "high".to_owned());
        let warning = not_preemptible(&training).unwrap();
        assert!(
            warning.contains("priority high") && warning.contains("project team-a"),
            "{warning}"
        );
        let mut workspace = workload("w Workspace Pending team-a");
        workspace.preemptible = false;
        assert_eq!(not_preemptible(&workspace), None, "none is");
    }
}
