//! Choice of the node and the device of a pod: the rest must still be useful to others.

use expect_test::expect;
use model::Fill::{self, BinPack, Spread};
use sched::{Placement, Policy};
use testkit::World;

/// A node with many cores for its GPUs beside one with few.
const UNLIKE: &str = "rich:2:100 poor:2:10";

fn on(w: &World, name: &str) -> String {
    let pods = &w.cluster.workloads()[w.id(name)].pods;
    let place = |&pod| w.cluster.pods()[pod].binding.effective().cloned();
    let name = |place: model::Placement| w.cluster.nodes()[place.node].name.clone();
    pods.iter().filter_map(place).map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pod_with_few_cores_leaves_the_cores_to_those_that_need_them() {
    let mut w = World::new(UNLIKE, "a");
    w.run("submit a/heavy -g 1 --cpu 40; submit a/light -g 1 --cpu 4");
    assert_eq!((on(&w, "heavy"), on(&w, "light")), ("rich".into(), "poor".into()));
}

#[test]
fn a_pod_without_gpus_takes_cores_that_gpus_can_spare() {
    let mut w = World::new("poor:4:40 rich:4:80", "a");
    w.run("submit a/usual -g 1 --cpu 10; submit a/host -g 0 --cpu 20");
    assert_eq!(on(&w, "host"), "rich");
}

#[test]
fn a_pod_without_gpus_prefers_a_node_without_gpus() {
    let mut w = World::new("n1:4:100 cpu:0:100", "a");
    w.run("submit a/host -g 0 --cpu 1; submit a/big -g 0 --cpu 100");
    assert_eq!((on(&w, "host"), on(&w, "big")), ("cpu".into(), "n1".into()));
}

#[test]
fn gpus_that_others_ask_for_by_name_are_left_to_them() {
    let mut w = World::new("named:2:100 other:2:90", "a");
    w.run("label named zone=a; submit a/first -g 1 --on zone=a; submit a/any -g 1");
    assert_eq!((on(&w, "first"), on(&w, "any")), ("named".into(), "other".into()));
}

#[test]
fn a_stranded_gpu_goes_to_who_can_use_it() {
    // Only `small` can run where the cores are nearly used up.
    let mut w = World::new("n1:2:10 n2:4:100", "a");
    w.run("submit a/eater -g 1 --cpu 9 --on zone=x");
    w.run("label n1 zone=x; submit a/usual -g 1 --cpu 8; submit a/small -g 1 --cpu 1");
    assert_eq!(on(&w, "small"), "n1");
}

#[test]
fn alike_nodes_fill_up_the_fullest_first() {
    let mut w = World::new("n1:4 n2:4", "a");
    w.run("submit a/t1 -g 1; submit a/t2 -g 2; submit a/t3 -g 1; submit a/t4 -g 4");
    assert_eq!(w.waiting(), "");
    assert_eq!(on(&w, "t1"), on(&w, "t3"));
}

#[test]
fn shares_are_put_together_also_where_another_node_is_empty() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/frac05 -g 0.5 --interactive; submit a/frac03 -g 0.3; submit a/frac02 -g 0.2");
    assert_eq!(w.gpus(), "n1[frac05:0.5+frac03:0.3+frac02:0.2 .] n2[. .]");
}

#[test]
fn a_share_joins_the_device_where_it_leaves_room_for_the_usual_share() {
    let mut w = World::new("n1:3", "a");
    w.run("submit a/s1 -g 0.7; submit a/s2 -g 0.5; submit a/s3 -g 0.3");
    expect!["n1 0:1 1:0.5"].assert_eq(&devices(&w));
}

#[test]
fn the_same_choice_after_the_history_is_forgotten() {
    let mut w = World::new(UNLIKE, "a");
    w.run("submit a/gone -g 1 --cpu 60; delete gone; submit a/t -g 1 --cpu 4");
    let mut fresh = World::new(UNLIKE, "a");
    fresh.run("submit a/t -g 1 --cpu 4");
    assert_eq!(on(&w, "t"), on(&fresh, "t"));
}

/// Devices in use, as `node device:share …`.
fn devices(w: &World) -> String {
    let used = |(at, gpu): (usize, &model::Gpu)| {
        let share = units::format_millis(gpu.committed_millis);
        (gpu.committed_millis > 0).then(|| format!(" {at}:{share}"))
    };
    let node = |node: &model::Node| {
        let used: String = node.gpus.iter().enumerate().filter_map(used).collect();
        (!used.is_empty()).then(|| format!("{}{used}", node.name))
    };
    w.cluster.nodes().iter().filter_map(|(_, row)| node(row)).collect::<Vec<_>>().join("; ")
}

