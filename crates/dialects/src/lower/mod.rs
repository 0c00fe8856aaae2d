//! Lowers parsed arguments to intents, for both dialects. Pure.

mod objects;
mod pod_flags;
pub(crate) mod program;
mod submit;
mod words;

use client::Since;

use crate::args::login::Way;
use crate::args::program::{Auth, Kubeconfig, Report};
use crate::args::{self, Command, v1, v2};
use crate::intent::{
    Change, Describe, Dialect, Distributed, Framework, Intent, ListObjects, ListWorkloads,
    LocalCommand, Login, Metrics, Noun, Objects, Only, OutputFormat, OutputOptions, Page, Parts,
    Section, Stdio, Submit, Target, Verb, Wait,
};
use cli_kit::settings::TableStyle;

/// Default number of events shown.
const EVENTS_MAX: usize = 50;
/// The words that may stand for "a job" before a name.
pub const KIND_WORDS: [&str; 4] = ["job", "jobs", "workload", "workloads"];
/// Words before the name of a pod of Kubernetes.
const POD_WORDS: [&str; 2] = ["pod", "pods"];

/// Intent of a command.
///
/// # Errors
/// A combination of flags that has no meaning; the text names them.
pub(crate) fn intent(command: Command, line: &[String]) -> Result<Intent, String> {
    Ok(match command {
        Command::Submit(typed) => Intent::Submit(Box::new(submit::v1(*typed.0, line)?)),
        Command::SubmitDist(typed) => Intent::Submit(Box::new(submit::dist_v1(typed, line)?)),
        Command::SubmitMpi(typed) => Intent::Submit(Box::new(submit::mpi_v1(*typed.0, line)?)),
        Command::List(list) => list_v1(list)?,
        Command::Describe(describe) | Command::Get(describe) => describe_v1(describe)?,
        Command::Explain(explain) => explained(Noun::Job, explain)?,
        Command::Wait(wait) => wait_for(Noun::Job, wait),
        Command::Top { what } => top(what),
        Command::Logs(logs) => logs_of(Noun::Job, logs),
        Command::Delete(typed) => delete(Noun::Job, typed),
        Command::Suspend(names) => change(Verb::Suspend, Noun::Job, names),
        Command::Resume(names) => change(Verb::Resume, Noun::Job, names),
        Command::Bash(named) => bash(Noun::Job, named),
        Command::Exec(exec) => exec_in(Noun::Job, exec),
        Command::Attach(typed) => attach(Noun::Job, typed),
        Command::Open(typed) => open(Noun::Job, typed),
        Command::PortForward(typed) => port_forward(Noun::Job, typed),
        Command::Training(verb) => training(verb, line)?,
        Command::Pytorch(verb) => pytorch(verb, line)?,
        Command::Mpi(verb) => mpi(verb, line)?,
        Command::Tensorflow(verb) => distributed(Framework::Tf, verb, line)?,
        Command::Xgboost(verb) => distributed(Framework::XgBoost, verb, line)?,
        Command::Jax(verb) => distributed(Framework::Jax, verb, line)?,
        Command::Distributed(verb) => {
            typed_verb(Noun::Distributed, verb, |typed| submit::of_framework(typed, line))?
        }
        Command::Workspace(verb) => {
            typed_verb(Noun::Workspace, verb, |typed| submit::workspace(typed, line))?
        }
        Command::Inference(verb) => inference(verb, line)?,
        Command::Workload(verb) => workload(verb)?,
        Command::Objects(of) => objects::verb(of),
        Command::Project(verb) => project(verb),
        Command::Cluster(v2::ClusterVerb::List(list)) => {
            Intent::ListClusters(Dialect::V2, page(&list.paging), list.format.into())
        }
        Command::Cluster(v2::ClusterVerb::Set(cluster)) => Intent::SetCluster(cluster.word()),
        Command::Node(v2::NodeVerb::List(list)) => {
            Intent::ListNodes(Dialect::V2, Vec::new(), page(&list.paging), list.format.into())
        }
        Command::MyCredential(_) => program::refused(program::NO_OWN_CREDENTIAL),
        Command::Config(verb) => program::config(verb),
        Command::Auth(Auth::Token { output: format }) => Intent::Token(output(format)),
        Command::Diagnostics(typed) => Intent::LocalCommand(LocalCommand::Diagnose {
            shown: output(typed.output),
            file: typed.file,
        }),
        Command::Upgrade { words } if words.is_empty() => Intent::Upgrade,
        Command::Upgrade { words } => {
            let words = shell_words::join(words);
            let what = "this replaces the program itself; to change a workload, type";
            return Err(format!("{what} `runai workload update {words}`"));
        }
        Command::Kubeconfig(Kubeconfig::Set) => program::refused(program::NO_CLUSTER),
        Command::Report(Report::Metrics(verb)) => program::report(&verb),
        Command::Login(typed) => Intent::Login(login(typed.way)),
        Command::Logout => Intent::Logout,
        Command::Whoami(one) => Intent::Whoami(one.into()),
        Command::Completion { shell } => Intent::LocalCommand(LocalCommand::Complete(shell)),
        Command::Version { short } => Intent::LocalCommand(LocalCommand::Version { short }),
    })
}

