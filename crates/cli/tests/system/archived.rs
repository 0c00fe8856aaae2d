//! Commands of the researcher on a workload that has left the memory of the server.

use crate::sandbox::Sandbox;

const UP: &str = "elastane up --gpus 2x1GiB --ended-workloads-kept 0";

/// Each line with its exit code and a part of what it prints.
fn all_say(sandbox: &Sandbox, lines: &[(&str, i32, &str)]) {
    for (line, code, part) in lines {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(*code), "{line}\n{}", output.text);
        assert!(output.text.contains(part), "{line}\n{}", output.text);
    }
}

#[test]
fn a_workload_that_left_memory_is_used_as_any_other_in_both_dialects() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server(UP);
    all_say(
        &sandbox,
        &[
            ("elastane project create team-a --gpu-quota 2", 0, "created"),
            ("runai config project team-a", 0, "team-a"),
            ("runai submit good -i x -g 1 --command -- echo it ran", 0, "good"),
            ("runai training submit bad -i x --backoff-limit 0 --command -- sh -c 'exit 3'", 0, ""),
            // It is archived while this waits.
            ("runai wait good", 0, ""),
            ("runai wait bad", 1, "bad has failed: exit code 3"),
        ],
    );
    let used: &[(&str, i32, &str)] = &[
        ("runai wait good", 0, ""),
        ("runai wait bad", 1, "bad has failed: exit code 3"),
        ("runai training wait good", 0, ""),
        ("runai logs good", 0, "it ran"),
        ("runai training logs good", 0, "it ran"),
        ("runai workload list", 0, "good"),
        ("runai training list", 0, "bad"),
        ("runai list", 0, "Succeeded"),
        ("runai describe job good", 0, "Completed"),
        ("runai training describe bad", 0, "exit code 3"),
        ("runai explain good", 0, "good has completed"),
        ("runai exec good -- true", 1, "good is Completed"),
        ("runai training suspend good", 1, "has ended"),
        ("runai training resume good", 1, "has ended"),
        ("runai submit good -i x --command -- true", 1, "already exists"),
        ("runai training submit bad -i x --command -- true", 1, "already exists"),
    ];
    all_say(&sandbox, used);
    sandbox.kill_server();
    sandbox.start_server(UP);
    all_say(&sandbox, used);
    all_say(
        &sandbox,
        &[
            ("runai delete good", 0, "deleted"),
            ("runai wait good --for deleted", 0, ""),
            ("runai logs good", 4, "does not exist"),
            ("runai training delete bad", 0, "deleted"),
            ("runai wait bad", 4, "does not exist"),
            ("runai submit good -i x --command -- true", 0, "good"),
            ("runai wait good", 0, ""),
        ],
    );
}
