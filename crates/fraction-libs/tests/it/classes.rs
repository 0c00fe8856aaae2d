//! Each class of memory in a run that may have half of a device: 4096 MiB, of which its context
//! takes 300.

use fraction_abi::control::Limit;

use crate::support::{CONTEXT, MIB, Machine, compile_nvml, prints};

const HALF: u64 = 4096 * MIB;

/// Output of a program after it has initialised the driver in a fresh run.
fn after_init(steps: &str) -> String {
    found_after_init("dlsym", steps)
}

fn found_after_init(how: &str, steps: &str) -> String {
    let machine = Machine::new();
    let printed = machine.run("run", HALF).prints(how, &format!("init context:0 {steps}"));
    printed.strip_prefix("init 0, context 0, ").unwrap_or(&printed).to_owned()
}

#[test]
fn half_of_the_device_is_all_there_is() {
    assert_eq!(after_init("total info"), "total 0 4096, info 0 3796 of 4096");
}

#[test]
fn a_program_may_ask_only_for_what_is_free_or_for_all_there_is() {
    assert_eq!(after_init("halfinfo"), "halfinfo 0 3796 of 4096");
}

#[test]
fn a_pool_that_took_too_much_leaves_no_address() {
    // One byte takes 2 MiB.
    assert_eq!(after_init("alloc:3795M async:1 info"), "alloc 0, async 2, info 0 1 of 4096",);
}

#[test]
fn failure_18_beyond_the_limit_is_out_of_memory_and_the_program_lives_on() {
    assert_eq!(
        after_init("alloc:3796M info alloc:1 free alloc:3797M alloc:1000M info"),
        "alloc 0, info 0 0 of 4096, alloc 2, free 0, alloc 2, alloc 0, info 0 2796 of 4096",
    );
}

#[test]
fn linear_memory_counts_to_the_byte() {
    assert_eq!(
        after_init("alloc:3980394495 alloc:1 alloc:1 free alloc:1"),
        "alloc 0, alloc 0, alloc 2, free 0, alloc 0"
    );
}

#[test]
fn a_pitched_allocation_counts_with_the_pitch_that_the_driver_chose() {
    // 100 bytes become rows of 512; 3796 MiB have room for 7,774,208 of them.
    assert_eq!(
        after_init("pitch:100:7774208 info free pitch:100:7774209 pitch:513:3887105"),
        "pitch 0, info 0 0 of 4096, free 0, pitch 2, pitch 2",
    );
}

#[test]
fn managed_memory_counts_and_host_memory_does_not() {
    assert_eq!(
        after_init("host:8G managed:3796M managed:1 free host:1G info"),
        "host 0, managed 0, managed 2, free 0, host 0, info 0 3796 of 4096",
    );
}

#[test]
fn failure_2_memory_of_pools_counts_as_what_they_keep() {
    assert_eq!(
        after_init("pool frompool:3G frompool:1G info freeasync info sync info"),
        "pool 0, frompool 0, frompool 2, info 0 724 of 4096, freeasync 0, info 0 724 of 4096, \
         sync 0, info 0 3796 of 4096",
    );
    assert_eq!(
        after_init("async:3G async:1G freeasync sync info async:3796M info"),
        "async 0, async 2, freeasync 0, sync 0, info 0 3796 of 4096, async 0, info 0 0 of 4096",
    );
}

#[test]
fn a_pool_counts_by_whatever_function_the_program_got_it() {
    for got in ["1:0:1:default", "1:0:1:present", "1:0:2:default", "0:0:2:present", "0:0:2:made"] {
        assert_eq!(
            after_init(&format!("poolof:{got} frompool:3G frompool:1G info")),
            "poolof 0, frompool 0, frompool 2, info 0 724 of 4096",
            "location type:id:kind of memory:function {got}",
        );
    }
}

#[test]
fn a_part_of_a_device_by_locality_is_memory_of_the_device() {
    // Type 6; the device is the first byte, the locality domain the second.
    assert_eq!(
        after_init("createon:6:0:3798M createon:6:0:3796M info"),
        "createon 2, createon 0, info 0 0 of 4096",
    );
    assert_eq!(
        after_init("poolof:6:256:1:made frompool:3G frompool:1G info"),
        "poolof 0, frompool 0, frompool 2, info 0 724 of 4096",
    );
}

