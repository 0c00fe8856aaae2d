//! Quotas by node pool at the terminal: set, listed, and not lost without an error.

use crate::sandbox::{Sandbox, wait_until};

/// A server whose two nodes are full of work of team-a, which is within its quota.
fn full() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 2x1x1GiB");
    let lines = "elastane project create team-a --gpu-quota 2; runai config project team-a\n\
                 runai workspace submit one -i ubuntu -g 1 --command -- sleep 1000\n\
                 runai workspace submit two -i ubuntu -g 1 --command -- sleep 1000";
    assert_eq!(sandbox.shell(lines).code, Some(0));
    let both = || sandbox.shell("runai workspace list | grep -c ' Running '").text == "2\n";
    assert!(wait_until(both), "{}", sandbox.shell("runai workspace list").text);
    sandbox
}

fn says(sandbox: &Sandbox, line: &str, code: i32, parts: &[&str]) {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
    let words = output.text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(words.contains(part), "{line} lacks {part:?}\n{}", output.text);
    }
}

#[test]
fn a_pool_that_would_void_the_quota_of_running_work_is_created_only_with_yes() {
    let sandbox = full();
    let create = "elastane node-pool create left --label kubernetes.io/hostname=node-1";
    let effects = [
        "1 node of node pool default would be in left: node-1",
        "node pool default would have 1 GPU, fewer than the quotas there: team-a 2",
        "team-a would hold 1 GPU in node pool left and have a quota of 0 GPUs there",
    ];
    says(&sandbox, create, 1, &effects);
    says(&sandbox, create, 1, &["not changed", "add --yes"]);
    says(&sandbox, "elastane node-pool list", 0, &["default - Ready - - node-1,node-2"]);
    says(&sandbox, &format!("{create} --yes"), 0, &effects);
    says(&sandbox, "elastane node-pool list", 0, &["left kubernetes.io/hostname=node-1"]);
    says(&sandbox, "elastane project list", 0, &["team-a 2.00 default 2, left 0 2.00"]);
}

#[test]
fn quotas_are_given_shown_and_deleted_by_node_pool() {
    let sandbox = full();
    let create = "elastane node-pool create left --label kubernetes.io/hostname=node-1 --yes";
    says(&sandbox, create, 0, &["node pool left created: node-1"]);
    says(
        &sandbox,
        "runai explain one",
        0,
        &["Project team-a holds in node pool ", " 1 GPU (quota"],
    );
    for (line, code, part) in [
        (
            "project update team-a --gpu-quota 1 --node-pool left",
            0,
            "1 in node pool left (3 in all)",
        ),
        ("project update team-a --gpu-quota 1", 0, "1 in node pool default (2 in all)"),
        ("project describe team-a", 0, "GPU quota by pool: default 1, left 1"),
        ("project list", 0, "team-a 2.00 default 1, left 1 2.00"),
        ("department list", 0, "default 2 default 1, left 1 2"),
        ("project update team-a --node-pool left", 2, "give one, such as --gpu-quota 2"),
        ("project update team-a --node-pool lift --gpu-quota 1", 4, "did you mean `left`?"),
        (
            "project update team-a --gpu-quota 0 --node-pool left",
            1,
            "team-a holds 1 GPU in node pool left and would have a quota of 0 GPUs there",
        ),
        ("project describe team-a", 0, "GPU quota by pool: default 1, left 1"),
        ("department update default --gpu-quota 3 --node-pool left", 0, "3 in node pool left"),
        (
            "node-pool delete left",
            1,
            "the GPU quotas in node pool left would be deleted with it: team-a 1; departments \
             default 3",
        ),
        (
            "node-pool delete left",
            1,
            "team-a would hold 2 GPUs in node pool default and have a quota of 1 GPU there",
        ),
        ("project update team-a --gpu-quota 2", 0, "2 in node pool default (3 in all)"),
        ("node-pool delete left", 0, "node pool left deleted"),
        ("project list", 0, "team-a 2.00 2.00 100.00%"),
        ("project update team-a --gpu-quota 1 --yes", 0, "updated, GPU quota 1"),
    ] {
        says(&sandbox, &format!("elastane {line}"), code, &[part]);
    }
}
