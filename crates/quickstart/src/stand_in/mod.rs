//! Programs that stand in for demo images where no container runs them. Owns: the words that select
//! them, and the end of one that fails. All their output states that it is simulated.

mod client;
mod hpo;
mod inference;
mod jupyter;
mod page;
mod web;

use std::convert::Infallible;
use std::process::ExitCode;

use crate::{EXIT_USAGE, complain};

/// Function that reads the environment of a program.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A program, with its arguments and its environment.
pub(crate) type Program = fn(&[String], Env<'_>) -> ExitCode;

/// The program of a word.
pub(crate) fn program(word: &str) -> Option<Program> {
    let program: Program = match word {
        "page" => |_, env| ended(page::run(env)),
        "hpo" => hpo::run,
        "jupyter" => |args, env| ended(jupyter::run(args, env)),
        "inference" => |_, env| ended(inference::run(env)),
        "inference-client" => |args, _| match client::Options::parse(args) {
            Ok(options) => ended(client::run(&options)),
            Err(why) => {
                complain(&why);
                ExitCode::from(EXIT_USAGE)
            }
        },
        _ => return None,
    };
    Some(program)
}

/// Exit code of a program that only a signal or an error ends.
fn ended(result: Result<Infallible, String>) -> ExitCode {
    match result {
        Ok(never) => match never {},
        Err(why) => {
            complain(&why);
            ExitCode::FAILURE
        }
    }
}

/// Prints a line, at once.
fn print_line(line: &str) -> Result<(), String> {
    use std::io::Write as _;
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| format!("no output: {error}"))
}

/// Port to listen on: that of the environment, else that of the image.
fn port(env: Env<'_>, usual: u16) -> Result<u16, String> {
    let Some(text) = env("PORT").filter(|text| !text.is_empty()) else { return Ok(usual) };
    text.parse().map_err(|_| format!("PORT must be a number from 1 to 65535, not `{text}`"))
}

/// The name of the pod; outside of one there is none.
fn pod_name(env: Env<'_>) -> String {
    env("POD_NAME").unwrap_or_else(|| "no pod".to_owned())
}

#[test]
fn the_environment_says_where_to_listen() {
    let port = |text: Option<&str>| port(&|_| text.map(str::to_owned), 80);
    assert_eq!((port(None), port(Some("")), port(Some("8080"))), (Ok(80), Ok(80), Ok(8080)));
    assert!(port(Some("http")).is_err_and(|why| why.contains("from 1 to 65535")));
}