fn project(verb: v2::ProjectVerb) -> Intent {
    match verb {
        v2::ProjectVerb::List(list) => {
            Intent::ListProjects(Dialect::V2, page(&list.paging), list.format.into())
        }
        v2::ProjectVerb::Set { name } => Intent::SetProject { name, by_noun: true },
        v2::ProjectVerb::Create(_) => program::refused(program::NO_PROJECT_CHANGE),
    }
}

fn top(what: Option<v1::Top>) -> Intent {
    match what {
        None => Intent::Top,
        Some(v1::Top::Node { names, details, format, .. }) => {
            Intent::TopNodes { names, details, how: format.into() }
        }
        Some(v1::Top::Job { all_projects, format }) => {
            Intent::TopJobs { all_projects, how: format.into() }
        }
    }
}

fn login(way: Option<Way>) -> Login {
    match way {
        None | Some(Way::Sso) => Login::Browser,
        Some(Way::RemoteBrowser) => Login::RemoteBrowser,
        Some(Way::User(typed)) => {
            let (name, new_password) = (typed.user, typed.new_password);
            Login::User { name, password: typed.password, new_password }
        }
        Some(Way::Application(typed)) => {
            Login::Application { name: typed.name, secret: typed.secret }
        }
    }
}

fn list_v1(list: v1::List) -> Result<Intent, String> {
    let how: OutputOptions = list.format.into();
    let listed = list.listed.unwrap_or(v1::Listed::Jobs);
    // The published page of the newest quickstart shows the short table under `list -A`.
    let short = list.all_projects && list.listed.is_none();
    if listed != v1::Listed::Nodes && !list.names.is_empty() {
        return Err(format!("`{}`: only `list nodes` takes names", list.names.join(" ")));
    }
    let phases = list.status.iter().flat_map(|word| phases_of(word)).map(str::to_owned).collect();
    let only = Only { statuses: list.status, ..only(list.filter, phases) };
    if listed != v1::Listed::Jobs && only != Only::default() {
        return Err("--status, --node, --user, --label: only `list jobs` takes them".to_owned());
    }
    let limit = list.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let page = Page { offset: 0, limit, has_more_pages: false };
    Ok(match listed {
        v1::Listed::Jobs => Intent::ListWorkloads(ListWorkloads {
            all_projects: list.all_projects,
            only,
            page,
            table: Some(if short { TableStyle::V2 } else { TableStyle::V1 }),
            how,
            ..ListWorkloads::default()
        }),
        v1::Listed::Projects => Intent::ListProjects(Dialect::V1, page, how),
        v1::Listed::Nodes => Intent::ListNodes(Dialect::V1, list.names, page, how),
        v1::Listed::Clusters => Intent::ListClusters(Dialect::V1, page, how),
        v1::Listed::Templates => Intent::ListObjects(ListObjects {
            of: Objects::Template,
            dialect: Dialect::V1,
            all_projects: list.all_projects,
            page,
            how,
        }),
    })
}

/// The phases that a status stands for.
fn phases_of(word: &str) -> Vec<&str> {
    match &*word.to_ascii_lowercase() {
        "pending" => vec!["Pending", "Creating", "Resuming"],
        "containercreating" | "imagepullbackoff" => vec!["Initializing"],
        "crashloopbackoff" => vec!["Pending", "Initializing"],
        "terminating" => vec!["Stopping", "Deleting"],
        "suspended" | "timedout" => vec!["Stopped"],
        "succeeded" => vec!["Completed"],
        _ => vec![word],
    }
}

