//! Processes of a run together, and pages that are missing or wrong.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;

use fraction_abi::control::Limit;

use crate::support::{CONTEXT, MIB, Machine, compile, prints};

#[test]
fn two_runs_share_a_device_and_neither_touches_the_other() {
    let machine = Machine::new();
    let (half, third) = (machine.run("frac05", 4096 * MIB), machine.run("frac03", 2457 * MIB));
    let mut first = half.start("init context:0 alloc:3796M alloc:1 pause info pause");
    assert_eq!(first.prints(), "init 0, context 0, alloc 0, alloc 2");
    assert_eq!(
        third.prints("dlsym", "init context:0 info alloc:2157M alloc:1"),
        "init 0, context 0, info 0 2157 of 2457, alloc 0, alloc 2",
    );
    assert_eq!(first.goes_on(), "info 0 0 of 4096");
}

#[test]
fn failure_8_processes_of_a_run_see_what_all_of_them_hold() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let mut first = run.start("init context:0 alloc:1G pause alloc:2G pause");
    first.prints();
    let mut second = run.start("init context:0 info alloc:2472M pause alloc:1G info pause");
    assert_eq!(second.prints(), "init 0, context 0, info 0 2472 of 4096, alloc 0");
    assert_eq!(first.goes_on(), "alloc 2");
    first.is_killed();
    assert_eq!(second.goes_on(), "alloc 0, info 0 300 of 4096");
}

#[test]
fn three_hundred_processes_of_a_run_are_counted_exactly_and_a_hundred_that_are_killed_are_not() {
    let machine = Machine::with_contexts(MIB);
    let limit = Limit { uuid: [1; 16], bytes: 3300 * MIB, uncounted: 0, context: MIB };
    let run = machine.run_with("run", &[limit], 0);
    let start = |_| run.start("init context:0 alloc:10M pause");
    let mut all: Vec<_> = (0..300).map(start).collect();
    for one in &mut all {
        assert_eq!(one.prints(), "init 0, context 0, alloc 0");
    }
    assert_eq!(run.prints("dlsym", "init context:0"), "init 0, context 2");
    assert_eq!(machine.broker.holders(0).values().sum::<u64>(), 3300 * MIB);
    all.drain(..100).for_each(|mut one| one.is_killed());
    assert_eq!(
        run.prints("dlsym", "init context:0 info alloc:1099M alloc:1"),
        "init 0, context 0, info 0 1099 of 3300, alloc 0, alloc 2",
    );
}

#[test]
fn in_a_program_with_the_rights_of_others_the_library_does_nothing() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip::skipped("only root makes a program with rights of others");
    }
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let command = run.with_proxies("plt", "secure init context:0 info");
    // Such a program looks for libraries where it says itself.
    let search = format!("-Wl,-rpath,{}", run.pages.join("libraries").display());
    let program = compile("cc", "secure", &["-DLINKED", &search]);
    let [own, other] = ["own", "other"].map(|name| program.with_file_name(name));
    let shown = |path: &std::path::Path| {
        let mut started = std::process::Command::new(path);
        started.args(command.get_args()).env_clear();
        prints(started.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))))
    };
    for path in [&own, &other] {
        std::fs::copy(&program, path).unwrap();
    }
    // A file of another group: the simulated driver reads the environment as another user could
    // not.
    chown(&other, None, Some(65534)).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o2755)).unwrap();
    assert_eq!(shown(&own), "secure 0, init 0, context 0, info 0 3796 of 4096");
    let with_rights = shown(&other);
    if with_rights.starts_with("secure 0") {
        return skip::skipped("programs get no rights of others here");
    }
    assert_eq!(with_rights, "secure 1, init 0, context 0, info 0 7892 of 8192");
}

#[test]
fn of_a_second_copy_of_the_driver_a_preload_allows_nothing_that_takes_memory() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let copy = machine.folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    let second = copy.join("libcuda.so.1");
    std::fs::copy(machine.folder.path().join("libcuda.so.1"), &second).unwrap();
    let steps = format!("init context:0 second:{} alloc:3796M alloc:1", second.display());
    assert_eq!(run.prints("dlsym", &steps), "init 0, context 0, second 801 801, alloc 0, alloc 2",);
}

