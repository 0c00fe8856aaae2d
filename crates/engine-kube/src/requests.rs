//! The requests of a pod, as the kubelet counts them.

use std::collections::BTreeMap;

use kube_api::types::{Container, PodSpec};

use crate::quantity::{thousandths, whole};

/// Resource of NVIDIA's device plugin.
pub(crate) const GPU: &str = "nvidia.com/gpu";
const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const ALWAYS: &str = "Always";

/// Requests of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) gpus: u64,
}

impl Requests {
    fn plus(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            gpus: self.gpus.saturating_add(other.gpus),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis.max(other.cpu_millis),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            gpus: self.gpus.max(other.gpus),
        }
    }

    fn of(quantities: &BTreeMap<String, String>) -> Self {
        let get = |name: &str| quantities.get(name).map(String::as_str);
        Self {
            cpu_millis: get(CPU).and_then(thousandths).unwrap_or_default(),
            memory_bytes: get(MEMORY).and_then(whole).unwrap_or_default(),
            gpus: get(GPU).and_then(whole).unwrap_or_default(),
        }
    }
}

/// All requests of a pod: its containers and sidecars together, or the largest moment of its init
/// containers if that is more; and its overhead. Requests of the pod as a whole replace them.
pub(crate) fn requests_of(spec: &PodSpec) -> Requests {
    let of = |container: &Container| Requests::of(&container.resources.requests);
    let (mut sidecars, mut starts) = (Requests::default(), Requests::default());
    for container in &spec.init_containers {
        let now = of(container);
        if container.restart_policy == ALWAYS {
            sidecars = sidecars.plus(now);
            starts = starts.max(sidecars);
        } else {
            starts = starts.max(sidecars.plus(now));
        }
    }
    let runs = spec.containers.iter().map(of).fold(sidecars, Requests::plus);
    let mut all = runs.max(starts);
    let whole = Requests::of(&spec.resources.requests);
    if spec.resources.requests.contains_key(CPU) {
        all.cpu_millis = whole.cpu_millis;
    }
    if spec.resources.requests.contains_key(MEMORY) {
        all.memory_bytes = whole.memory_bytes;
    }
    all.plus(Requests::of(&spec.overhead))
}

/// The first request of a pod for a resource that is not counted: its path.
pub(crate) fn uncounted(spec: &PodSpec) -> Option<String> {
    let lists = [("containers", &spec.containers), ("initContainers", &spec.init_containers)];
    let of_containers = lists.into_iter().flat_map(|(list, containers)| {
        containers.iter().enumerate().flat_map(move |(at, container)| {
            let requests = container.resources.requests.keys();
            requests.map(move |name| (format!("spec.{list}[{at}].resources.requests"), name))
        })
    });
    let of_pod = spec.resources.requests.keys();
    let of_pod = of_pod.map(|name| ("spec.resources.requests".to_owned(), name));
    let mut all = of_containers.chain(of_pod);
    let (path, name) = all.find(|(_, name)| ![CPU, MEMORY, GPU].contains(&name.as_str()))?;
    Some(format!("{path}[{name}]"))
}