/// A world with these strategies for nodes with GPUs, nodes without, and the GPUs of a node.
fn filled(nodes: &str, gpu: Fill, cpu: Fill, devices: Fill) -> World {
    let mut w = World::new(nodes, "a");
    w.policy.placement = Placement { gpu, cpu, devices };
    w
}

#[test]
fn gpu_and_cpu_pods_follow_their_own_strategy() {
    let script =
        "submit a/g1 -g 1; submit a/g2 -g 1; submit a/c1 -g 0 --cpu 4; submit a/c2 -g 0 --cpu 4";
    let apart = |gpu, cpu| {
        let mut w = filled("n1:4 n2:4 m1:0 m2:0", gpu, cpu, BinPack);
        w.run(script);
        (on(&w, "g1") != on(&w, "g2"), on(&w, "c1") != on(&w, "c2"))
    };
    assert_eq!(apart(BinPack, BinPack), (false, false));
    assert_eq!(apart(Spread, BinPack), (true, false));
    assert_eq!(apart(BinPack, Spread), (false, true));
    assert_eq!(apart(Spread, Spread), (true, true));
}

#[test]
fn shares_pack_or_spread_over_the_gpus_of_a_node() {
    let used = |devices_fill| {
        let mut w = filled("n1:3", BinPack, BinPack, devices_fill);
        w.run("submit a/s1 -g 0.3; submit a/s2 -g 0.3; submit a/s3 -g 0.3; submit a/s4 -g 0.2");
        devices(&w)
    };
    expect!["n1 0:0.9 1:0.2"].assert_eq(&used(BinPack));
    expect!["n1 0:0.5 1:0.3 2:0.3"].assert_eq(&used(Spread));
}

#[test]
fn a_share_of_several_gpus_takes_the_emptiest_where_shares_spread() {
    let mut w = filled("n1:4", BinPack, BinPack, Spread);
    w.run("submit a/s1 -g 0.5; submit a/s2 -g 0.4 --devices 2");
    expect!["n1 0:0.5 1:0.4 2:0.4"].assert_eq(&devices(&w));
}

#[test]
fn spread_looks_at_the_part_that_is_in_use() {
    // One of two is half, one of eight is an eighth.
    let mut w = filled("small:2 large:8", Spread, BinPack, BinPack);
    w.run("submit a/t1 -g 1; submit a/t2 -g 1; submit a/t3 -g 1");
    assert_eq!(
        (on(&w, "t1"), on(&w, "t2"), on(&w, "t3")),
        ("small".into(), "large".into(), "large".into())
    );
}

#[test]
fn spread_gpu_pods_may_land_on_nodes_of_one_kind_only() {
    let mut w = filled("n1:2 n2:2 n3:2", Spread, Spread, Spread);
    w.run("cordon n3; submit a/t1 -g 1; submit a/t2 -g 1; submit a/t3 -g 1");
    assert_ne!(on(&w, "t1"), on(&w, "t2"));
    assert_eq!(w.waiting(), "");
}

#[test]
fn profile_kai_does_not_consolidate_where_pods_are_spread() {
    let moved = |gpu, cpu| {
        let mut w = World::new("n1:2 n2:2", "a");
        w.policy = Policy { placement: Placement { gpu, cpu, devices: gpu }, ..testkit::kai() };
        w.run("cordon n2; submit a/t1 -g 1; cordon n1; uncordon n2; submit a/t2 -g 1; uncordon n1");
        w.run("submit a/big -g 2");
        w.waiting().is_empty()
    };
    assert!(moved(BinPack, BinPack));
    assert!(!moved(Spread, BinPack) && !moved(BinPack, Spread));
}

#[test]
fn profile_kai_opens_a_gpu_for_each_share_where_shares_spread() {
    let used = |devices_fill| {
        let mut w = filled("n1:2 n2:2", BinPack, BinPack, devices_fill);
        w.policy = Policy { placement: w.policy.placement, ..testkit::kai() };
        w.run("submit a/s1 -g 0.3; submit a/s2 -g 0.3");
        devices(&w)
    };
    expect!["n1 0:0.6"].assert_eq(&used(BinPack));
    expect!["n1 0:0.3 1:0.3"].assert_eq(&used(Spread));
}