fn list_v2(noun: Noun, list: v2::List) -> Result<Intent, String> {
    // The server filters by phases; only a status that is no phase needs all rows here.
    let of_phases = list.status.iter().all(|word| named(&args::PHASES, word));
    let (phases, statuses) = match of_phases {
        true => (list.status, Vec::new()),
        false => {
            let phases = list.status.iter().flat_map(|word| phases_of(word));
            (phases.map(str::to_owned).collect(), list.status)
        }
    };
    Ok(Intent::ListWorkloads(ListWorkloads {
        all_projects: list.all,
        noun: narrowed(noun, &list.only)?,
        only: Only { statuses, ..only(list.filter, phases) },
        page: page(&list.paging),
        table: Some(TableStyle::V2),
        how: list.format.into(),
    }))
}

/// True if a list has this word, in upper or lower case.
fn named(words: &[&str], word: &str) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn only(typed: args::Filter, phases: Vec<String>) -> Only {
    Only { phases, nodes: typed.node, users: typed.user, labels: typed.label, ..Only::default() }
}

/// A noun, narrowed by the type and framework flags.
fn narrowed(noun: Noun, only: &v2::Only) -> Result<Noun, String> {
    let asked = only.r#type.map(|asked| match asked {
        v2::Type::Training => Noun::Standard,
        v2::Type::Workspace => Noun::Workspace,
        v2::Type::Distributed => Noun::Distributed,
        v2::Type::Inference => Noun::Inference,
    });
    let noun = match (noun, asked) {
        (noun, None) | (noun @ Noun::Framework(_), Some(Noun::Distributed)) => noun,
        (Noun::Workload, Some(asked))
        | (Noun::Training, Some(asked @ (Noun::Standard | Noun::Distributed))) => asked,
        (noun, Some(asked)) if noun == asked => noun,
        (noun, Some(asked)) => {
            return Err(format!("--type: no {} is a {}", noun.word(), asked.word()));
        }
    };
    match (noun, only.framework.map(framework)) {
        (noun, None) => Ok(noun),
        (Noun::Workload | Noun::Training | Noun::Distributed, Some(asked)) => {
            Ok(Noun::Framework(asked))
        }
        (noun, Some(asked)) if noun == Noun::Framework(asked) => Ok(noun),
        (noun, Some(asked)) => {
            let asked = Noun::Framework(asked);
            Err(format!("--framework: no {} is a {}", noun.word(), asked.word()))
        }
    }
}

const fn framework(typed: v2::Framework) -> Framework {
    match typed {
        v2::Framework::Mpi => Framework::Mpi,
        v2::Framework::PyTorch => Framework::PyTorch,
        v2::Framework::Tf => Framework::Tf,
        v2::Framework::XgBoost => Framework::XgBoost,
        v2::Framework::Jax => Framework::Jax,
    }
}

fn describe_v1(describe: v1::Describe) -> Result<Intent, String> {
    let mut words = describe.words;
    let nodes = matches!(words.first().map(String::as_str), Some("node" | "nodes"));
    if nodes {
        words.remove(0);
        return Ok(Intent::DescribeNodes(words, describe.one.into()));
    }
    let template = words.len() > 1 && matches!(&*words[0], "template" | "templates");
    if template {
        words.remove(0);
    }
    let mut names = without_kind(words).into_iter();
    let (Some(name), None) = (names.next(), names.next()) else {
        return Err("describe takes one name: `runai describe job NAME`".to_owned());
    };
    if template {
        return Ok(Intent::DescribeObject(Objects::Template, name, describe.one.into()));
    }
    let of = Target { noun: Noun::Job, name, pod: None };
    let (how, events_max) = (describe.one.into(), EVENTS_MAX);
    Ok(Intent::Describe(Describe { of, how, events_max, parts: Parts::default() }))
}

fn explained(noun: Noun, explain: v1::Explain) -> Result<Intent, String> {
    if let [kind, name] = &*explain.words
        && POD_WORDS.contains(&kind.as_str())
    {
        return Ok(Intent::ExplainPod(name.parse()?, explain.one.into()));
    }
    let mut names = without_kind(explain.words).into_iter();
    let (Some(name), None) = (names.next(), names.next()) else {
        return Err("explain takes one name: `runai explain NAME`".to_owned());
    };
    Ok(Intent::Explain(Target { noun, name, pod: None }, explain.one.into()))
}

