//! From what was typed to what is meant, for both dialects. Pure.

use super::args::{self, Command, v1, v2};
use super::intent::{
    Change, Describe, Dialect, Framework, Gpu, Intent, Kind, ListWorkloads, Name, Noun, Restart,
    Shown, Submit, Target, Verb,
};
use crate::settings::TableStyle;

/// Events shown when nothing else is asked.
const EVENTS_MAX: usize = 50;
/// The words that may stand for "a job" before a name.
const KIND_WORDS: [&str; 4] = ["job", "jobs", "workload", "workloads"];

/// What a command means.
///
/// # Errors
/// A combination of flags that means nothing; the text says which.
pub(crate) fn intent(command: Command, typed: &[String]) -> Result<Intent, String> {
    Ok(match command {
        Command::Submit(submit) => Intent::Submit(Box::new(submit_v1(*submit, typed)?)),
        Command::List(list) => list_v1(list)?,
        Command::Describe(describe) => describe_v1(describe)?,
        Command::Explain(explain) => explained(Noun::Job, explain)?,
        Command::Logs(logs) => logs_of(Noun::Job, logs),
        Command::Delete(names) => change(Verb::Delete, Noun::Job, names),
        Command::Suspend(names) => change(Verb::Suspend, Noun::Job, names),
        Command::Resume(names) => change(Verb::Resume, Noun::Job, names),
        Command::Bash(named) => bash(Noun::Job, named),
        Command::Exec(exec) => exec_in(Noun::Job, exec),
        Command::Training(verb) => typed_verb(Noun::Training, Kind::Training, verb, typed)?,
        Command::Workspace(verb) => typed_verb(Noun::Workspace, Kind::Workspace, verb, typed)?,
        Command::Workload(verb) => any_verb(verb)?,
        Command::Project(v2::OrgVerb::List(format)) => {
            Intent::ListProjects(Dialect::V2, shown(format))
        }
        Command::Project(v2::OrgVerb::Set { name }) => Intent::SetProject { name, by_noun: true },
        Command::Cluster(v2::OrgVerb::List(format)) => {
            Intent::ListClusters(Dialect::V2, shown(format))
        }
        Command::Cluster(v2::OrgVerb::Set { name }) => Intent::SetCluster(name),
        Command::Node(v2::NodeVerb::List(format)) => {
            Intent::ListNodes(Dialect::V2, Vec::new(), shown(format))
        }
        Command::Config(args::Config::Project { name }) => {
            Intent::SetProject { name, by_noun: false }
        }
        Command::Config(args::Config::Cluster { name }) => Intent::SetCluster(name),
        Command::Whoami => Intent::Whoami,
        Command::Version { short } => Intent::Version { short },
    })
}

fn submit_v1(typed: v1::Submit, line: &[String]) -> Result<Submit, String> {
    let name = match (typed.name.or(typed.name_flag), typed.job_name_prefix) {
        (Some(name), _) => Name::Given(name),
        (None, Some(prefix)) => Name::Numbered(prefix),
        (None, None) => Name::Numbered("job".to_owned()),
    };
    let gpu = match (typed.gpu, typed.gpu_memory) {
        (_, Some(size)) => Gpu::Memory { devices: 1, size },
        (None | Some(0), None) => Gpu::None,
        (Some(millis), None) if millis % units::GPU_MILLIS == 0 => Gpu::Devices(
            u32::try_from(millis / units::GPU_MILLIS).map_err(|_| "--gpu: too many GPUs")?,
        ),
        (Some(millis), None) => Gpu::Portion { devices: 1, millis },
    };
    let (command, args) = words_v1(typed.command.as_deref(), typed.args.as_deref(), typed.words)?;
    let kind = if typed.interactive { Kind::Workspace } else { Kind::Training };
    Ok(Submit {
        dialect: Dialect::V1,
        name,
        kind,
        image: typed.image,
        command,
        args,
        environment: typed.environment,
        working_dir: typed.working_dir,
        gpu,
        cpu_millis: typed.cpu,
        memory: typed.memory,
        elastic: typed.elastic,
        // A training is preemptible anyway.
        preemptible: (typed.preemptible && typed.interactive).then_some(true),
        backoff_limit: typed.backoff_limit,
        restart: None,
        grace_seconds: typed.termination_grace_period,
        priority: None,
        labels: typed.label,
        annotations: typed.annotation,
        command_line: shell_words::join(line),
    })
}

