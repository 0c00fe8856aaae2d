//! What runs use, as control groups, `/proc` and the driver of the GPUs show it. Owns: which processes are
//! a run's (its supervisor and all below it), and their sum. Refuses to know: what it is measured for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use engine::{GpuHealth, GpuUse, Measured, RunKey, RunUse, Stranger};
use gpu::Activity;
use rustix::param::{clock_ticks_per_second, page_size};

use crate::cgroup::GroupUse;
use crate::process::{Family, families};
use crate::record::StateFile;
use crate::watch::Shared;

/// Measures everything that runs now. Blocks for milliseconds, the first time while the driver
/// wakes up.
pub(crate) fn measure(shared: &Shared) -> Measured {
    let gpus = shared.driver.sample().unwrap_or_else(|error| {
        tracing::warn!(%error, "what GPUs do is not known");
        Vec::new()
    });
    let runs: BTreeMap<RunKey, Option<GroupUse>> =
        running(shared).map(|key| (key, use_of_group(shared, key))).collect();
    // The process table is long, and read where nothing else says whose a GPU or a process is.
    let needs_table = !gpus.is_empty() || runs.values().any(Option::is_none);
    let families = if needs_table { own_families(shared) } else { BTreeMap::new() };
    let runs = runs.into_iter().filter_map(|(key, used)| {
        let family = families.get(&key);
        let GroupUse { cpu_time_ms, memory_bytes } = used.or_else(|| family.map(use_of))?;
        let parts = family.map(|family| gpus.iter().filter_map(|gpu| part_of(gpu, family)));
        let gpus = parts.into_iter().flatten().collect();
        Some(RunUse { key, cpu_time_ms, memory_bytes, gpus })
    });
    let runs = runs.collect();
    let whole = |gpu: &Activity| GpuUse {
        uuid: gpu.uuid.clone(),
        busy_millis: gpu.busy_millis,
        memory_bytes: gpu.memory_bytes,
    };
    Measured { runs, gpus: gpus.iter().map(whole).collect() }
}

/// How these GPUs are; none without a driver. Blocks as measuring does.
pub(crate) fn gpu_health(
    shared: &Shared,
    uuids: &[String],
) -> Result<Option<BTreeMap<String, GpuHealth>>, String> {
    let Some(seen) = shared.driver.look(uuids)? else { return Ok(None) };
    let busy = seen.values().any(gpu::Health::is_busy);
    // Asked for after the GPUs were: a run that begins in between is none of strangers.
    let ours = if busy { own_processes(shared) } else { BTreeSet::new() };
    let health = |(uuid, seen): (String, gpu::Health)| {
        let strangers = seen.strangers(
            |pid| Some(ours.contains(&pid)),
            |program, memory_bytes| Stranger {
                name: program.name,
                user: program.user,
                memory_bytes,
            },
        );
        (uuid, GpuHealth { fault: seen.fault, strangers })
    };
    Ok(Some(seen.into_iter().map(health).collect()))
}

/// What a run uses by its control group, which says too how often memory ran out; none if that does not
/// count both.
fn use_of_group(shared: &Shared, key: RunKey) -> Option<GroupUse> {
    let group = shared.dir(key).group()?;
    shared.tell_kills(key, group.out_of_memory_kills());
    group.usage()
}

/// The processes of all runs.
fn own_processes(shared: &Shared) -> BTreeSet<u32> {
    let families = own_families(shared);
    let pids = families.values().flat_map(|family| &family.pids);
    pids.filter_map(|&pid| pid.try_into().ok()).collect()
}

/// What a family uses, as far as it can be seen without a control group: the time of those whose end nobody
/// waited for is lost.
fn use_of(family: &Family) -> GroupUse {
    GroupUse {
        cpu_time_ms: family.cpu_ticks.saturating_mul(1000) / clock_ticks_per_second().max(1),
        memory_bytes: family.pids.iter().map(|pid| memory_bytes(*pid)).sum(),
    }
}

/// The runs that have started.
fn running(shared: &Shared) -> impl Iterator<Item = RunKey> {
    shared.keys_where(|state| matches!(state, StateFile::Running { .. })).into_iter()
}

/// The processes of each run that has started: those below its supervisor.
fn own_families(shared: &Shared) -> BTreeMap<RunKey, Family> {
    let holder = |key| Some((shared.dir(key).holder().ok()??.as_raw_nonzero().get(), key));
    let supervisors: BTreeMap<i32, RunKey> = running(shared).filter_map(holder).collect();
    let families = families(&supervisors.keys().copied().collect());
    let named = |(pid, family)| Some((*supervisors.get(&pid)?, family));
    families.into_iter().filter_map(named).collect()
}

/// What a run's processes do on a GPU; none if the driver knows none of them there.
fn part_of(gpu: &Activity, family: &Family) -> Option<GpuUse> {
    let own: BTreeSet<u32> = family.pids.iter().filter_map(|&pid| pid.try_into().ok()).collect();
    let part = gpu.of(|pid| own.contains(&pid))?;
    Some(GpuUse {
        uuid: gpu.uuid.clone(),
        busy_millis: part.busy_millis,
        memory_bytes: part.memory_bytes,
    })
}

/// What is shared is divided among those who share it. A kernel that does not tell shares gives
/// the resident pages instead; a process that has just ended has none.
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
            let part = part_of(&gpu, &Family { cpu_ticks: 0, pids: pids.to_vec() })?;
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