#[test]
fn failure_19_no_variable_of_a_workload_switches_the_limit_off() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    for (name, value) in [
        ("CUDA_DISABLE_CONTROL", "true"),
        ("CUDA_DEVICE_MEMORY_LIMIT", "0"),
        ("GPU_CORE_UTILIZATION_POLICY", "disable"),
        ("ELASTANE_FRACTION", "/nowhere"),
    ] {
        let limited = "init 0, context 0, total 0 4096, alloc 2";
        let nothing = "init 0, context 2, total 0 8192, alloc 2";
        let expected = if name.starts_with("ELASTANE") { nothing } else { limited };
        let mut command = run.command("dlsym", "init context:0 total alloc:4G");
        assert_eq!(prints(command.env(name, value)), expected, "{name}");
    }
}

#[test]
fn failure_22_a_limit_holds_where_nvml_has_no_figure_of_memory() {
    let machine = Machine::new();
    std::fs::remove_file(machine.folder.path().join("libnvidia-ml.so.1")).unwrap();
    assert_eq!(
        machine.run("run", 4096 * MIB).prints("dlsym", "init context:0 total info alloc:3797M"),
        "init 0, context 0, total 0 4096, info 0 3796 of 4096, alloc 2",
    );
}

#[test]
fn memory_of_a_killed_process_is_free_for_the_next() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    run.prints("dlsym", "init context:0 alloc:3796M kill");
    assert_eq!(
        run.prints("dlsym", "init context:0 info alloc:3796M"),
        "init 0, context 0, info 0 3796 of 4096, alloc 0",
    );
}

#[test]
fn a_forked_child_is_a_process_of_its_own_and_limited() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    // The child initialises the driver itself, before its parent or after it.
    let child = "fork init context:0 alloc:3G info parent";
    assert_eq!(
        run.prints(
            "dlsym",
            &format!("{child} init context:0 info alloc:3G {child} alloc:724M alloc:1")
        ),
        "init 0, context 0, alloc 0, info 0 724 of 4096, child ended, \
         init 0, context 0, info 0 3796 of 4096, alloc 0, \
         init 0, context 0, alloc 2, info 0 424 of 4096, child ended, alloc 0, alloc 2",
    );
}

#[test]
fn limits_change_while_a_program_runs() {
    let machine = Machine::new();
    let run = machine.run("run", 2048 * MIB);
    let writer = run.writer();
    let mut program = run.start("init context:0 alloc:1G info pause info alloc:1M pause alloc:3G");
    assert_eq!(program.prints(), "init 0, context 0, alloc 0, info 0 724 of 2048");
    // Below what is held: nothing is taken, and nothing more is given.
    writer.set_limit(0, 512 * MIB);
    assert_eq!(program.goes_on(), "info 0 0 of 512, alloc 2");
    writer.set_limit(0, 8192 * MIB);
    assert_eq!(program.goes_on(), "alloc 0");
}

#[test]
fn failure_10_what_the_agent_sees_beyond_the_claims_counts() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    run.writer().set_uncounted(0, 500 * MIB);
    assert_eq!(
        run.prints("dlsym", "init context:0 info alloc:3296M alloc:1"),
        "init 0, context 0, info 0 3296 of 4096, alloc 0, alloc 2",
    );
}

#[test]
fn free_memory_is_never_more_than_the_device_has_and_what_it_refuses_is_undone() {
    let machine = Machine::new();
    let run = machine.run("run", 1000 * MIB);
    let big = Limit { uuid: [1; 16], bytes: 8192 * MIB, uncounted: 0, context: CONTEXT };
    let neighbour = machine.run_with("neighbour", &[big], 0);
    let mut holds = neighbour.start("init context:0 alloc:7000M pause");
    holds.prints();
    assert_eq!(
        run.prints("dlsym", "init context:0 info alloc:650M info nvml"),
        "init 0, context 0, info 0 592 of 1000, alloc 2, info 0 592 of 1000, \
         nvml 0 1000 592 408, nvml2 0 1000 0 592 408, nvml2 wrong 25",
    );
}

