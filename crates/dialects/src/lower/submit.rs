//! Lowers the words of a submission to a `Submit`, for both dialects. Pure.

use api_types::{self as wire, Port};

use super::{framework, pod_flags, words};
use crate::args::pod_flags::ServiceType;
use crate::args::values::Pair;
use crate::args::{self, v1, v2};
use crate::intent::{
    ATTACH_WAIT_S, Access, ContainerOptions, Dialect, Distributed, Framework, Gpu, Inherits, Kind,
    Master, Mode, Name, Noun, Place, Runs, Serving, Spec, Stdio, Submit, Target, Update, Variable,
};

/// Command of MPI workers: their launcher starts everything.
const WAITING: [&str; 2] = ["sleep", "infinity"];
/// Image and port of `--jupyter`.
const NOTEBOOK: &str = "jupyter/scipy-notebook";
const NOTEBOOK_PORT: u16 = 8888;

pub(super) fn v1(typed: v1::Submit, line: &[String]) -> Result<Submit, String> {
    let v1::Submit { mut job, elastic, interactive, preemptible, completions, parallelism, .. } =
        typed;
    if parallelism.is_some_and(|pods| pods > 1) && completions.is_none() {
        return Err("--parallelism needs --completions: how many pods are to end well".to_owned());
    }
    let interactive = interactive || typed.jupyter;
    let mut notes = Vec::new();
    let notebook = typed.jupyter.then(|| notebook(&mut job, &mut notes));
    let kind = match interactive {
        _ if typed.inference => Kind::Inference(Box::new(serving(&mut job, typed.replicas)?)),
        true => Kind::Workspace,
        false => Kind::Training(Runs { completions, parallelism, elastic }),
    };
    let mut submit = job_v1(job, kind, line)?;
    submit.notes.splice(..0, notes);
    if let Some(notebook) = notebook {
        let Access { ports, address, .. } = submit.access.take().unwrap_or_default();
        submit.access = Some(Access { ports, address, ..notebook });
    }
    if submit.access.is_some() && matches!(submit.mode, Mode::Attach { .. }) {
        return Err("--attach: this terminal cannot stay at its ports as well; leave it out".into());
    }
    // A training is always preemptible.
    if preemptible && !interactive {
        let note = "--preemptible has no effect without --interactive";
        submit.notes.push(note.to_owned());
    }
    submit.spec.preemptible = (preemptible && interactive).then_some(true);
    Ok(submit)
}

/// Fills in the defaults of `--jupyter` for values that were not given, with a note for each.
fn notebook(job: &mut v1::Job, notes: &mut Vec<String>) -> Access {
    let mut uses = |what: &str, flag: &str| notes.push(format!("Using {what}; {flag} changes it"));
    if job.image.is_none() && job.template.is_none() {
        uses(&format!("image {NOTEBOOK}"), "--image");
        job.image = Some(NOTEBOOK.to_owned());
    }
    let around = &mut job.around;
    let any_port = around.port.is_empty();
    if any_port {
        uses(&format!("port {NOTEBOOK_PORT}"), "--port");
        let (container, external) = (Some(NOTEBOOK_PORT.into()), Some(NOTEBOOK_PORT.into()));
        around.port = vec![Port { container, external, ..Port::default() }];
    }
    let service = around.service_type.unwrap_or_else(|| {
        uses("service type portforward", "--service-type");
        ServiceType::PortForward
    });
    around.service_type = Some(service);
    let own_path = service == ServiceType::Ingress
        && job.words.is_empty()
        && job.command.is_none()
        && job.args.is_none();
    if own_path {
        uses("start-notebook.sh with a base URL of project and name", "a command behind `--`");
    }
    Access { any_port, notebook: true, own_path, ..Access::default() }
}

/// Serving settings of an inference of the first dialect. Its port is reached at its address; a
/// service type that opens a port of every node makes the address public, and no other does.
fn serving(job: &mut v1::Job, replicas: Option<u32>) -> Result<Serving, String> {
    let around = &mut job.around;
    let [Port { container: Some(port), .. }] = around.port[..] else {
        return Err("--inference: say at which port it answers, with one --port PORT".to_owned());
    };
    let service = around.service_type.take();
    let is_open = matches!(service, Some(ServiceType::NodePort | ServiceType::LoadBalancer));
    let authorization_type =
        is_open.then_some(wire::ServingPortAccessAuthorizationTypeEnum::Public);
    around.address = None;
    around.port.clear();
    let container = u16::try_from(port).ok();
    let port = wire::ServingPort { container, authorization_type, ..Default::default() };
    let autoscaling = replicas
        .map(|replicas| wire::AutoScaling { min_replicas: Some(replicas), ..Default::default() });
    Ok(Serving { port: Some(port), autoscaling, configuration: None })
}