fn describe_v2(noun: Noun, describe: v2::Describe) -> Result<Intent, String> {
    let of = Target { noun: narrowed(noun, &describe.only)?, name: describe.name, pod: None };
    let sections = describe.sections;
    let left_out = [
        (sections.general, Section::General),
        (sections.compute, Section::Compute),
        (sections.pods, Section::Pods),
        (sections.events, Section::Events),
        (sections.networks, Section::Networks),
        (sections.storage, Section::Storage),
        (sections.containers, Section::Containers),
    ];
    let parts = Parts {
        left_out: left_out
            .iter()
            .filter(|(shown, _)| !shown)
            .map(|(_, section)| *section)
            .collect(),
        pods_max: Some(describe.pod_limit),
        newest_first: describe.sort_events == v2::Order::Desc,
    };
    let (how, events_max) = (describe.one.into(), describe.event_limit);
    Ok(Intent::Describe(Describe { of, how, events_max, parts }))
}

fn training(verb: v2::OfTraining, line: &[String]) -> Result<Intent, String> {
    use v2::OfTraining as Of;
    match verb {
        Of::Any(verb) => typed_verb(Noun::Training, verb, |typed| submit::training(typed, line)),
        Of::Standard(verb) => {
            typed_verb(Noun::Standard, verb, |typed| submit::training(typed, line))
        }
        Of::Pytorch(verb) => pytorch(verb, line),
        Of::Mpi(verb) => mpi(verb, line),
        Of::Tensorflow(verb) => distributed(Framework::Tf, verb, line),
        Of::Xgboost(verb) => distributed(Framework::XgBoost, verb, line),
        Of::Jax(verb) => distributed(Framework::Jax, verb, line),
    }
}

fn pytorch(verb: v2::Verb<v2::PyTorch>, line: &[String]) -> Result<Intent, String> {
    let noun = Noun::Framework(Framework::PyTorch);
    typed_verb(noun, verb, |typed| submit::pytorch(typed, line))
}

fn mpi(verb: v2::Verb<v2::Mpi>, line: &[String]) -> Result<Intent, String> {
    typed_verb(Noun::Framework(Framework::Mpi), verb, |typed| submit::mpi(typed, line))
}

fn distributed(
    framework: Framework,
    verb: v2::Verb<v2::Distributed>,
    line: &[String],
) -> Result<Intent, String> {
    let of = Distributed::of(framework);
    typed_verb(Noun::Framework(framework), verb, |typed| submit::distributed(typed, of, line))
}