#[test]
fn a_pool_gives_back_what_it_keeps_before_it_is_refused_more() {
    assert_eq!(
        after_init("pool frompool:3G freeasync alloc:3G info endpool info"),
        "pool 0, frompool 0, freeasync 0, alloc 0, info 0 724 of 4096, endpool 0, \
         info 0 724 of 4096",
    );
}

#[test]
fn a_pool_that_was_destroyed_counts_until_the_last_of_it_is_freed() {
    assert_eq!(
        after_init(
            "pool frompool:2G frompool:1G endpool info alloc:1G freeasync info freeasync info"
        ),
        "pool 0, frompool 0, frompool 0, endpool 0, info 0 724 of 4096, alloc 2, freeasync 0, \
         info 0 724 of 4096, freeasync 0, info 0 3796 of 4096",
    );
}

#[test]
fn stream_ordered_memory_is_that_of_the_device_of_the_stream() {
    let machine = Machine::new();
    let limit = |uuid, bytes| Limit { uuid, bytes, uncounted: 0, context: CONTEXT };
    let both = [limit([1; 16], 4096 * MIB), limit([2; 16], 1024 * MIB)];
    let run = machine.run_with("both", &both, 0);
    // The stream is of the second device, the current context of the first.
    assert_eq!(
        run.prints(
            "dlsym",
            "init context:0 context:1 stream info current:0 asyncon:1G:2 asyncon:500M:2 info \
             current:1 info",
        ),
        "init 0, context 0, context 0, stream 0, info 0 724 of 1024, current 0, asyncon 2, \
         asyncon 0, info 0 3796 of 4096, current 0, info 0 224 of 1024",
    );
}

#[test]
fn failure_23_later_and_earlier_forms_of_functions_of_graphs_count_the_same() {
    // By address the newest form that adds a node is found, and the oldest that captures.
    assert_eq!(
        found_after_init("address", "anynode:5G anynode:1G trimgraphs capture:3:1G info"),
        "anynode 2, anynode 0, trimgraphs 0, capture 0, info 0 724 of 4096",
    );
}

#[test]
fn memory_of_a_graph_that_is_captured_again_counts_as_the_graph_does() {
    assert_eq!(
        after_init("recapture:3G info trimgraphs info recapture:4G"),
        "recapture 0, info 0 724 of 4096, trimgraphs 0, info 0 3796 of 4096, recapture 2",
    );
}

#[test]
fn what_was_exported_counts_until_its_process_ends() {
    assert_eq!(
        after_init("create:2G export release info create:2G"),
        "create 0, export 0, release 0, info 0 1748 of 4096, create 2",
    );
}

#[test]
fn failure_9_what_a_sparse_array_or_a_multicast_object_holds_counts_until_the_process_ends() {
    for bound in
        ["mem", "mem2", "address", "address2", "endpoint", "endpointat", "array", "array_ptsz"]
    {
        assert_eq!(
            after_init(&format!("create:2G map:2G bind:{bound} unmap:2G release info create:2G")),
            "create 0, map 0, bind 0, unmap 0, release 0, info 0 1748 of 4096, create 2",
            "{bound}",
        );
    }
    assert_eq!(
        after_init("create:2G bind:nothing bind:unknown release info"),
        "create 0, bind 0, bind 400, release 0, info 0 3796 of 4096",
    );
}

#[test]
fn memory_of_another_process_or_interface_is_not_counted_twice() {
    // The child has a context of its own, and what it opens is its parent's.
    assert_eq!(
        after_init(
            "alloc:2G share opened fork init context:0 info opened info write closed info \
             alloc:1449M alloc:1448M parent info free info"
        ),
        "alloc 0, share 0, opened 201, init 0, context 0, info 0 1448 of 4096, opened 0, \
         info 0 1448 of 4096, write 801, closed 0, info 0 1448 of 4096, alloc 2, alloc 0, \
         child ended, info 0 1748 of 4096, free 0, info 0 3796 of 4096",
    );
    assert_eq!(
        after_init("opened external:6G info free info external:0 alloc:3796M"),
        "opened 1, external 0, info 0 3796 of 4096, free 0, info 0 3796 of 4096, external 1, \
         alloc 0",
    );
}