/// `submit-dist`.
pub(super) fn dist_v1(typed: v1::SubmitDist, line: &[String]) -> Result<Submit, String> {
    let (all, mut distributed) = match typed {
        v1::SubmitDist::Mpi(mpi) => {
            let slots = mpi.0.slots.slots_per_worker;
            (mpi.0.all, Distributed { slots, ..Distributed::of(Framework::Mpi) })
        }
        v1::SubmitDist::Pytorch(torch) => {
            let (workers_min, workers_max) =
                (torch.0.bounds.min_replicas, torch.0.bounds.max_replicas);
            let of = Distributed::of(Framework::PyTorch);
            (torch.0.all, Distributed { workers_min, workers_max, ..of })
        }
        v1::SubmitDist::Tf(all) => (*all.0, Distributed::of(Framework::Tf)),
        v1::SubmitDist::Xgboost(all) => (*all.0, Distributed::of(Framework::XgBoost)),
    };
    distributed.workers = all.workers.workers;
    distributed.clean = all.workers.clean_pod_policy.map(Into::into);
    job_v1(all.job, Kind::Distributed(Box::new(distributed)), line).map(led)
}

/// `submit-mpi`, which counts processes.
pub(super) fn mpi_v1(typed: v1::SubmitMpi, line: &[String]) -> Result<Submit, String> {
    let distributed = Distributed { workers: typed.processes, ..Distributed::of(Framework::Mpi) };
    job_v1(typed.job, Kind::Distributed(Box::new(distributed)), line).map(led)
}

fn job_v1(mut typed: v1::Job, kind: Kind, line: &[String]) -> Result<Submit, String> {
    let name = match (typed.name.or(typed.name_flag), typed.job_name_prefix) {
        (Some(name), _) => Name::Given(name),
        (None, Some(prefix)) => Name::Numbered(prefix),
        (None, None) => Name::Numbered("job".to_owned()),
    };
    let gpu = match (typed.gpu, typed.gpu_memory) {
        (_, Some(size)) => Some(Gpu::Memory { devices: 1, size }),
        (None, None) => None,
        (Some(millis), None) if millis % units::GPU_MILLIS == 0 => Some(Gpu::Devices(
            u32::try_from(millis / units::GPU_MILLIS).map_err(|_| "--gpu: too many GPUs")?,
        )),
        (Some(millis), None) => Some(Gpu::Portion { devices: 1, millis }),
    };
    let mut extended = typed.extended_resource;
    extended.extend(
        typed.mig_profile.map(|profile| (format!("nvidia.com/mig-{profile}"), "1".to_owned())),
    );
    let (stdio, mode) = (stdio(&typed.console)?, mode(&typed.asking, Some(&typed.console))?);
    let strict = typed.asking.strict;
    let (command, args) = words_v1(typed.command.as_deref(), typed.args.as_deref(), typed.words)?;
    let mut notes: Vec<String> = words::only_word(&command, &args).into_iter().collect();
    let mut access = pod_flags::ports(&mut typed.around, &mut notes)?;
    if let Some(Access { ports, .. }) = access.take_if(|_| kind != Kind::Workspace) {
        notes.push(forward_later(&name, &ports));
    }
    let spec = Spec {
        image: typed.image,
        command,
        args,
        environment: typed.environment,
        working_dir: typed.working_dir,
        gpu,
        gpu_millis_max: typed.gpu_portion_limit,
        gpu_memory_max: typed.gpu_memory_limit,
        extended,
        cpu_millis: typed.cpu,
        memory: typed.memory,
        backoff_limit: typed.backoff_limit,
        grace_seconds: typed.termination_grace_period,
        stdio,
        labels: pod_flags::labels(typed.label, &typed.around.common),
        annotations: typed.annotation,
        place: place(typed.place),
        around: pod_flags::v1(typed.around)?,
        ..Spec::default()
    };
    let inherits = Inherits { template: typed.template, ..Inherits::default() };
    let command_line = shell_words::join(line);
    let dialect = Dialect::V1;
    Ok(Submit { dialect, name, kind, inherits, spec, mode, strict, access, notes, command_line })
}

