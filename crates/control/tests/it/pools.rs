//! Node pools: nodes that are taken and given back, quotas of their own, places in order of
//! preference. All of it counts at once, and survives.

use std::collections::BTreeMap;

use model::Fill;
use model::{UsageWindow, WindowKind};
use orchestrator::{Error, NodeChange, OrgChange, PoolChange};
use spec::{
    NodeSpec, NodeTypes, PoolFractions, PoolSettings, PoolSpec, Share, TimeSlicing, WorkloadSpec,
};
use store::Database;
use store::testing::PgServer;
use view::{Phase, View};

use crate::inference::inference;
use crate::world::{World, given, gpus, nodes, project, training, workspace};

/// Two nodes of two GPUs in zone a, two in zone b.
fn zones() -> Vec<NodeSpec> {
    let mut all = nodes(4, 2);
    for (node, zone) in all.iter_mut().zip(["a", "a", "b", "b"]) {
        node.labels.insert("zone".to_owned(), zone.to_owned());
    }
    all
}

fn labelled(name: &str, key: &str, value: &str) -> PoolSpec {
    let label = Some((key.to_owned(), value.to_owned()));
    PoolSpec { name: name.to_owned(), settings: PoolSettings::new(label) }
}

async fn pool(w: &World, name: &str, zone: &str) -> String {
    w.handle.create_pool("admin", labelled(name, "zone", zone)).await.unwrap().id.clone()
}

fn quota_in(pool: &str, quota: u64) -> OrgChange {
    OrgChange { shares: [(pool.to_owned(), gpus(quota))].into(), ..OrgChange::default() }
}

