//! Replay of a trace of GPU requests: pods arrive one by one, are tried once, and never leave.
//! Owns: reading nodes and pods, the order of arrival, and the percentage of GPUs allocated at each
//! requested percentage. Set-up: the published evaluation of fragmentation-aware packing ("FGD",
//! USENIX ATC 2023) on the openb trace. Does not know about: files.

use std::collections::BTreeMap;

use model::{
    Cluster, Constraints, GpuRequest, NodeSpec, Operator, PodRequest, PodSetSpec, QueueSpec,
    Requirement, Share, WorkloadId, WorkloadSpec,
};
use sched::{Action, Memory, NodeScoring, Policy, Step};
use units::{GPU_MILLIS, Instant, Resources};

use crate::Error;
use crate::rng::Rng;

/// Percentage of the GPU capacity up to which pods are requested.
pub const ARRIVED_PERCENT_MAX: usize = 130;
/// Maximum number of lines of a file.
const LINES_MAX: usize = 1_000_000;
/// Maximum number of GPUs of a node.
const GPUS_MAX: u64 = 1024;
/// The node label that holds the GPU model.
const MODEL: &str = "gpu-model";

/// A node of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceNode {
    name: String,
    /// Thousandths of cores.
    pub cpu_millis: u64,
    /// Bytes of main memory.
    pub memory_bytes: u64,
    /// Number of GPUs.
    pub gpus: usize,
    /// Model of the GPUs.
    pub model: String,
}

/// A pod of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePod {
    /// Resource request.
    pub request: PodRequest,
    /// GPU models it may run on; empty for any.
    pub models: Vec<String>,
}

impl TracePod {
    /// Requested GPU thousandths, over all devices.
    #[must_use]
    pub fn gpu_millis(&self) -> u64 {
        self.request.resources(1).gpu_millis
    }

    /// Requested thousandths of each device.
    #[must_use]
    pub fn request_millis(&self) -> u64 {
        self.gpu_millis() / u64::from(self.request.gpu.devices().max(1))
    }
}

/// Result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Thousandths of all GPUs.
    pub capacity_millis: u64,
    /// Allocated thousandths when 1 %, 2 %, … of the capacity had been requested.
    pub allocated_millis: Vec<u64>,
    /// Number of pods that arrived.
    pub arrived: usize,
    /// Number of pods that found no place.
    pub refused: usize,
    /// Number of pods moved to make room for others.
    pub moved: usize,
}

/// Rows of a file by column name.
struct Rows<'a> {
    columns: BTreeMap<&'a str, usize>,
    text: &'a str,
}

impl<'a> Rows<'a> {
    fn read(text: &'a str, needed: &[&str]) -> Result<Self, Error> {
        let header = text.lines().next().unwrap_or_default();
        let columns: BTreeMap<_, _> = header.split(',').map(str::trim).zip(0..).collect();
        for name in needed {
            if !columns.contains_key(name) {
                return Err(wrong(1, format!("the column `{name}` is missing")));
            }
        }
        if text.lines().count() > LINES_MAX {
            return Err(wrong(LINES_MAX, format!("at most {LINES_MAX} lines are read")));
        }
        Ok(Self { columns, text })
    }

    fn iter(&self) -> impl Iterator<Item = Row<'a, '_>> {
        let lines =
            (1..).zip(self.text.lines()).skip(1).filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(number, line)| Row { number, cells: line.split(',').collect(), rows: self })
    }
}

struct Row<'a, 'b> {
    number: usize,
    cells: Vec<&'a str>,
    rows: &'b Rows<'a>,
}

impl<'a> Row<'a, '_> {
    fn text(&self, column: &str) -> &'a str {
        let at = self.rows.columns.get(column);
        at.and_then(|&at| self.cells.get(at)).map_or("", |cell| cell.trim())
    }

    fn count(&self, column: &str, max: u64) -> Result<u64, Error> {
        let text = self.text(column);
        let read = text.parse().ok().filter(|count| *count <= max);
        read.ok_or_else(|| {
            wrong(
                self.number,
                format!("`{column}` is `{text}`; a whole number up to {max} is allowed"),
            )
        })
    }
}

