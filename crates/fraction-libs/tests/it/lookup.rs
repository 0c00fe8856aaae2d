//! Each way in which a program can find a function of the driver.

use fraction_libs::{PRELOAD, PROXY_CUDA, with_real};

use crate::support::{MIB, Machine, compile, prints};

#[test]
fn the_limit_holds_however_functions_are_found() {
    let machine = Machine::new();
    for how in ["plt", "dlsym", "dlvsym", "address", "old", "threads"] {
        let run = machine.run(how, 4096 * MIB);
        assert_eq!(
            run.prints(how, "init context:0 alloc:3796M alloc:1 free async:3797M kernel sync"),
            "init 0, context 0, alloc 0, alloc 2, free 0, async 2, kernel 0, sync 0",
            "{how}",
        );
    }
}

#[test]
fn failure_3_rtld_next_answers_the_same_each_time() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    assert_eq!(run.prints("dlsym", "next next"), "next 0, next 0");
}

#[test]
fn failure_13_each_version_and_flag_leads_to_what_is_kept_for_it() {
    let machine = Machine::new();
    assert_eq!(machine.run("run", 4096 * MIB).prints("dlsym", "versions"), "versions many 0");
}

#[test]
fn the_limit_holds_beside_another_preload_that_stands_before_dlsym() {
    let machine = Machine::new();
    let (source, other) = (machine.folder.path().join("o.c"), machine.folder.path().join("o.so"));
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
        void *dlsym(void *restrict in, const char *restrict name) {\n\
        static void *(*next)(void *, const char *);\n\
        if (!next) next = dlvsym(RTLD_NEXT, \"dlsym\", \"GLIBC_2.2.5\");\n\
        return next(in, name); }\n";
    std::fs::write(&source, text).unwrap();
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&other).arg(&source).arg("-ldl");
    assert!(compiler.status().unwrap().success());
    let ours = machine.folder.path().join("preload.so");
    let run = machine.run("run", 4096 * MIB);
    let steps = "init context:0 alloc:3796M alloc:1";
    let limited = "init 0, context 0, alloc 0, alloc 2";
    let both = |first: &std::path::Path, second: &std::path::Path| {
        [first.as_os_str(), second.as_os_str()].join(std::ffi::OsStr::new(":"))
    };
    let mut command = run.command("dlsym", steps);
    assert_eq!(prints(command.env("LD_PRELOAD", both(&ours, &other))), limited);
    // One before it may pass it by, and then only a proxy is left.
    let mut command = run.with_proxies("dlsym", steps);
    assert_eq!(prints(command.env("LD_PRELOAD", both(&other, &ours))), limited);
}

#[test]
fn a_name_is_found_exactly_where_the_driver_has_it() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    assert_eq!(run.prints("dlsym", "default"), "default found none");
    assert_eq!(run.prints("dlsym", "empty"), "empty 500 1 1");
    // As in a program without a driver.
    let mut command = run.command("dlsym", "default");
    assert_eq!(prints(command.env("LD_LIBRARY_PATH", "/nowhere")), "no driver");
}

#[test]
fn failure_24_other_programs_run_and_print_as_without_the_library() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    for (program, arguments) in
        [("/bin/sh", ["-c", "echo ready; exec 2>&1; /bin/echo ready"]), ("/bin/echo", ["a", "b"])]
    {
        let mut with = run.command("dlsym", "");
        let mut command = std::process::Command::new(program);
        command.args(arguments);
        let without = prints(&mut command);
        command.env_clear().envs(with.get_envs().filter_map(|(k, v)| Some((k, v?))));
        assert_eq!(prints(&mut command), without);
        with.env_clear();
    }
}

#[test]
fn a_proxy_limits_where_a_preload_does_not_reach() {
    let machine = Machine::new();
    for how in ["plt", "dlsym", "dlvsym", "address", "old", "threads", "deepbind", "namespace"] {
        let run = machine.run(how, 4096 * MIB);
        let steps = "init context:0 info alloc:3796M alloc:1 free async:3797M kernel sync";
        assert_eq!(
            prints(&mut run.with_proxies(how, steps)),
            "init 0, context 0, info 0 3796 of 4096, alloc 0, alloc 2, free 0, async 2, kernel 0, \
             sync 0",
            "{how}",
        );
    }
    let run = machine.run("nvml", 4096 * MIB);
    assert_eq!(
        prints(&mut run.with_proxies("dlsym", "init context:0 alloc:1G nvml processes empty")),
        "init 0, context 0, alloc 0, nvml 0 4096 2772 1324, nvml2 0 4096 0 2772 1324, \
         nvml2 wrong 25, processes 0 1 self:1324 room 7, empty 500 1 1",
    );
}

