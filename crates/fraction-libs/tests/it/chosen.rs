//! The simulated driver with a chosen version and chosen faults, without and with limits.

use std::process::Command;

use crate::support::{MIB, Machine, prints};

fn with_version(mut command: Command, version: &str) -> String {
    prints(command.env("ELASTANE_SIMULATED_VERSION", version))
}

fn with_faults(machine: &Machine, faults: &str, steps: &str) -> String {
    let mut command = machine.command("dlsym", steps);
    prints(command.env("ELASTANE_SIMULATED_FAULTS", faults))
}

#[test]
fn a_chosen_driver_says_its_version_and_has_no_function_that_is_newer() {
    let machine = Machine::new();
    let steps = "driver has:cuMemAlloc_v2 has:cuMemCreate has:cuMemAllocAsync \
                 has:cuLaunchKernelEx has:cuMemGetMemPool";
    for (version, expected) in [
        (
            "",
            "0 13050 580.65.06-simulated, has yes 500, has yes 0, has yes 0, has yes 0, has yes 0",
        ),
        (
            "590",
            "0 13010 590.44.01-simulated, has yes 500, has yes 0, has yes 0, has yes 0, has yes 0",
        ),
        (
            "535",
            "0 12020 535.54.03-simulated, has yes 500, has yes 0, has yes 0, has yes 0, has no 500",
        ),
        (
            "470",
            "0 11040 470.42.01-simulated, has yes 500, has yes 0, has yes 0, has no 500, has no 500",
        ),
    ] {
        let printed = with_version(machine.command("dlsym", steps), version);
        assert_eq!(printed, format!("driver {expected}"), "{version}");
    }
}

#[test]
fn limits_hold_with_each_version_of_the_driver() {
    let machine = Machine::new();
    let steps = "init context:0 info alloc:4000M alloc:1000M free managed:4000M free async:4000M \
                 freeasync create:4000M release graph:4000M trimgraphs info";
    let held = "init 0, context 0, info 0 3796 of 4096, alloc 2, alloc 0, free 0, managed 2, free 1, \
                async 2, freeasync 1, create 2, release 400, graph 2, trimgraphs 0, info 0 3796 of 4096";
    for version in ["470", "525", "535", "550", "570", "580", "590"] {
        let run = machine.run(version, 4096 * MIB);
        let printed = with_version(run.command("dlsym", steps), version);
        assert_eq!(printed, held, "{version}");
        assert_eq!(with_version(run.with_proxies("dlsym", steps), version), held, "{version}");
    }
}

#[test]
fn a_function_that_is_missing_is_found_in_no_way() {
    let machine = Machine::new();
    let steps = "init context:0 has:cuMemCreate has:cuMemAlloc_v2 has:cuMemMap alloc:1M";
    assert_eq!(
        with_faults(&machine, "missing=cuMemCreate,missing=cuMemMap", steps),
        "init 0, context 0, has no 500, has yes 500, has no 500, alloc 0",
    );
    // All forms of it.
    let steps = "has:cuMemAlloc_v2 has:cuMemAlloc";
    assert_eq!(with_faults(&machine, "missing=cuMemAlloc", steps), "has no 500, has no 500");
}

#[test]
fn allocations_fail_after_as_many_as_were_chosen() {
    let machine = Machine::new();
    let steps = "init context:0 alloc:1M alloc:2M alloc:1M info free alloc:1M";
    assert_eq!(
        with_faults(&machine, "memory-after=2", steps),
        "init 0, context 0, alloc 0, alloc 0, alloc 2, info 0 7889 of 8192, free 0, alloc 2",
    );
    let steps = "init context:0 alloc:1M";
    assert_eq!(with_faults(&machine, "memory-after=0", steps), "init 0, context 0, alloc 2");
}

#[test]
fn after_a_fault_of_the_gpu_every_function_fails_until_the_process_ends() {
    let machine = Machine::new();
    for (xid, error) in [(13, 719), (31, 700), (48, 214), (79, 999)] {
        let printed = with_faults(
            &machine,
            &format!("xid-{xid}=2"),
            "init context:0 kernel kernel sync kernel sync alloc:1M info",
        );
        let expected = format!(
            "init 0, context 0, kernel 0, kernel 0, sync 0, kernel 0, sync {error}, alloc {error}, \
             info {error} 0 of 0"
        );
        assert_eq!(printed, expected);
    }
    let steps = "init context:0 launches:3:0:graph";
    assert_eq!(with_faults(&machine, "xid-31=2", steps), "init 0, context 0, launches 700");
    // Memory of the failed process is free, and no other process on the GPU has the fault.
    let printed = prints(&mut machine.command("dlsym", "init context:0 kernel sync info"));
    assert_eq!(printed, "init 0, context 0, kernel 0, sync 0, info 0 7892 of 8192");
}

#[test]
fn a_gpu_that_is_lost_is_lost_for_cuda_and_nvml() {
    let machine = Machine::new();
    assert_eq!(with_faults(&machine, "lost", "init"), "init 100");
    assert_eq!(with_faults(&machine, "lost", "nvml"), "nvml 15");
}

#[test]
fn a_slow_driver_takes_its_time_and_starts() {
    let machine = Machine::new();
    let begin = std::time::Instant::now();
    assert_eq!(with_faults(&machine, "slow-ms=300", "init context:0"), "init 0, context 0");
    assert!(begin.elapsed().as_millis() >= 300);
}

#[test]
fn what_is_not_understood_is_an_error_and_changes_nothing() {
    let machine = Machine::new();
    for faults in
        ["lose", "memory-after", "memory-after=x", "xid-1=2", "missing=free", "slow-ms=-1"]
    {
        let printed = with_faults(&machine, faults, "init has:cuMemCreate");
        assert_eq!(printed, "init 1, has yes 0", "{faults}");
    }
    assert_eq!(with_version(machine.command("dlsym", "init"), "535.1"), "init 1");
}
