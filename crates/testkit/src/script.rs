//! The words of a script. Owns: parsing one step.

use model::{
    Cluster, Constraints, GroupSpec, Operator, PodPreference, PodSetSpec, PodTerm, Preference,
    QueueId, Requirement, Toleration, TopologyConstraint, WorkloadSpec,
};
use units::{Instant, parse_bytes, parse_cpu_millis, parse_gpu_millis};

/// A workload as a script submits it.
#[derive(Debug, Clone)]
pub(crate) struct Submit {
    pub(crate) name: String,
    pub(crate) gpu: model::GpuRequest,
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) interactive: bool,
    pub(crate) gated: bool,
    pub(crate) elastic: bool,
    pub(crate) priority: Option<u32>,
    pub(crate) spare_priority: Option<u32>,
    pub(crate) pods: u32,
    pub(crate) pods_min: Option<u32>,
    pub(crate) constraints: Constraints,
    pub(crate) preemption_delay_ms: u64,
    pub(crate) time_limit_ms: Option<u64>,
    pub(crate) near: Near,
    pub(crate) group: Option<String>,
    pub(crate) task_priority: u32,
}

/// Colocation of pods in a script: names and labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Near {
    /// `net` if not said.
    pub(crate) topology: Option<String>,
    pub(crate) required: Option<String>,
    pub(crate) preferred: Option<String>,
}

/// The project a workload is submitted to.
pub(crate) fn project<'a>(words: &[&'a str]) -> &'a str {
    words[0].split_once('/').expect("project/name").0
}

/// A workload with its parts: the words of [`submit`].
pub(crate) fn workload(
    cluster: &Cluster,
    words: &[&str],
    queue: QueueId,
    seq: u64,
    now: Instant,
) -> (Submit, WorkloadSpec) {
    let sections = sections(words);
    let submit = submit(&sections[0]);
    let mut spec = submit.spec(queue, seq, now);
    spec.topology = submit.near.constraint(cluster);
    if sections.len() > 1 {
        spec.children_min = submit.pods_min;
        spec.pod_sets.clear();
    }
    for section in &sections[1..] {
        // The name stands where that of the workload stands in the first section.
        let name = format!("/{}", section[1]);
        let words: Vec<_> = [name.as_str()].into_iter().chain(section[2..].to_vec()).collect();
        let part = self::submit(&words);
        let (name, topology) = (part.name.clone(), part.near.constraint(cluster));
        let above = part.group.as_ref().map(|group| {
            let mut groups = spec.groups.iter();
            groups.position(|other| other.name == *group).expect("a group listed before")
        });
        if section[0] == "--group" {
            let children_min = part.pods_min;
            spec.groups.push(GroupSpec { name, parent: above, children_min, topology });
        } else {
            let task_priority = part.task_priority;
            let set = PodSetSpec { name, group: above, task_priority, ..part.pod_set() };
            spec.pod_sets.push(PodSetSpec { topology, ..set });
        }
    }
    (submit, spec)
}

impl Near {
    fn constraint(&self, cluster: &Cluster) -> Option<TopologyConstraint> {
        let Self { topology, required, preferred } = self;
        let topology = match topology {
            Some(name) => cluster.topology_named(name).expect("a topology of this name"),
            None if required.is_none() && preferred.is_none() => return None,
            None => cluster.topology_named("net").expect("a topology"),
        };
        let level = |label: &String| cluster.topology(topology).level(label).expect("a level");
        let (required, preferred) = (required.as_ref().map(level), preferred.as_ref().map(level));
        Some(TopologyConstraint { topology, required, preferred })
    }
}

/// The words of a workload, those of each `--group NAME` and those of each `--set NAME`.
fn sections<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut sections = vec![Vec::new()];
    for &word in words {
        if matches!(word, "--set" | "--group") {
            sections.push(Vec::new());
        }
        sections.last_mut().expect("one at least").push(word);
    }
    sections
}