/// Command and arguments, from words after `--` or from the strings of old.
fn words_v1(
    command: Option<&str>,
    args: Option<&str>,
    words: Vec<String>,
) -> Result<(Vec<String>, Vec<String>), String> {
    let split = |flag: &str, text: &str| {
        shell_words::split(text).map_err(|error| format!("--{flag} `{text}`: {error}"))
    };
    let mut arguments = args.map_or_else(|| Ok(Vec::new()), |args| split("args", args))?;
    match command {
        Some("true") if words.is_empty() => {
            Err("--command needs the command itself: write `--command -- COMMAND ARGS…`".to_owned())
        }
        Some("true") => Ok((words, arguments)),
        None | Some("false") => {
            arguments.extend(words);
            Ok((Vec::new(), arguments))
        }
        Some(text) => {
            arguments.extend(words);
            Ok((split("command", text)?, arguments))
        }
    }
}

fn submit_v2(kind: Kind, typed: v2::Submit, line: &[String]) -> Result<Submit, String> {
    let gpu = gpu_v2(&typed)?;
    let name = match (typed.name, typed.name_prefix) {
        (Some(name), _) => Name::Given(name),
        (None, prefix) => Name::Numbered(prefix.unwrap_or_else(|| "job".to_owned())),
    };
    if typed.command && typed.words.is_empty() {
        return Err("--command needs the command itself: write `--command -- COMMAND ARGS…`".into());
    }
    let (command, args) =
        if typed.command { (typed.words, Vec::new()) } else { (Vec::new(), typed.words) };
    let mut environment = typed.environment;
    environment.extend(typed.environment_variable);
    let preemptible = match typed.preemptibility {
        Some(v2::Preemptibility::Preemptible) => Some(true),
        Some(v2::Preemptibility::NonPreemptible) => Some(false),
        None => typed.preemptible.then_some(true),
    };
    let restart = typed.restart_policy.map(|policy| match policy {
        v2::RestartPolicy::Always => Restart::Always,
        v2::RestartPolicy::Never => Restart::Never,
        v2::RestartPolicy::OnFailure => Restart::OnFailure,
    });
    Ok(Submit {
        dialect: Dialect::V2,
        name,
        kind,
        image: typed.image,
        command,
        args,
        environment,
        working_dir: typed.working_dir,
        gpu,
        cpu_millis: typed.cpu_core_request,
        memory: typed.cpu_memory_request,
        elastic: typed.elastic,
        preemptible,
        backoff_limit: typed.backoff_limit,
        restart,
        grace_seconds: typed.termination_grace_period,
        priority: typed.priority,
        labels: typed.label,
        annotations: typed.annotation,
        command_line: shell_words::join(line),
    })
}

fn gpu_v2(typed: &v2::Submit) -> Result<Gpu, String> {
    use v2::GpuRequestType::{Memory, Portion};
    let devices = typed.gpu_devices_request;
    let shared = devices.unwrap_or(1);
    let (portion, memory) = (typed.gpu_portion_request, typed.gpu_memory_request.clone());
    match (typed.gpu_request_type, portion, memory) {
        (Some(Portion), None, _) => {
            Err("--gpu-request-type portion needs --gpu-portion-request, such as 0.5".to_owned())
        }
        (Some(Memory), _, None) => {
            Err("--gpu-request-type memory needs --gpu-memory-request, such as 8G".to_owned())
        }
        (_, None, None) => Ok(devices.filter(|count| *count > 0).map_or(Gpu::None, Gpu::Devices)),
        _ if shared == 0 => {
            Err("-g 0 asks for no device; leave out the share or write -g 1".to_owned())
        }
        (_, Some(1000), None) => Ok(Gpu::Devices(shared)),
        (_, Some(millis), _) => Ok(Gpu::Portion { devices: shared, millis }),
        (_, None, Some(size)) => Ok(Gpu::Memory { devices: shared, size }),
    }
}

fn list_v1(list: v1::List) -> Result<Intent, String> {
    let shown = shown(list.format);
    let listed = list.listed.unwrap_or(v1::Listed::Jobs);
    // The published page of the newest quickstart shows the short table under `list -A`.
    let short = list.all_projects && list.listed.is_none();
    if listed != v1::Listed::Nodes && !list.names.is_empty() {
        return Err(format!("`{}`: only `list nodes` takes names", list.names.join(" ")));
    }
    Ok(match listed {
        v1::Listed::Jobs => Intent::ListWorkloads(ListWorkloads {
            all_projects: list.all_projects,
            table: Some(if short { TableStyle::V2 } else { TableStyle::V1 }),
            shown,
            ..ListWorkloads::default()
        }),
        v1::Listed::Projects => Intent::ListProjects(Dialect::V1, shown),
        v1::Listed::Nodes => Intent::ListNodes(Dialect::V1, list.names, shown),
        v1::Listed::Clusters => Intent::ListClusters(Dialect::V1, shown),
    })
}

fn list_v2(noun: Noun, list: v2::List) -> Result<Intent, String> {
    Ok(Intent::ListWorkloads(ListWorkloads {
        all_projects: list.all,
        noun: narrowed(noun, &list.only)?,
        status: list.status,
        offset: list.offset,
        limit: (!list.no_pagination).then_some(list.limit),
        table: Some(TableStyle::V2),
        shown: shown(list.format),
    }))
}

