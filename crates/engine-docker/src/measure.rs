//! Resource usage of containers, from the daemon and the GPU driver. Owns: which processes on a
//! GPU belong to a container. Does not know what the measurements are for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerStatsResponse, ContainerSummary};
use bollard::query_parameters::StatsOptionsBuilder;
use engine::{
    Error, ForeignProcess, GpuHealth, GpuUse, Measured, Observation, RunEvent, RunKey, RunState,
    RunUse,
};
use engine_fractions::Over;
use futures_util::{StreamExt as _, stream};
use gpu::{Activity, Health};

use crate::shared::DockerEngineState;
use crate::{libpod, names};

/// Concurrent requests.
const CONCURRENT_MAX: usize = 8;
/// A container without an answer in this time is left out.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Page cache that can be dropped (cgroup version 1, and 2).
const CACHES: [&str; 2] = ["total_inactive_file", "inactive_file"];

/// Measures everything that runs now.
pub(crate) async fn measure(shared: &Arc<DockerEngineState>) -> Measured {
    let own = Arc::clone(shared);
    let sampled = tokio::task::spawn_blocking(move || (claims(&own), sample(&own))).await;
    // Without an answer nothing is known of what containers hold.
    let (claims, gpus) = match sampled {
        Ok((claims, Ok(gpus))) => (claims, gpus),
        Ok((_, Err(gpus))) => (BTreeMap::new(), gpus),
        Err(_) => (BTreeMap::new(), Vec::new()),
    };
    let runs = shared.runs.all();
    let running = runs.into_iter().filter(|run| matches!(run.state, RunState::Running { .. }));
    let runs: Vec<(String, RunUse)> = stream::iter(running)
        .map(|run| run_use(shared, run.key))
        .buffer_unordered(CONCURRENT_MAX)
        // Not an async closure: it makes incremental builds of rustc 1.95 crash.
        .filter_map(std::future::ready)
        .collect()
        .await;
    let part = |gpu: &(Activity, BTreeMap<u32, String>), id: &str| {
        let (gpu, homes) = gpu;
        let part = gpu.of(|pid| homes.get(&pid).is_some_and(|home| home == id))?;
        let (busy_millis, memory_bytes) = (part.busy_millis, part.memory_bytes);
        Some(GpuUse { uuid: gpu.uuid.clone(), busy_millis, memory_bytes })
    };
    let with_gpus = |(id, run): (String, RunUse)| {
        let mut used: Vec<GpuUse> = gpus.iter().filter_map(|gpu| part(gpu, &id)).collect();
        used.extend(shared.fractions.fractions.idle(run.key, &used));
        RunUse { gpus: used, ..run }
    };
    let whole = |(gpu, _): &(Activity, _)| GpuUse {
        uuid: gpu.uuid.clone(),
        busy_millis: gpu.busy_millis,
        memory_bytes: gpu.memory_bytes,
    };
    let runs: Vec<(String, RunUse)> =
        runs.into_iter().map(|(id, run)| (id.clone(), with_gpus((id, run)))).collect();
    let limited = runs.iter().filter_map(|(id, run)| {
        let before = claims.get(&run.key)?.clone();
        Some((run.key, id.clone(), run.gpus.clone(), before))
    });
    let limited: Vec<_> = limited.collect();
    let runs: Vec<RunUse> = runs.into_iter().map(|(_, run)| run).collect();
    if !limited.is_empty() {
        let (own, processes) = (Arc::clone(shared), by_container(&gpus));
        let reconciled = move || {
            for (key, id, gpus, before) in limited {
                for Over { mut seen, ends } in
                    own.fractions.fractions.reconcile(key, &before, &gpus)
                {
                    if ends {
                        let on = processes.get(&seen.gpu).and_then(|on| on.get(&id));
                        let pids = on.map_or(&[][..], Vec::as_slice);
                        let is_one = |pid| home(pid).as_ref() == Some(&id);
                        seen.ended = engine_fractions::end_newest(pids, is_one);
                    }
                    let event = RunEvent::GpuOver(seen);
                    own.runs.observations.report(Observation::new(key, event));
                }
            }
        };
        if let Err(fault) = tokio::task::spawn_blocking(reconciled).await {
            tracing::warn!("what containers hold of GPUs was not counted: {fault}");
        }
    }
    Measured { runs, gpus: gpus.iter().map(whole).collect() }
}

/// The processes on each GPU, by container.
fn by_container(
    gpus: &[(Activity, BTreeMap<u32, String>)],
) -> BTreeMap<String, BTreeMap<String, Vec<u32>>> {
    let on = |(gpu, homes): &(Activity, BTreeMap<u32, String>)| {
        let mut each = BTreeMap::<String, Vec<u32>>::new();
        for (&pid, home) in homes {
            each.entry(home.clone()).or_default().push(pid);
        }
        (gpu.uuid.clone(), each)
    };
    gpus.iter().map(on).collect()
}

/// Memory in use by containers with limits, in bytes, one value for each GPU. Blocks.
fn claims(shared: &DockerEngineState) -> BTreeMap<RunKey, Vec<u64>> {
    shared.fractions.fractions.claims()
}

type ByContainer = Vec<(Activity, BTreeMap<u32, String>)>;

/// GPU activity, and the container of each process on a GPU; only of simulated ones where the
/// driver does not answer. Blocks.
fn sample(shared: &DockerEngineState) -> Result<ByContainer, ByContainer> {
    let homes = |gpu: Activity| {
        let homes = gpu.processes.keys().filter_map(|pid| Some((*pid, home(*pid)?))).collect();
        (gpu, homes)
    };
    let simulated = shared.fractions.fractions.activities();
    match shared.driver.sample() {
        Ok(gpus) => Ok(gpus.into_iter().chain(simulated).map(homes).collect()),
        Err(error) => {
            tracing::warn!(%error, "what GPUs do is not known");
            Err(simulated.into_iter().map(homes).collect())
        }
    }
}

