//! Resource usage of runs, from control groups, `/proc` and the GPU driver. Owns: which processes
//! belong to a run (its supervisor and all below it), and their sum. Does not know what the
//! measurements are for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use engine::{ForeignProcess, GpuHealth, GpuUse, Measured, Observation, RunEvent, RunKey, RunUse};
use engine_fractions::Over;
use gpu::Activity;
use rustix::param::{clock_ticks_per_second, page_size};

use crate::cgroup::GroupUse;
use crate::process::{Subtree, subtrees};
use crate::record::StateFile;
use crate::shared::LocalEngineState;

/// Measures all running runs. Blocks for milliseconds; longer the first time, while the driver
/// wakes up.
pub(crate) fn measure(shared: &LocalEngineState) -> Measured {
    let claims = shared.fractions.claims();
    let sampled = shared.driver.sample();
    // Without an answer nothing is known of what runs hold.
    let claims = if sampled.is_ok() { claims } else { BTreeMap::new() };
    let mut gpus = sampled.unwrap_or_else(|error| {
        tracing::warn!(%error, "GPU activity is unknown");
        Vec::new()
    });
    gpus.extend(shared.fractions.activities());
    let runs: BTreeMap<RunKey, Option<GroupUse>> =
        running(shared).map(|key| (key, use_of_group(shared, key))).collect();
    // The process table is long, and only read where nothing else attributes a process.
    let needs_table = !gpus.is_empty() || runs.values().any(Option::is_none);
    let subtrees = if needs_table { own_subtrees(shared) } else { BTreeMap::new() };
    let runs = runs.into_iter().filter_map(|(key, used)| {
        let family = subtrees.get(&key);
        let GroupUse { cpu_time_ms, memory_bytes } = used.or_else(|| family.map(use_of))?;
        let parts = family.map(|family| gpus.iter().filter_map(|gpu| part_of(gpu, family)));
        let mut gpus: Vec<GpuUse> = parts.into_iter().flatten().collect();
        gpus.extend(shared.fractions.idle(key, &gpus));
        Some(RunUse { key, cpu_time_ms, memory_bytes, gpus })
    });
    let runs: Vec<RunUse> = runs.collect();
    for run in &runs {
        if let Some(before) = claims.get(&run.key) {
            for Over { mut seen, ends } in shared.fractions.reconcile(run.key, before, &run.gpus) {
                if ends && let Some(family) = subtrees.get(&run.key) {
                    seen.ended = end_newest(&gpus, &seen.gpu, &pids_of(family));
                }
                let event = RunEvent::GpuOver(seen);
                shared.observations.report(Observation::new(run.key, event));
            }
        }
    }
    let whole = |gpu: &Activity| GpuUse {
        uuid: gpu.uuid.clone(),
        busy_millis: gpu.busy_millis,
        memory_bytes: gpu.memory_bytes,
    };
    Measured { runs, gpus: gpus.iter().map(whole).collect() }
}

/// Ends the newest of a run's processes on a GPU; which one that was.
fn end_newest(gpus: &[Activity], gpu: &str, own: &BTreeSet<u32>) -> Option<u32> {
    let on = gpus.iter().find(|found| found.uuid == gpu)?;
    let pids: Vec<u32> = on.processes.keys().copied().filter(|pid| own.contains(pid)).collect();
    engine_fractions::end_newest(&pids, |pid| own.contains(&pid))
}

fn pids_of(family: &Subtree) -> BTreeSet<u32> {
    family.pids.iter().filter_map(|&pid| pid.try_into().ok()).collect()
}

/// Health of these GPUs, by UUID; `None` without a driver. Blocks as `measure` does.
pub(crate) fn gpu_health(
    shared: &LocalEngineState,
    uuids: &[String],
) -> Result<Option<BTreeMap<String, GpuHealth>>, String> {
    let Some(seen) = shared.driver.look(uuids)? else { return Ok(None) };
    let busy = seen.values().any(gpu::Health::is_busy);
    // Read after the GPUs: processes of a run that starts in between are not foreign.
    let ours = if busy { own_processes(shared) } else { BTreeSet::new() };
    let health = |(uuid, seen): (String, gpu::Health)| {
        let foreign = seen.foreign(
            |pid| Some(ours.contains(&pid) || shared.fractions.is_keeper(pid)),
            |program, memory_bytes| ForeignProcess {
                name: program.name,
                user: program.user,
                memory_bytes,
            },
        );
        (uuid, GpuHealth { fault: seen.fault, foreign })
    };
    Ok(Some(seen.into_iter().map(health).collect()))
}