#[test]
fn failure_15_pages_that_cannot_be_used_refuse_and_never_crash() {
    let machine = Machine::new();
    let steps = "init context:0 alloc:1";
    let refused = "init 0, context 2, alloc 2";
    for (name, break_it) in [
        ("short", (|file| std::fs::write(file, "short").unwrap()) as fn(&std::path::Path)),
        ("empty", |file| std::fs::write(file, "").unwrap()),
        ("zeros", |file| std::fs::write(file, vec![0; 300_000]).unwrap()),
        ("gone", |file| std::fs::remove_file(file).unwrap()),
    ] {
        for page in ["control", "claim"] {
            let run = machine.run(&format!("{name}-{page}"), 4096 * MIB);
            break_it(&run.pages.join(page));
            assert_eq!(run.prints("dlsym", steps), refused, "{name} {page}");
        }
    }
    let run = machine.run("long", 4096 * MIB);
    let mut command = run.command("dlsym", steps);
    command.env("ELASTANE_FRACTION", format!("/{}", "x/".repeat(5000)));
    assert_eq!(prints(&mut command), refused);
    let run = machine.run("nowhere", 4096 * MIB);
    std::fs::remove_dir_all(&run.pages).unwrap();
    assert_eq!(run.prints("dlsym", steps), refused);
}

#[test]
fn pages_of_another_account_refuse() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip::skipped("only root starts programs of other accounts");
    }
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let limited = run.command("dlsym", "init context:0 alloc:3796M alloc:1");
    let program = machine.folder.path().join("program");
    std::fs::copy(limited.get_program(), &program).unwrap();
    let open = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(machine.folder.path(), 0o755);
    open(&machine.folder.path().join("broker"), 0o777);
    let claim = run.pages.join("claim");
    open(&claim, 0o600);
    let as_other = || {
        let mut other = std::process::Command::new(&program);
        other.args(limited.get_args()).env_clear().uid(65534).gid(65534).current_dir("/");
        prints(other.envs(limited.get_envs().filter_map(|(name, value)| Some((name, value?)))))
    };
    assert_eq!(as_other(), "init 0, context 2, alloc 2, alloc 2");
    chown(&claim, Some(65534), None).unwrap();
    assert_eq!(as_other(), "init 0, context 0, alloc 0, alloc 2");
    // It may read what it may have, and not change it.
    open(&run.pages.join("control"), 0o600);
    assert_eq!(as_other(), "init 0, context 2, alloc 2, alloc 2");
}

#[test]
fn failure_20_an_empty_environment_lifts_no_limit() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let steps = "init context:0 alloc:3796M alloc:1";
    // The library finds no pages, so there is nothing to be had.
    let mut command = run.command("dlsym", steps);
    let nothing = "init 0, context 2, alloc 2, alloc 2";
    assert_eq!(prints(command.env_remove("ELASTANE_FRACTION")), nothing);
    // Beside it there are pages: those count, also against what the environment says.
    let library = run.pages.join("libelastane-fraction.so");
    std::fs::copy(machine.folder.path().join("preload.so"), &library).unwrap();
    let other = machine.run("other", 8192 * MIB);
    for pages in [None, Some(&other.pages)] {
        let mut command = machine.command("dlsym", steps);
        command.env("LD_PRELOAD", &library);
        command.envs(pages.map(|pages| ("ELASTANE_FRACTION", pages)));
        assert_eq!(prints(&mut command), "init 0, context 0, alloc 0, alloc 2");
    }
}

#[test]
fn an_exec_gives_back_what_the_program_before_it_held() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    assert_eq!(
        run.prints("dlsym", "init context:0 alloc:3G exec init info context:0 info alloc:3796M"),
        "init 0, context 0, alloc 0, init 0, info 201 0 of 0, context 0, info 0 3796 of 4096, \
         alloc 0",
    );
    // Also where the next program has nothing to do with the driver.
    let mut first = run.start("init context:0 alloc:3G pause exec pause");
    first.prints();
    let mut second = run.start("init context:0 info alloc:3G pause alloc:3G info pause");
    assert_eq!(second.prints(), "init 0, context 0, info 0 424 of 4096, alloc 2");
    first.goes_on();
    assert_eq!(second.goes_on(), "alloc 0, info 0 724 of 4096");
}

#[test]
fn bounds_of_limits() {
    let machine = Machine::new();
    for (bytes, expected) in [
        (0, "init 0, context 2, total 0 0"),
        (CONTEXT, "init 0, context 0, total 0 300, alloc 2"),
        (u64::MAX, "init 0, context 0, total 0 8192, alloc 0"),
    ] {
        let run = machine.run(&bytes.to_string(), bytes);
        let steps = if bytes == 0 { "total" } else { "total alloc:1" };
        let printed = run.prints("dlsym", &format!("init context:0 {steps}"));
        assert_eq!(printed, expected, "{bytes}");
    }
}