#[test]
fn physical_memory_counts_until_it_is_neither_referred_to_nor_mapped() {
    assert_eq!(
        after_init("create:2G map:2G release info unmap:2G info"),
        "create 0, map 0, release 0, info 0 1748 of 4096, unmap 0, info 0 3796 of 4096",
    );
    assert_eq!(
        after_init("create:2G map:2G unmap:2G info release info"),
        "create 0, map 0, unmap 0, info 0 1748 of 4096, release 0, info 0 3796 of 4096",
    );
    assert_eq!(
        after_init("create:2G map:2G again release unmap:2G info release info"),
        "create 0, map 0, again 0, release 0, unmap 0, info 0 1748 of 4096, release 0, \
         info 0 3796 of 4096",
    );
    assert_eq!(after_init("create:3798M create:3796M"), "create 2, create 0");
}

#[test]
fn failure_6_memory_of_the_host_is_not_taken_for_that_of_a_device() {
    // Host, host by NUMA node, and the current one, each with a device id that makes no sense.
    assert_eq!(
        after_init("createon:2:77:6G createon:3:-1:6G createon:4:99:6G info createon:1:77:2M"),
        "createon 0, createon 0, createon 0, info 0 3796 of 4096, createon 101",
    );
}

#[test]
fn arrays_count_and_sparse_ones_do_not() {
    assert_eq!(
        after_init(
            "array:32768:16384:0 info array:32768:16384:0 endarray array:32768:32768:64 info"
        ),
        "array 0, info 0 1748 of 4096, array 2, endarray 0, array 0, info 0 3796 of 4096",
    );
    // Two levels of two layers each: 2048 and 512 MiB, and of half the depth: 2048 and 256.
    assert_eq!(
        after_init("mipmap:16384:16384:2:1 info endmipmap mipmap:16384:16384:2:0 info"),
        "mipmap 0, info 0 1236 of 4096, endmipmap 0, mipmap 0, info 0 1492 of 4096",
    );
    // Two levels: 1024 and 256 MiB.
    assert_eq!(
        after_init("mipmap:16384:16384 info endmipmap info"),
        "mipmap 0, info 0 2516 of 4096, endmipmap 0, info 0 3796 of 4096",
    );
}

#[test]
fn memory_of_graphs_counts_from_their_launch_until_it_is_trimmed() {
    assert_eq!(
        after_init("graph:1G info trimgraphs info graph:5G"),
        "graph 0, info 0 2772 of 4096, trimgraphs 0, info 0 3796 of 4096, graph 2",
    );
}

#[test]
fn the_nodes_of_a_graph_count_together_before_it_is_launched() {
    // Each fits alone; the device has room for all of them.
    assert_eq!(
        after_init("nodes:3:1G info trimgraphs nodes:3:2G info nodes:1:3796M info"),
        "nodes 0, info 0 724 of 4096, trimgraphs 0, nodes 2, info 0 3796 of 4096, nodes 0, \
         info 0 0 of 4096",
    );
}

#[test]
fn memory_that_is_captured_belongs_to_the_graph() {
    assert_eq!(
        after_init("capture:3:1G info trimgraphs capture:3:2G info capture:1:5G info"),
        "capture 0, info 0 724 of 4096, trimgraphs 0, capture 2, info 0 3796 of 4096, capture 2, \
         info 0 3796 of 4096",
    );
}

#[test]
fn memory_that_is_captured_at_the_default_stream_of_a_thread_belongs_to_the_graph() {
    assert_eq!(
        found_after_init("threads", "capture:3:1G:default info trimgraphs capture:3:2G:default"),
        "capture 0, info 0 724 of 4096, trimgraphs 0, capture 2",
    );
}

