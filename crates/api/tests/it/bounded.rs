//! Everything that a user can make, and what bounds it. Owns: the table in the documentation, and
//! that each operation that may create something, and each read that lasts, is in it. Does not know
//! about: how a limit is counted.

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::expect_file;
use spec::UserLimit;
use spec::UserLimit as L;

use crate::server::Server;

/// Something that users make.
struct Thing {
    name: &'static str,
    /// In whose name it is counted.
    whose: &'static str,
    limits: &'static [UserLimit],
    /// Bounds that are fixed.
    fixed: &'static str,
    /// Operations that make it.
    made_by: &'static [&'static str],
}

const OBJECTS: &[UserLimit] = &[
    L::UserObjectsOfOne,
    L::UserObjectsOfOneBytes,
    L::ObjectsOfOne,
    L::ObjectsOfOneBytes,
    L::UserObjects,
    L::UserObjectsBytes,
    L::Objects,
    L::ObjectBytes,
];

const THINGS: &[Thing] = &[
    Thing {
        name: "workloads",
        whose: "user in a project, project",
        limits: &[
            L::UserWorkloads,
            L::UserWorkloadBytes,
            L::ProjectWorkloads,
            L::ProjectWorkloadBytes,
            L::EnvironmentBytes,
            L::LabelsBytes,
        ],
        fixed: "a request of 1 MiB",
        made_by: &[
            "create_distributed",
            "create_inference1",
            "create_training1",
            "create_workload_v2",
            "create_workspace1",
            "update_distributed_spec",
            "update_inference_spec",
            "update_training_spec",
            "update_workload_v2",
            "update_workspace_spec",
        ],
    },
    Thing {
        name: "pods",
        whose: "user in a project, project",
        limits: &[L::UserPods, L::ProjectPods],
        fixed: "",
        made_by: &["resume_distributed", "resume_training", "resume_workspace"],
    },
    Thing {
        name: "archived workloads",
        whose: "user in a project, project",
        limits: &[
            L::UserArchivedWorkloads,
            L::UserArchivedBytes,
            L::ProjectArchivedWorkloads,
            L::ProjectArchivedBytes,
        ],
        fixed: "",
        made_by: &[],
    },
    Thing {
        name: "deleted workloads",
        whose: "user in a project, project",
        limits: &[L::DeletedWorkloads],
        fixed: "30 days",
        made_by: &["batch_workloads"],
    },
    Thing {
        name: "assets, templates, policies, config maps, credentials, volumes (until their data is \
            deleted)",
        whose: "user in a project, project, user",
        limits: OBJECTS,
        fixed: "1 MiB of a config map, 256 KiB of a credential",
        made_by: &[
            "create_access_key",
            "create_compute_asset",
            "create_config_map_asset",
            "create_distributed_template",
            "create_docker_registry",
            "create_environment_asset",
            "create_generic_secret",
            "create_git_asset",
            "create_host_path",
            "create_inference_template",
            "create_nfs_asset",
            "create_ngc_api_key",
            "create_password",
            "create_pvc_asset",
            "create_s3_asset",
            "create_secret_asset",
            "create_training_template",
            "create_workspace_template",
            "overwrite_distributed_policy_v2",
            "overwrite_inference_policy_v2",
            "overwrite_training_policy_v2",
            "overwrite_workspace_policy_v2",
            "patch_distributed_template",
            "patch_training_template",
            "patch_workspace_template",
            "put_config_map",
            "update_access_key",
            "update_compute_asset_by_id",
            "update_config_map_asset_by_id",
            "update_distributed_policy_v2",
            "update_distributed_template",
            "update_docker_registry",
            "update_environment_asset_by_id",
            "update_generic_secret",
            "update_git_asset_by_id",
            "update_host_path_by_id",
            "update_inference_policy_v2",
            "update_nfs_asset_by_id",
            "update_ngc_api_key",
            "update_password",
            "update_pvc_asset_by_id",
            "update_s3_asset_by_id",
            "update_secret_asset_by_id",
            "update_training_policy_v2",
            "update_training_template",
            "update_workspace_policy_v2",
            "update_workspace_template",
        ],
    },
    Thing {
        name: "users, service accounts, access rules, priority classes, workload types, settings of \
            nodes, prices",
        whose: "installation, user",
        limits: &[L::Objects, L::ObjectBytes, L::UserObjectsBytes],
        fixed: "",
        made_by: &[
            "access_rules_batch",
            "access_rules_batch_create",
            "change_node",
            "create_access_rule",
            "create_service_account",
            "create_user",
            "create_workload_type",
            "fail_simulated_gpu",
            "label_node",
            "put_priority_class",
            "set_gpu_prices",
            "update_service_account_by_id",
            "update_tenant_setting",
            "update_workload_type",
        ],
    },
    Thing {
        name: "access keys",
        whose: "user or service account",
        limits: &[L::ObjectsOfOne, L::ObjectsOfOneBytes, L::Objects, L::ObjectBytes],
        fixed: "",
        made_by: &[
            "change_user_password",
            "create_access_key1",
            "regenerate_access_key_secret",
            "regenerate_service_account_secret",
            "reset_user_password",
        ],
    },
    Thing {
        name: "sessions",
        whose: "user",
        limits: &[L::Sessions],
        fixed: "",
        made_by: &["begin_browser_session", "grant_token", "grant_token_v2"],
    },
    Thing {
        name: "one-time links",
        whose: "user",
        limits: &[],
        fixed: "256; the oldest of the user with the most goes",
        made_by: &["create_login_link"],
    },
    Thing {
        name: "tickets of WebSockets",
        whose: "user",
        limits: &[],
        fixed: "64 of one user, 2,048 of all; the oldest of the user with the most goes",
        made_by: &["create_ticket", "create_websocket_ticket"],
    },
    Thing {
        name: "sessions in a pod, forwarded ports",
        whose: "user",
        limits: &[],
        fixed: "200 of one user, 1,000 of all; 1 MiB a message",
        made_by: &["attach", "exec", "port_forward"],
    },
    Thing {
        name: "streams, followed logs",
        whose: "user, client",
        limits: &[],
        fixed: "512 connections of one user, 1,024 of a client",
        made_by: &["get_logs", "stream_changes", "stream_events"],
    },
    Thing {
        name: "questions (what-if, effects of a change)",
        whose: "user",
        limits: &[],
        fixed: "256 of one user wait, 2,048 of all",
        made_by: &["quota_effects", "what_if"],
    },
    Thing {
        name: "departments, projects",
        whose: "installation",
        limits: &[],
        fixed: "10,000 each; rows of deleted ones stay, a few hundred bytes each",
        made_by: &[
            "create_department",
            "create_project",
            "patch_department_resources",
            "patch_project_resources",
            "update_department",
            "update_department_resources",
            "update_project",
            "update_project_resources",
        ],
    },
    Thing {
        name: "node pools, topologies, simulated nodes",
        whose: "installation",
        limits: &[L::ObjectBytes],
        fixed: "100, 16, 1,024",
        made_by: &[
            "add_simulated_node",
            "create_network_topology",
            "create_nodepool",
            "patch_nodepool",
            "update_nodepool",
        ],
    },
    Thing {
        name: "events",
        whose: "user in a project, project",
        limits: &[L::Events],
        fixed: "90 days",
        made_by: &[],
    },
    Thing {
        name: "rows of the audit log",
        whose: "subject",
        limits: &[L::AuditRows],
        fixed: "400 days",
        made_by: &[],
    },
];

