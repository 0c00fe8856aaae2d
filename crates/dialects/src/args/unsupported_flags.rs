//! Flags that the published documents list and this version does not support. They are known by
//! name, so that the error gives the reason and not a spelling hint.

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command};

use super::v2::What;

/// A flag, and the reason why it is not supported.
struct UnsupportedFlag {
    name: &'static str,
    value: Value,
    why: &'static str,
    /// True if a line with it is refused; false if a note names it, as the line does the same
    /// without it.
    is_refused: bool,
}

/// Value of a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// None; an older client took a value behind `=` as well.
    Switch,
    /// An optional word.
    Maybe,
    /// A word.
    Needed,
}

const fn switch(name: &'static str, why: &'static str) -> UnsupportedFlag {
    UnsupportedFlag { name, value: Value::Switch, why, is_refused: true }
}

const fn maybe(name: &'static str, why: &'static str) -> UnsupportedFlag {
    UnsupportedFlag { name, value: Value::Maybe, why, is_refused: true }
}

const fn value(name: &'static str, why: &'static str) -> UnsupportedFlag {
    UnsupportedFlag { name, value: Value::Needed, why, is_refused: true }
}

/// A flag that is accepted without effect.
const fn idle(flag: UnsupportedFlag) -> UnsupportedFlag {
    UnsupportedFlag { is_refused: false, ..flag }
}

const MOUNT: &str = "there are no data volumes; use --new-pvc";
const IMAGE: &str = "the server pulls images, with the credentials of the project";
const USER: &str = "the server knows no UID of a user; set it with --run-as-uid";
const ACCOUNT: &str = "a process has the account of its user where the server has one for each, \
                       and --run-as-uid sets another";
const CONTAINER: &str = "a pod has one container";
const WAITING: &str = "`runai wait NAME --for running --timeout TIME` waits for it";
const ROWS: &str = "`-o wide` prints all columns, and -o json all values";
const TERMINAL: &str =
    "a replica has no terminal of its own; `runai inference bash NAME` opens one";
const TOGETHER_ONCE: &str = "its pods run together, once; use --workers or --processes";
const ALONE: &str = "it is for jobs of one pod; use `runai submit NAME`";

const V1: &[UnsupportedFlag] =
    &[switch("local-image", IMAGE), idle(switch("run-as-user", ACCOUNT)), value("user", USER)];
/// Further flags of jobs of several pods.
const TOGETHER: &[UnsupportedFlag] = &[
    switch("inference", ALONE),
    switch("interactive", ALONE),
    switch("jupyter", ALONE),
    switch(
        "elastic",
        "set the range of workers: `submit-dist pytorch --min-replicas --max-replicas`",
    ),
    switch("preemptible", "distributed trainings are preemptible"),
    value("completions", TOGETHER_ONCE),
    value("parallelism", TOGETHER_ONCE),
];
const V2: &[UnsupportedFlag] = &[
    maybe("image-pull-my-credentials", IMAGE),
    idle(switch("run-as-user", ACCOUNT)),
    value("datavolume", MOUNT),
    value("env-my-credentials", "users have no credentials of their own; use --env-secret"),
    value("env-pod-field-ref", "there are no Kubernetes pods whose fields could be read"),
    idle(value("wait-for-submit", "a submission is answered at once")),
];

const INFERENCE: &[UnsupportedFlag] = &[
    switch("attach", TERMINAL),
    switch("stdin", TERMINAL),
    switch("tty", TERMINAL),
    value("pod-running-timeout", TERMINAL),
];

const MANIFEST: &[UnsupportedFlag] =
    &[value("mnnvl", "there is one machine, and no NVLink between machines")];

const LIST: &[UnsupportedFlag] = &[
    idle(value("columns", ROWS)),
    idle(value("page-size", "the server is asked for as many rows as are printed")),
    idle(switch("raw", ROWS)),
    switch(
        "deleted",
        "a list has what is there; `GET /api/v1/workloads?deleted=true` has the rest",
    ),
];

const LOGS: &[UnsupportedFlag] = &[
    idle(value("container", CONTAINER)),
    idle(value("limit-bytes", "`--tail N` prints the last lines")),
    idle(value("wait-timeout", WAITING)),
];

/// Flags of commands that run in a pod.
const SESSION: &[UnsupportedFlag] =
    &[idle(value("container", CONTAINER)), idle(value("wait-timeout", WAITING))];

const VERSION: &[UnsupportedFlag] =
    &[idle(switch("wide", "`runai diagnostics` prints more than the version"))];

const PROVIDER: &str = "the server knows its login provider; `runai login` asks it";
const LOGIN: &[UnsupportedFlag] = &[
    value("additional-scope", PROVIDER),
    value("client-id", PROVIDER),
    value("idp-issuer-url", PROVIDER),
    value("redirect-server", PROVIDER),
    value("user", "use `runai login user -u NAME`"),
];
const SETTINGS: &[UnsupportedFlag] = &[value("auth-url", PROVIDER)];