#[test]
fn the_end_of_a_capture_that_was_none_lifts_no_limit() {
    assert_eq!(
        after_init("strayend:3:1G info trimgraphs strayend:3:2G info"),
        "strayend 0, info 0 724 of 4096, trimgraphs 0, strayend 2, info 0 3796 of 4096",
    );
}

#[test]
fn a_node_of_any_kind_that_takes_memory_counts() {
    assert_eq!(
        after_init("anynode:1G info trimgraphs info anynode:5G"),
        "anynode 0, info 0 2772 of 4096, trimgraphs 0, info 0 3796 of 4096, anynode 2",
    );
}

#[test]
fn a_graph_that_is_moved_into_another_counts_with_it_before_it_is_launched() {
    // Each of the two fits alone; the device has room for both.
    assert_eq!(
        after_init("child:1G info trimgraphs child:2G info child:1G:clone info"),
        "child 0, info 0 1748 of 4096, trimgraphs 0, child 2, info 0 3796 of 4096, child 1, \
         info 0 3796 of 4096",
    );
}

#[test]
fn a_launch_counts_exactly_while_a_thread_uses_memory_of_another_device_in_graphs() {
    let machine = Machine::new();
    let limit = |uuid| Limit { uuid, bytes: HALF, uncounted: 0, context: CONTEXT };
    // In each a thread may come between the two ends of a launch.
    for attempt in 0..20 {
        let run = machine.run_with(&attempt.to_string(), &[limit([1; 16]), limit([2; 16])], 0);
        assert_eq!(
            run.prints("dlsym", "init context:0 alloc:1G context:1 latenode info current:0 info"),
            "init 0, context 0, alloc 0, context 0, latenode 0, info 0 3796 of 4096, current 0, \
             info 0 2772 of 4096",
        );
    }
}

#[test]
fn a_green_context_counts_as_the_primary_one_that_it_retains() {
    let machine = Machine::new();
    let run = machine.run("run", HALF);
    assert_eq!(
        run.prints(
            "dlsym",
            "init green:0 info retain info letgo info green:0 info endgreen endgreen context:0 info"
        ),
        "init 0, green 0, info 0 3796 of 4096, retain 0, info 0 3796 of 4096, letgo 0, \
         info 0 3796 of 4096, green 0, info 0 3796 of 4096, endgreen 0, endgreen 0, context 0, \
         info 0 3796 of 4096",
    );
    let small = machine.run("small", MIB);
    assert_eq!(small.prints("dlsym", "init green:0 endgreen"), "init 0, green 2, endgreen 201");
}

#[test]
fn memory_of_a_green_context_ends_with_the_primary_one() {
    let machine = Machine::new();
    let run = machine.run("run", HALF);
    assert_eq!(
        run.prints(
            "dlsym",
            "init green:0 alloc:1G endgreen:0 retain info green:0 alloc:2G info endgreen:2 retain \
             info letgo letgo context:0 info"
        ),
        "init 0, green 0, alloc 0, endgreen 0, retain 0, info 0 3796 of 4096, green 0, alloc 0, \
         info 0 1748 of 4096, endgreen 0, retain 0, info 0 1748 of 4096, letgo 0, letgo 0, \
         context 0, info 0 3796 of 4096",
    );
}

#[test]
fn the_end_of_a_context_counts_exactly_while_others_take_what_it_had() {
    assert_eq!(
        after_init("endfull:5000 info alloc:3796M"),
        "endfull 0, info 0 3796 of 4096, alloc 0",
    );
}

#[test]
fn a_handle_counts_that_another_thread_has_just_given_back() {
    // In each a thread may come between the end of a handle and what is known of it.
    for _ in 0..4 {
        assert_eq!(after_init("handles:1500 info"), "handles 0, info 0 796 of 4096");
    }
    for _ in 0..4 {
        assert_eq!(after_init("handles:1500:mapped info"), "handles 0, info 0 796 of 4096");
    }
}