fn wrong(line: usize, message: String) -> Error {
    Error::Trace { line, message }
}

const CPU_MILLIS_MAX: u64 = 1 << 32;
const MEMORY_MIB_MAX: u64 = 1 << 32;

/// Reads `nodes.csv`: sn, cpu_milli, memory_mib, gpu, model.
///
/// # Errors
/// A column is missing or a value is wrong.
pub fn read_nodes(text: &str) -> Result<Vec<TraceNode>, Error> {
    let rows = Rows::read(text, &["sn", "cpu_milli", "memory_mib", "gpu", "model"])?;
    let node = |row: Row<'_, '_>| {
        Ok(TraceNode {
            name: row.text("sn").to_owned(),
            cpu_millis: row.count("cpu_milli", CPU_MILLIS_MAX)?,
            memory_bytes: row.count("memory_mib", MEMORY_MIB_MAX)? << 20,
            gpus: usize::try_from(row.count("gpu", GPUS_MAX)?).unwrap_or(0),
            model: row.text("model").to_owned(),
        })
    };
    rows.iter().map(node).collect()
}

/// Reads a list of pods: cpu_milli, memory_mib, num_gpu, gpu_milli, and gpu_spec if there is one.
///
/// # Errors
/// A column is missing or a value is wrong.
pub fn read_pods(text: &str) -> Result<Vec<TracePod>, Error> {
    let rows = Rows::read(text, &["cpu_milli", "memory_mib", "num_gpu", "gpu_milli"])?;
    let pod = |row: Row<'_, '_>| {
        let devices = u32::try_from(row.count("num_gpu", GPUS_MAX)?).unwrap_or(0);
        let millis = row.count("gpu_milli", GPU_MILLIS)?;
        let gpu = match (devices, millis) {
            (0, _) => GpuRequest::Whole(0),
            (_, 0) => return Err(wrong(row.number, "`gpu_milli` is 0 with GPUs asked for".into())),
            (_, GPU_MILLIS) => GpuRequest::Whole(devices),
            _ => GpuRequest::Share { devices, millis },
        };
        let request = PodRequest {
            gpu,
            cpu_millis: row.count("cpu_milli", CPU_MILLIS_MAX)?,
            memory_bytes: row.count("memory_mib", MEMORY_MIB_MAX)? << 20,
        };
        let models = row.text("gpu_spec").split('|').filter(|model| !model.is_empty());
        Ok(TracePod { request, models: models.map(ToOwned::to_owned).collect() })
    };
    rows.iter().map(pod).collect()
}

/// The order of arrival: every pod once, shuffled, then pods drawn with replacement, until
/// `end_millis` GPU thousandths are requested.
#[must_use]
pub fn arrivals(pods: &[TracePod], seed: u64, end_millis: u64) -> Vec<&TracePod> {
    let mut rng = Rng::new(seed);
    let mut order: Vec<&TracePod> = pods.iter().collect();
    rng.shuffle(&mut order);
    let mut asked = 0_u64;
    let enough = order.iter().position(|pod| {
        asked += pod.gpu_millis();
        asked >= end_millis
    });
    if let Some(last) = enough {
        order.truncate(last + 1);
    }
    // Pods without GPUs would never reach `end_millis`.
    while asked < end_millis && asked > 0 {
        let pod = &pods[rng.below(pods.len())];
        asked += pod.gpu_millis();
        order.push(pod);
    }
    order
}

/// Replays a trace with one seed, without moves.
///
/// # Errors
/// There is nothing to replay, or the model refuses a row.
pub fn replay(
    nodes: &[TraceNode],
    pods: &[TracePod],
    seed: u64,
    policy: &Policy,
) -> Result<Replay, Error> {
    replay_until(nodes, pods, seed, policy, ARRIVED_PERCENT_MAX)
}

/// As [`replay`], until `percent_max` percent of the capacity are requested.
///
/// # Errors
/// As [`replay`].
pub fn replay_until(
    nodes: &[TraceNode],
    pods: &[TracePod],
    seed: u64,
    policy: &Policy,
    percent_max: usize,
) -> Result<Replay, Error> {
    run(nodes, pods, seed, policy, percent_max, false)
}

