//! The simulated driver alone, without limits.

use std::time::{Duration, Instant};

use fixture::STUCK_AFTER;

use crate::support::{Machine, prints};

#[test]
fn memory_is_counted_to_the_byte_and_runs_out() {
    let machine = Machine::new();
    let steps = "init context:0 info alloc:7892M info alloc:1 free info alloc:7893M";
    assert_eq!(
        prints(&mut machine.command("dlsym", steps)),
        "init 0, context 0, info 0 7892 of 8192, alloc 0, info 0 0 of 8192, alloc 2, free 0, \
         info 0 7892 of 8192, alloc 2",
    );
    // The broker sees the end of a process a moment after it.
    let deadline = Instant::now() + STUCK_AFTER;
    while machine.broker.holders(0).values().any(|bytes| *bytes > 0) {
        assert!(Instant::now() < deadline, "{:?}", machine.broker.holders(0));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn memory_that_is_not_written_takes_none_of_the_machine_and_what_is_written_is_bounded() {
    let machine = Machine::new();
    let steps = "init context:0 alloc:7G resident:64M write:2G write:8M resident:64M free";
    assert_eq!(
        prints(&mut machine.command("dlsym", steps)),
        "init 0, context 0, alloc 0, resident 0, write 801, write 0, resident 0, free 0",
    );
}

#[test]
fn every_class_of_memory_comes_back() {
    let machine = Machine::new();
    for (steps, most) in [
        ("pitch:100:1000 info free info", 7891),
        ("managed:100M info free info", 7792),
        ("async:5M info freeasync sync info", 7886),
        ("pool frompool:3M info freeasync endpool info", 7888),
        ("create:4M map:4M release info unmap:4M info", 7888),
        ("array:1024:1024:0 info endarray info", 7888),
        ("mipmap:1024:1024 info endmipmap info", 7887),
        ("graph:10M info trimgraphs info", 7882),
    ] {
        let printed = prints(&mut machine.command("dlsym", &format!("init context:0 {steps}")));
        assert!(printed.contains(&format!("info 0 {most} of 8192")), "{printed}");
        assert!(printed.ends_with("info 0 7892 of 8192"), "{printed}");
    }
}

#[test]
fn nvml_sees_the_processes_of_all_and_their_memory() {
    let machine = Machine::new();
    let printed = prints(&mut machine.command("dlsym", "init context:0 alloc:100M nvml processes"));
    assert_eq!(
        printed,
        "init 0, context 0, alloc 0, nvml 0 8192 7792 400, nvml2 0 8192 0 7792 400, \
         nvml2 wrong 25, processes 0 1 self:400 room 7",
    );
}

#[test]
fn a_virtual_kernel_takes_time_and_a_real_one_is_refused() {
    let machine = Machine::new();
    let printed = prints(&mut machine.command("dlsym", "init context:0 kernel sync realkernel"));
    assert_eq!(printed, "init 0, context 0, kernel 0, sync 0, realkernel 209");
}

#[test]
fn a_child_of_a_process_that_used_the_driver_cannot_use_it() {
    let machine = Machine::new();
    let steps = "init context:0 alloc:1M fork alloc:1M parent alloc:1M";
    let printed = prints(&mut machine.command("dlsym", steps));
    assert_eq!(printed, "init 0, context 0, alloc 0, alloc 3, child ended, alloc 0");
}

#[test]
fn without_a_broker_there_is_no_device() {
    let machine = Machine::new();
    let mut command = machine.command("dlsym", "init");
    assert_eq!(prints(command.env("ELASTANE_SIMULATED_DRIVER", "/nowhere")), "init 100");
}

#[test]
fn memory_of_a_killed_process_is_free_at_once() {
    let machine = Machine::new();
    prints(&mut machine.command("dlsym", "init context:0 alloc:5000M kill"));
    let printed = prints(&mut machine.command("dlsym", "init context:0 alloc:7892M"));
    assert_eq!(printed, "init 0, context 0, alloc 0");
}