#[test]
fn what_could_not_be_unmapped_counts_on() {
    assert_eq!(
        after_init("create:2G map:2G release unmap:1G info unmap:2G info unmap:2G info"),
        "create 0, map 0, release 0, unmap 1, info 0 1748 of 4096, unmap 0, info 0 3796 of 4096, \
         unmap 1, info 0 3796 of 4096",
    );
}

#[test]
fn threads_that_allocate_and_free_at_the_same_time_count_exactly() {
    assert_eq!(
        after_init("parallel:8:2000 info alloc:3796M"),
        "parallel 0, info 0 3796 of 4096, alloc 0",
    );
}

#[test]
fn failure_7_unknown_addresses_are_the_drivers_to_refuse() {
    assert_eq!(after_init("wrongfree info"), "wrongfree 1, info 0 3796 of 4096");
}

#[test]
fn the_end_of_a_context_gives_back_what_was_in_it() {
    let machine = Machine::new();
    let run = machine.run("run", HALF);
    assert_eq!(
        run.prints("dlsym", "init context:0 alloc:3G destroy retain info alloc:3796M"),
        "init 0, context 0, alloc 0, destroy 0, retain 0, info 0 3796 of 4096, alloc 0",
    );
}

#[test]
fn a_primary_context_counts_once_until_it_is_released_as_often_as_retained() {
    assert_eq!(
        after_init("retain info retain info letgo info letgo context:0 info"),
        "retain 0, info 0 3496 of 4096, retain 0, info 0 3496 of 4096, letgo 0, \
         info 0 3496 of 4096, letgo 0, context 0, info 0 3496 of 4096",
    );
}

#[test]
fn a_context_that_does_not_fit_is_refused() {
    let machine = Machine::new();
    let run = machine.run("run", CONTEXT - 1);
    assert_eq!(run.prints("dlsym", "init context:0 retain"), "init 0, context 2, retain 2");
}

#[test]
fn a_million_small_allocations_come_back_exactly() {
    assert_eq!(
        after_init("many:4000:7 freeall info many:4000:512 freeall info"),
        "many 0, freeall 0, info 0 3796 of 4096, many 0, freeall 0, info 0 3796 of 4096",
    );
}

#[test]
fn failure_16_devices_are_told_by_their_uuid() {
    let machine = Machine::new();
    let limit = |uuid, bytes| Limit { uuid, bytes, uncounted: 0, context: CONTEXT };
    // Listed in another order than the driver's, and only one of them.
    let both = [limit([2; 16], 1024 * MIB), limit([1; 16], 2048 * MIB)];
    let run = machine.run_with("both", &both, 0);
    assert_eq!(
        run.prints("dlsym", "init context:0 info"),
        "init 0, context 0, info 0 1748 of 2048"
    );
    assert_eq!(run.prints("dlsym", "init context:1 info"), "init 0, context 0, info 0 724 of 1024");
    let run = machine.run_with("one", &both[..1], 0);
    assert_eq!(run.prints("dlsym", "init context:0 total"), "init 0, context 2, total 0 0");
    let run = machine.run_with("others", &both[..1], fraction_abi::control::OTHERS_ALLOWED);
    assert_eq!(
        run.prints("dlsym", "init context:0 info alloc:7G"),
        "init 0, context 0, info 0 7892 of 8192, alloc 0",
    );
}

#[test]
fn failure_16_devices_that_a_program_chooses_or_hides_keep_their_limits() {
    let machine = Machine::new();
    let limit = |uuid, bytes| Limit { uuid, bytes, uncounted: 0, context: CONTEXT };
    let both = [limit([1; 16], 1024 * MIB), limit([2; 16], 2048 * MIB)];
    let run = machine.run_with("both", &both, 0);
    let [first, second] = ["GPU-01010101-0101-0101-0101-010101010101", "GPU-0202"];
    for (chosen, shown) in [
        (
            format!("{second},{first}"),
            "context 0, info 0 1748 of 2048, context 0, info 0 724 of 1024",
        ),
        (second.to_owned(), "context 0, info 0 1748 of 2048, context 101, info 0 1748 of 2048"),
        (
            format!("{first},{first}"),
            "context 0, info 0 724 of 1024, context 101, info 0 724 of 1024",
        ),
        (format!("GPU-03,{first}"), "none"),
        // Numbers are those of the machine, so the simulated driver takes none for one of the run.
        ("1".to_owned(), "context 0, info 0 724 of 1024, context 0, info 0 1748 of 2048"),
    ] {
        let mut command = run.command("dlsym", "init context:0 info context:1 info");
        let printed = prints(command.env("CUDA_VISIBLE_DEVICES", &chosen));
        match printed.strip_prefix("init 0, ") {
            Some(printed) => assert_eq!(printed, shown, "{chosen}"),
            None => assert!(shown == "none" && printed.starts_with("init 100"), "{printed}"),
        }
    }
}

