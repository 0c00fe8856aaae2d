//! Published packing algorithms as baselines: FGD (Weng et al., USENIX ATC 2023) and best fit.
//! Owns: both scores. FGD knows all pods of the list beforehand, as published. Its score is rounded
//! to whole points of 100 and ties go to the first node: so its allocation is within 0.3 points of
//! the published one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sim::trace::{Replay, TraceNode, TracePod, arrivals};
use units::GPU_MILLIS;

/// A published algorithm that chooses a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Chooses the node whose fragmentation for the typical pods grows least.
    Fgd,
    /// Chooses the node with the least left.
    BestFit,
}

/// The typical shapes are the most common ones, up to this percentage of all pods.
const TYPICAL_PERCENT: usize = 95;
/// Divisors that normalize resources in best fit: the maximum of a node.
const CPU_MILLIS_MAX: f64 = 128_000.0;
const GPUS_MAX: f64 = 8.0;

/// Devices, GPU thousandths of each, CPU thousandths and GPU models of a pod; memory is in no
/// score.
type Shape<'a> = (u32, u64, u64, &'a [String]);

struct State<'a> {
    node: &'a TraceNode,
    cpu_millis: u64,
    memory_bytes: u64,
    gpus_millis: Vec<u64>,
    revision: u64,
}

/// Revision of a node, and its score for a shape at that revision, less is better, `None` if the
/// pod does not fit; `None` before the first computation.
type Scored = Option<(u64, Option<f64>)>;

