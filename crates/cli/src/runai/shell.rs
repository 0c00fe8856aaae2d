//! What a workload wrote, and a shell beside it.

use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use api_types::Workload;

use super::context::Context;
use super::intent::{Dialect, Target};
use super::rows;
use crate::exit::Error;

pub(super) async fn logs(
    of: &Target,
    follow: bool,
    tail_lines: Option<u64>,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(of).await?;
    refuse_resting(&workload)?;
    let client = &context.client;
    let mut chunks = client.logs(&workload.id, tail_lines, follow, of.pod.as_deref()).await?;
    let mut nothing = true;
    while let Some(chunk) = chunks.next().await? {
        nothing &= chunk.is_empty();
        out.write_all(&chunk)?;
        out.flush()?;
    }
    match &workload.additional_fields.last_exit {
        Some(why) if nothing && workload.running_pods == 0 => {
            writeln!(std::io::stderr(), "{} wrote nothing: {why}", workload.name)?;
        }
        _ => {}
    }
    Ok(())
}

/// Becomes the command, with exactly the environment and folder of the workload's process.
pub(super) async fn exec(of: &Target, command: &[String], context: &Context) -> Result<(), Error> {
    let workload = match context.workload(of).await? {
        Some(workload) => workload,
        None => return Err(not_found(of)),
    };
    if !context.local {
        return Err(Error::Failed(format!(
            "the server is on another machine ({}); a shell can be opened on that machine only",
            context.client.url()
        )));
    }
    refuse_unless_running(&workload)?;
    let shell = context.client.shell(&workload.id, of.pod.as_deref()).await?;
    let Some((program, args)) = command.split_first() else {
        return Err(Error::Usage("say which command to run".to_owned()));
    };
    let mut process = Command::new(program);
    process.args(args).env_clear().envs(&shell.env).current_dir(&shell.working_dir);
    if let (None, Ok(terminal)) = (shell.env.get("TERM"), std::env::var("TERM")) {
        // The terminal is the caller's; nothing else of theirs is passed on.
        process.env("TERM", terminal);
    }
    let error = process.exec();
    Err(Error::Failed(format!("failed to run {program} in pod {}: {error}", shell.pod_name)))
}

fn not_found(of: &Target) -> Error {
    let name = units::shown(&of.name);
    Error::NotFound(match of.noun.dialect() {
        Dialect::V1 => format!("The job: '{name}' is not found"),
        Dialect::V2 => format!("The workload: '{name}' is not found"),
    })
}

fn refuse_resting(workload: &Workload) -> Result<(), Error> {
    if !rows::rests(workload) {
        return Ok(());
    }
    let name = &workload.name;
    Err(Error::Failed(format!(
        "{name} has no replica now, because nobody asks; the next request brings one up"
    )))
}

fn refuse_unless_running(workload: &Workload) -> Result<(), Error> {
    refuse_resting(workload)?;
    if workload.running_pods > 0 {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "cannot run a command in a pod that is not running; {} is {}",
        workload.name, workload.phase
    )))
}
