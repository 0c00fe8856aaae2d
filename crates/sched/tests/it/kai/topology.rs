//! Topology (§13): the domain of a gang.

use testkit::World;

/// Zone a with racks 1 and 2, zone b with racks 3 and 4, a node of two GPUs in each.
fn world() -> World {
    let mut w = World::new("n1:2 n2:2 n3:2 n4:2", "q:9");
    w.policy = testkit::kai();
    w.only_cycle = true;
    w.run("topology net zone rack");
    w.run("label n1 zone=a rack=1; label n2 zone=a rack=2");
    w.run("label n3 zone=b rack=3; label n4 zone=b rack=4");
    w
}

fn after(script: &str) -> String {
    let mut w = world();
    w.run(script);
    w.gpus()
}

#[test]
fn the_fullest_domain_with_room_is_taken() {
    let told = after("submit q/r --on rack=3; submit q/g --pods 3 --required zone");
    assert_eq!(told, "n1[. .] n2[. .] n3[r g] n4[g g]");
}

#[test]
fn a_domain_without_room_for_all_is_passed_over() {
    // Two of two GPUs each: zone a has room for one.
    let told = after("submit q/r --on rack=1; submit q/g -g 2 --pods 2 --required zone");
    assert_eq!(told, "n1[r .] n2[. .] n3[g g] n4[g g]");
}

#[test]
fn a_required_level_is_a_bound() {
    assert_eq!(after("submit q/g -g 2 --pods 3 --required zone"), after(""));
    assert_eq!(after("submit q/g --pods 3 --required rack"), after(""));
    let told = after("submit q/g --pods 2 --required rack");
    assert_eq!(told, "n1[g g] n2[. .] n3[. .] n4[. .]");
}

#[test]
fn a_preferred_level_is_tried_first() {
    let told = after("submit q/r --on rack=1; submit q/g --pods 2 --preferred rack");
    assert_eq!(told, "n1[r .] n2[g g] n3[. .] n4[. .]");
}

#[test]
fn then_wider_ones_and_there_the_emptier_domains_first() {
    // No rack has room for three. In zone a, rack 2 comes later in the order and is preferred.
    let told = after("submit q/g --pods 3 --preferred rack");
    assert_eq!(told, "n1[g .] n2[g g] n3[. .] n4[. .]");
    let told = after("submit q/g --pods 5 --preferred rack");
    assert_eq!(told, "n1[. .] n2[g .] n3[g g] n4[g g]");
}

#[test]
fn preferred_widens_up_to_the_required_level_only() {
    assert_eq!(after("submit q/g --pods 5 --preferred rack --required zone"), after(""));
}

#[test]
fn those_that_are_there_already_bind_the_others() {
    let mut w = world();
    w.run("cordon n1; cordon n2");
    w.run("submit q/e --pods 3 --min 2 -g 2 --required zone");
    assert_eq!(w.gpus(), "n1[. .] n2[. .] n3[e e] n4[e e]");
    // Zone a has room for the third pod, but it is bound to zone b.
    w.run("uncordon n1; uncordon n2");
    assert_eq!(w.gpus(), "n1[. .] n2[. .] n3[e e] n4[e e]");
}

#[test]
fn nodes_without_a_label_are_outside() {
    let mut w = world();
    w.run("label n1 zone=a; submit q/g --pods 3 --required zone");
    assert_eq!(w.gpus(), "n1[. .] n2[. .] n3[g g] n4[g .]");
}

#[test]
fn sets_go_into_domains_inside_that_of_the_whole() {
    let told = after(
        "submit q/r --on rack=1; \
         submit q/g --required zone --set x --pods 2 --required rack --set y --pods 1",
    );
    assert_eq!(told, "n1[r g] n2[g g] n3[. .] n4[. .]");
}

#[test]
fn parts_of_groups_stay_together() {
    let told = after(
        "submit q/r --on rack=1; \
         submit q/g --group one --required rack --group two --required rack \
         --set w --in one --pods 1 --set x --in one --pods 1 --set y --in two --pods 2",
    );
    assert_eq!(told, "n1[r .] n2[g g] n3[g g] n4[. .]");
}

#[test]
fn victims_are_taken_where_the_gang_may_go() {
    // Zone b cannot give way; zone a can.
    let mut w = world();
    w.run("submit q/i --pods 2 -g 2 --interactive --on zone=b");
    w.run("submit q/l --pods 2 -g 2 --priority 40 --on zone=a");
    w.slow = true;
    w.run("submit q/g --pods 2 -g 2 --required zone");
    assert_eq!(w.gpus(), "n1[l! l!] n2[l! l!] n3[i i] n4[i i]");
}

#[test]
fn nobody_is_stopped_if_no_domain_can_hold_the_gang() {
    let mut w = world();
    w.run("submit q/i -g 2 --interactive --on rack=3; submit q/j -g 2 --interactive --on rack=1");
    w.run("submit q/l --pods 2 -g 2 --priority 40");
    let before = w.gpus();
    w.run("submit q/g --pods 2 -g 2 --required zone");
    assert_eq!(w.gpus(), before);
}
