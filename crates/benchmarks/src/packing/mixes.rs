//! Mixes of pods that packing is measured on: the published lists, and samples of them. Owns: the
//! sampling of a mix.

use sim::rng::Rng;
use sim::trace::{TraceNode, TracePod};

/// A list of the trace, and the changes to it.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    /// The list: `pods-NAME.csv`.
    pub list: &'static str,
    /// Percentage of the pods with GPUs that are restricted to GPU models on which they fit.
    pub bound_percent: u64,
    /// Pods of which the mix has fewer, and the percentage of them that is left out.
    pub without: Option<(Few, u64)>,
}

/// Pods of which a mix has fewer than its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Few {
    /// Pods of one GPU or a part of it, so that pods of several GPUs are more frequent.
    SingleGpu,
    /// Pods of whole GPUs, so that GPU fractions are more frequent.
    WholeGpu,
}

impl Mix {
    /// A published list without changes.
    #[must_use]
    pub const fn published(list: &'static str) -> Self {
        Self { list, bound_percent: 0, without: None }
    }

    /// Name for output.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = self.list.to_owned();
        match self.without {
            Some((Few::SingleGpu, percent)) => name += &format!(", {percent} % of single out"),
            Some((Few::WholeGpu, percent)) => name += &format!(", {percent} % of whole out"),
            None => {}
        }
        if self.bound_percent > 0 {
            name += &format!(", {} % bound", self.bound_percent);
        }
        name
    }

    /// Draws the mix from its list.
    #[must_use]
    pub fn draw(&self, nodes: &[TraceNode], pods: &[TracePod], seed: u64) -> Vec<TracePod> {
        let mut rng = Rng::new(seed);
        let mut pods = pods.to_vec();
        if let Some((few, percent)) = self.without {
            pods.retain(|pod| !few.is(pod) || rng.below(100) as u64 >= percent);
        }
        for pod in &mut pods {
            if pod.gpu_millis() > 0 && (rng.below(100) as u64) < self.bound_percent {
                bind(nodes, pod, &mut rng);
            }
        }
        pods
    }
}

impl Few {
    fn is(self, pod: &TracePod) -> bool {
        let devices = pod.request.gpu.devices();
        match self {
            Self::SingleGpu => devices == 1,
            Self::WholeGpu => devices > 0 && pod.request_millis() == units::GPU_MILLIS,
        }
    }
}

/// Restricts a pod to one GPU model on which it fits, chosen by the number of GPUs; three in ten
/// pods to two or three choices.
fn bind(nodes: &[TraceNode], pod: &mut TracePod, rng: &mut Rng) {
    let could = |node: &&TraceNode| {
        node.gpus >= pod.request.gpu.devices() as usize
            && node.cpu_millis >= pod.request.cpu_millis
            && node.memory_bytes >= pod.request.memory_bytes
    };
    // One entry for each GPU.
    let gpus = nodes.iter().filter(could);
    let gpus: Vec<_> = gpus.flat_map(|node| std::iter::repeat_n(&node.model, node.gpus)).collect();
    if gpus.is_empty() {
        return;
    }
    let count = [1, 1, 1, 1, 1, 1, 1, 2, 2, 3][rng.below(10)];
    let mut models: Vec<_> = (0..count).map(|_| gpus[rng.below(gpus.len())].clone()).collect();
    models.sort();
    models.dedup();
    pod.models = models;
}