/// A line for each pool: its nodes, and the GPUs that the projects hold in it.
fn picture(view: &View) -> String {
    let lines = view.pools.iter().enumerate().map(|(at, pool)| {
        let projects = view.projects.values().map(|project| {
            let share = &project.unit.pools[at];
            assert_eq!((&*share.id, &*share.name), (&*pool.id, &*pool.name));
            let held = share.status.allocated.gpu_millis / 1000;
            format!("{} {held}/{}", project.unit.name, share.share.gpu_quota_millis / 1000)
        });
        let projects: Vec<_> = projects.collect();
        format!("{}: {}; {}", pool.name, pool.nodes.join(" "), projects.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn to(mut spec: WorkloadSpec, pools: &[&str]) -> WorkloadSpec {
    spec.node_pools = pools.iter().map(ToString::to_string).collect();
    spec
}

async fn a_pool_lives_and_dies_on(database: Database) {
    let mut w = World::on(database, zones(), &[4], sched::Policy::default()).await;
    assert_eq!(picture(&w.handle.view()), "default: node-1 node-2 node-3 node-4; team-a 0/4");
    let fast = pool(&w, "fast", "a").await;
    w.handle.update_project("admin", 1, quota_in(&fast, 2)).await.unwrap();
    w.submit(1, to(training("x", 2), &["fast"])).await;
    w.phase("x", Phase::Running).await;
    let divided = "default: node-3 node-4; team-a 0/4\nfast: node-1 node-2; team-a 2/2";
    assert_eq!(picture(&w.handle.view()), divided);
    w.restart().await;
    assert_eq!(picture(&w.handle.view()), divided);
    assert_eq!(w.phase("x", Phase::Running).await.pool.as_deref(), Some("fast"));
    let named = w.handle.delete_pool("admin", &fast).await.unwrap_err().to_string();
    assert!(named.starts_with("node pool `fast` is named by 1 workload (x)"), "{named}");
    w.delete("x").await;
    w.submit(1, training("y", 2)).await;
    w.phase("y", Phase::Running).await;
    w.handle.delete_pool("admin", &fast).await.unwrap();
    assert_eq!(picture(&w.handle.view()), "default: node-1 node-2 node-3 node-4; team-a 2/4");
    w.submit(1, workspace("z", 5)).await;
    w.phase("z", Phase::Pending).await;
    let why = &w.why("z")[0].message;
    assert!(why.contains("team-a has a quota"), "{why}");
    w.delete("z").await;
    // One of the same name is another: it has no quota, and its own id.
    let again = pool(&w, "fast", "b").await;
    assert_ne!(again, fast);
    let there = if w.get("y").unwrap().pool.as_deref() == Some("fast") { [0, 2] } else { [2, 0] };
    let [default, fast] = there;
    let divided =
        format!("default: node-1 node-2; team-a {default}/4\nfast: node-3 node-4; team-a {fast}/0");
    assert_eq!(picture(&w.handle.view()), divided);
    w.restart().await;
    assert_eq!(picture(&w.handle.view()), divided);
    assert_eq!(w.phase("y", Phase::Running).await.restarts, 0);
    // Its share in the removed pool blocks no change.
    let change = OrgChange { description: Some("changed".into()), ..OrgChange::default() };
    w.handle.update_project("admin", 1, change).await.unwrap();
}

#[tokio::test]
async fn a_deleted_pool_leaves_no_share_behind() {
    let w = World::new(zones(), &[4]).await;
    let fast = pool(&w, "fast", "b").await;
    for number in 0..4 {
        w.submit(1, training(&format!("t{number}"), 2)).await;
    }
    w.until("all run", |view| view.workloads.values().all(|w| w.phase == Phase::Running)).await;
    w.handle.delete_pool("admin", &fast).await.unwrap();
    w.submit(1, training("waits", 1)).await;
    w.until("`waits` has a reason", |_| !w.why("waits").is_empty()).await;
    w.decided().await;
    let share = w.handle.view().projects[&1].unit.status.fair_share.gpu_millis;
    assert_eq!(share, 8000, "of eight GPUs");
}

#[tokio::test]
async fn what_only_a_retired_revision_names_can_be_deleted() {
    let w = World::new(zones(), &[4]).await;
    let fast = pool(&w, "fast", "a").await;
    w.handle.update_project("admin", 1, quota_in(&fast, 1)).await.unwrap();
    let first = w.submit(1, to(inference("svc", 1, 1, 1), &["fast"])).await;
    w.phase("svc", Phase::Running).await;
    let old = w.get("svc").unwrap().revisions[0];
    let elsewhere = to((*first.spec).clone(), &["default"]);
    w.handle.update_inference("bob", first.id, old, elsewhere).await.unwrap();
    let named = w.handle.delete_pool("admin", &fast).await.unwrap_err().to_string();
    assert!(named.contains("named by 1 workload (svc)"), "{named}");
    w.handle.retire(old).await.unwrap();
    w.until("it is gone", |view| view.workloads[&first.id].pods.len() == 1).await;
    w.handle.delete_pool("admin", &fast).await.unwrap();
}

#[tokio::test]
async fn a_pool_takes_its_nodes_and_gives_them_back() {
    a_pool_lives_and_dies_on(Database::Sqlite).await;
}

#[tokio::test]
async fn a_pool_takes_its_nodes_and_gives_them_back_in_postgres() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database().await;
    a_pool_lives_and_dies_on(Database::Postgres(url)).await;
}

#[tokio::test]
async fn each_pool_gives_back_what_is_owed_there() {
    let w = World::new(zones(), &[0, 4]).await;
    let fast = pool(&w, "fast", "a").await;
    w.handle.update_project("admin", 1, quota_in(&fast, 2)).await.unwrap();
    for number in 0..4 {
        w.submit(2, to(training(&format!("b{number}"), 1), &["fast"])).await;
    }
    w.until("b has all of fast", |view| {
        view.projects[&2].unit.pools[1].status.allocated.gpu_millis == 4000
    })
    .await;
    assert!(w.get("b0").unwrap().over_quota, "its quota is in another pool");
    w.submit(1, to(training("a0", 2), &["fast"])).await;
    w.phase("a0", Phase::Running).await;
    let view = w.handle.view();
    assert_eq!(view.projects[&2].unit.pools[1].status.allocated.gpu_millis, 2000);
    assert_eq!(view.departments[&1].status.allocated.gpu_millis, 4000);
    let waiting = view.workloads.values().find(|w| w.phase == Phase::Pending).unwrap();
    let why = &waiting.last_eviction.as_ref().unwrap().message;
    assert!(why.contains("in pool fast"), "{why}");
    // A request in one pool is no demand on the other.
    assert_eq!(view.projects[&2].unit.status.requested.gpu_millis, 4000);
    assert_eq!(view.projects[&2].unit.pools[0].status.requested.gpu_millis, 0);
}

#[tokio::test]
async fn what_may_go_to_several_pools_is_asked_for_once() {
    let w = World::new(zones(), &[4]).await;
    pool(&w, "fast", "a").await;
    w.submit(1, training("big", 3)).await;
    w.phase("big", Phase::Pending).await;
    let view = w.handle.view();
    let asked = view.projects[&1].unit.pools.iter().map(|p| p.status.requested.gpu_millis);
    assert_eq!(asked.collect::<Vec<_>>(), [3000, 3000]);
    assert_eq!(view.projects[&1].unit.status.requested.gpu_millis, 3000);
    assert_eq!(view.departments[&1].status.requested.gpu_millis, 3000);
}

#[tokio::test]
async fn pools_are_tried_in_the_order_of_the_workload_its_project_or_its_department() {
    let w = World::new(zones(), &[4]).await;
    pool(&w, "fast", "a").await;
    let slow = pool(&w, "slow", "b").await;
    let place = async |name: &str, pools: &[&str]| {
        w.submit(1, to(training(name, 1), pools)).await;
        let placed = w.phase(name, Phase::Running).await;
        let pool = placed.pool.clone().unwrap();
        w.delete(name).await;
        (pool, placed.spec.node_pools.join(" "))
    };
    let order = |first: &str| OrgChange {
        default_pools: Some(vec![first.to_owned(), "fast".to_owned()]),
        ..OrgChange::default()
    };
    assert_eq!(place("any", &[]).await, ("fast".into(), String::new()), "default has no nodes");
    assert_eq!(place("own", &["default", "slow"]).await.0, "slow");
    w.handle.update_department("admin", 1, order("slow")).await.unwrap();
    assert_eq!(w.handle.view().projects[&1].effective_pools, ["slow", "fast"]);
    assert_eq!(place("above", &[]).await, ("slow".into(), "slow fast".into()));
    w.handle.update_project("admin", 1, order("default")).await.unwrap();
    assert_eq!(place("project", &[]).await, ("fast".into(), "default fast".into()));
    let refused = w.handle.delete_pool("admin", &slow).await.unwrap_err().to_string();
    assert!(refused.contains("named by 1 department (default); take the pool off"), "{refused}");
    for (pools, said) in [
        (
            vec!["fast", "no"],
            "nodePools: there is no node pool `no`; there are default, fast, slow",
        ),
        (vec!["fast", "fast"], "nodePools: fast is there twice"),
    ] {
        let refused = w.handle.submit(1, to(training("x", 1), &pools), false).await.unwrap_err();
        assert_eq!(refused.to_string(), said);
    }
    let refused = w.handle.update_project("admin", 1, order("no")).await.unwrap_err().to_string();
    assert!(refused.starts_with("defaultNodePools: there is no node pool `no`"), "{refused}");
}

#[tokio::test]
async fn a_pool_spreads_or_packs_as_it_is_told() {
    let mut w = World::new(zones(), &[8]).await;
    pool(&w, "fast", "a").await;
    let used = |view: &View| {
        let used = view.nodes.iter().map(|node| node.used.gpu_millis / 1000);
        used.map(|gpus| gpus.to_string()).collect::<Vec<_>>().join(" ")
    };
    let spread = PoolChange { gpu: Some(Fill::Spread), ..PoolChange::default() };
    w.handle.update_pool("admin", orchestrator::POOL_DEFAULT_ID, spread).await.unwrap();
    w.restart().await;
    for (pool, name) in [("fast", "p"), ("default", "s")] {
        for number in 0..2 {
            w.submit(1, to(training(&format!("{name}{number}"), 1), &[pool])).await;
        }
    }
    w.until("all run", |view| view.workloads.values().all(|w| w.phase == Phase::Running)).await;
    let filled = used(&w.handle.view());
    assert!(filled == "2 0 1 1" || filled == "0 2 1 1", "{filled}");
    let seen = w.handle.scheduling_state().await.unwrap();
    assert_eq!(seen.policy.pools.len(), 1, "only where it is not the usual way");
}

#[tokio::test]
async fn runs_have_parts_of_gpus_kept_and_divide_compute_time_as_their_pool_says() {
    let mut w = World::new(zones(), &[8]).await;
    let fast = pool(&w, "fast", "a").await;
    let time_slicing = Some(Some(TimeSlicing::Strict));
    let fractions = Some(Some(PoolFractions::HardOnly));
    let strict = PoolChange { time_slicing, fractions, ..PoolChange::default() };
    w.handle.update_pool("admin", &fast, strict).await.unwrap();
    w.restart().await;
    for pool in ["fast", "default"] {
        w.submit(1, to(training(&format!("in-{pool}"), 1), &[pool])).await;
    }
    w.until("all run", |view| view.workloads.values().all(|w| w.phase == Phase::Running)).await;
    assert_eq!(w.engine.run_of("in-fast").time_slicing, Some(TimeSlicing::Strict));
    assert_eq!(w.engine.run_of("in-default").time_slicing, None, "as the server was started");
    let hard = Some(PoolFractions::HardOnly);
    assert_eq!(w.engine.run_of("in-fast").fractions, hard);
    assert_eq!(w.engine.run_of("in-default").fractions, None, "as the server was started");
    let shown: Vec<_> = w.handle.view().nodes.iter().map(|node| node.fractions).collect();
    assert_eq!(shown, [hard, hard, None, None]);
    let shown: Vec<_> = w.handle.view().nodes.iter().map(|node| node.time_slicing).collect();
    let strict = Some(TimeSlicing::Strict);
    assert_eq!(shown, [strict, strict, None, None]);
    let back = PoolChange { time_slicing: Some(None), ..PoolChange::default() };
    w.handle.update_pool("admin", &fast, back).await.unwrap();
    w.until("it is shown", |view| view.nodes.iter().all(|node| node.time_slicing.is_none())).await;
}

#[tokio::test]
async fn labels_given_to_a_node_put_it_into_another_pool() {
    let mut w = World::new(zones(), &[0]).await;
    pool(&w, "fast", "a").await;
    w.handle.create_pool("admin", labelled("mine", "owner", "me")).await.unwrap();
    for number in 0..4 {
        w.submit(1, to(training(&format!("x{number}"), 1), &["fast"])).await;
    }
    w.until("all run", |view| view.workloads.values().all(|w| w.phase == Phase::Running)).await;
    let give = async |node: &str, key: &str, value: &str| {
        let labels = BTreeMap::from([(key.to_owned(), Some(value.to_owned()))]);
        let change = NodeChange { labels, replaces_labels: true, ..NodeChange::default() };
        w.handle.change_node("admin", node, change).await
    };
    // The node has the labels of two pools; it belongs to the older one.
    give("node-1", "owner", "me").await.unwrap();
    give("node-2", "zone", "c").await.unwrap();
    give("node-3", "owner", "me").await.unwrap();
    let moved =
        "default: node-2 node-4; team-a 2/0\nfast: node-1; team-a 2/0\nmine: node-3; team-a 0/0";
    assert_eq!(picture(&w.handle.view()), moved, "what runs there runs on");
    let refused = give("node-9", "a", "b").await.unwrap_err().to_string();
    assert!(refused.contains("no node `node-9`"), "{refused}");
    for (key, said) in
        [("a b", "`a b` is not a valid label key"), ("node-pool", "label node-pool says in which")]
    {
        let refused = give("node-1", key, "x").await.unwrap_err().to_string();
        assert!(refused.starts_with(said), "{refused}");
    }
    w.restart().await;
    assert_eq!(picture(&w.handle.view()), moved);
    let no_labels = NodeChange { replaces_labels: true, ..NodeChange::default() };
    w.handle.change_node("admin", "node-2", no_labels).await.unwrap();
    assert_eq!(w.handle.view().nodes[1].labels["zone"], "a", "its own is back");
    let phases = w.handle.view();
    assert!(phases.workloads.values().all(|w| w.phase == Phase::Running && w.restarts == 0));
}

#[tokio::test]
async fn work_of_a_pool_is_left_alone_for_as_long_as_it_guarantees() {
    let w = World::new(zones(), &[0, 2]).await;
    let fast = pool(&w, "fast", "a").await;
    w.handle.update_project("admin", 2, quota_in(&fast, 4)).await.unwrap();
    let guarantee = PoolChange { min_runtime_ms: Some(Some(60_000)), ..PoolChange::default() };
    w.handle.update_pool("admin", &fast, guarantee).await.unwrap();
    w.submit(1, to(training("guest", 4), &["fast"])).await;
    w.submit(1, to(training("small", 1), &["fast"])).await;
    w.phase("small", Phase::Running).await;
    w.submit(2, to(training("owner", 2), &["fast"])).await;
    w.submit(2, to(training("second", 2), &["fast"])).await;
    w.phase("second", Phase::Pending).await;
    assert_eq!(w.get("small").unwrap().phase, Phase::Running);
    w.clock.advance_ms(61_000);
    w.phase("second", Phase::Running).await;
    assert_eq!(w.get("small").unwrap().phase, Phase::Pending);
}

fn big(kind: &str) -> NodeTypes {
    let of = |wanted: &str| if kind == wanted { vec!["big".to_owned()] } else { Vec::new() };
    NodeTypes { training: of("training"), workspace: of("workspace"), ..NodeTypes::default() }
}

#[tokio::test]
async fn types_of_nodes_bind_by_kind_of_workload() {
    let mut all = nodes(2, 2);
    all[1].labels.insert("run.ai/type".to_owned(), "big".to_owned());
    let w = World::new(all, &[4]).await;
    let spec = OrgChange { node_types: Some(big("training")), ..project("typed", 4) };
    let typed = w.handle.create_project("admin", 1, spec).await.unwrap().unit.id;
    let node = async |name: &str, spec: WorkloadSpec| {
        w.submit(typed, spec).await;
        let placed = w.phase(name, Phase::Running).await;
        placed.pods[0].node_name.clone().unwrap()
    };
    assert_eq!(node("t1", training("t1", 2)).await, "node-2");
    assert_eq!(node("w1", workspace("w1", 1)).await, "node-1");
    w.submit(typed, training("t2", 1)).await;
    w.phase("t2", Phase::Pending).await;
    let waits = w.why("t2");
    assert!(waits[1].message.contains("outside its node affinity"), "{waits:?}");
    let small = WorkloadSpec { node_types: vec!["small".to_owned()], ..training("t3", 1) };
    let refused = w.handle.submit(typed, small.clone(), false).await.unwrap_err().to_string();
    let said = "nodeType: project `typed` does not allow nodes of type `small`; it allows big";
    assert_eq!(refused, said);
    // The workload's own node type applies if the project has none.
    w.submit(1, WorkloadSpec { name: "t4".to_owned(), ..small }).await;
    w.phase("t4", Phase::Pending).await;
}

#[tokio::test]
async fn a_project_only_tightens_the_types_of_its_department() {
    let w = World::new(nodes(1, 2), &[]).await;
    let of = |types: &[&str]| NodeTypes {
        training: types.iter().map(ToString::to_string).collect(),
        ..NodeTypes::default()
    };
    let department = OrgChange {
        name: Some("d".to_owned()),
        node_types: Some(of(&["x", "y"])),
        ..OrgChange::default()
    };
    let department_id = w.handle.create_department("admin", department).await.unwrap().id;
    let project = async |name: &str, types: &[&str]| {
        let spec = OrgChange { node_types: Some(of(types)), ..project(name, 1) };
        w.handle.create_project("admin", department_id, spec).await.unwrap()
    };
    assert_eq!(project("all", &[]).await.effective_types.training, ["x", "y"]);
    assert_eq!(project("some", &["y", "z"]).await.effective_types.training, ["y"]);
    let none = project("none", &["z"]).await.unit.id;
    let refused = w.handle.submit(none, training("t", 1), false).await.unwrap_err().to_string();
    assert!(refused.contains("allow no type of node in common"), "{refused}");
}

#[tokio::test]
async fn pools_that_cannot_be_are_refused() {
    let w = World::new(zones(), &[1]).await;
    let fast = pool(&w, "fast", "a").await;
    let create = async |spec: PoolSpec| w.handle.create_pool("admin", spec).await;
    for (spec, said) in [
        (labelled("Fast", "zone", "b"), "name `Fast` is not allowed"),
        (labelled("fast", "zone", "b"), "node pool `fast` already exists"),
        (labelled("default", "zone", "b"), "node pool `default` already exists"),
        (labelled("other", "zone", "a"), "node pool `fast` takes the nodes with label zone=a"),
        (labelled("other", "zo ne", "a"), "`zo ne` is not a valid label key"),
        (labelled("other", "node-pool", "a"), "label node-pool says in which pool a node is"),
    ] {
        let refused = create(spec.clone()).await.unwrap_err().to_string();
        assert!(refused.starts_with(said), "{spec:?}: {refused}");
    }
    let label =
        |value: &str| PoolChange { label_value: Some(value.to_owned()), ..PoolChange::default() };
    let default = orchestrator::POOL_DEFAULT_ID;
    let refused = w.handle.update_pool("admin", default, label("b")).await.unwrap_err();
    assert!(refused.to_string().starts_with("node pool `default` has no label"), "{refused}");
    let refused = w.handle.delete_pool("admin", default).await.unwrap_err().to_string();
    assert!(refused.contains("cannot be deleted"), "{refused}");
    let long = PoolChange { min_runtime_ms: Some(Some(u64::MAX)), ..PoolChange::default() };
    let refused = w.handle.update_pool("admin", &fast, long).await.unwrap_err().to_string();
    assert!(refused.contains("longer than the 366 days"), "{refused}");
    let refused = w.handle.update_project("admin", 1, quota_in("9", 1)).await.unwrap_err();
    assert!(refused.to_string().starts_with("resources: there is no node pool with id `9`"));
    let mut above = quota_in(&fast, 2);
    above.shares.get_mut(&fast).unwrap().gpu_limit_millis = Some(Some(1000));
    let refused = w.handle.update_project("admin", 1, above).await.unwrap_err().to_string();
    assert!(refused.contains("GPU limit (1) is below the GPU quota (2)"), "{refused}");
    // A change of the label moves the nodes.
    w.handle.update_pool("admin", &fast, label("b")).await.unwrap();
    let moved = "default: node-1 node-2; team-a 0/1\nfast: node-3 node-4; team-a 0/0";
    assert_eq!(picture(&w.handle.view()), moved);
}

#[tokio::test]
async fn a_department_has_in_each_pool_what_its_projects_have_or_what_it_was_given() {
    let mut w = World::new(zones(), &[1, 2]).await;
    let fast = pool(&w, "fast", "a").await;
    w.handle.update_project("admin", 1, quota_in(&fast, 2)).await.unwrap();
    w.handle.update_project("admin", 2, quota_in(&fast, 1)).await.unwrap();
    let quotas = |view: &View| {
        let pools = view.departments[&1].pools.iter();
        pools.map(|pool| pool.share.gpu_quota_millis / 1000).collect::<Vec<_>>()
    };
    assert_eq!(quotas(&w.handle.view()), [3, 3]);
    w.handle.update_department("admin", 1, quota_in(&fast, 7)).await.unwrap();
    assert_eq!(quotas(&w.handle.view()), [3, 7]);
    w.restart().await;
    assert_eq!(quotas(&w.handle.view()), [3, 7]);
    let replacing = OrgChange { replaces_shares: true, ..given(gpus(5)) };
    w.handle.update_project("admin", 1, replacing).await.unwrap();
    let view = w.handle.view();
    assert_eq!(
        view.projects[&1].unit.pools[1].share,
        Share::none(2),
        "what is left out is nothing"
    );
    assert_eq!(quotas(&view), [7, 7]);
}

#[tokio::test]
async fn past_use_is_told_for_each_pool_and_survives() {
    const MINUTE: u64 = 60_000;
    let window = UsageWindow::new(168 * MINUTE, WindowKind::Sliding, None);
    let policy = sched::Policy { usage: Some(window.unwrap()), ..sched::Policy::default() };
    let mut w = World::with(zones(), &[2, 2], policy).await;
    pool(&w, "fast", "a").await;
    w.submit(1, to(training("x", 2), &["fast"])).await;
    w.phase("x", Phase::Running).await;
    w.clock.advance_ms(10 * MINUTE);
    // Something has to happen for time to be seen.
    w.submit(2, to(training("y", 1), &["default"])).await;
    w.phase("y", Phase::Running).await;
    let used = |project: u64| {
        let view = w.handle.view();
        let pools = view.projects[&project].unit.pools.iter();
        pools.map(|pool| pool.status.usage.unwrap().gpu_ppm).collect::<Vec<_>>()
    };
    let (first, second) = (used(1), used(2));
    assert!(first[0] == 0 && (440_000..=500_000).contains(&first[1]), "{first:?}");
    assert_eq!(second, [0, 0]);
    w.restart().await;
    let view = w.handle.view();
    let pools = view.projects[&1].unit.pools.iter().map(|pool| pool.status.usage.unwrap().gpu_ppm);
    assert_eq!(pools.collect::<Vec<_>>(), first, "the figures of the last step");
    assert_eq!(view.projects[&1].unit.status.usage, None, "parts of different wholes");
}

#[tokio::test]
async fn a_checked_change_is_checked_against_the_state_it_is_made_to() {
    let w = World::new(nodes(1, 2), &[2]).await;
    let check = |view: &View| match view.workloads.values().any(|one| one.spec.name == "t") {
        true => Err(Error::conflict("there is a `t` now")),
        false => Ok(()),
    };
    let checked = w.handle.checked(check);
    let change = || OrgChange { description: Some("changed".to_owned()), ..OrgChange::default() };
    checked.update_project("ann", 1, change()).await.unwrap();
    // Both are queued before either is applied.
    let (made, refused) = tokio::join!(
        w.handle.submit(1, training("t", 1), false),
        checked.update_project("ann", 1, change())
    );
    made.unwrap();
    assert_eq!(refused.unwrap_err().to_string(), "there is a `t` now");
    w.handle.update_project("ann", 1, change()).await.unwrap();
}

#[tokio::test]
async fn checked_changes_that_queue_beside_observations_are_all_made() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    let key = w.engine.run_of("t").key;
    let checked = w.handle.checked(|_| Ok(()));
    let change = |number: u32| {
        let description = Some(number.to_string());
        w.engine.report(key, engine::RunState::Starting);
        checked.update_project("ann", 1, OrgChange { description, ..OrgChange::default() })
    };
    for answer in futures_util::future::join_all((0..50).map(change)).await {
        answer.unwrap();
    }
    assert_eq!(w.handle.view().projects[&1].unit.description, "49", "in their order");
}