impl Submit {
    /// Its pods.
    pub(crate) fn pod_set(&self) -> PodSetSpec {
        let request = model::PodRequest {
            gpu: self.gpu,
            cpu_millis: self.cpu_millis,
            memory_bytes: self.memory_bytes,
        };
        PodSetSpec {
            pods: self.pods,
            pods_min: self.pods_min.unwrap_or(self.pods),
            constraints: self.constraints.clone(),
            ..request.into()
        }
    }

    /// Specification of the workload that the command submits.
    pub(crate) fn spec(&self, queue: QueueId, seq: u64, now: Instant) -> WorkloadSpec {
        WorkloadSpec {
            priority: self.priority.unwrap_or(if self.interactive { 100 } else { 50 }),
            spare_priority: self.spare_priority,
            preemptible: !self.interactive,
            elastic: self.elastic,
            preemption_delay_ms: self.preemption_delay_ms,
            time_limit_ms: self.time_limit_ms,
            created_at: now,
            ..WorkloadSpec::new(&self.name, queue, seq, self.pod_set())
        }
    }
}

/// Reads
/// `project/name [-g N] [--devices N] [--mem SIZE] [--cpu N] [--memory SIZE] [--interactive]`
/// `[--gated] [--elastic] [--priority N] [--spare-priority N] [--pods N] [--min N]`
/// `[--on LABEL=VALUE] [--pools POOL,…] [--prefer LABEL=VALUE] [--tolerate TAINT] [--delay MS]`
/// `[--required LEVEL] [--preferred LEVEL] [--topology NAME] [--limit MS] [--mig PROFILE*N,…]`
/// `[--label LABEL=VALUE] [--with LABEL=VALUE@KEY] [--apart LABEL=VALUE@KEY] [--rather-with …]`
/// `[--rather-apart …]`;
/// one GPU by default. The pods of a workload may instead be in sections: `--set NAME` with the
/// same flags, `[--in GROUP]` and `[--task-priority N]`; `--group NAME` with `[--in GROUP]`,
/// `[--min N]` and the last three. `--min` before them is the workload's own.
fn submit(words: &[&str]) -> Submit {
    let (_, name) = words[0].split_once('/').expect("project/name");
    let mut result = Submit {
        name: name.into(),
        gpu: model::GpuRequest::Whole(1),
        cpu_millis: 0,
        memory_bytes: 0,
        interactive: false,
        gated: false,
        elastic: false,
        priority: None,
        spare_priority: None,
        pods: 1,
        pods_min: None,
        constraints: Constraints::default(),
        preemption_delay_ms: 0,
        time_limit_ms: None,
        near: Near::default(),
        group: None,
        task_priority: 0,
    };
    let (mut devices, mut millis, mut memory, mut mig) = (1, 1000, None, None);
    let mut rest = words[1..].iter();
    while let Some(&word) = rest.next() {
        let mut value = || *rest.next().expect("a value after the flag");
        match word {
            "-g" => millis = parse_gpu_millis(value()).expect("a GPU count"),
            "--devices" => devices = value().parse().expect("a count"),
            "--mig" => mig = Some(instances(value())),
            "--mem" => memory = Some(parse_bytes(value()).expect("a size")),
            "--cpu" => result.cpu_millis = parse_cpu_millis(value()).expect("a CPU count"),
            "--memory" => result.memory_bytes = parse_bytes(value()).expect("a size"),
            "--interactive" => result.interactive = true,
            "--gated" => result.gated = true,
            "--elastic" => result.elastic = true,
            "--priority" => result.priority = Some(value().parse().expect("a priority")),
            "--spare-priority" => {
                result.spare_priority = Some(value().parse().expect("a priority"));
            }
            "--pods" => result.pods = value().parse().expect("a count"),
            "--min" => result.pods_min = Some(value().parse().expect("a count")),
            "--limit" => result.time_limit_ms = Some(value().parse().expect("milliseconds")),
            "--delay" => result.preemption_delay_ms = value().parse().expect("milliseconds"),
            "--topology" => result.near.topology = Some(value().to_owned()),
            "--required" => result.near.required = Some(value().to_owned()),
            "--preferred" => result.near.preferred = Some(value().to_owned()),
            "--in" => result.group = Some(value().to_owned()),
            "--task-priority" => result.task_priority = value().parse().expect("a priority"),
            other => constrain(&mut result.constraints, other, value()),
        }
    }
    result.gpu = match memory {
        _ if mig.is_some() => {
            let each = mig.into_iter().flatten().map(|profile| (profile, 1));
            model::GpuRequest::Mig(model::MigRequest::new(each).expect("a sound request"))
        }
        Some(bytes) => model::GpuRequest::Memory { devices, bytes },
        None if millis % 1000 == 0 => {
            model::GpuRequest::Whole(u32::try_from(millis / 1000).expect("a small count"))
        }
        None => model::GpuRequest::Share { devices, millis },
    };
    result
}

