//! Each rule of `docs/concepts/decisions.md` in one situation.

use testkit::World;

/// The workloads with stopped, moved or resized pods in the last step, once for each pod.
fn disturbed(w: &World) -> String {
    let lines = w.stopped();
    lines.lines().filter_map(|line| line.split(' ').next()).collect::<Vec<_>>().join(" ")
}

/// Runs a step `count` times, with a number for each `#`.
fn many(w: &mut World, count: u32, step: &str) {
    (0..count).for_each(|at| w.run(&step.replace('#', &at.to_string())));
}

#[test]
fn a_project_above_its_share_stops_no_more_of_its_own_than_the_room_takes() {
    let mut w = World::new("n1:10", "a:2");
    w.run("weight a 0");
    many(&mut w, 10, "submit a/low# --priority 40");
    w.run("submit a/high --priority 80");
    assert_eq!(disturbed(&w), "low9");
}

#[test]
fn nor_does_it_where_the_demand_of_another_project_lowers_its_share() {
    let mut w = World::new("n1:10", "a:2 b:2");
    many(&mut w, 10, "submit a/low# --priority 40");
    w.run("submit b/patient -g 6 --delay 100000; submit a/high --priority 80");
    assert_eq!(disturbed(&w), "low9");
}

#[test]
fn nothing_is_stopped_for_an_account_where_the_rest_is_idle() {
    let mut w = World::new("n1:3", "a:0 b:2");
    w.run("weight a 0; submit a/x --priority 40; submit a/y --priority 40");
    w.run("submit a/high -g 2 --priority 80");
    assert_eq!((disturbed(&w).as_str(), w.gpus().as_str()), ("y", "n1[x high high]"));
}

#[test]
fn what_a_project_stops_of_its_own_for_its_share_makes_room() {
    let mut w = World::new("n1:1 n2:2", "a:2 b:1");
    w.run("weight a 0; weight b 0; submit b/x -g 2; submit a/low --priority 40");
    w.run("submit a/high -g 2 --priority 80");
    assert_eq!(w.gpus(), "n1[low] n2[x x]", "x could not use what low has");
    w.run("delete high; submit a/pair --pods 2 --priority 80");
    assert_eq!(w.gpus(), "n1[pair] n2[pair low]");
}

#[test]
fn every_minimum_comes_before_any_growth() {
    let mut w = World::new("n1:4", "a:4");
    w.run("cordon n1; submit a/older --pods 4 --min 1; submit a/younger --pods 4 --min 1");
    w.run("uncordon n1");
    assert_eq!(w.gpus(), "n1[older younger older older]");
}

#[test]
fn growth_of_higher_priority_comes_before_a_minimum_of_lower() {
    let mut w = World::new("n1:4", "a:4");
    w.run("cordon n1; submit a/low --pods 4 --min 1; submit a/high --pods 4 --min 1 --priority 80");
    w.run("uncordon n1");
    assert_eq!(w.gpus(), "n1[high high high high]");
}

#[test]
fn what_a_project_is_entitled_to_below_the_limit_of_its_department_is_taken_back() {
    let mut w = World::new("n1:8", "");
    w.run("queue d:4:4; queue d/a:2; queue d/b:2");
    many(&mut w, 4, "submit a/t#");
    w.run("submit b/x");
    assert_eq!(disturbed(&w), "t3");
    w.run("submit b/y; submit b/z");
    assert_eq!(w.waiting(), "t2 t3 z");
}

#[test]
fn so_it_is_between_departments_below_a_limit_above_them() {
    let mut w = World::new("n1:4 n2:2", "other:2");
    w.run("queue r:6:4; queue r/d:3; queue r/e:1; queue d/a:2; queue d/b:1; queue e/c:1");
    many(&mut w, 4, "submit a/t#");
    w.run("submit other/o -g 2; submit c/x");
    assert_eq!(disturbed(&w), "t3");
    w.run("submit b/y; submit b/z");
    assert_eq!(w.waiting(), "t2 t3 z");
}