/// As [`replay_until`], and moves pods for one that does not fit, if it then fits and the moved
/// pods hold at most as many GPUs in total as it gets.
///
/// # Errors
/// As [`replay`].
pub fn replay_moving(
    nodes: &[TraceNode],
    pods: &[TracePod],
    seed: u64,
    policy: &Policy,
    percent_max: usize,
) -> Result<Replay, Error> {
    run(nodes, pods, seed, policy, percent_max, true)
}

fn run(
    nodes: &[TraceNode],
    pods: &[TracePod],
    seed: u64,
    policy: &Policy,
    percent_max: usize,
    moves: bool,
) -> Result<Replay, Error> {
    let mut cluster = Cluster::new();
    for node in nodes {
        // The memory of a GPU does not matter: no request is for memory.
        let memory = vec![16 << 30; node.gpus];
        let mut spec = NodeSpec::new(&node.name, memory, node.cpu_millis, node.memory_bytes);
        spec.labels.insert(MODEL.to_owned(), node.model.clone());
        cluster.add_node(spec);
    }
    let capacity_millis = cluster.capacity().gpu_millis;
    if capacity_millis == 0 || pods.is_empty() {
        return Err(wrong(1, "there are no GPUs, or no pods".into()));
    }
    let unlimited = Share::new(Resources::UNLIMITED, Resources::UNLIMITED);
    let queue = QueueSpec { name: "trace".into(), parent: None, share: unlimited, seq: 0 };
    let refused = |error: model::Error| wrong(0, error.to_string());
    let queue = cluster.add_queue(queue).map_err(refused)?;
    let end_millis = capacity_millis / 100 * percent_max as u64;
    let mut replay = Replay { capacity_millis, ..Replay::default() };
    let consolidation =
        Policy { actions: vec![Action::Promote, Action::Consolidate], ..policy.clone() };
    let (mut asked, mut held) = (0_u128, 0_u64);
    let mut scoring = NodeScoring::default();
    for (seq, pod) in (0..).zip(arrivals(pods, seed, end_millis)) {
        let pod_set = PodSetSpec { constraints: constraints(pod), ..pod.request.into() };
        let spec = WorkloadSpec::new(String::new(), queue, seq, pod_set);
        let id = cluster.add_workload(spec).map_err(refused)?;
        cluster.set_wants(cluster.workloads()[id].pods[0], true);
        replay.arrived += 1;
        asked += u128::from(pod.gpu_millis());
        if sched::try_place(&mut cluster, &mut scoring, id, policy)
            || (moves && move_for(&mut cluster, id, &consolidation, &mut replay.moved))
        {
            held += pod.gpu_millis();
        } else {
            replay.refused += 1;
            cluster.remove_workload(id).map_err(refused)?;
        }
        let percent =
            usize::try_from(asked * 100 / u128::from(capacity_millis)).unwrap_or(usize::MAX);
        let percent = percent.min(percent_max);
        while replay.allocated_millis.len() < percent {
            replay.allocated_millis.push(held);
        }
    }
    cluster.verify().map_err(|fault| wrong(0, fault))?;
    Ok(replay)
}

/// Moves pods so that a workload fits, if the moved pods hold no more GPUs than it; stopped pods
/// terminate at once. `false` if it does not fit.
fn move_for(cluster: &mut Cluster, id: WorkloadId, policy: &Policy, moved: &mut usize) -> bool {
    let gain_millis = cluster.set_of(cluster.workloads()[id].pods[0]).demand.gpu_millis;
    let held = |cluster: &Cluster, pod| cluster.set_of(pod).demand.gpu_millis;
    loop {
        let plan = Memory::default().propose(cluster, Instant(1), policy);
        let moves = plan.steps.iter().filter_map(|step| match step {
            Step::Move { pod, .. } => Some(*pod),
            _ => None,
        });
        let moves: Vec<_> = moves.collect();
        if moves.iter().map(|&pod| held(cluster, pod)).sum::<u64>() > gain_millis {
            return false;
        }
        sched::carry(cluster, Instant(1), &plan);
        moves.iter().for_each(|&pod| cluster.vacate(pod));
        *moved += moves.len();
        if plan.steps.is_empty() {
            return cluster.workloads()[id].placed > 0;
        }
    }
}