/// Applies a flag that limits the nodes of pods.
fn constrain(constraints: &mut Constraints, flag: &str, value: &str) {
    match flag {
        "--on" => constraints.selector.extend([pair(value)]),
        "--label" => constraints.labels.extend([pair(value)]),
        "--with" => constraints.pod_affinity.push(pod_term(value)),
        "--apart" => constraints.pod_anti_affinity.push(pod_term(value)),
        "--rather-with" => constraints.pod_preferences.push(pod_preference(value, 10)),
        "--rather-apart" => constraints.pod_preferences.push(pod_preference(value, -10)),
        "--pools" => constraints.pools = value.split(',').map(str::to_owned).collect(),
        "--prefer" => constraints.preferred.push(preference(value)),
        "--tolerate" => constraints.tolerations.push(toleration(value)),
        other => panic!("unknown flag {other}"),
    }
}

/// `label=value@topology-key`; the key is `hostname` if not said.
fn pod_term(text: &str) -> PodTerm {
    let (labels, key) = text.split_once('@').unwrap_or((text, "hostname"));
    PodTerm { labels: [pair(labels)].into(), topology_key: key.to_owned() }
}

fn pod_preference(text: &str, weight: i64) -> PodPreference {
    PodPreference { weight, term: pod_term(text) }
}

/// `1g.10gb*4,3g.40gb`.
fn instances(text: &str) -> Vec<model::MigProfile> {
    let each = text.split(',').flat_map(|part| {
        let (profile, count) = part.split_once('*').unwrap_or((part, "1"));
        let profile = profile.parse().expect("a MIG profile");
        vec![profile; count.parse().expect("a count")]
    });
    each.collect()
}

/// The GPUs of a node, and what each is divided into: `2+1g.10gb*7+/4,2*2`.
pub(crate) fn divided(text: &str) -> Vec<Divided> {
    let each = text.split('+').flat_map(|part| match (part.parse(), part.strip_prefix('/')) {
        (Ok(whole), _) => vec![Divided::default(); whole],
        (_, Some(parts)) => vec![Divided { parts: eighths(parts), mig: Vec::new() }],
        (_, None) => vec![Divided { mig: instances(part), parts: Vec::new() }],
    });
    each.collect()
}

/// Instances that a GPU is divided into; empty for a whole GPU.
#[derive(Clone, Default)]
pub(crate) struct Divided {
    pub(crate) mig: Vec<model::MigProfile>,
    /// Bytes of each instance that is given out for parts of the GPU.
    pub(crate) parts: Vec<u64>,
}

/// `4,2*2`: a half and two quarters of the memory, each with a little less than that.
fn eighths(text: &str) -> Vec<u64> {
    let each = text.split(',').flat_map(|part| {
        let (eighths, count) = part.split_once('*').unwrap_or((part, "1"));
        let eighths: u64 = eighths.parse().expect("eighths of the memory");
        let bytes = eighths * (2 << 30) - (64 << 20);
        vec![bytes; count.parse().expect("a count")]
    });
    each.collect()
}

/// `label=value`.
pub(crate) fn pair(text: &str) -> (String, String) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    (key.to_owned(), value.to_owned())
}

fn preference(text: &str) -> Preference {
    let (key, value) = pair(text);
    Preference { weight: 10, term: vec![Requirement { key, operator: Operator::In(vec![value]) }] }
}

fn toleration(key: &str) -> Toleration {
    Toleration { key: Some(key.to_owned()), value: None, effect: None }
}