#[test]
fn so_it_is_where_own_work_gives_way_first() {
    let mut w = World::new("n1:8", "");
    w.run("queue d:8:8; queue d/a:4; queue d/b:4");
    many(&mut w, 3, "submit b/t# -g 2");
    w.run("submit a/low -g 2 --priority 40; submit a/high -g 4 --priority 80");
    assert_eq!(w.waiting(), "t2 low");
}

/// Fair shares of projects in GPU thousandths.
fn fair(w: &World, names: &[&str]) -> Vec<u64> {
    let share = |name: &&str| {
        let mut queues = w.cluster.queues().iter().filter(|(_, queue)| queue.name == **name);
        queues.next().map_or(0, |(id, _)| w.plan.shares[&id].gpu_millis)
    };
    names.iter().map(share).collect()
}

#[test]
fn a_pod_larger_than_any_node_lowers_no_share() {
    let mut w = World::new("n1:4 n2:4", "a:0 b:0");
    many(&mut w, 8, "submit a/t#");
    w.run("submit b/big -g 8");
    assert_eq!(fair(&w, &["a", "b"]), [8000, 0]);
    let why =
        "P204 cannot fit even on an empty cluster, so it does not count for the fair share of b";
    assert!(w.why("big").contains(why), "{}", w.why("big"));
    w.run("add-node n3:8");
    assert_eq!(w.waiting(), "", "it counts as soon as it can be placed");
}

#[test]
fn nor_does_a_gang_of_which_too_few_pods_fit() {
    let mut w = World::new("n1:4 n2:4", "a:0 b:0");
    many(&mut w, 8, "submit a/t#");
    w.run("submit b/gang --pods 9");
    assert_eq!(fair(&w, &["a", "b"]), [8000, 0]);
    let why = "P204 8 of 9 pods fit on an empty cluster, so none of its 9 GPUs counts for the fair \
               share of b";
    assert!(w.why("gang").contains(why), "{}", w.why("gang"));
}

/// One master and five workers on four GPUs: each set fits by itself.
#[test]
fn pods_of_several_sets_are_counted_together() {
    let mut w = World::new("n1:4", "a:0 b:0");
    many(&mut w, 4, "submit a/t#");
    w.run("submit b/gang --set master -g 1 --set worker -g 1 --pods 5");
    let why = "P204 at most 4 of 6 pods fit on an empty cluster";
    assert!(w.why("gang").contains(why), "{}", w.why("gang"));
    let spec = &w.cluster.workloads()[w.id("gang")].spec;
    let warned = sched::never_fits(&w.cluster, spec).map(|reason| reason.to_string());
    assert!(warned.unwrap_or_default().contains("at most 4 of 6 pods fit"));
    w.run("submit b/pair --set master -g 1 --set worker -g 1 --pods 4");
    let spec = &w.cluster.workloads()[w.id("pair")].spec;
    let warned = sched::never_fits(&w.cluster, spec).map(|reason| reason.to_string());
    let why = "each set fits by itself";
    assert!(warned.unwrap_or_default().contains("at most 4 of 5 pods fit"), "{why}");
}

#[test]
fn nor_do_parts_of_which_even_the_smallest_passes_the_limit() {
    let mut w = World::new("n1:4 n2:4", "a:0 b:0");
    many(&mut w, 8, "submit a/t#");
    w.run("limit b 1; submit b/j --min 1 --set p -g 2 --set q -g 4");
    assert_eq!(fair(&w, &["a", "b"]), [8000, 0], "{}", w.why("j"));
    w.run("limit b 2");
    assert_eq!(fair(&w, &["a", "b"]), [6000, 2000], "p may run");
}

#[test]
fn of_an_elastic_workload_only_what_fits_counts() {
    let mut w = World::new("n1:4 n2:4", "a:0 b:0");
    w.run("label n2 zone=b; weight b 3");
    many(&mut w, 8, "submit a/t#");
    w.run("submit b/many --pods 9 --min 1 --on zone=b");
    assert_eq!(fair(&w, &["a", "b"]), [4000, 4000]);
    w.run("delete many; submit b/half -g 8 --elastic");
    assert_eq!(fair(&w, &["a", "b"]), [4000, 4000], "no node holds more than four");
}