/// Note on `port-forward`, for the ports of a workload without a terminal.
fn forward_later(name: &Name, ports: &[(u16, u16)]) -> String {
    let name = if let Name::Given(name) = name { name } else { "NAME" };
    let ports: String =
        ports.iter().map(|(here, there)| format!(" --port {here}:{there}")).collect();
    format!(
        "Its ports are not brought here now, since it is not interactive; `runai port-forward \
         {name}{ports}` does so"
    )
}

/// Input and terminal of the main process.
fn stdio(typed: &args::Console) -> Result<Stdio, String> {
    let stdio = Stdio { stdin: typed.stdin || typed.attach, tty: typed.tty || typed.attach };
    if stdio.tty && !stdio.stdin {
        return Err("--tty: nothing could be typed at the terminal; add --stdin".to_owned());
    }
    Ok(stdio)
}

/// Action on the submission; replicas have no terminal.
fn mode(asking: &args::DryRunFlags, console: Option<&args::Console>) -> Result<Mode, String> {
    let attached = console.filter(|console| console.attach);
    let within_s = attached.map(|console| console.pod_running_timeout.unwrap_or(ATTACH_WAIT_S));
    match (asking.dry_run, asking.what_if, within_s) {
        (false, false, None) => Ok(Mode::Submit),
        (false, false, Some(within_s)) => Ok(Mode::Attach { within_s }),
        (.., Some(_)) => Err("--attach: nothing would be submitted; leave it out".to_owned()),
        (true, ..) => Ok(Mode::DryRun),
        (false, true, None) => Ok(Mode::WhatIf),
    }
}