/// The flags of a command, by the words that lead to it.
fn of(path: &[&str]) -> impl Iterator<Item = &'static UnsupportedFlag> {
    let (of_all, more): (&[UnsupportedFlag], &[UnsupportedFlag]) = match path {
        ["submit"] => (V1, &[]),
        ["submit-mpi"] | ["submit-dist", _] => (V1, TOGETHER),
        ["login"] => (LOGIN, &[]),
        ["config", "set"] => (SETTINGS, &[]),
        ["training" | "distributed", .., "submit"] => (V2, &[]),
        ["inference", "submit" | "update"] => (V2, INFERENCE),
        ["workload", "submit"] => (MANIFEST, &[]),
        ["version"] => (VERSION, &[]),
        [_, .., "list"] => (LIST, &[]),
        [.., "logs"] => (LOGS, &[]),
        [.., "bash" | "exec" | "attach" | "port-forward"] => (SESSION, &[]),
        [_, "submit"] => (V2, &[]),
        _ => (&[], &[]),
    };
    of_all.iter().chain(more)
}

/// True for a command that updates a workload, which accepts only some flags of a submission.
fn is_update(path: &[&str]) -> bool {
    matches!(path, ["training" | "workspace" | "distributed", .., "update"])
        || matches!(path, ["pytorch" | "mpi" | "tensorflow" | "xgboost" | "jax", "update"])
}

/// The flags of a submission that an update cannot change.
fn fixed(command: &Command) -> impl Iterator<Item = Arg> + use<'_> {
    let all = What::augment_args(Command::new("submit"));
    let known = |arg: &Arg| command.get_arguments().any(|other| other.get_long() == arg.get_long());
    let all: Vec<Arg> = all.get_arguments().cloned().collect();
    all.into_iter().filter(move |arg| arg.get_long().is_some() && !known(arg))
}

/// Adds the unsupported flags to a command, hidden; to an update, the flags that it cannot change.
/// `path` has the words that lead to the command.
#[must_use]
pub(crate) fn add_to(command: Command, path: &[&str]) -> Command {
    if is_update(path) {
        let fixed: Vec<Arg> = fixed(&command).map(|arg| arg.hide(true)).collect();
        return command.args(fixed);
    }
    command.args(of(path).map(|later| {
        let arg = Arg::new(later.name).long(later.name).hide(true);
        if later.value != Value::Needed {
            let arg = arg.num_args(0..=1).default_missing_value("true");
            return arg.require_equals(later.value == Value::Switch);
        }
        let arg = arg.action(ArgAction::Append).allow_hyphen_values(true);
        let arg = arg.value_parser(ValueParser::os_string());
        if later.name == "user" { arg.short('u') } else { arg }
    }))
}

/// Refuses a command line with an unsupported flag, or with a flag that an update cannot change.
/// Otherwise returns the note that names the flags without effect; `None` if there are none.
///
/// # Errors
/// Names the flag and the reason.
pub(crate) fn refuse(tree: &Command, matches: &ArgMatches) -> Result<Option<String>, clap::Error> {
    let mut path = Vec::new();
    let mut at = matches;
    while let Some((word, below)) = at.subcommand() {
        path.push(word);
        at = below;
    }
    let command = || super::command_of(tree, matches).clone();
    if is_update(&path) {
        let typed = |arg: &Arg| at.value_source(arg.get_id().as_str());
        let hidden = command();
        let mut hidden =
            hidden.get_arguments().filter(|arg| arg.is_hide_set() && !arg.is_global_set());
        let Some(arg) = hidden.find(|arg| typed(arg) == Some(ValueSource::CommandLine)) else {
            return Ok(None);
        };
        let flag = arg.get_long().unwrap_or_default();
        let text = format!(
            "--{flag} cannot change while the workload exists; delete it and submit it again with \
             another value"
        );
        return Err(command().error(ErrorKind::UnknownArgument, text));
    }
    let typed =
        |later: &&UnsupportedFlag| at.value_source(later.name) == Some(ValueSource::CommandLine);
    let typed: Vec<_> = of(&path).filter(typed).collect();
    let Some(UnsupportedFlag { name, why, .. }) = typed.iter().find(|flag| flag.is_refused) else {
        let each = typed.iter().map(|flag| format!("--{} ({})", flag.name, flag.why));
        let each: Vec<_> = each.collect();
        return Ok((!each.is_empty()).then(|| format!("no effect here: {}", each.join(", "))));
    };
    let text = format!("--{name} is not supported yet: {why}");
    Err(command().error(ErrorKind::UnknownArgument, text))
}

/// Every flag with the reason why it is refused.
#[cfg(test)]
pub(crate) fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all =
        [V1, TOGETHER, V2, INFERENCE, MANIFEST, LIST, LOGS, SESSION, VERSION, LOGIN, SETTINGS];
    all.into_iter().flatten().map(|later| (later.name, later.why))
}