#[test]
fn of_a_workload_of_several_sets_those_that_reach_their_minimum_count() {
    let mut w = World::new("n1:1", "a:0 b:0");
    many(&mut w, 2, "submit a/t#");
    w.run("submit b/j --group all --min 1 --set big --in all --pods 2 --set small --in all -g 0.5");
    assert_eq!(fair(&w, &["a", "b"]), [500, 500], "two of `big` never fit");
    w.run("delete j; submit b/k --min 1 --group r1 --group r2 --set p --in r1 -g 0.5 --set q --in r2 --pods 2");
    assert_eq!(fair(&w, &["a", "b"]), [500, 500], "the other group starts alone");
}

#[test]
fn what_projects_ask_for_beyond_their_limits_is_no_demand_of_their_department() {
    let mut w = World::new("n1:8", "");
    w.run("queue d:0; queue d/a:0:1; queue d/b:0:2; queue e:0; queue e/c:0");
    many(&mut w, 8, "submit a/t#");
    many(&mut w, 8, "submit c/u#");
    assert_eq!(fair(&w, &["d", "e", "a", "c"]), [1000, 7000, 1000, 7000]);
    w.run("submit b/v -g 4");
    assert_eq!(fair(&w, &["d", "e"]), [1000, 7000], "it could never start");
    w.run("submit b/w1; submit b/w2; submit b/w3");
    assert_eq!(fair(&w, &["d", "e", "a", "b"]), [3000, 5000, 1000, 2000]);
    w.run("delete w1; delete w2; delete w3");
    assert_eq!(fair(&w, &["d", "e"]), [1000, 7000]);
}

#[test]
fn what_no_node_could_hold_is_known_before_it_is_there() {
    let mut w = World::new("n1:4 n2:4", "a:0 b:0");
    w.run("label n2 zone=b; submit a/full -g 4; submit a/fits -g 4; submit a/small --pods 8");
    w.run("submit a/big -g 8; submit a/gang --pods 9; submit a/grows -g 8 --elastic");
    w.run("submit a/there --pods 8 --on zone=b; submit a/nowhere --on zone=c; submit a/cores --cpu 101");
    for (name, why) in [
        ("fits", None),
        ("small", None),
        ("grows", None),
        ("big", Some("asks for 8 GPUs on one node; the largest node has 4")),
        ("gang", Some("8 of 9 pods fit on an empty cluster")),
        ("there", Some("4 of 8 pods fit on an empty cluster")),
        ("nowhere", Some("2 of 2 nodes lack a label that it needs")),
        ("cores", Some("101")),
    ] {
        let spec = &w.cluster.workloads()[w.id(name)].spec;
        let said = sched::never_fits(&w.cluster, spec).map(|reason| reason.to_string());
        match why {
            None => assert_eq!(said, None, "{name}"),
            Some(why) => {
                let said = said.unwrap_or_default();
                assert!(said.contains(why), "{name}: {said}");
            }
        }
    }
}

/// Asserts that the reason of a workload contains a text.
fn says(w: &World, name: &str, text: &str) {
    assert!(w.why(name).contains(text), "{text}\n{}", w.why(name));
}

#[test]
fn who_waits_for_guaranteed_run_time_says_so() {
    let mut w = World::new("n1:3", "a:1 b:2");
    w.run("min-runtime a 100000; submit a/x -g 3; submit b/y");
    says(
        &w,
        "y",
        "P205 nothing is stopped for 1 GPU: other projects hold 2 GPUs beyond their share",
    );
    w.run("wait 100000");
    assert_eq!(w.waiting(), "x");
}

#[test]
fn who_waits_for_what_others_are_entitled_to_says_so() {
    let mut w = World::new("n1:2 n2:2", "a:2 b:2");
    // The pods can run on one node only; before they start, the other node counts as usable.
    w.run("label n1 n=1; submit b/own -g 0 --label at=n1 --on n=1");
    w.run("submit a/x -g 2 --with at=n1; submit b/y --with at=n1");
    says(&w, "y", "no other project holds more than it is entitled to; a holds 2 GPUs (quota 2,");
    w.run("delete x; submit a/x -g 2 --with at=n1 --interactive; submit b/z --with at=n1");
    says(&w, "x", "P205 nothing is stopped for 2 GPUs: no other project holds more");
    w.run("delete y z; submit b/y --with at=n1");
    says(&w, "y", "P205 nothing is stopped for 1 GPU: other projects hold 2 GPUs, which cannot be");
}