fn typed_verb<S: clap::Args>(
    noun: Noun,
    verb: v2::Verb<S>,
    submit: impl FnOnce(S) -> Result<Submit, String>,
) -> Result<Intent, String> {
    Ok(match verb {
        v2::Verb::Submit(typed) => Intent::Submit(Box::new(submit(*typed.0)?)),
        v2::Verb::Any(verb) => any_verb(noun, verb)?,
        v2::Verb::Suspend(typed) => {
            change(Verb::Suspend, narrowed(noun, &typed.0.only)?, typed.0.of)
        }
        v2::Verb::Resume(typed) => change(Verb::Resume, narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::Verb::Update(typed) => {
            let v2::WithFilter { of, only } = *typed.0;
            Intent::Update(Box::new(submit::change(narrowed(noun, &only)?, of)?))
        }
    })
}

fn inference(verb: v2::OfInference, line: &[String]) -> Result<Intent, String> {
    Ok(match verb {
        v2::OfInference::Submit(typed) => {
            Intent::Submit(Box::new(submit::inference(*typed.0, line)?))
        }
        v2::OfInference::Update(typed) => Intent::Update(Box::new(submit::update(*typed.0)?)),
        v2::OfInference::Any(verb) => any_verb(Noun::Inference, verb)?,
        v2::OfInference::Suspend(typed) => program::no_suspension(&typed),
        v2::OfInference::Distributed(_) => program::refused(program::NO_REPLICA_OF_SEVERAL),
        v2::OfInference::Nim(_) => program::refused(program::NO_NIM),
    })
}

fn workload(verb: v2::OfWorkload) -> Result<Intent, String> {
    let noun = Noun::Workload;
    Ok(match verb {
        v2::OfWorkload::Submit(typed) => {
            Intent::SubmitManifest(Box::new(objects::manifest(*typed)))
        }
        v2::OfWorkload::Any(verb) => any_verb(noun, verb)?,
        v2::OfWorkload::Suspend(typed) => {
            change(Verb::Suspend, narrowed(noun, &typed.0.only)?, typed.0.of)
        }
        v2::OfWorkload::Resume(typed) => {
            change(Verb::Resume, narrowed(noun, &typed.0.only)?, typed.0.of)
        }
        v2::OfWorkload::Update(typed) => {
            let v2::WithFilter { of, only } = *typed.0;
            Intent::Update(Box::new(submit::change(narrowed(noun, &only)?, of)?))
        }
    })
}

fn any_verb(noun: Noun, verb: v2::AnyVerb) -> Result<Intent, String> {
    Ok(match verb {
        v2::AnyVerb::List(list) => list_v2(noun, *list.0)?,
        v2::AnyVerb::Describe(describe) => describe_v2(noun, *describe.0)?,
        v2::AnyVerb::Explain(typed) => explained(narrowed(noun, &typed.0.only)?, typed.0.of)?,
        v2::AnyVerb::Metrics(typed) => metrics_of(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::Wait(typed) => wait_for(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::Logs(typed) => logs_of(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::Delete(typed) => delete(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::Bash(typed) => bash(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::Exec(typed) => exec_in(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::Attach(typed) => attach(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::Open(typed) => open(narrowed(noun, &typed.0.only)?, typed.0.of),
        v2::AnyVerb::PortForward(typed) => port_forward(narrowed(noun, &typed.0.only)?, typed.0.of),
    })
}

fn logs_of(noun: Noun, logs: args::Logs) -> Intent {
    let of = Target { noun, name: logs.name, pod: logs.pod };
    let which = client::Logs {
        // -1 is all.
        tail_lines: u64::try_from(logs.tail).ok(),
        since: logs.since.map(Since::Seconds).or(logs.since_time.map(Since::Time)),
        timestamps: logs.timestamps,
        follow: logs.follow,
        previous: logs.previous,
    };
    Intent::Logs { of, which }
}

fn metrics_of(noun: Noun, typed: v2::Metrics) -> Intent {
    let of = Target { noun, name: typed.name, pod: None };
    let (since_s, samples, how) = (typed.since, typed.samples, typed.one.into());
    Intent::Metrics(Metrics { of, since_s, samples, how })
}

fn wait_for(noun: Noun, wait: args::Wait) -> Intent {
    let (names, until, timeout_s) = (without_kind(wait.names), wait.until, wait.timeout);
    Intent::Wait(Wait { noun, names, until, timeout_s })
}

fn change(verb: Verb, noun: Noun, names: args::Names) -> Intent {
    let names = (!names.all).then(|| without_kind(names.names));
    Intent::Change(Change { verb, noun, names, yes: false })
}

fn delete(noun: Noun, typed: args::Deletion) -> Intent {
    let names = (!typed.of.all).then(|| without_kind(typed.of.names));
    Intent::Change(Change { verb: Verb::Delete, noun, names, yes: typed.yes })
}

fn bash(noun: Noun, named: args::Named) -> Intent {
    let of = Target { noun, name: named.name, pod: named.pod };
    Intent::Exec { of, command: vec!["/bin/bash".to_owned()], stdio: Stdio::FULL }
}

fn exec_in(noun: Noun, exec: args::Exec) -> Intent {
    let of = Target { noun, name: exec.of.name, pod: exec.of.pod };
    Intent::Exec { of, command: exec.command, stdio: Stdio { stdin: exec.stdin, tty: exec.tty } }
}

fn attach(noun: Noun, attach: args::Attach) -> Intent {
    let of = Target { noun, name: attach.of.name, pod: attach.of.pod };
    Intent::Attach { of, stdio: Stdio { stdin: !attach.no_stdin, tty: !attach.no_tty } }
}

fn open(noun: Noun, open: args::Open) -> Intent {
    let of = Target { noun, name: open.name, pod: None };
    Intent::Open { of, url: open.url, print: open.print }
}

fn port_forward(noun: Noun, forward: args::PortForward) -> Intent {
    let of = Target { noun, name: forward.of.name, pod: forward.of.pod };
    Intent::PortForward { of, ports: forward.port, address: forward.address }
}

/// `job a1` is the job a1, and `job` alone is a job of that name.
fn without_kind(mut words: Vec<String>) -> Vec<String> {
    if words.len() > 1 && words.first().is_some_and(|word| KIND_WORDS.contains(&word.as_str())) {
        words.remove(0);
    }
    words
}

fn page(typed: &v2::Paging) -> Page {
    let rows = |count| usize::try_from(count).unwrap_or(usize::MAX);
    let limit = (!typed.no_pagination).then_some(rows(typed.limit));
    Page { offset: rows(typed.offset), limit, has_more_pages: true }
}

fn output(output: Option<args::Output>) -> OutputFormat {
    match output {
        Some(args::Output::Json) => OutputFormat::Json,
        Some(args::Output::Yaml) => OutputFormat::Yaml,
        None | Some(args::Output::Table) => OutputFormat::Text,
    }
}