/// Health of these GPUs, by UUID; `None` without a driver.
pub(crate) async fn gpu_health(
    shared: &Arc<DockerEngineState>,
    uuids: Vec<String>,
) -> Result<Option<BTreeMap<String, GpuHealth>>, Error> {
    let own = Arc::clone(shared);
    let look = move || own.driver.look(&uuids);
    let driver = |why: String| Error::Io {
        what: "ask the driver how the GPUs are".into(),
        source: io::Error::other(why),
    };
    let seen =
        tokio::task::spawn_blocking(look).await.map_err(|fault| driver(fault.to_string()))?;
    let Some(seen) = seen.map_err(driver)? else { return Ok(None) };
    // Read after the GPUs: processes of a container that starts in between are not foreign.
    let busy = seen.values().any(Health::is_busy);
    let own = if busy { shared.own_containers().await } else { Ok(Vec::new()) };
    // Without the daemon the owners of processes are unknown; the driver's report still counts.
    let own = own.map_err(|error| {
        tracing::warn!(%error, "it is not known whose processes are on the GPUs");
    });
    let ids = |own: Vec<ContainerSummary>| own.into_iter().filter_map(|one| one.id).collect();
    let own: Option<BTreeSet<String>> = own.ok().map(ids);
    let is_ours = |pid| own.as_ref().map(|own| home(pid).is_some_and(|home| own.contains(&home)));
    let health = |(uuid, seen): (String, Health)| {
        let foreign = seen.foreign(is_ours, |program, memory_bytes| ForeignProcess {
            name: program.name,
            user: program.user,
            memory_bytes,
        });
        (uuid, GpuHealth { fault: seen.fault, foreign })
    };
    Ok(Some(seen.into_iter().map(health).collect()))
}

/// The container of a process.
fn home(pid: u32) -> Option<String> {
    id_in(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

/// A container id is 64 hexadecimal digits in the name of its control group.
fn id_in(groups: &str) -> Option<String> {
    let words = groups.split(|character: char| !character.is_ascii_hexdigit());
    words.into_iter().find(|word| word.len() == 64).map(str::to_owned)
}

/// Usage of a container, with its id; `None` if unknown, or if the container has just ended.
async fn run_use(shared: &DockerEngineState, key: RunKey) -> Option<(String, RunUse)> {
    let name = names::container(key);
    let of =
        |cpu_time_ms, memory_bytes| RunUse { key, cpu_time_ms, memory_bytes, gpus: Vec::new() };
    if shared.facts().podman {
        let asked = libpod::usage(&shared.daemon.socket, &name);
        let used = tokio::time::timeout(ANSWER_WAIT, asked).await.ok()?.ok()??;
        return Some((used.id, of(used.cpu_time_ns / 1_000_000, used.memory_bytes)));
    }
    let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
    let mut told = Box::pin(shared.daemon.docker.stats(&name, Some(options)));
    let told = tokio::time::timeout(ANSWER_WAIT, told.next()).await.ok()??.ok()?;
    let (cpu_time_ms, memory_bytes) = read(&told)?;
    Some((told.id?, of(cpu_time_ms, memory_bytes)))
}

/// CPU time in milliseconds and memory in bytes.
fn read(told: &ContainerStatsResponse) -> Option<(u64, u64)> {
    let cpu_ns = told.cpu_stats.as_ref()?.cpu_usage.as_ref()?.total_usage?;
    let memory = told.memory_stats.as_ref()?;
    let stats = memory.stats.as_ref();
    let cache = stats.and_then(|stats| CACHES.iter().find_map(|name| stats.get(*name)));
    Some((cpu_ns / 1_000_000, memory.usage?.saturating_sub(cache.copied().unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use bollard::models::{ContainerCpuStats, ContainerCpuUsage, ContainerMemoryStats};

    use super::*;

    #[test]
    fn a_process_is_found_in_its_container_under_either_version() {
        let id = "0a".repeat(32);
        for groups in [
            format!("12:memory:/docker/{id}\n11:cpu:/docker/{id}\n"),
            format!("0::/system.slice/docker-{id}.scope\n"),
            format!("0::/user.slice/user-7.slice/libpod-{id}.scope/container\n"),
        ] {
            assert_eq!(id_in(&groups), Some(id.clone()));
        }
        assert_eq!(id_in("0::/user.slice/session-3.scope\n"), None);
    }

    #[test]
    fn memory_is_what_is_in_use_and_what_is_not_told_is_not_made_up() {
        let told = |name: &str, usage| ContainerStatsResponse {
            cpu_stats: Some(ContainerCpuStats {
                cpu_usage: Some(ContainerCpuUsage {
                    total_usage: Some(2_500_000),
                    ..ContainerCpuUsage::default()
                }),
                ..ContainerCpuStats::default()
            }),
            memory_stats: Some(ContainerMemoryStats {
                usage,
                stats: Some([(name.to_owned(), 30)].into()),
                ..ContainerMemoryStats::default()
            }),
            ..ContainerStatsResponse::default()
        };
        assert_eq!(read(&told("inactive_file", Some(100))), Some((2, 70)));
        assert_eq!(read(&told("total_inactive_file", Some(100))), Some((2, 70)));
        assert_eq!(read(&told("inactive_file", None)), None, "it has just ended");
    }
}