/// Operations that create nothing that stays.
const MAKES_NOTHING: &[&str] = &[
    "begin_login",
    "create_cluster",
    "end_session",
    "get_permitted_scopes",
    "get_workloads_by_post",
    "logout_user",
    "stop_server",
    "suspend_distributed",
    "suspend_training",
    "suspend_workspace",
    "update_cluster",
];

/// Reads that last.
const LASTING: &[&str] =
    &["exec", "attach", "port_forward", "stream_events", "stream_changes", "get_logs"];

#[tokio::test]
async fn each_operation_that_creates_something_has_a_bound() {
    let document = Server::new().await.get("/elastane/v1/openapi.json").await;
    let made = THINGS.iter().flat_map(|thing| thing.made_by).chain(MAKES_NOTHING);
    let known: BTreeSet<_> = made.copied().collect();
    let mut there = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let creates = ["post", "put", "patch"].contains(&method.as_str());
            let is_served = operation["responses"].get("501").is_none();
            if (creates || LASTING.contains(&id)) && is_served {
                there.insert(id);
            }
        }
    }
    let lacking: Vec<_> = there.difference(&known).collect();
    assert!(lacking.is_empty(), "add these to THINGS with their bounds: {lacking:?}");
    let gone: Vec<_> = known.difference(&there).collect();
    assert!(gone.is_empty(), "the API does not have these any more: {gone:?}");
}

#[test]
fn each_limit_bounds_something() {
    let used = |limit: &UserLimit| THINGS.iter().any(|thing| thing.limits.contains(limit));
    let idle: Vec<_> = UserLimit::ALL.iter().filter(|limit| !used(limit)).collect();
    assert!(idle.is_empty(), "{idle:?}");
}

#[test]
fn the_documentation_has_the_table_of_things() {
    const HEADER: &str = "| made by users | in the name of | limits | fixed |\n|---|---|---|---|\n";
    let row = |thing: &Thing| {
        let limits: Vec<_> =
            thing.limits.iter().map(|limit| format!("`{}`", limit.name())).collect();
        format!("| {} | {} | {} | {} |\n", thing.name, thing.whose, limits.join(", "), thing.fixed)
    };
    let rows: String = THINGS.iter().map(row).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/limits.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(HEADER).expect("the table");
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    expect_file![path].assert_eq(&format!("{before}{HEADER}{rows}\n{after}"));
}
