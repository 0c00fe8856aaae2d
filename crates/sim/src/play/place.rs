//! Initial places of pods. Owns: the check that there is room for them, and the errors that name
//! the pods in the way.

use std::collections::BTreeMap;

use model::{
    Cluster, DeviceShare, Gpu, GpuRequest, MigRequest, Node, NodeId, Placement, PodBinding, PodId,
    WorkloadId,
};
use units::{Resources, format_millis};
use uuid::Uuid;

use records::{PlacementBody, PodRow};

use super::START;
use super::start::{Begun, Start, ago};
use crate::Error;
use crate::scenario::{At, Place, Task, TaskState, Workload};
use crate::suggest::hint;

/// A copy of the cluster in which all pods are placed, to check that there is room.
struct Room {
    cluster: Cluster,
    nodes: BTreeMap<String, NodeId>,
}

/// The rows of the pods of a scenario in their initial places; `None` if all of them wait.
///
/// # Errors
/// A place that does not exist, or is taken, with its position.
pub(super) fn places(
    start: &Start<'_>,
    cluster: &Cluster,
    models: &BTreeMap<Uuid, WorkloadId>,
) -> Result<Option<Vec<PodRow>>, Error> {
    if start.workloads.iter().all(|begun| begun.wire.tasks.is_empty()) {
        return Ok(None);
    }
    let nodes = cluster.nodes().iter().map(|(id, node)| (node.name.clone(), id)).collect();
    let mut room = Room { cluster: cluster.clone(), nodes };
    let mut rows = start.pods();
    let mut rest = rows.as_mut_slice();
    for begun in &start.workloads {
        let count = rest.iter().take_while(|row| row.workload_id == begun.id).count();
        let (own, others) = rest.split_at_mut(count);
        rest = others;
        room.put_tasks(begun, models.get(&begun.id).copied(), own)?;
    }
    Ok(Some(rows))
}

impl Room {
    /// Places the pods of a workload as its tasks say.
    fn put_tasks(
        &mut self,
        begun: &Begun<'_>,
        model: Option<WorkloadId>,
        rows: &mut [PodRow],
    ) -> Result<(), Error> {
        let wire = begun.wire;
        let pods = model.map(|id| self.cluster.workloads()[id].pods.clone()).unwrap_or_default();
        for (number, task) in wire.tasks.iter().enumerate() {
            let (name, Some(row)) = (&wire.name, rows.get_mut(number)) else { continue };
            let fault = |fault| task.fault(format!("task {number} of `{name}`: {fault}"));
            let Some(&pod) = pods.get(number) else {
                return Err(fault("it has no such pod".to_owned()));
            };
            let is_wanted = begin(wire, task, row);
            self.put(pod, task, is_wanted).map_err(fault)?;
            let PodBinding { current, releasing, next } = &self.cluster.pods()[pod].binding;
            row.body.releasing = *releasing;
            row.body.next = next.as_ref().map(|place| self.body(place));
            row.body.current = current.as_ref().map(|place| self.body(place));
            if current.is_some() {
                row.generation += 1;
                row.body.started_at_ms = row.body.placed_at_ms.or(Some(START.0));
            }
        }
        Ok(())
    }

    fn body(&self, place: &Placement) -> PlacementBody {
        PlacementBody {
            node: self.cluster.nodes()[place.node].name.clone(),
            devices: place.devices.iter().map(|share| (share.gpu, share.millis)).collect(),
            instances: Vec::new(),
        }
    }

    fn put(&mut self, pod: PodId, task: &Task, is_wanted: bool) -> Result<(), String> {
        let holds = matches!(task.state, TaskState::Running | TaskState::Releasing);
        let current = match (&task.node, holds) {
            (Some(node), true) => Some(self.placement(pod, node, &task.gpus, true)?),
            (None, true) => return Err("is on a node; say which with `node`".into()),
            (Some(_), false) => {
                return Err("has a `node` and does not run; a reserved place is `next`".into());
            }
            (None, false) => None,
        };
        let releasing = task.state == TaskState::Releasing;
        if let Some(place) = &current {
            self.check_room(pod, place, !releasing)?;
            let binding = PodBinding { current: current.clone(), releasing, next: None };
            self.cluster.set_binding(pod, binding);
        }
        if let Some(Place { node, gpus }) = &task.next {
            if task.state == TaskState::Running || !is_wanted {
                return Err("has a `next` place and is neither pending nor releasing".into());
            }
            let next = self.placement(pod, node, gpus, false)?;
            self.check_future_room(pod, &next)?;
            let binding = PodBinding { current, releasing, next: Some(next) };
            self.cluster.set_binding(pod, binding);
        }
        Ok(())
    }

