//! `elasticdl`: converts published command lines of elastic training jobs to workloads of the
//! server.
//!
//! Owns: both published forms of the command line, the supported part of them, and commands in
//! addition to the published ones. Does not know about: how a training runs (`elastic`), and
//! scheduling (the server).

mod apply;
pub mod commands;
pub mod flag;
pub mod flags;
pub mod job;
mod local;
mod master;
mod parameter_server;
pub mod parse;
mod plot;
mod pods;
mod progress;
mod request;
mod submit;
pub mod values;
mod zoo;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use cli_kit::exit::{self, Error};
use cli_kit::message::{Plain, be_quiet, print_note};
use commands::{Common, Own};
use parse::{Invocation, Parsed};

/// Runs a command line, the program's name included.
#[must_use]
pub fn main(argv: Vec<OsString>) -> ExitCode {
    match cli_kit::complete::answered(parse::completed, &argv) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return exit::parser_said(&error),
    }
    if argv.len() < 2 {
        // Prints the help as an error, as published.
        cli_kit::message::print_prompt(&parse::tree().render_help().to_string());
        return ExitCode::from(exit::FAILED);
    }
    let Parsed { asked, common, notes } = match parse::parse(&argv) {
        Ok(parsed) => parsed,
        Err(error) => return exit::parser_said(&error),
    };
    if common.quiet {
        be_quiet();
    }
    notes.iter().for_each(|note| print_note(note));
    match asked {
        Invocation::Own(own) => match delegated(&own, &common) {
            Some(line) => runai::main(line),
            None => in_runtime(Invocation::Own(own), common),
        },
        other => in_runtime(other, common),
    }
}

/// The equivalent command line of `runai`; `None` if there is none.
fn delegated(own: &Own, common: &Common) -> Option<Vec<OsString>> {
    let mut line: Vec<String> = vec!["runai".to_owned()];
    let mut add = |words: &[&str]| line.extend(words.iter().map(|word| (*word).to_owned()));
    match own {
        Own::Status { job } => add(&["describe", "job", job]),
        Own::Logs { job, pod, follow, previous } => {
            add(&["logs", job]);
            pod.iter().for_each(|pod| add(&["--pod", pod]));
            follow.then(|| add(&["--follow"]));
            previous.then(|| add(&["--previous"]));
        }
        Own::Wait { job, timeout } => {
            add(&["wait", job]);
            timeout.iter().for_each(|timeout| add(&["--timeout", timeout]));
        }
        Own::Delete { jobs } => {
            add(&["delete"]);
            jobs.iter().for_each(|job| add(&[job]));
        }
        _ => return None,
    }
    common.project.iter().for_each(|project| add(&["--project", project]));
    common.quiet.then(|| add(&["--quiet"]));
    Some(line.into_iter().map(OsString::from).collect())
}

fn in_runtime(asked: Invocation, common: Common) -> ExitCode {
    let mut builder = match asked {
        // These are servers, and compute updates of models.
        Invocation::Own(Own::Master { .. } | Own::Ps { .. }) | Invocation::Local(..) => {
            tokio::runtime::Builder::new_multi_thread()
        }
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Error::Failed(format!("failed to start: {error}")).report(),
    };
    let stdout = std::io::stdout();
    let done = match &asked {
        // Its threads write concurrently.
        Invocation::Own(Own::Master { flags }) => runtime.block_on(master::run(flags)),
        Invocation::Own(Own::Ps { flags }) => runtime.block_on(parameter_server::run(flags)),
        Invocation::Local(form, values) => runtime.block_on(local::run(*form, values)),
        _ => runtime.block_on(run(asked, common, &mut stdout.lock())),
    };
    match done.and_then(|()| stdout.lock().flush().map_err(Error::Output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

async fn run(asked: Invocation, common: Common, raw: &mut dyn std::io::Write) -> Result<(), Error> {
    let project = common.project;
    let out: &mut dyn std::io::Write = &mut Plain(&mut *raw);
    match asked {
        Invocation::Job(form, values) => submit::run(form, &values, project, out).await,
        Invocation::ZooInit(values) => zoo::init(&values, out),
        Invocation::ZooBuild(path, values) => zoo::build(&path, &values),
        Invocation::ZooPush(image) => Err(zoo::push(&image)),
        Invocation::Clean => {
            print_note("no image is made of models here, so there is none to remove");
            Ok(())
        }
        Invocation::Own(Own::Pods { selector, format }) => {
            pods::list(selector, format, project, raw).await
        }
        Invocation::Own(Own::Jobs { format }) => pods::jobs(format, project, raw).await,
        Invocation::Own(Own::Plot { job, output }) => {
            plot::run(&job, &output, project).await?;
            writeln!(out, "{job} is drawn in {}", output.display())?;
            Ok(())
        }
        Invocation::Own(Own::Apply { filename }) => apply::run(&filename, project, out).await,
        Invocation::Own(Own::Completion { shell }) => {
            cli_kit::complete::script(shell, "elasticdl", out)
        }
        Invocation::Own(Own::Flat) => {
            write!(out, "{}", parse::flat().render_long_help())?;
            Ok(())
        }
        Invocation::Own(Own::Man { folder }) => {
            let failed =
                |error| Error::Failed(format!("cannot write to {}: {error}", folder.display()));
            std::fs::create_dir_all(&folder).map_err(failed)?;
            clap_mangen::generate_to(parse::tree(), &folder).map_err(failed)
        }
        // These run as commands of `runai`, or print by themselves.
        Invocation::Local(..) => Ok(()),
        Invocation::Own(
            Own::Master { .. }
            | Own::Ps { .. }
            | Own::Status { .. }
            | Own::Logs { .. }
            | Own::Wait { .. }
            | Own::Delete { .. },
        ) => Ok(()),
    }
}