/// Command and arguments, from the words after `--` or from the older string flags.
fn words_v1(
    command: Option<&str>,
    args: Option<&str>,
    words: Vec<String>,
) -> Result<(Vec<String>, Vec<String>), String> {
    let mut arguments = args.map_or_else(|| Ok(Vec::new()), |args| split("args", args))?;
    match command {
        Some("true") if words.is_empty() => Err(NO_COMMAND.to_owned()),
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

const NO_COMMAND: &str = "--command needs the command itself: write `--command -- COMMAND ARGS…`";

fn split(flag: &str, text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|error| format!("--{flag} `{text}`: {error}"))
}

pub(super) fn training(typed: v2::Training, line: &[String]) -> Result<Submit, String> {
    let v2::Training { named, what, ending, runs, parallelism, elastic } = typed;
    let kind = Kind::Training(Runs { completions: runs, parallelism, elastic });
    let mode = mode(&named.asking, Some(&ending.console))?;
    v2(named, spec(what, Some(ending))?, kind, mode, line)
}

pub(super) fn workspace(typed: v2::Workspace, line: &[String]) -> Result<Submit, String> {
    let mode = mode(&typed.named.asking, Some(&typed.ending.console))?;
    v2(typed.named, spec(typed.what, Some(typed.ending))?, Kind::Workspace, mode, line)
}

pub(super) fn inference(typed: v2::Inference, line: &[String]) -> Result<Submit, String> {
    let kind = Kind::Inference(Box::new(serving_v2(typed.serving)));
    let mode = mode(&typed.named.asking, None)?;
    v2(typed.named, spec(typed.what, None)?, kind, mode, line)
}

/// Serving settings of an inference of the second dialect.
fn serving_v2(typed: v2::Serving) -> Serving {
    let scaling = wire::AutoScaling {
        metric_threshold_percentage: typed.metric_threshold_percentage.map(Into::into),
        min_replicas: typed.min_replicas,
        max_replicas: typed.max_replicas,
        initial_replicas: typed.initial_replicas,
        activation_replicas: typed.activation_replicas,
        concurrency_hard_limit: typed.concurrency_hard_limit,
        scale_to_zero_retention_seconds: typed.scale_to_zero_retention_seconds,
        scale_down_delay_seconds: typed.scale_down_delay_seconds,
        initialization_timeout_seconds: None,
        metric: typed.metric,
        metric_threshold: typed.metric_threshold,
    };
    let configuration = typed.initialization_timeout_seconds.map(|seconds| {
        let initialization_timeout_seconds = Some(seconds);
        wire::ServingConfiguration { initialization_timeout_seconds, ..Default::default() }
    });
    let autoscaling = Some(scaling).filter(|said| *said != wire::AutoScaling::default());
    Serving { port: typed.serving_port, autoscaling, configuration }
}

pub(super) fn update(typed: v2::Update) -> Result<Update, String> {
    let of = Target { noun: Noun::Inference, name: typed.name, pod: None };
    let update = Update {
        spec: spec(typed.what, None)?,
        serving: serving_v2(typed.serving),
        recreate: typed.recreate,
        from_revision: typed.from_revision,
        ..Update::new(of)
    };
    // An update without flags is refused: it changes nothing.
    if update == Update::new(update.of.clone()) {
        return Err("say what to change, such as --max-replicas 3".to_owned());
    }
    Ok(update)
}

/// Update of a training or a workspace.
pub(super) fn change(noun: Noun, typed: v2::Change) -> Result<Update, String> {
    let of = Target { noun, name: typed.name, pod: None };
    let (labels, labels_gone) = set_and_gone(typed.label);
    let (annotations, annotations_gone) = set_and_gone(typed.annotation);
    let mut spec = Spec {
        priority: typed.priority,
        preemptible: typed.preemptibility.map(v2::Preemptibility::is_preemptible),
        backoff_limit: typed.backoff_limit,
        gpu_millis_max: typed.gpu_portion_limit,
        gpu_memory_max: typed.gpu_memory_limit,
        labels,
        annotations,
        ..Spec::default()
    };
    spec.around.delete_after_s = typed.auto_deletion_time_after_completion;
    spec.around.gates = pod_flags::gates(typed.scheduling_gate);
    let update = Update { spec, labels_gone, annotations_gone, ..Update::new(of) };
    if update == Update::new(update.of.clone()) {
        return Err("specify what to change, such as --priority high".to_owned());
    }
    Ok(update)
}

/// Pairs that are set, and names that are removed.
fn set_and_gone(pairs: Vec<Pair>) -> (Vec<(String, String)>, Vec<String>) {
    let (mut set, mut gone) = (Vec::new(), Vec::new());
    for (name, value) in pairs {
        match value {
            Some(value) => set.push((name, value)),
            None => gone.push(name),
        }
    }
    (set, gone)
}

pub(super) fn pytorch(typed: v2::PyTorch, line: &[String]) -> Result<Submit, String> {
    let (workers_min, workers_max) = (typed.bounds.min_replicas, typed.bounds.max_replicas);
    let of = Distributed::of(Framework::PyTorch);
    distributed(typed.all, Distributed { workers_min, workers_max, ..of }, line)
}

pub(super) fn mpi(typed: v2::Mpi, line: &[String]) -> Result<Submit, String> {
    let slots = typed.slots.slots_per_worker;
    distributed(typed.all, Distributed { slots, ..Distributed::of(Framework::Mpi) }, line)
}

/// `distributed submit`, the oldest form.
pub(super) fn of_framework(typed: v2::OfFramework, line: &[String]) -> Result<Submit, String> {
    let (bounds, slots) = (typed.bounds, typed.slots.slots_per_worker);
    let framework = framework(typed.framework);
    let bounded = bounds.min_replicas.is_some() || bounds.max_replicas.is_some();
    if bounded && framework != Framework::PyTorch {
        return Err("--min-replicas, --max-replicas: only PyTorch workers come and go".to_owned());
    }
    if slots.is_some() && framework != Framework::Mpi {
        return Err("--slots-per-worker: only MPI has ranks".to_owned());
    }
    let (workers_min, workers_max) = (bounds.min_replicas, bounds.max_replicas);
    let of = Distributed { workers_min, workers_max, slots, ..Distributed::of(framework) };
    distributed(typed.all, of, line)
}

pub(super) fn distributed(
    typed: v2::Distributed,
    of: Distributed,
    line: &[String],
) -> Result<Submit, String> {
    if typed.no_master && of.framework == Framework::Mpi {
        return Err("--no-master: MPI needs its launcher; leave it out".to_owned());
    }
    let mode = mode(&typed.named.asking, Some(&typed.ending.console))?;
    let spec = spec(typed.what, Some(typed.ending))?;
    let without_claims = typed.master.master_no_pvcs;
    let mut master = master(typed.master)?;
    if without_claims {
        master.around.storage.pvc = pod_flags::none_of(spec.around.storage.pvc.as_deref());
    }
    let distributed = Distributed {
        workers: typed.workers.workers,
        clean: typed.workers.clean_pod_policy.map(Into::into),
        master: match (typed.no_master, master == Spec::default()) {
            (true, _) => Master::None,
            (false, true) => Master::AsWorkers,
            (false, false) => Master::Own(Box::new(master)),
        },
        ..of
    };
    let kind = Kind::Distributed(Box::new(distributed));
    v2(typed.named, spec, kind, mode, line).map(led)
}

impl Distributed {
    /// A distributed training with default values.
    pub(super) const fn of(framework: Framework) -> Self {
        Self {
            framework,
            workers: None,
            workers_min: None,
            workers_max: None,
            slots: None,
            clean: None,
            master: Master::AsWorkers,
        }
    }
}

/// Moves the command of an MPI training to the launcher, which needs no GPU by default; the workers
/// wait for its ranks.
fn led(mut submit: Submit) -> Submit {
    let Kind::Distributed(distributed) = &mut submit.kind else { return submit };
    if distributed.framework != Framework::Mpi {
        return submit;
    }
    let mut launcher = match std::mem::replace(&mut distributed.master, Master::None) {
        Master::Own(launcher) => *launcher,
        _ => Spec::default(),
    };
    launcher.gpu = launcher.gpu.or_else(|| launcher.extended.is_empty().then_some(Gpu::Devices(0)));
    let spec = &mut submit.spec;
    if launcher.command.is_empty() && !spec.command.is_empty() {
        let waiting = WAITING.map(str::to_owned).to_vec();
        launcher.command = std::mem::replace(&mut spec.command, waiting);
        let args = std::mem::take(&mut spec.args);
        if launcher.args.is_empty() {
            launcher.args = args;
        }
    }
    distributed.master = Master::Own(Box::new(launcher));
    submit
}

fn v2(
    named: v2::Identity,
    mut spec: Spec,
    kind: Kind,
    mode: Mode,
    line: &[String],
) -> Result<Submit, String> {
    let strict = named.asking.strict;
    let name = match (named.name, named.name_prefix) {
        (Some(name), _) => Name::Given(name),
        (None, prefix) => {
            Name::Numbered(prefix.unwrap_or_else(|| words::of_kind(&kind).to_owned()))
        }
    };
    let mut inherits = Inherits {
        template: named.template,
        environment: None,
        compute: named.compute,
        data: named.datasource,
    };
    // Until 2.19 this was a variable, then an asset; a `=` marks the variable.
    for text in named.environment {
        match text.split_once('=') {
            Some((key, value)) => {
                spec.environment.push((key.to_owned(), Variable::Text(value.to_owned())));
            }
            None if inherits.environment.is_none() => inherits.environment = Some(text),
            None => return Err("--environment: a workload takes one environment asset".to_owned()),
        }
    }
    let command_line = shell_words::join(line);
    let notes = words::only_word(&spec.command, &spec.args).into_iter().collect();
    let (dialect, access) = (Dialect::V2, None);
    Ok(Submit { dialect, name, kind, inherits, spec, mode, strict, access, notes, command_line })
}

fn spec(what: v2::What, ending: Option<v2::Ending>) -> Result<Spec, String> {
    if what.command && what.words.is_empty() {
        return Err(NO_COMMAND.to_owned());
    }
    let gpu = gpu_v2(
        "--",
        &Shares {
            devices: what.gpu_devices_request,
            kind: what.gpu_request_type,
            millis: what.gpu_portion_request,
            size: what.gpu_memory_request,
        },
    )?;
    let (command, args) =
        if what.command { (what.words, Vec::new()) } else { (Vec::new(), what.words) };
    let plain = what.environment_variable.into_iter().map(text_variable);
    let labels = pod_flags::labels(what.label, &what.around.common);
    let ending = ending.unwrap_or_default();
    let mut around = ContainerOptions {
        delete_after_s: ending.auto_deletion_time_after_completion,
        ..pod_flags::v2(what.around)
    };
    pod_flags::timing(&mut around, ending.timing);
    Ok(Spec {
        image: what.image,
        command,
        args,
        environment: plain.chain(what.env_secret).collect(),
        secret_files: what.secret_volume,
        working_dir: what.working_dir,
        gpu,
        gpu_millis_max: what.gpu_portion_limit,
        gpu_memory_max: what.gpu_memory_limit,
        extended: what.extended_resource,
        cpu_millis: what.cpu_core_request,
        memory: what.cpu_memory_request,
        preemptible: what
            .preemptibility
            .map(v2::Preemptibility::is_preemptible)
            .or(what.preemptible),
        backoff_limit: ending.backoff_limit,
        restart: ending.restart_policy.map(Into::into),
        grace_seconds: what.termination_grace_period,
        stdio: stdio(&ending.console)?,
        priority: what.priority,
        labels,
        annotations: what.annotation,
        place: place(what.place),
        around,
    })
}

fn master(typed: v2::Master) -> Result<Spec, String> {
    let words = |flag, text: Option<String>| text.map_or_else(|| Ok(vec![]), |it| split(flag, &it));
    let gpu = gpu_v2(
        "--master-",
        &Shares {
            devices: typed.master_gpu_devices_request,
            kind: typed.master_gpu_request_type,
            millis: typed.master_gpu_portion_request,
            size: typed.master_gpu_memory_request,
        },
    )?;
    Ok(Spec {
        command: words("master-command", typed.master_command)?,
        args: words("master-args", typed.master_args)?,
        environment: typed.master_environment_variable.into_iter().map(text_variable).collect(),
        gpu,
        gpu_millis_max: typed.master_gpu_portion_limit,
        gpu_memory_max: typed.master_gpu_memory_limit,
        extended: typed.master_extended_resource,
        cpu_millis: typed.master_cpu_core_request,
        memory: typed.master_cpu_memory_request,
        restart: typed.master_restart_policy.map(Into::into),
        around: ContainerOptions {
            cpu_millis_max: typed.master_cpu_core_limit,
            memory_max: typed.master_cpu_memory_limit,
            ..ContainerOptions::default()
        },
        ..Spec::default()
    })
}

fn text_variable((name, value): (String, String)) -> (String, Variable) {
    (name, Variable::Text(value))
}

fn place(typed: args::Place) -> Place {
    let required = typed.required_pod_topology_key.map(|key| (key, true));
    Place {
        node_pools: typed.node_pools.concat(),
        node_type: typed.node_type,
        affinity: typed.node_affinity,
        excluded: typed.exclude_node,
        tolerations: typed.toleration,
        near: required.or(typed.preferred_pod_topology_key.map(|key| (key, false))),
    }
}

/// GPU flags of the second dialect.
struct Shares {
    devices: Option<u32>,
    kind: Option<v2::GpuRequestType>,
    millis: Option<u64>,
    size: Option<String>,
}

fn gpu_v2(dashes: &str, said: &Shares) -> Result<Option<Gpu>, String> {
    use v2::GpuRequestType::{Memory, MigProfile, Portion};
    let devices = said.devices.unwrap_or(1);
    match (said.kind, said.millis, &said.size) {
        (Some(MigProfile), ..) => Err(format!(
            "{dashes}gpu-request-type migProfile: ask for instances with \
             {dashes}extended-resource nvidia.com/mig-1g.10gb=1"
        )),
        (Some(Portion), None, _) => Err(format!(
            "{dashes}gpu-request-type portion needs {dashes}gpu-portion-request, such as 0.5"
        )),
        (Some(Memory), _, None) => Err(format!(
            "{dashes}gpu-request-type memory needs {dashes}gpu-memory-request, such as 8G"
        )),
        (_, None, None) => Ok(said.devices.map(Gpu::Devices)),
        _ if devices == 0 => Err(format!(
            "{dashes}gpu-devices-request 0 asks for no device; leave out the share or write 1"
        )),
        (_, Some(1000), _) => Ok(Some(Gpu::Devices(devices))),
        (_, Some(millis), _) => Ok(Some(Gpu::Portion { devices, millis })),
        (_, None, Some(size)) => Ok(Some(Gpu::Memory { devices, size: size.clone() })),
    }
}