#[test]
fn who_waits_for_own_work_or_its_own_delay_says_so() {
    let mut w = World::new("n1:2 n2:2", "a:2 b:2");
    w.run("label n1 n=1; submit b/own -g 0 --label at=n1 --on n=1");
    w.run("submit a/x --with at=n1 -g 2; submit a/y --with at=n1");
    says(
        &w,
        "y",
        "only work of its own project could give way, and none of that has a priority below 50; a holds 2",
    );
    w.run("submit b/late -g 2 --with at=n1 --delay 90000");
    says(&w, "late", "P205 others are stopped for it only after its preemption delay of 90 s");
}

#[test]
fn advice_names_priorities_that_have_a_name_and_no_other() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/x -g 2 --priority 149; submit a/y");
    assert!(w.advice("y").contains("raise its priority to very-high"), "{}", w.advice("y"));
    w.run("delete x y; submit a/x -g 2 --priority 150; submit a/y");
    assert!(!w.advice("y").contains("priority"), "{}", w.advice("y"));
}

#[test]
fn advice_says_what_to_type() {
    let mut w = World::new("n1:3 n2:1", "a:2 b:0");
    w.run("cordon n2; submit a/x -g 3; submit b/y");
    says_to_type(&w, "y", "elastane project update b --gpu-quota 1");
    says_to_type(&w, "y", "elastane node uncordon n2");
}

fn says_to_type(w: &World, name: &str, command: &str) {
    let lines = w.diagnosed(name);
    assert!(lines.lines().any(|line| line.trim() == command), "{command}\n{lines}");
}

/// The single pod is the cheapest, but without it the gang could not be stopped.
#[test]
fn a_set_of_victims_that_keeps_a_quota_is_found() {
    let mut w = World::new("n1:6", "a:3 b:0");
    w.run("weight a 0; submit a/inter -g 2 --interactive; submit a/one; submit a/gang --pods 3");
    w.run("submit b/taker --pods 3");
    assert_eq!(disturbed(&w), "gang gang gang", "{}", w.why("taker"));
}

/// The smaller gang is the cheapest for the first pods, and the larger one is needed for the last.
#[test]
fn what_one_larger_victim_makes_needless_goes_on_where_it_is() {
    let mut w = World::new("n1:5", "a:0 b:0");
    w.run("weight a 0; submit a/two --pods 2; submit a/three --pods 3; submit b/taker --pods 3");
    assert_eq!(disturbed(&w), "three three three");
}

#[test]
fn a_part_that_a_group_can_do_without_is_spare() {
    let mut w = World::new("n1:7", "a:0 b:2");
    w.run("submit a/e --min 1 --group r --set p --in r --pods 2 --group s --set q --in s --pods 2");
    w.run("submit a/gang --pods 3; submit b/x --pods 2");
    assert_eq!(disturbed(&w), "e e");
}

/// The first victim used to lose all its pods, and the other to keep its optional ones.
#[test]
fn what_several_can_do_without_goes_before_all_of_any() {
    let mut w = World::new("n1:6", "a:0 b:3");
    w.run("submit a/e --pods 3 --min 1; submit a/f --pods 3 --min 1; submit b/x -g 3");
    assert_eq!((disturbed(&w).as_str(), w.has_place("f")), ("e e f", true));
}

#[test]
fn so_it_is_where_a_limit_or_a_share_speaks_against_who_asks() {
    for (nodes, before) in [("n1:9", "limit a 6"), ("n1:6", "weight a 0; weight b 0; quota a 6")] {
        let mut w = World::new(nodes, "a:6 b:0");
        w.run(before);
        w.run("submit a/e --pods 3 --min 1; submit a/f --pods 3 --min 1");
        w.run("submit a/x -g 3 --priority 80");
        assert_eq!((disturbed(&w).as_str(), w.has_place("f")), ("e f f", true), "{before}");
    }
}

