//! `elastane`: the operator's command line. Owns the list of commands and their dispatch.

mod accounts;
mod addresses;
mod args;
mod backup;
mod cdi;
mod certificate;
mod checkpoint;
mod complete;
mod config;
mod config_map;
mod config_show;
mod credential;
mod department;
mod down;
mod entries;
mod explain;
mod iam;
mod initial_nodes;
mod keys;
mod kubernetes;
mod login;
mod man;
mod node;
mod policy;
mod project;
mod quotas;
mod replay;
mod runtime;
mod settings;
mod share;
mod signals;
mod simulate;
mod spare;
mod status;
mod ui;
mod unit_text;
mod up;
mod usage;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::{Cli, Command};
use cli_kit::exit::{self, Error};
use cli_kit::message::with_progress;

/// Runs a command line, the program's name included.
///
/// The words of workload processes are handled first: these processes must not start any thread,
/// and their arguments are those of the workload.
#[must_use]
pub fn main(argv: Vec<OsString>) -> ExitCode {
    let rest = || argv.iter().skip(2).map(|word| word.to_string_lossy().into_owned());
    match argv.get(1).and_then(|word| word.to_str()) {
        Some(word @ ("supervise" | "session")) => {
            let Some(dir) = argv.get(2).map(Path::new) else {
                return Error::Usage(format!("{word} needs a run directory")).report();
            };
            return match word {
                "supervise" => engine_local::supervise(dir),
                _ => engine_local::session(dir),
            };
        }
        Some("quickstart-workload") => {
            return quickstart::run(rest(), env, &checkpoint::of_the_quickstart);
        }
        Some("simulated-driver") => {
            return engine_fractions::simulated_driver(&rest().collect::<Vec<_>>());
        }
        Some("gpu-check") if argv.iter().any(|word| word == "--") => {
            return engine_fractions::start_checked(&rest().collect::<Vec<_>>());
        }
        Some(word @ ("nvidia-smi" | "gpu-check")) => {
            return gpu_program(word, &rest().collect::<Vec<_>>());
        }
        _ => {}
    }
    match cli_kit::complete::answered(Cli::command, &argv) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return exit::parser_said(&error),
    }
    let cli = match parsed(&argv) {
        Ok(cli) => cli,
        Err(error) => return exit::parser_said(&exit::without_tip(error)),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

/// Reads a command line, the program's name included.
fn parsed<T: Into<OsString> + Clone>(
    argv: impl IntoIterator<Item = T>,
) -> Result<Cli, clap::Error> {
    let mut tree = with_negative_numbers(Cli::command());
    let matches = tree.try_get_matches_from_mut(argv)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut tree))
}

/// The command with flags that take negative numbers, so that an error is about the number.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| match arg.is_positional() {
        false if arg.get_action().takes_values() => arg.allow_negative_numbers(true),
        _ => arg,
    });
    below.iter().fold(command, |command, name| command.mut_subcommand(name, with_negative_numbers))
}

fn run(cli: Cli) -> Result<(), Error> {
    cli.color.choose();
    let dir = cli.state_dir;
    match cli.command {
        Command::Up(flags) => up::run(dir, flags.typed),
        Command::Down => {
            let doing = "Stopping workloads; each has its grace period to end";
            with_client(with_progress(doing, down::run(state_dir(dir)?)))
        }
        Command::Ui { print } => with_client(ui::run(&state_dir(dir)?, print)),
        Command::Status(one) => with_client(status::run(state_dir(dir)?, one)),
        Command::Explain(what) => with_client(explain::run(state_dir(dir)?, what)),
        Command::Kubernetes(verb) => with_client(kubernetes::run(verb)),
        Command::Config(verb) => with_client(config_show::run(dir, verb)),
        Command::Project(verb) => with_client(project::run(state_dir(dir)?, verb)),
        Command::Department(verb) => with_client(department::department(state_dir(dir)?, verb)),
        Command::NodePool(verb) => with_client(department::node_pool(state_dir(dir)?, verb)),
        Command::Node(verb) => with_client(node::run(state_dir(dir)?, verb)),
        Command::ConfigMap(verb) => with_client(config_map::run(state_dir(dir)?, verb)),
        Command::Credential(verb) => with_client(credential::run(state_dir(dir)?, verb)),
        Command::User(verb) => with_client(iam::user(state_dir(dir)?, verb)),
        Command::ServiceAccount(verb) => with_client(iam::service_account(state_dir(dir)?, verb)),
        Command::AccessKey(verb) => with_client(iam::access_key(state_dir(dir)?, verb)),
        Command::AccessRule(verb) => with_client(iam::access_rule(state_dir(dir)?, verb)),
        Command::Policy(verb) => with_client(policy::run(state_dir(dir)?, verb)),
        Command::Usage(flags) => with_client(usage::run(state_dir(dir)?, flags)),
        Command::Simulate(flags) => match flags.drill {
            Some(drill) => with_client(simulate::drill(state_dir(dir)?, drill)),
            None => simulate::run(&flags, &mut std::io::stdout().lock()),
        },
        Command::Snapshot => with_client(status::snapshot(state_dir(dir)?)),
        Command::Record { file } => replay::record(&state_dir(dir)?, &file),
        Command::Replay(flags) => replay::replay(&flags, &mut std::io::stdout().lock()),
        Command::Backup(flags) => with_client(backup::backup(dir, flags)),
        Command::Restore(flags) => with_client(backup::restore(dir, flags)),
        Command::Keys(verb) => keys::run(dir, verb),
        Command::Cdi(what) => cdi::run(&what),
        Command::Checkpoint(what) => checkpoint::run(&what),
        Command::Token { revoke } => status::token(&state_dir(dir)?, revoke),
        Command::Version => {
            writeln!(std::io::stdout(), "elastane {}", env!("CARGO_PKG_VERSION"))?;
            Ok(())
        }
        Command::Completion { shell } => {
            cli_kit::complete::script(shell, "elastane", &mut std::io::stdout())
        }
        Command::Man { dir } => man::run(&dir),
        // Handled before; listed here for the help page.
        Command::QuickstartWorkload => Ok(()),
    }
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The state directory of a client command.
fn state_dir(flag: Option<PathBuf>) -> Result<PathBuf, Error> {
    flag.or_else(|| client::state_dir(&env)).ok_or_else(|| {
        Error::Usage("HOME is not set; say where the state is with --state-dir DIR".to_owned())
    })
}

/// Runs a client command, with a single thread.
fn with_client(command: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Failed(format!("failed to start: {error}")))?;
    runtime.block_on(command)
}

fn gpu_program(word: &str, args: &[String]) -> ExitCode {
    let printed = match word {
        "gpu-check" => engine_fractions::gpu_check(args, env),
        _ => engine_local::nvidia_smi(args, env),
    };
    let printed = printed
        .map_err(|error| Error::Usage(error.to_string()))
        .and_then(|text| Ok(std::io::stdout().write_all(text.as_bytes())?));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