    /// The place on a node with these devices, or with the first that have room if none are named.
    fn placement(
        &self,
        pod: PodId,
        name: &str,
        gpus: &[u32],
        now: bool,
    ) -> Result<Placement, String> {
        let node = self.nodes.get(name).copied().ok_or_else(|| {
            let near = hint(name, self.nodes.keys().map(String::as_str));
            format!("there is no node `{name}`{near}")
        })?;
        let row = &self.cluster.nodes()[node];
        let spec = &self.cluster.workload_of(pod).spec;
        let request = spec.pod_sets[self.cluster.pods()[pod].set as usize].request;
        let wanted = request.gpu.devices() as usize;
        let share = |gpu: u32| -> Result<DeviceShare, String> {
            let has = row.gpus.len();
            let device = row.gpus.get(gpu as usize).ok_or_else(|| {
                format!("node `{name}` has no GPU {gpu}; it has {has}, counted from 0")
            })?;
            let millis = request.gpu.needs_of_sound(device).ok_or_else(|| {
                match (device.profile(), request.gpu) {
                    (Some(profile), _) => {
                        format!("GPU {gpu} of node `{name}` is a MIG instance, {profile}")
                    }
                    (None, GpuRequest::Mig(wanted)) => {
                        format!("GPU {gpu} of node `{name}` is whole; it asks for {wanted}")
                    }
                    _ => format!("GPU {gpu} of node `{name}` has less memory than it asks for"),
                }
            })?;
            Ok(DeviceShare { gpu, millis })
        };
        if gpus.is_empty() {
            let parts = request.gpu.parts();
            let devices: Vec<_> = parts.flat_map(|part| first_fitting(row, part, now)).collect();
            return match devices.len() {
                found if found == wanted => {
                    Ok(Placement { node, devices: devices.into_iter().collect() })
                }
                found => Err(format!("asks for {wanted} GPUs; node `{name}` has {found} for it")),
            };
        }
        let elastic = spec.elastic && matches!(request.gpu, GpuRequest::Whole(_));
        if gpus.len() != wanted && !elastic {
            return Err(format!("asks for {wanted} GPUs and is given {}", gpus.len()));
        }
        if let Some(twice) = gpus.iter().enumerate().find(|(at, gpu)| gpus[..*at].contains(gpu)) {
            return Err(format!("is given GPU {} twice", twice.1));
        }
        let devices = gpus.iter().map(|&gpu| share(gpu)).collect::<Result<_, String>>()?;
        if let GpuRequest::Mig(wanted) = request.gpu {
            let has = gpus.iter().filter_map(|&gpu| Some((row.gpus[gpu as usize].profile()?, 1)));
            if MigRequest::new(has) != Ok(wanted) {
                return Err(format!("asks for {wanted} and is given others"));
            }
        }
        Ok(Placement { node, devices })
    }

    fn check_room(&self, pod: PodId, place: &Placement, stays: bool) -> Result<(), String> {
        let node = &self.cluster.nodes()[place.node];
        let amounts = self.cluster.amounts(pod, place);
        let unused = |gpu: &Gpu| gpu.capacity_millis().saturating_sub(gpu.used_millis);
        self.check_devices(place.node, place, unused)?;
        if !node.has_room_now(&place.devices, amounts) || !node.takes_one_more(true) {
            return Err(no_room(node));
        }
        if stays { self.check_future_room(pod, place) } else { Ok(()) }
    }

    /// Checks that there is room once all pods that are being stopped have terminated.
    fn check_future_room(&self, pod: PodId, place: &Placement) -> Result<(), String> {
        let node = &self.cluster.nodes()[place.node];
        self.check_devices(place.node, place, |gpu| gpu.unused_millis(false))?;
        let host = Resources { gpu_millis: 0, ..self.cluster.amounts(pod, place) };
        let fits = host.fits_in(node.free(false)) && node.takes_one_more(false);
        if fits { Ok(()) } else { Err(no_room(node)) }
    }

    fn check_devices(
        &self,
        at: NodeId,
        place: &Placement,
        free: impl Fn(&Gpu) -> u64,
    ) -> Result<(), String> {
        let node = &self.cluster.nodes()[at];
        let wanted = |share: &&DeviceShare| free(&node.gpus[share.gpu as usize]) < share.millis;
        let Some(short) = place.devices.iter().find(wanted) else { return Ok(()) };
        let has = |place: &Placement| {
            place.node == at && place.devices.iter().any(|share| share.gpu == short.gpu)
        };
        let holders = node.pods.iter().filter(|&&pod| {
            let binding = &self.cluster.pods()[pod].binding;
            binding.current.iter().chain(&binding.next).any(has)
        });
        let holders: Vec<_> =
            holders.map(|&pod| self.cluster.workload_of(pod).spec.name.as_str()).collect();
        Err(format!(
            "GPU {} of node `{}` is given out twice: {} is asked for, {} is free beside {}",
            short.gpu,
            node.name,
            format_millis(short.millis),
            format_millis(free(&node.gpus[short.gpu as usize])),
            holders.join(", ")
        ))
    }
}

/// Writes the state of a task into the row of its pod; returns `true` if the pod is to run, or to
/// run again.
fn begin(wire: &At<Workload>, task: &Task, row: &mut PodRow) -> bool {
    let holds = matches!(task.state, TaskState::Running | TaskState::Releasing);
    let ended = match task.state {
        TaskState::Succeeded => Some("succeeded"),
        TaskState::Ended => Some("failed"),
        _ if task.unwanted && !holds => Some("failed"),
        _ => None,
    };
    row.body.ended = ended.map(ToOwned::to_owned);
    row.body.left = task.unwanted && holds;
    if holds {
        row.body.placed_at_ms = wire.started.map(|span| ago(span).0);
        row.body.held_since_ms = row.body.placed_at_ms;
        row.body.resized_at_ms = wire.resized.map(|span| ago(span).0);
    }
    ended.is_none() && !row.body.left && !wire.suspended
}

fn no_room(node: &Node) -> String {
    format!("node `{}` has not that much CPU, memory or room for pods left", node.name)
}

/// The first devices with room for one part of a request, and then others if these are too few, on
/// which placing fails later.
fn first_fitting(node: &Node, part: GpuRequest, now: bool) -> Vec<DeviceShare> {
    let free = |share: &DeviceShare| node.gpus[share.gpu as usize].free_millis(now) >= share.millis;
    let share =
        |(gpu, device): (u32, &Gpu)| Some(DeviceShare { gpu, millis: part.needs_of(device)? });
    let all = (0..).zip(&node.gpus).filter_map(share);
    let (fits, others): (Vec<_>, Vec<_>) = all.partition(free);
    fits.into_iter().chain(others).take(part.devices() as usize).collect()
}