/// The cheaper pod belonged to the more important workload, which took the place of the other next.
#[test]
fn of_what_a_project_can_do_without_the_least_important_goes() {
    let mut w = World::new("n1:4", "a:2 b:2");
    w.run("submit a/low --pods 2 --min 1 --priority 40; wait 120000");
    w.run("submit a/high --pods 2 --min 1 --priority 60; submit b/x");
    assert_eq!(disturbed(&w), "low");
    w.run("delete low high x; submit a/low --priority 40; wait 120000");
    w.run("submit a/high --pods 3 --min 1 --priority 60; submit b/x");
    assert_eq!(disturbed(&w), "low");
}

/// Two pods of `more` used to be stopped, and `more` to stop `less` for one of them.
#[test]
fn of_the_more_important_no_more_goes_than_has_to() {
    let mut w = World::new("n1:4", "a:0 b:2");
    w.run("submit a/less --priority 40; submit a/more --pods 3 --min 1 --priority 60; submit b/x -g 2");
    assert_eq!(disturbed(&w), "less more");
    w.run("delete less more x; submit a/less --priority 40");
    w.run("submit a/more --pods 3 --min 1 --priority 60; submit a/x -g 2 --priority 80");
    assert_eq!(disturbed(&w), "less more");
}

#[test]
fn of_groups_in_groups_the_smallest_part_of_the_lowest_priority_goes() {
    let mut w = World::new("n1:4", "a:0 b:4");
    w.run(
        "submit a/e --min 1 --group g --min 1 --group h --min 1 \
         --set p --in g --task-priority 9 --set q --in g --task-priority 1 \
         --set r --in h --task-priority 5 --set s --in h --task-priority 3",
    );
    for (name, left) in [("x", [1, 0, 1, 1]), ("y", [1, 0, 1, 0]), ("z", [1, 0, 0, 0])] {
        w.run(&format!("submit b/{name}"));
        assert_eq!((placed(&w, "e"), disturbed(&w).as_str()), (left.to_vec(), "e"));
    }
}

#[test]
fn of_equal_parts_the_smallest_goes() {
    let mut w = World::new("n1:6", "a:0 b:1");
    w.run("submit a/e --min 2 --set p --pods 2 --set q --set r --pods 3; submit b/x");
    assert_eq!(placed(&w, "e"), [2, 0, 3]);
}

#[test]
fn a_part_of_low_priority_starts_after_pods_of_a_higher_one_and_goes_before_them() {
    let mut w = World::new("n1:2", "a:0 b:1");
    w.run(
        "submit a/e --min 1 --set p --task-priority 1 --set q --pods 2 --min 1 --task-priority 9",
    );
    assert_eq!(placed(&w, "e"), [0, 2]);
    w.run("add-node n2:1");
    assert_eq!(placed(&w, "e"), [1, 2]);
    w.run("submit b/x");
    assert_eq!(placed(&w, "e"), [0, 2]);
}

#[test]
fn one_pod_over_quota_costs_one_spare_pod_where_quotas_promise_too_much() {
    let mut w = World::new("n1:2 n2:2", "a:3 b:3");
    w.run("submit a/e --pods 4 --min 2; submit b/x");
    assert_eq!(disturbed(&w), "e");
    w.run("submit b/y -g 1 --on n=1; label n1 n=1");
    assert!(!w.gpus().contains('.'), "{}", w.gpus());
}

#[test]
fn a_part_of_a_gpu_moves_to_another_gpu_of_a_node_without_cores_for_it_twice() {
    let mut w = World::new("n1:2:10", "a:2");
    w.run("submit a/x -g 0.6 --cpu 4; submit a/c -g 0.6; submit a/f -g 0.4; submit a/y -g 0.4 --cpu 4");
    w.run("delete f; delete c");
    assert_eq!(w.gpus(), "n1[x:0.6 y:0.4]");
    w.run("submit a/whole --cpu 2");
    assert_eq!((disturbed(&w).as_str(), w.gpus().as_str()), ("y", "n1[x:0.6+y:0.4 whole]"));
}

#[test]
fn a_move_that_another_makes_possible_is_found_for_an_equal_workload() {
    let mut w = World::new("n1:3:20 n2:2:20 n3:3:2", "a:8");
    w.run("cordon n3; submit a/x -g 3 --cpu 1; submit a/v --cpu 4");
    w.run("submit a/t -g 2 --cpu 4; submit a/u -g 2 --cpu 4");
    assert_eq!(w.gpus(), "n1[x x x] n2[v .] n3[. . .]");
    w.run("uncordon n3");
    assert_eq!((disturbed(&w).as_str(), w.gpus().as_str()), ("x v", "n1[t t v] n2[u u] n3[x x x]"));
}

