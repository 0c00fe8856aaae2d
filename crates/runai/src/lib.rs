//! `runai`: executes the intent of a command line of either dialect (`dialects`), with requests to
//! the server and text for the user.

// The samples of the tests are large JSON objects.
#![cfg_attr(test, recursion_limit = "256")]

mod access;
mod account;
mod change;
mod complete;
mod config;
mod context;
mod describe;
mod diagnostics;
mod exec_session;
mod explain;
mod forward;
mod inherit;
mod last_output;
mod list;
mod live;
mod login;
mod logs;
mod loopback;
mod manifest;
mod metrics;
mod objects;
mod open;
mod rows;
mod session;
mod stabilize;
mod submit;
mod terminal;
mod top;
mod upgrade;
mod wait;
mod watch;
mod what_if;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use cli_kit::exit::{self, Error};
use cli_kit::message::{self, Plain};
use cli_kit::output::{OutputOptions, show};
use cli_kit::settings::{Env, TableStyle};
use context::Context;
use dialects::intent::{Intent, LocalCommand};
use dialects::{Deprecated, Global, ParsedCommand, understood};
pub use explain::pod as explain_pod;
pub use list::{pools_of_quotas, projects_v2 as projects_table, quotas_by_pool};
pub use manifest::yaml;
pub use rows::image_pull;
use watch::pulse;

