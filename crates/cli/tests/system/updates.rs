//! Updates of existing workloads, and lists that request only the rows that they print.

use crate::sandbox::{Sandbox, wait_until};

fn says(sandbox: &Sandbox, line: &str, code: i32, parts: &[&str]) {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
    for part in parts {
        assert!(output.text.contains(part), "{line} lacks {part:?}\n{}", output.text);
    }
}

fn runs(sandbox: &Sandbox, name: &str) {
    let line = "runai training list -o 'jsonpath={.items[?(@.phase==\"Running\")].name}'";
    let mut last = String::new();
    let ran = wait_until(|| {
        last = sandbox.shell(line).text;
        last.split_whitespace().any(|running| running == name)
    });
    assert!(ran, "{name} does not run, but {last}");
}

#[test]
fn a_training_with_a_higher_priority_takes_the_gpu_and_keeps_it_over_a_restart() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    says(&sandbox, "elastane project create team-a --gpu-quota 1", 0, &["created"]);
    says(&sandbox, "runai config project team-a", 0, &["team-a"]);
    says(&sandbox, "runai training submit first -i x -g 1 -c -- sleep 600", 0, &["first"]);
    runs(&sandbox, "first");
    says(&sandbox, "runai training submit next -i x -g 1 -c -- sleep 600", 0, &["next"]);
    let higher = "runai training update next --priority high --label why=deadline";
    says(&sandbox, higher, 0, &["Updating training next..."]);
    says(&sandbox, higher, 0, &["Updating training next..."]);
    runs(&sandbox, "next");
    says(&sandbox, "runai training describe next", 0, &["high", "why=deadline", "[Updated]"]);

    let fixed = "--image cannot change while the workload exists";
    says(&sandbox, "runai training update next -i y", 2, &[fixed]);
    let holds = "suspend it, change it, and resume it";
    says(&sandbox, "runai training update next --preemptibility non-preemptible", 1, &[holds]);
    says(&sandbox, "runai training update none --priority low", 4, &["none does not exist"]);
    says(&sandbox, "runai workspace update next --priority low", 4, &["there is a training"]);
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    runs(&sandbox, "next");
    let label = "runai list --label why=deadline -o name";
    assert_eq!(sandbox.shell(label).text.trim(), "training/next");
    says(&sandbox, "runai training update next --label why-", 0, &[]);
    assert_eq!(sandbox.shell(label).text.trim(), "");
}

#[test]
fn a_list_asks_the_server_for_what_it_prints() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x1GiB");
    says(&sandbox, "elastane project create team-a --gpu-quota 2", 0, &["created"]);
    says(&sandbox, "runai config project team-a", 0, &["team-a"]);
    for name in ["a", "b", "c"] {
        let line = format!("runai training submit {name} -i x -g 1 -c -- sleep 600");
        says(&sandbox, &line, 0, &[name]);
    }
    for name in ["a", "b"] {
        runs(&sandbox, name);
    }
    let some = "runai workload list --limit 2 --debug";
    let asked = ["GET /api/v1/workloads/count 200", "1 more: --offset 2, or --no-pagination"];
    says(&sandbox, some, 0, &asked);
    says(&sandbox, "runai workload list --limit 2 --offset 2 -o name", 0, &["training/c"]);
    let pending = "runai workload list --status pending,failed -o name";
    assert_eq!(sandbox.shell(pending).text.trim(), "training/c");
    let on_node = "runai list --node \"$(runai node list -o 'jsonpath={[0].name}')\" -o name";
    assert_eq!(sandbox.shell(on_node).text.trim(), "training/a\ntraining/b");
    assert_eq!(sandbox.shell("runai list --user nobody -o name").text.trim(), "");
    assert_eq!(
        sandbox.shell("runai list --sort name:desc --limit 1 -o name").text.trim(),
        "training/c"
    );
}

#[test]
fn colors_and_forms_are_alike_for_every_verb() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    says(&sandbox, "elastane project create team-a --gpu-quota 1", 0, &["created"]);
    says(&sandbox, "runai config project team-a", 0, &["team-a"]);
    says(&sandbox, "runai training submit a -i x -g 1 -c -- sleep 600", 0, &["a"]);
    runs(&sandbox, "a");
    let green = "\u{1b}[32mRunning";
    says(&sandbox, "runai list --color always", 0, &[green]);
    says(&sandbox, "CLICOLOR_FORCE=1 runai list", 0, &[green]);
    for line in ["runai list", "CLICOLOR_FORCE=1 runai list --color never"] {
        assert!(!sandbox.shell(line).text.contains('\u{1b}'), "{line}");
    }
    says(&sandbox, "runai top job -o 'jsonpath={.items[*].name}'", 0, &["a"]);
    says(&sandbox, "runai top node -o json", 0, &["\"measured\": {", "\"gpuType\""]);
    says(&sandbox, "runai top node --sort gpu:desc --no-headers", 0, &["Ready"]);
    says(&sandbox, "runai whoami -o json", 0, &["\"loggedInBy\"", "\"server\""]);
    says(&sandbox, "elastane usage -o json", 0, &["\"rows\""]);
    let zone = "TZ=Asia/Kolkata elastane project describe team-a -o wide";
    says(&sandbox, zone, 0, &["+05:30 by"]);
    let told = sandbox.shell("elastane project describe team-a").text;
    assert!(told.contains("just now by") || told.contains("ago by"), "{told}");
}