#[test]
fn a_plugin_that_is_loaded_apart_is_limited_by_proxies_and_not_by_a_preload_alone() {
    let machine = Machine::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/apart.c");
    let [program, plugin] = ["apart", "plugin.so"].map(|name| machine.folder.path().join(name));
    for (output, options) in [(&program, &[][..]), (&plugin, &["-DPLUGIN", "-shared", "-fPIC"])] {
        let mut compiler = std::process::Command::new("cc");
        compiler.args(options).arg("-o").arg(output).args([source, "-ldl"]);
        assert!(compiler.status().unwrap().success());
    }
    for (how, preloaded) in [("usual", "2"), ("deepbind", "0"), ("namespace", "0")] {
        let run = machine.run(how, 4096 * MIB);
        let of = |command: std::process::Command| {
            let mut apart = std::process::Command::new(&program);
            apart.arg(how).arg(&plugin).env_clear();
            prints(apart.envs(command.get_envs().filter_map(|(k, v)| Some((k, v?)))))
        };
        assert_eq!(of(run.command("dlsym", "")), preloaded, "{how}");
        assert_eq!(of(run.with_proxies("dlsym", "")), "2", "{how}");
    }
}

#[test]
fn a_preload_and_a_proxy_together_count_once() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let mut command = run.with_proxies("dlsym", "init context:0 alloc:2G info alloc:1748M alloc:1");
    command.env("LD_PRELOAD", machine.folder.path().join("preload.so"));
    assert_eq!(
        prints(&mut command),
        "init 0, context 0, alloc 0, info 0 1748 of 4096, alloc 0, alloc 2",
    );
}

#[test]
fn a_proxy_of_nvml_alone_does_not_switch_a_preload_off() {
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let mut command = run.with_proxies("dlsym", "nvml init context:0 alloc:3797M alloc:1G nvml");
    std::fs::remove_file(run.pages.join("libraries/libcuda.so.1")).unwrap();
    let libraries = run.pages.join("libraries");
    let folders = [libraries.as_os_str(), machine.folder.path().as_os_str()];
    command.env("LD_LIBRARY_PATH", folders.join(std::ffi::OsStr::new(":")));
    command.env("LD_PRELOAD", machine.folder.path().join("preload.so"));
    assert_eq!(
        prints(&mut command),
        "nvml 0 4096 4096 0, nvml2 0 4096 0 4096 0, nvml2 wrong 25, init 0, context 0, alloc 2, \
         alloc 0, nvml 0 4096 2772 1324, nvml2 0 4096 0 2772 1324, nvml2 wrong 25",
    );
}

#[test]
fn a_proxy_needs_the_absolute_path_of_the_real_library() {
    let with = |path: &str| with_real(PROXY_CUDA, std::path::Path::new(path));
    assert!(with("/usr/lib/libcuda.so.1").is_some());
    for wrong in ["libcuda.so.1", "", "/a\0b", &format!("/{}", "x".repeat(1000))] {
        assert!(with(wrong).is_none(), "{wrong}");
    }
    assert!(with_real(PRELOAD, std::path::Path::new("/usr/lib/libcuda.so.1")).is_none());
}

/// True if a program is on this machine; if not, the test says that it is skipped.
fn has(program: &str) -> bool {
    let output = std::process::Command::new(program).arg("--version").output();
    let has = output.is_ok_and(|output| output.status.success());
    if !has {
        skip::skipped(&format!("{program} is not installed"));
    }
    has
}

#[test]
fn the_limit_holds_with_another_c_library() {
    if !has("musl-gcc") {
        return;
    }
    let machine = Machine::new();
    let program = compile("musl-gcc", "musl", &["-DMUSL", "-U_GNU_SOURCE"]);
    let run = machine.run("run", 4096 * MIB);
    let steps = "init context:0 info alloc:3796M alloc:1 next nvml";
    for (how, limited) in
        [("preload", run.command("dlsym", steps)), ("proxies", run.with_proxies("dlsym", steps))]
    {
        let mut command = std::process::Command::new(&program);
        command.args(limited.get_args()).env_clear();
        command.envs(limited.get_envs().filter_map(|(name, value)| Some((name, value?))));
        assert_eq!(
            prints(&mut command),
            "init 0, context 0, info 0 3796 of 4096, alloc 0, alloc 2, next 0, \
             nvml 0 4096 0 4096, nvml2 0 4096 0 0 4096, nvml2 wrong 25",
            "{how}",
        );
    }
}

#[test]
fn the_limit_holds_in_python() {
    if !has("python3") {
        return;
    }
    let machine = Machine::new();
    let run = machine.run("run", 4096 * MIB);
    let script = "
import ctypes
cuda = ctypes.CDLL('libcuda.so.1')
context, address = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
print(cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
print(cuda.cuMemAlloc_v2(ctypes.byref(address), 3796 << 20))
print(cuda.cuMemAlloc_v2(ctypes.byref(address), 1))
";
    let limited = run.command("dlsym", "");
    let mut command = std::process::Command::new("python3");
    command.args(["-c", script]);
    command.envs(limited.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert_eq!(prints(&mut command), "0 0, 0, 2");
}