impl Published {
    /// Replays a trace with one seed, without moves, until the requests equal the capacity.
    #[must_use]
    pub fn replay(self, nodes: &[TraceNode], pods: &[TracePod], seed: u64) -> Replay {
        let mut states: Vec<_> = nodes.iter().map(State::new).collect();
        let capacity_millis = nodes.iter().map(|node| node.gpus as u64 * GPU_MILLIS).sum::<u64>();
        let typical = typical(pods);
        let mut scores: BTreeMap<(Shape<'_>, u64), Vec<Scored>> = BTreeMap::new();
        let (mut asked, mut held) = (0_u64, 0_u64);
        let mut replay = Replay { capacity_millis, ..Replay::default() };
        for pod in arrivals(pods, seed, capacity_millis) {
            let known = scores.entry((shape(pod), pod.request.memory_bytes)).or_default();
            known.resize(states.len(), None);
            let mut best: Option<(f64, usize)> = None;
            for (at, (state, known)) in states.iter().zip(known).enumerate() {
                let score = match *known {
                    Some((revision, score)) if revision == state.revision => score,
                    _ => state.fits(pod).then(|| self.score(state, pod, &typical).0),
                };
                *known = Some((state.revision, score));
                if let Some(score) = score.filter(|&score| best.is_none_or(|best| score < best.0)) {
                    best = Some((score, at));
                }
            }
            replay.arrived += 1;
            asked += pod.gpu_millis();
            match best {
                Some((_, at)) => {
                    let gpus = self.score(&states[at], pod, &typical).1;
                    states[at].take(pod, &gpus);
                    held += pod.gpu_millis();
                }
                None => replay.refused += 1,
            }
            let percent = usize::try_from(asked * 100 / capacity_millis).unwrap_or(100).min(100);
            replay.allocated_millis.resize(percent, held);
        }
        replay
    }

    /// The score of a node, less is better, and the devices that the pod would get.
    fn score(
        self,
        state: &State<'_>,
        pod: &TracePod,
        typical: &[(Shape<'_>, f64)],
    ) -> (f64, Vec<usize>) {
        match self {
            Self::BestFit => {
                let cpu = (state.cpu_millis - pod.request.cpu_millis) as f64 / CPU_MILLIS_MAX;
                let left = state.gpus_millis.iter().sum::<u64>() - pod.gpu_millis();
                let gpu = left as f64 / (GPUS_MAX * GPU_MILLIS as f64);
                (cpu + gpu, state.fullest(pod))
            }
            Self::Fgd => {
                let before = state.fragments(&state.gpus_millis, state.cpu_millis, typical);
                let grows = |gpus: &Vec<usize>| {
                    let mut after = state.gpus_millis.clone();
                    gpus.iter().for_each(|&gpu| after[gpu] -= pod.request_millis());
                    let cpu_millis = state.cpu_millis - pod.request.cpu_millis;
                    state.fragments(&after, cpu_millis, typical) - before
                };
                let choices = state.choices(pod).into_iter().map(|gpus| (grows(&gpus), gpus));
                let best = choices.min_by(|left, right| left.0.total_cmp(&right.0));
                let (grows, gpus) = best.unwrap_or_default();
                let points = 100.0 / (1.0 + (grows / GPU_MILLIS as f64).exp());
                (-points.floor(), gpus)
            }
        }
    }
}

impl<'a> State<'a> {
    fn new(node: &'a TraceNode) -> Self {
        let TraceNode { cpu_millis, memory_bytes, gpus, .. } = *node;
        Self { node, cpu_millis, memory_bytes, gpus_millis: vec![GPU_MILLIS; gpus], revision: 0 }
    }

    fn fits(&self, pod: &TracePod) -> bool {
        let (devices, ..) = shape(pod);
        let fitting = self.gpus_millis.iter().filter(|&&free| free >= pod.request_millis());
        allows(&pod.models, &self.node.model)
            && self.cpu_millis >= pod.request.cpu_millis
            && self.memory_bytes >= pod.request.memory_bytes
            && (devices == 0 || fitting.count() >= devices as usize)
    }

    /// The fullest devices on which the pod fits.
    fn fullest(&self, pod: &TracePod) -> Vec<usize> {
        let fits = |at: &usize| self.gpus_millis[*at] >= pod.request_millis();
        let mut fitting: Vec<_> = (0..self.gpus_millis.len()).filter(fits).collect();
        fitting.sort_by_key(|&at| self.gpus_millis[at]);
        fitting.truncate(shape(pod).0 as usize);
        fitting
    }

    /// The sets of devices that a pod could get. A fraction may be of any device.
    fn choices(&self, pod: &TracePod) -> Vec<Vec<usize>> {
        match shape(pod) {
            (1, millis, ..) if millis < GPU_MILLIS => {
                let fits = |at: &usize| self.gpus_millis[*at] >= millis;
                (0..self.gpus_millis.len()).filter(fits).map(|at| vec![at]).collect()
            }
            _ => vec![self.fullest(pod)],
        }
    }

    /// GPU thousandths that typical pods could not use, weighted by the frequency of the pods.
    fn fragments(&self, gpus: &[u64], cpu_millis: u64, typical: &[(Shape<'_>, f64)]) -> f64 {
        let all = gpus.iter().sum::<u64>();
        let lost = |&((devices, millis, cpu, models), weight): &(Shape<'_>, f64)| {
            let fitting = gpus.iter().filter(|&&free| free >= millis).count();
            let runs = allows(models, &self.node.model)
                && cpu_millis >= cpu
                && fitting >= devices as usize;
            let small = || gpus.iter().filter(|&&free| free < millis).sum();
            weight * if runs { small() } else { all } as f64
        };
        typical.iter().map(lost).sum()
    }

    fn take(&mut self, pod: &TracePod, gpus: &[usize]) {
        gpus.iter().for_each(|&gpu| self.gpus_millis[gpu] -= pod.request_millis());
        self.cpu_millis -= pod.request.cpu_millis;
        self.memory_bytes -= pod.request.memory_bytes;
        self.revision += 1;
    }
}

fn shape(pod: &TracePod) -> Shape<'_> {
    (pod.request.gpu.devices(), pod.request_millis(), pod.request.cpu_millis, &pod.models)
}

fn allows(models: &[String], model: &str) -> bool {
    models.is_empty() || models.iter().any(|allowed| allowed == model)
}

/// The typical shapes, and the fraction of all pods that has each. Pods without GPUs are left out,
/// as they use no GPU.
fn typical(pods: &[TracePod]) -> Vec<(Shape<'_>, f64)> {
    let mut counts: BTreeMap<Shape<'_>, usize> = BTreeMap::new();
    for pod in pods {
        *counts.entry(shape(pod)).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| Reverse(count));
    let mut seen = 0;
    counts.retain(|&(_, count)| {
        let is_typical = seen * 100 < pods.len() * TYPICAL_PERCENT;
        seen += count;
        is_typical
    });
    let all = (pods.len() * TYPICAL_PERCENT) as f64 / 100.0;
    let with_gpus = counts.into_iter().filter(|&((devices, ..), _)| devices > 0);
    with_gpus.map(|(shape, count)| (shape, count as f64 / all)).collect()
}