#[test]
fn a_pool_of_a_device_that_the_run_does_not_have_gives_nothing() {
    assert_eq!(
        after_init("poolon:1 frompool:1M defaultpool:1 frompool:1M defaultpool:0 frompool:4G"),
        "poolon 0, frompool 2, defaultpool 0, frompool 2, defaultpool 0, frompool 2",
    );
}

#[test]
fn the_driver_itself_says_what_is_wrong_with_a_call() {
    let machine = Machine::new();
    let run = machine.run("run", HALF);
    assert_eq!(
        run.prints("dlsym", "context:0 init alloc:1 context:7 context:-1"),
        "context 3, init 0, alloc 201, context 101, context 101",
    );
}

#[test]
fn no_function_of_nvml_shows_or_limits_processes_of_others() {
    let machine = Machine::new();
    let nvml = compile_nvml("neighbours.c");
    std::fs::copy(nvml, machine.folder.path().join("libnvidia-ml.so.1")).unwrap();
    let run = machine.run("run", HALF);
    // On its own device the run sees itself among the computing processes; on another device it
    // sees all processes.
    let steps = "init context:0 lists:0";
    let shown = "init 0, context 0, lists 0:1 0:1 0:1 0:0 0:0 0:0 0:0 0:0 0:0 no count 2 no list 2 3 3 3 3 3 3 4";
    assert_eq!(run.prints("dlsym", steps), shown);
    let others = run.prints("dlsym", "init lists:1");
    assert!(others.ends_with("no count 2 no list 0 0 0 0 0 0 0 4"), "{others}");
    assert_eq!(prints(&mut run.with_proxies("dlsym", steps)), shown);
    // Nor where there are no pages that could be used.
    std::fs::remove_file(run.pages.join("claim")).unwrap();
    let closed = run.prints("dlsym", "init lists:0");
    assert!(closed.ends_with(" 4"), "{closed}");
}

#[test]
fn a_newer_structure_of_nvml_shows_nothing_of_a_device_of_the_run() {
    let machine = Machine::new();
    let nvml = compile_nvml("neighbours.c");
    std::fs::copy(nvml, machine.folder.path().join("libnvidia-ml.so.1")).unwrap();
    assert_eq!(
        prints(&mut machine.command("dlsym", "nvml")),
        "nvml 0 8192 8192 0, nvml2 0 8192 0 8192 0, nvml2 wrong 0",
    );
    let run = machine.run("run", HALF);
    let shown = "init 0, context 0, nvml 0 4096 3796 300, nvml2 0 4096 0 3796 300, nvml2 wrong 25";
    assert_eq!(run.prints("dlsym", "init context:0 nvml"), shown);
    assert_eq!(prints(&mut run.with_proxies("dlsym", "init context:0 nvml")), shown);
}

#[test]
fn nvml_shows_the_part_and_only_processes_of_the_run() {
    let machine = Machine::new();
    let (run, other) = (machine.run("run", HALF), machine.run("other", 2048 * MIB));
    let mut neighbour = other.start("init context:0 alloc:1G say:ready pause");
    neighbour.prints();
    assert_eq!(
        run.prints("dlsym", "init context:0 alloc:1G nvml processes"),
        "init 0, context 0, alloc 0, nvml 0 4096 2772 1324, nvml2 0 4096 0 2772 1324, \
         nvml2 wrong 25, processes 0 1 self:1324 room 7",
    );
}