/// A noun, made narrower by the flags that say which of them.
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
        return Ok(Intent::DescribeNodes(words));
    }
    let mut names = without_kind(words).into_iter();
    let (Some(name), None) = (names.next(), names.next()) else {
        return Err("describe takes one name: `runai describe job NAME`".to_owned());
    };
    let of = Target { noun: Noun::Job, name, pod: None };
    Ok(Intent::Describe(Describe { of, shown: output(describe.output), events_max: EVENTS_MAX }))
}

fn explained(noun: Noun, explain: v1::Explain) -> Result<Intent, String> {
    let mut names = without_kind(explain.words).into_iter();
    let (Some(name), None) = (names.next(), names.next()) else {
        return Err("explain takes one name: `runai explain NAME`".to_owned());
    };
    Ok(Intent::Explain(Target { noun, name, pod: None }, output(explain.output)))
}

fn describe_v2(noun: Noun, describe: v2::Describe) -> Result<Intent, String> {
    let of = Target { noun: narrowed(noun, &describe.only)?, name: describe.name, pod: None };
    let events_max = describe.event_limit;
    Ok(Intent::Describe(Describe { of, shown: output(describe.output), events_max }))
}

fn typed_verb(noun: Noun, kind: Kind, verb: v2::Verb, typed: &[String]) -> Result<Intent, String> {
    Ok(match verb {
        v2::Verb::Submit(submit) => Intent::Submit(Box::new(submit_v2(kind, *submit, typed)?)),
        v2::Verb::List(list) => list_v2(noun, list)?,
        v2::Verb::Describe(describe) => describe_v2(noun, describe)?,
        v2::Verb::Explain(explain) => explained(noun, explain)?,
        v2::Verb::Logs(logs) => logs_of(noun, logs),
        v2::Verb::Suspend(names) => change(Verb::Suspend, noun, names),
        v2::Verb::Resume(names) => change(Verb::Resume, noun, names),
        v2::Verb::Delete(names) => change(Verb::Delete, noun, names),
        v2::Verb::Bash(named) => bash(noun, named),
        v2::Verb::Exec(exec) => exec_in(noun, exec),
    })
}

fn any_verb(verb: v2::AnyVerb) -> Result<Intent, String> {
    let noun = Noun::Workload;
    Ok(match verb {
        v2::AnyVerb::List(list) => list_v2(noun, list)?,
        v2::AnyVerb::Describe(describe) => describe_v2(noun, describe)?,
        v2::AnyVerb::Explain(explain) => explained(noun, explain)?,
        v2::AnyVerb::Logs(logs) => logs_of(noun, logs),
        v2::AnyVerb::Suspend(names) => change(Verb::Suspend, noun, names),
        v2::AnyVerb::Resume(names) => change(Verb::Resume, noun, names),
        v2::AnyVerb::Delete(names) => change(Verb::Delete, noun, names),
        v2::AnyVerb::Exec(exec) => exec_in(noun, exec),
    })
}

fn logs_of(noun: Noun, logs: args::Logs) -> Intent {
    let of = Target { noun, name: logs.name, pod: logs.pod };
    // Any negative number is "all", as -1 is.
    Intent::Logs { of, follow: logs.follow, tail_lines: u64::try_from(logs.tail).ok() }
}

fn change(verb: Verb, noun: Noun, names: args::Names) -> Intent {
    let names = (!names.all).then(|| without_kind(names.names));
    Intent::Change(Change { verb, noun, names })
}

fn bash(noun: Noun, named: args::Named) -> Intent {
    let of = Target { noun, name: named.name, pod: named.pod };
    Intent::Exec { of, command: vec!["/bin/bash".to_owned()] }
}

fn exec_in(noun: Noun, exec: args::Exec) -> Intent {
    let of = Target { noun, name: exec.name, pod: exec.pod };
    Intent::Exec { of, command: exec.command }
}

/// `job a1` is the job a1, and `job` alone is a job of that name.
fn without_kind(mut words: Vec<String>) -> Vec<String> {
    if words.len() > 1 && words.first().is_some_and(|word| KIND_WORDS.contains(&word.as_str())) {
        words.remove(0);
    }
    words
}

fn shown(format: args::Format) -> Shown {
    match (format.json, format.yaml) {
        (true, _) => Shown::Json,
        (_, true) => Shown::Yaml,
        _ => Shown::Text,
    }
}

fn output(output: Option<v1::Output>) -> Shown {
    match output {
        Some(v1::Output::Json) => Shown::Json,
        Some(v1::Output::Yaml) => Shown::Yaml,
        None | Some(v1::Output::Table) => Shown::Text,
    }
}