/// The usage of a run from its control group, which also counts out-of-memory kills; `None` if the
/// group does not count both.
fn use_of_group(shared: &LocalEngineState, key: RunKey) -> Option<GroupUse> {
    let group = shared.dir(key).group()?;
    shared.report_out_of_memory_kills(key, group.out_of_memory_kills());
    group.usage()
}

/// The processes of all runs.
fn own_processes(shared: &LocalEngineState) -> BTreeSet<u32> {
    let subtrees = own_subtrees(shared);
    let pids = subtrees.values().flat_map(|family| &family.pids);
    pids.filter_map(|&pid| pid.try_into().ok()).collect()
}

/// The usage of a process tree without a control group: CPU time of processes without a waiting
/// parent is lost.
fn use_of(family: &Subtree) -> GroupUse {
    GroupUse {
        cpu_time_ms: family.cpu_ticks.saturating_mul(1000) / clock_ticks_per_second().max(1),
        memory_bytes: family.pids.iter().map(|pid| memory_bytes(*pid)).sum(),
    }
}

/// The runs that have started.
fn running(shared: &LocalEngineState) -> impl Iterator<Item = RunKey> {
    shared.keys_where(|state| matches!(state, StateFile::Running { .. })).into_iter()
}

/// The processes of each run that has started: those below its supervisor.
pub(crate) fn own_subtrees(shared: &LocalEngineState) -> BTreeMap<RunKey, Subtree> {
    let holder = |key| Some((shared.dir(key).holder().ok()??.as_raw_nonzero().get(), key));
    let supervisors: BTreeMap<i32, RunKey> = running(shared).filter_map(holder).collect();
    let subtrees = subtrees(&supervisors.keys().copied().collect());
    let named = |(pid, family)| Some((*supervisors.get(&pid)?, family));
    subtrees.into_iter().filter_map(named).collect()
}

/// Use of a GPU by a run's processes; `None` if the driver shows none of them.
fn part_of(gpu: &Activity, family: &Subtree) -> Option<GpuUse> {
    let own = pids_of(family);
    let part = gpu.of(|pid| own.contains(&pid))?;
    Some(GpuUse {
        uuid: gpu.uuid.clone(),
        busy_millis: part.busy_millis,
        memory_bytes: part.memory_bytes,
    })
}

/// The proportional set size. A kernel without it gives the resident pages instead; a process that
/// has just ended has none.
fn memory_bytes(pid: i32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    if let Some(kib) = parse_pss(&rollup) {
        return kib.saturating_mul(1024);
    }
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let resident = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    resident.unwrap_or(0_u64).saturating_mul(page_size() as u64)
}

fn parse_pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use gpu::ProcessActivity;

    use super::*;

    #[test]
    fn a_gpu_is_told_apart_by_the_processes_on_it() {
        let on = |busy, memory| ProcessActivity { busy_millis: busy, memory_bytes: memory };
        let processes =
            [(7, on(Some(300), Some(5))), (8, on(None, Some(6))), (9, on(Some(900), None))];
        let gpu = Activity {
            uuid: "GPU-1".to_owned(),
            busy_millis: Some(950),
            memory_bytes: Some(99),
            processes: processes.into(),
        };
        let of = |pids: &[i32]| {
            let part = part_of(&gpu, &Subtree { cpu_ticks: 0, pids: pids.to_vec() })?;
            Some((part.busy_millis, part.memory_bytes))
        };
        assert_eq!(of(&[7, 8, 1]), Some((Some(300), Some(11))));
        assert_eq!(of(&[7, 9]), Some((Some(1000), Some(5))), "never more than all of the time");
        assert_eq!(of(&[8]), Some((None, Some(6))), "what is not told is not made up");
        assert_eq!(of(&[1]), None);
    }

    #[test]
    fn the_proportional_size_is_read_and_this_process_has_one() {
        assert_eq!(parse_pss("55-66 ---p [rollup]\nRss:   900 kB\nPss:     120 kB\n"), Some(120));
        assert_eq!(parse_pss(""), None);
        let own = i32::try_from(std::process::id()).expect("an id");
        assert!(memory_bytes(own) > 0);
    }
}