/// Two pods of the first set that was tried found no place beside each other.
#[test]
fn a_move_is_found_wherever_there_is_one() {
    let mut w = World::new("n1:4 n2:4 n3:4", "a:12");
    w.run("submit a/j0 -g 2; submit a/j1; submit a/j2 --pods 3 --min 1; submit a/j3 -g 2");
    w.run("submit a/j4; submit a/j5 -g 2; submit a/j6 --pods 2 --min 1; delete j1 j2 j4");
    w.run("submit a/taker -g 4");
    assert_eq!(disturbed(&w), "j3", "{}", w.why("taker"));
}

/// All three used to leave, and the pods moved were those whose devices had been assigned
/// meanwhile.
#[test]
fn of_a_gang_only_the_pods_move_that_have_to() {
    let mut w = World::new("n1:4 n2:4", "a:8");
    w.run("submit a/g --pods 3; submit a/x -g 3; submit a/z -g 2");
    assert_eq!((disturbed(&w).as_str(), w.gpus().as_str()), ("g", "n1[z g g z] n2[x x x g]"));
}

/// The other pod of j4 had started alone, while this one waited for the place of a moving pod.
#[test]
fn of_a_gang_that_has_just_got_its_places_no_pod_starts_while_another_moves() {
    let mut w = World::new("n1:4 n2:4 n3:4", "a:12");
    w.run("submit a/j0 -g 2 --pods 3 --min 1; submit a/j1 -g 3 --pods 2; submit a/j2 --pods 3 --min 1");
    w.run(
        "submit a/j3 -g 2; wait 120000; submit a/j4 -g 2 --pods 2; wait 120000; submit a/j5 -g 3",
    );
    w.run("wait 60000; delete j0");
    w.run("delete j1");
    assert_eq!(w.waiting(), "", "{}", w.gpus());
}

/// Number of placed pods of each set of a workload.
fn placed(w: &World, name: &str) -> Vec<u32> {
    w.cluster.workloads()[w.id(name)].pod_sets.iter().map(|set| set.placed).collect()
}

#[test]
fn pods_of_higher_priority_start_first_and_go_last() {
    let mut w = World::new("n1:2", "a:0 b:1");
    w.run("submit a/e --min 1 --set p --set q --task-priority 5 --set r --task-priority 9");
    assert_eq!(placed(&w, "e"), [0, 1, 1]);
    w.run("submit b/x");
    assert_eq!(placed(&w, "e"), [0, 0, 1]);
}

#[test]
fn so_it_is_with_what_a_workload_grows_by() {
    let mut w = World::new("n1:4", "a:0 b:1");
    w.run("submit a/e --set p --pods 3 --min 1 --set q --pods 3 --min 1 --task-priority 5");
    assert_eq!(placed(&w, "e"), [1, 3]);
    w.run("submit b/x");
    assert_eq!(placed(&w, "e"), [1, 2], "only q has more than its minimum");
}

/// `d1` is above its share with `b`, and `c` would need resources of `a` within its share. They
/// used to be reclaimed, `a` took them back from `b`, then from `c`, and so on for ever.
#[test]
fn what_a_project_holds_within_its_share_is_no_surplus_of_its_department() {
    let mut w = World::new("n1:4 n2:4 n3:2", "");
    w.run("label n1 n=1; label n2 n=2; queue d1:3; queue d2:2; queue d1/a:3; queue d1/b:1");
    w.run("queue d2/c:2; weight d1 0; weight a 0; weight b 0");
    w.run("submit a/a1 --pods 3 --min 1 --on n=1; submit a/a2 -g 0.5 --priority 40");
    w.run("submit c/c1 --pods 3 --min 1 --on n=2 --interactive; submit c/c2 -g 3");
    w.run("submit b/b1 -g 2; submit c/c3 --pods 2");
    assert_eq!(w.waiting(), "c1 c2");
}