/// Runs a command line, the program's name included.
#[must_use]
pub fn main(argv: Vec<OsString>) -> ExitCode {
    dialects::complete_with(complete::names);
    match cli_kit::complete::answered(dialects::tree, &argv) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return exit::parser_said(&error),
    }
    let ParsedCommand { global, deprecated, note, intent } = match understood(argv) {
        Ok(understood) => understood,
        Err(error) => return exit::parser_said(&error),
    };
    if global.is_quiet() {
        message::be_quiet();
    }
    global.color.choose();
    if let Some(note) = note {
        message::print_note(&note);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Error::Failed(format!("failed to start: {error}")).report(),
    };
    let stdout = std::io::stdout();
    let done = runtime.block_on(begin(intent, deprecated, &global, &mut stdout.lock()));
    // Tasks that still wait, such as for the lock of a login, are dropped.
    runtime.shutdown_background();
    match done.and_then(|()| stdout.lock().flush().map_err(Error::Output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

/// The server of this user's settings, and the project that they choose unless one is given: for
/// other programs that run for the same user.
///
/// # Errors
/// There is no server, no login or no such project.
pub async fn connected(project: Option<String>) -> Result<Connected, Error> {
    let global = Global { project, ..Global::default() };
    let mut context = Context::open(&global, &|name| std::env::var(name).ok())?;
    session::renew(&mut context).await?;
    let project = context.known_project().await?;
    Ok(Connected { client: context.client, project })
}

/// A server, and a project there.
#[derive(Debug)]
pub struct Connected {
    /// Client of the server.
    pub client: client::Client,
    /// The project.
    pub project: api_types::Project,
}

/// Failure reason of a workload: the last line of its failed run's output, else how that run ended;
/// `None` if the workload has not failed.
///
/// # Errors
/// The server does not answer.
pub async fn why_failed(
    workload: &api_types::Workload,
    client: &client::Client,
) -> Result<Option<String>, Error> {
    if !last_output::is_due(workload) {
        return Ok(None);
    }
    let pods = client.pods(&workload.id).await?;
    let output = last_output::of(workload, &pods, client).await?;
    let line = output.as_ref().and_then(last_output::LastOutput::last_line).map(str::to_owned);
    Ok(line.or_else(|| workload.additional_fields.last_exit.clone()))
}

/// True if the command needs no request with the user's login.
const fn needs_no_session(intent: &Intent) -> bool {
    use Intent as I;
    matches!(
        intent,
        I::Login(_)
            | I::Logout
            | I::SetServer(_)
            | I::DescribeSettings(_)
            | I::Upgrade
            | I::LocalCommand(_)
    )
}

/// Runs a command with the settings, or without them if they are invalid and it needs none.
async fn begin(
    intent: Intent,
    deprecated: Option<Deprecated>,
    global: &Global,
    raw: &mut dyn Write,
) -> Result<(), Error> {
    let env: Env<'_> = &|name| std::env::var(name).ok();
    let context = Context::open(global, env);
    let style = context.as_ref().ok().and_then(|context| context.settings.table());
    if let Some(line) =
        deprecated.and_then(|deprecated| deprecated.line(style == Some(TableStyle::V1)))
    {
        message::print_note(&line);
    }
    match (context, intent) {
        (Ok(mut context), intent) => {
            if !needs_no_session(&intent) {
                session::renew(&mut context).await?;
            }
            let done = run(intent, &mut context, raw).await;
            if let Some(notice) = context.client.notice() {
                drop(raw.flush());
                message::print_note(&format!("Warning: {notice}"));
            }
            done
        }
        (Err(fault), Intent::LocalCommand(alone)) => {
            run_alone(alone, Err(fault), &mut Plain(raw)).await
        }
        // The address itself may be the invalid setting.
        (Err(_), Intent::SetServer(url)) => {
            account::set_server(&url, &mut context::settings(global, env)?, &mut Plain(raw))
        }
        (Err(fault), _) => Err(fault),
    }
}

async fn run_alone(
    alone: LocalCommand,
    context: Result<&mut Context, Error>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match alone {
        LocalCommand::Diagnose { shown, file } => {
            diagnostics::run(shown, file.as_deref(), context, out).await
        }
        LocalCommand::Nothing { why, done: false } => Err(Error::Failed(why.into_owned())),
        LocalCommand::Nothing { why, done: true } => {
            message::print_note(&why);
            Ok(())
        }
        LocalCommand::Complete(shell) => cli_kit::complete::script(shell, "runai", out),
        LocalCommand::Version { short } => account::version(short, out),
    }
}

/// Prints a list or a description, repeatedly with `--watch`.
async fn look(intent: &Intent, context: &Context, raw: &mut dyn Write) -> Result<(), Error> {
    let Some(how) = output_of(intent) else { return Ok(()) };
    let was_lost = Cell::new(false);
    let answer = async |out: &mut dyn Write| {
        let answered = match was_lost.get() {
            false => answer(intent, context, out).await,
            // With a new context: the server may have moved, and the login expired.
            true => answer(intent, &context.renewed().await?, out).await,
        };
        was_lost.set(was_lost.get() || answered.is_err());
        answered
    };
    show(how, raw, pulse(intent, context), answer).await
}

/// Output options of an answer; `None` if the intent is neither a list nor a description.
const fn output_of(intent: &Intent) -> Option<&OutputOptions> {
    Some(match intent {
        Intent::ListWorkloads(list) => &list.how,
        Intent::ListObjects(list) => &list.how,
        Intent::Describe(one) => &one.how,
        Intent::Metrics(asked) => &asked.how,
        Intent::ListProjects(_, _, how)
        | Intent::ListNodes(_, _, _, how)
        | Intent::ListClusters(_, _, how)
        | Intent::DescribeObject(_, _, how)
        | Intent::Explain(_, how)
        | Intent::ExplainPod(_, how)
        | Intent::DescribeNodes(_, how)
        | Intent::TopNodes { how, .. }
        | Intent::TopJobs { how, .. }
        | Intent::Whoami(how) => how,
        _ => return None,
    })
}

/// Prints a list or a description once.
async fn answer(intent: &Intent, context: &Context, out: &mut dyn Write) -> Result<(), Error> {
    match intent {
        Intent::ListWorkloads(list) => list::workloads(list, context, out).await,
        Intent::ListProjects(dialect, page, how) => {
            list::projects(*dialect, *page, how, context, out).await
        }
        Intent::ListNodes(dialect, names, page, how) => {
            list::nodes(*dialect, names, *page, how, context, out).await
        }
        Intent::ListClusters(dialect, page, how) => {
            list::clusters(*dialect, *page, how, context, out).await
        }
        Intent::ListObjects(list) => objects::list(list, context, out).await,
        Intent::DescribeObject(of, name, how) => {
            objects::describe(*of, name, how, context, out).await
        }
        Intent::Describe(one) => describe::workload(one, context, out).await,
        Intent::Explain(of, how) => explain::run(of, how, context, out).await,
        Intent::ExplainPod(name, how) => explain::pod(name, how, &context.client, out).await,
        Intent::Metrics(asked) => metrics::run(asked, context, out).await,
        Intent::DescribeNodes(names, how) => describe::nodes(names, how, context, out).await,
        Intent::TopNodes { names, details, how } => {
            top::nodes(names, *details, how, context, out).await
        }
        Intent::TopJobs { all_projects, how } => top::jobs(*all_projects, how, context, out).await,
        Intent::Whoami(how) => account::whoami(how, context, out).await,
        _ => Ok(()),
    }
}

async fn run(intent: Intent, context: &mut Context, raw: &mut dyn Write) -> Result<(), Error> {
    let out: &mut dyn Write = &mut Plain(&mut *raw);
    match intent {
        Intent::Submit(submit) => submit::run(*submit, context, raw).await,
        Intent::SubmitManifest(submit) => manifest::run(*submit, context, out).await,
        Intent::Update(update) => submit::update(*update, context, out).await,
        Intent::ListWorkloads(_)
        | Intent::ListProjects(..)
        | Intent::ListNodes(..)
        | Intent::ListClusters(..)
        | Intent::ListObjects(_)
        | Intent::DescribeObject(..)
        | Intent::Describe(_)
        | Intent::Explain(..)
        | Intent::ExplainPod(..)
        | Intent::Metrics(_)
        | Intent::DescribeNodes(..)
        | Intent::TopNodes { .. }
        | Intent::TopJobs { .. }
        | Intent::Whoami(_) => look(&intent, context, raw).await,
        Intent::Top => live::run(context).await,
        Intent::Logs { of, which } => logs::run(&of, &which, context, raw).await,
        Intent::Wait(wait) => wait::run(wait, context).await,
        Intent::Change(request) => change::run(request, context, out).await,
        Intent::Exec { of, command, stdio } => {
            exec_session::exec(&of, &command, stdio, context, raw).await
        }
        Intent::Attach { of, stdio } => exec_session::attach(&of, stdio, context, raw).await,
        Intent::Open { of, url, print } => {
            open::run(&of, url.as_deref(), print, context, out).await
        }
        Intent::PortForward { of, ports, address } => {
            forward::run(&of, &ports, &address, context, out).await
        }
        Intent::SetProject { name, by_noun } => {
            account::set_project(&name, by_noun, context, out).await
        }
        Intent::SetCluster(name) => account::set_cluster(&name, context, out).await,
        Intent::SetServer(url) => account::set_server(&url, &mut context.settings, out),
        Intent::Login(way) => login::run(way, context, out).await,
        Intent::Logout => login::out(context, out).await,
        Intent::Token(shown) => account::token(shown, context, out).await,
        Intent::DescribeSettings(shown) => config::describe(shown, context, out),
        Intent::GenerateSettings(file) => config::generate(file.as_deref(), context, out).await,
        Intent::Upgrade => upgrade::run(context, out).await,
        Intent::LocalCommand(alone) => run_alone(alone, Ok(context), out).await,
    }
}
