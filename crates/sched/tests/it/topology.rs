//! Topology constraints: the chosen domain, and that pods never leave it.

use testkit::World;

/// Two zones of two racks of two nodes, `gpus` each: a-1 (n1 n2), a-2 (n3 n4), b-1 (n5 n6),
/// b-2 (n7 n8).
fn racks(gpus: u32, projects: &str) -> World {
    let nodes: Vec<_> = (1..=8).map(|n| format!("n{n}:{gpus}")).collect();
    let mut w = World::new(&nodes.join(" "), projects);
    w.run("topology net zone rack");
    for n in 0..8 {
        let (zone, rack) = (["a", "b"][n / 4], n / 2 % 2 + 1);
        w.run(&format!("label n{} zone={zone} rack={rack}", n + 1));
    }
    w
}

/// The nodes of a workload, each with its number of pods.
fn on(w: &World, name: &str) -> String {
    let nodes = w.gpus();
    let count = |node: &str| node.matches(name).count();
    let held = nodes.split("] ").filter(|node| count(node) > 0);
    let held = held.map(|node| {
        format!("{}:{}", node.split_once('[').map_or("", |(name, _)| name), count(node))
    });
    held.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_gang_stays_in_one_domain_of_the_required_level() {
    let mut w = racks(2, "a:16");
    w.run("submit a/g --pods 4 --required rack");
    assert_eq!(on(&w, "g"), "n1:2 n2:2");
}

#[test]
fn without_a_level_it_goes_where_there_is_room() {
    let mut w = racks(1, "a:16");
    w.run("submit a/g --pods 3");
    assert_eq!(on(&w, "g"), "n1:1 n2:1 n3:1");
}

#[test]
fn what_no_domain_has_room_for_waits() {
    let mut w = racks(2, "a:16");
    w.run("submit a/g --pods 5 --required rack");
    assert_eq!((on(&w, "g"), w.waiting()), (String::new(), "g".into()));
}

#[test]
fn the_fullest_domain_that_has_room_is_taken() {
    let mut w = racks(2, "a:16");
    w.run("cordon n1; cordon n2; cordon n3; cordon n4; cordon n5; cordon n6; submit a/x -g 2");
    w.run("uncordon n1; uncordon n2; uncordon n3; uncordon n4; uncordon n5; uncordon n6");
    w.run("submit a/g --pods 2 --required rack");
    assert_eq!(on(&w, "g"), "n8:2", "the rack where x is has just enough");
    w.run("submit a/h --pods 2 --required rack");
    assert_eq!(on(&w, "h"), "n5:2", "and then the zone that is the fullest");
}

#[test]
fn preferred_is_tried_at_the_finest_level_and_then_widened() {
    let mut w = racks(2, "a:16");
    w.run("submit a/g --pods 4 --preferred rack");
    assert_eq!(on(&w, "g"), "n1:2 n2:2");
    w.run("submit a/h --pods 6 --preferred rack");
    assert_eq!(on(&w, "h"), "n5:2 n6:2 n7:2", "one zone, since no rack is large enough");
    w.run("submit a/i --pods 5 --preferred rack");
    assert_eq!(on(&w, "i"), "n3:2 n4:2 n8:1", "everything, one rack filled first");
}

#[test]
fn required_bounds_what_preferred_may_widen_to() {
    let mut w = racks(2, "a:16");
    w.run("submit a/x --pods 4 --on zone=a; submit a/y --pods 4 --on zone=b");
    w.run("submit a/g --pods 5 --preferred rack --required zone");
    assert_eq!((on(&w, "g"), w.waiting()), (String::new(), "g".into()));
    w.run("delete y");
    assert_eq!(on(&w, "g"), "n5:2 n6:2 n7:1");
}

#[test]
fn few_large_racks_are_filled_and_the_last_one_fits() {
    let mut w = racks(4, "a:32");
    w.run("submit a/x -g 3 --on zone=a --on rack=1; submit a/g --pods 12 --required zone --preferred rack");
    assert_eq!(on(&w, "g"), "n1:1 n2:3 n3:4 n4:4");
}

#[test]
fn nodes_without_a_label_are_outside() {
    let mut w = racks(2, "a:16");
    w.run("label n1 zone=a; label n2 rack=1; submit a/g --pods 2 --required rack");
    assert_eq!(on(&w, "g"), "n3:2");
    w.run("submit a/h --pods 2 --preferred rack --on zone=a; submit a/i --pods 2 --on zone=a");
    assert_eq!((on(&w, "h"), on(&w, "i")), ("n4:2".into(), "n1:2".into()));
}

#[test]
fn shares_of_gpus_count_as_room() {
    let mut w = World::new("n1:1 n2:1 n3:1 n4:1", "a:8");
    w.run("topology net rack; label n1 rack=1; label n2 rack=1; label n3 rack=2; label n4 rack=2");
    w.run("submit a/x -g 0.5 --on rack=1; submit a/g -g 0.25 --pods 6 --required rack");
    assert_eq!(on(&w, "g"), "n1:2 n2:4", "no rack is refused whose GPUs are in use in part");
}

#[test]
fn several_devices_count_as_often_as_they_fit_together() {
    let mut w = racks(3, "a:24");
    w.run("submit a/g --devices 2 -g 0.5 --pods 4 --required rack");
    assert_eq!(on(&w, "g"), "n1:4 n2:4", "each pod has two halves");
    w.run("submit a/h -g 2 --pods 3 --required rack");
    assert_eq!(w.waiting(), "h", "two GPUs of a node are not two halves of two nodes");
}

#[test]
fn pods_that_come_later_join_the_others() {
    let mut w = racks(2, "a:16");
    w.run(
        "submit a/x --pods 2 --on rack=1 --on zone=a; submit a/g --pods 4 --min 2 --required rack",
    );
    assert_eq!(on(&w, "g"), "n2:2", "{}", w.gpus());
    assert_eq!(w.waiting(), "g", "the rest of the rack is in use, though others are free");
    w.run("delete x");
    assert_eq!(on(&w, "g"), "n1:2 n2:2");
}

#[test]
fn a_pod_that_died_comes_back_to_its_domain() {
    let mut w = racks(2, "a:16");
    w.run("submit a/g --pods 3 --required rack; suspend g; submit a/x --on rack=1 --on zone=a; resume g");
    assert_eq!(on(&w, "g"), "n1:2 n2:1");
}

#[test]
fn labels_that_are_lost_keep_new_pods_away() {
    let mut w = racks(2, "a:16");
    w.run("submit a/g --pods 4 --min 2 --required rack; submit a/x; delete x");
    let before = on(&w, "g");
    w.run("label n1; label n2; submit a/h --pods 2 --required rack");
    assert_eq!((before.as_str(), on(&w, "g")), ("n1:2 n2:2", before.clone()), "no pod is stopped");
    assert_eq!(on(&w, "h"), "n3:2");
}

#[test]
fn cordoned_nodes_are_no_room() {
    let mut w = racks(2, "a:16");
    w.run("cordon n1; cordon n3; cordon n5; submit a/g --pods 4 --required rack");
    assert_eq!(on(&w, "g"), "n7:2 n8:2");
}

#[test]
fn a_set_is_in_its_own_rack_within_the_zone_of_all() {
    let mut w = racks(2, "a:16");
    w.run("submit a/x --pods 3 --on zone=a");
    w.run("submit a/g --required zone --set p --pods 4 --required rack --set d --pods 3 --required rack");
    assert_eq!(on(&w, "g"), "n5:2 n6:2 n7:2 n8:1", "zone a has room, but not two such racks");
}

#[test]
fn a_group_is_in_one_rack_and_the_others_anywhere() {
    let mut w = racks(2, "a:16");
    w.run("submit a/x --on zone=a --on rack=1");
    w.run("submit a/g --group t --required rack --set m --in t --set w --in t --pods 3 --set free --pods 3");
    assert_eq!(on(&w, "g"), "n1:1 n2:2 n3:2 n4:2");
}

#[test]
fn different_pods_of_a_rack_are_placed_together() {
    let mut w = racks(4, "a:32");
    w.run("submit a/x -g 1 --on zone=a --on rack=1");
    w.run("submit a/g --required rack --set big -g 4 --set small -g 1 --pods 3");
    assert_eq!(on(&w, "g"), "n1:3 n2:4", "exactly what is left there");
}

#[test]
fn another_topology_of_a_set_crosses_that_of_all() {
    let mut w = World::new("n1:1 n2:1 n3:1 n4:1", "a:8");
    w.run("topology net zone; topology power feed");
    w.run("label n1 zone=a feed=x; label n2 zone=a feed=y; label n3 zone=b feed=x; label n4 zone=b feed=x");
    w.run("submit a/g --required zone --set p --pods 2 --topology power --required feed");
    assert_eq!(on(&w, "g"), "n3:1 n4:1");
}

#[test]
fn places_that_are_being_freed_count_but_those_that_are_free_come_first() {
    let mut w = racks(2, "a:16");
    w.run("submit a/x --pods 4 --required rack; slow; delete x");
    w.run("submit a/g --pods 4 --required rack");
    assert_eq!(on(&w, "g").split(' ').count(), 2);
    assert_eq!(w.waiting(), "");
}

#[test]
fn the_reason_names_the_domain_with_the_most_room() {
    let mut w = racks(2, "a:16");
    w.run("submit a/x --on zone=a; submit a/g --pods 5 --required rack");
    expect_test::expect![[r#"
        P108 5 pods must start in one rack of topology net; a.2, the best of 4, has room for 4
        P204 4 of 5 pods fit on an empty cluster, so none of its 5 GPUs counts for the fair share of a
    "#]]
    .assert_eq(&w.why("g"));
}

#[test]
fn the_reason_names_the_part_that_finds_no_domain() {
    let mut w = racks(2, "a:16");
    w.run("submit a/g --group t --required rack --set m --in t --set w --in t --pods 4 --set x");
    expect_test::expect![[r#"
        P108 5 pods of t must start in one rack of topology net; a.1, the best of 4, has room for 4
    "#]]
    .assert_eq(&w.why("g"));
}

#[test]
fn the_reason_says_where_the_other_pods_are() {
    let mut w = racks(2, "a:16");
    w.run(
        "submit a/x --pods 2 --on rack=1 --on zone=a; submit a/g --pods 4 --min 2 --required rack",
    );
    expect_test::expect![[r#"
        P108 the other pods are in rack a.1 of topology net, which has room for 0 of 1 more
        P205 nothing is stopped for 1 GPU: only work of its own project could give way, and none of that has a priority below 50; a holds 4 GPUs (quota 16, fair share 6)
    "#]]
    .assert_eq(&w.why("g"));
}

#[test]
fn the_reason_says_that_labels_are_missing() {
    let mut w = World::new("n1:2", "a:2");
    w.run("topology net zone rack; label n1 zone=a; submit a/g --required rack");
    expect_test::expect![[r#"
        P108 no node has every label of topology net, or none in one rack
        P204 cannot fit even on an empty cluster, so it does not count for the fair share of a
    "#]]
    .assert_eq(&w.why("g"));
    w.run("label n1 zone=a rack=1");
    assert_eq!(on(&w, "g"), "n1:1");
}

#[test]
fn a_gang_reclaims_inside_one_domain() {
    let mut w = racks(2, "a:0 b:4");
    for n in 0..16 {
        w.run(&format!("submit a/j{n:02}"));
    }
    w.run("submit b/g --pods 4 --required rack");
    assert_eq!(on(&w, "g").split(' ').count(), 2, "{}", w.gpus());
    assert_eq!(w.stopped().lines().count(), 4);
}

#[test]
fn it_reclaims_where_the_least_has_to_come_free() {
    let mut w = racks(2, "a:0 b:4");
    for n in 0..16 {
        w.run(&format!("submit a/j{n:02}"));
    }
    w.run("delete j08 j09 j10; submit b/g --pods 4 --required rack");
    assert_eq!(on(&w, "g"), "n5:2 n6:2");
    assert_eq!(w.stopped().lines().count(), 1, "{}", w.stopped());
}

#[test]
fn a_gang_preempts_inside_one_domain() {
    let mut w = racks(1, "a:8");
    for n in 0..8 {
        w.run(&format!("submit a/j{n} --priority {}", 50 + n % 2 * 10));
    }
    w.run("submit a/g --pods 2 --required rack --priority 60");
    assert_eq!(w.waiting(), "g", "one of each rack may not be taken");
    w.run("delete j7; restarts g 3; submit a/h --pods 2 --required rack --priority 70");
    assert_eq!(on(&w, "g"), "n7:1 n8:1", "{}", w.gpus());
}

#[test]
fn a_rack_is_cleared_for_a_gang_by_moving_others() {
    let mut w = racks(1, "a:8 b:8");
    w.run("submit a/x1 --on zone=a --on rack=1; submit a/x2 --on zone=a; submit a/x3 --on zone=a");
    w.run("submit a/y1 --on zone=b --on rack=1; submit a/y2 --on zone=b --on rack=2");
    w.run("submit a/y3; delete x2; submit b/g --pods 2 --required rack");
    assert_eq!(w.waiting(), "", "{}", w.gpus());
    assert_eq!(on(&w, "g").split(' ').count(), 2, "{}", w.gpus());
}

#[test]
fn no_more_is_stopped_for_a_level_that_is_only_preferred() {
    let mut w = racks(1, "a:0 b:8");
    for n in 0..8 {
        w.run(&format!("submit a/j{n}"));
    }
    w.run("delete j0 j2; submit b/g --pods 2 --preferred rack");
    assert_eq!((on(&w, "g").as_str(), w.stopped().as_str()), ("n1:1 n3:1", ""));
    w.run("delete g; submit a/k0; submit a/k1; submit b/h --pods 2 --preferred rack");
    assert_eq!(on(&w, "h").split(' ').count(), 2, "{}", w.gpus());
}

#[test]
fn who_is_moved_stays_in_one_domain() {
    let mut w = racks(2, "a:16 b:16");
    w.run("submit a/g --pods 2 --required rack --on zone=a; submit b/big -g 2 --pods 8");
    assert_eq!(w.waiting(), "big");
    w.run("delete big; submit b/big -g 2 --pods 2 --required rack --on zone=a");
    assert_eq!(w.waiting(), "", "{}", w.gpus());
}