fn constraints(pod: &TracePod) -> Constraints {
    let mut constraints = Constraints::default();
    if !pod.models.is_empty() {
        let operator = Operator::In(pod.models.clone());
        constraints.required.push(vec![Requirement { key: MODEL.to_owned(), operator }]);
    }
    constraints
}

#[cfg(test)]
mod tests {
    use model::Fill;
    use sched::Placement;

    use super::*;

    const NODES: &str =
        "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,T4\nn1,64000,262144,2,G2\n";
    const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n\
        p0,4000,1024,1,500,\np1,4000,1024,1,1000,T4\np2,4000,1024,2,1000,\np3,1000,1024,0,0,\n";

    #[test]
    fn what_is_given_out_follows_what_is_asked_for() {
        let (nodes, pods) = (read_nodes(NODES).unwrap(), read_pods(PODS).unwrap());
        let replay = |seed| replay(&nodes, &pods, seed, &Policy::default()).unwrap();
        let first = replay(1);
        assert_eq!(first.capacity_millis, 4000);
        assert_eq!(first.allocated_millis.len(), ARRIVED_PERCENT_MAX);
        assert!(first.allocated_millis.is_sorted());
        assert!(first.allocated_millis.iter().all(|&held| held <= 4000));
        assert_eq!(first, replay(1), "the same seed, the same replay");
        assert!((2..10).any(|seed| replay(seed).allocated_millis != first.allocated_millis));
    }

    #[test]
    fn a_pod_goes_only_to_the_models_it_names() {
        let nodes = read_nodes(NODES).unwrap();
        let pods = read_pods(
            "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n1,1,1,1000,T4\n1,1,1,1000,T4\n1,1,1,1000,T4\n",
        );
        let replay = replay(&nodes, &pods.unwrap(), 7, &Policy::default()).unwrap();
        assert_eq!(replay.allocated_millis.last(), Some(&2000));
    }

    #[test]
    fn pods_move_for_one_that_does_not_fit() {
        let nodes = "sn,cpu_milli,memory_mib,gpu,model\na,9000,9,2,T4\nb,9000,9,2,G2\n";
        let pods = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n\
            1,1,1,500,\n1,1,1,500,\n1,1,1,500,\n1,1,1,500,\n1,1,2,1000,\n";
        let (nodes, pods) = (read_nodes(nodes).unwrap(), read_pods(pods).unwrap());
        let policy = Policy { placement: Placement::all(Fill::Spread), ..Policy::default() };
        let held = |run: &Replay| run.allocated_millis[99];
        for seed in 0..20 {
            let stays = replay(&nodes, &pods, seed, &policy).unwrap();
            let moves = replay_moving(&nodes, &pods, seed, &policy, 100).unwrap();
            assert_eq!(held(&moves), 4000, "{seed}");
            assert_eq!(moves.moved > 0, held(&stays) < 4000, "{seed}");
        }
    }

    #[test]
    fn wrong_rows_name_their_line() {
        for (text, said) in [
            ("cpu_milli,memory_mib,num_gpu\n", "1: the column `gpu_milli` is missing"),
            ("cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,x,1\n", "2: `num_gpu` is `x`"),
            ("cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1\n-1,1,1,1\n", "3: `cpu_milli`"),
            ("cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,NaN\n", "2: `gpu_milli` is `NaN`"),
            ("cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,0\n", "2: `gpu_milli` is 0"),
            (
                "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,99999999999999999999,1\n",
                "2: `num_gpu`",
            ),
            ("cpu_milli,memory_mib,num_gpu,gpu_milli\n1\n", "2: `num_gpu` is ``"),
        ] {
            let fault = read_pods(text).unwrap_err().to_string();
            assert!(fault.contains(said), "{fault}");
        }
        assert!(replay(&[], &[], 1, &Policy::default()).is_err());
    }
}
