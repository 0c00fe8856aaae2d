//! Rules that show only in the long run, or by the shape of requests.

use proptest::prelude::*;
use testkit::World;

#[test]
fn of_equal_losses_the_fewest_workloads_are_stopped() {
    let mut w = World::new("n1:4", "a:4");
    w.run("submit a/two -g 2 --priority 50; submit a/one-a --priority 50; submit a/one-b --priority 50");
    w.run("wait 3600000; submit a/high -g 2 --priority 90");
    assert_eq!(w.waiting(), "two");
}

/// Two equal projects request four GPUs each, of which only four are usable.
fn four_of_eight(nodes: &str, prepare: &str, queues: &str, flags: &str) -> World {
    let mut w = World::new(nodes, queues);
    w.run(prepare);
    for name in ["a", "b"] {
        for at in 1..=4 {
            w.run(&format!("submit {name}/{name}{at} {flags}"));
        }
    }
    w
}

#[test]
fn gpus_that_nobody_can_use_are_in_nobody_s_share() {
    for (what, nodes, prepare, flags) in [
        ("cordoned", "n1:4 n2:4", "cordon n2", ""),
        ("tainted", "n1:4 n2:4", "label n2 !only", ""),
        ("no CPU beside them", "n1:4 n2:4:1", "", "--cpu 8"),
        ("CPU beside one of them", "n1:3 n2:4:9", "", "--cpu 8"),
        ("another label", "n1:4 n2:4", "label n1 kind=x", "--on kind=x"),
    ] {
        for queues in ["a:0 b:0", "a:4 b:4"] {
            let w = four_of_eight(nodes, prepare, queues, flags);
            let waits = |name| w.waiting().matches(name).count();
            assert_eq!((waits("a"), waits("b")), (2, 2), "{what}, {queues}: {}", w.gpus());
        }
    }
}

#[test]
fn one_job_that_can_use_them_does_not_undo_it() {
    let w = four_of_eight(
        "n1:4 n2:4",
        "label n2 !only; submit c/c1 --tolerate only; submit c/c2 --tolerate only",
        "c:0 a:0 b:0",
        "",
    );
    assert_eq!(w.waiting(), "a3 a4 b3 b4", "{}", w.gpus());
    let share = "a and b share the 4 GPUs of n1: work like this can use no others";
    assert!(w.why("a3").contains(share), "{}", w.why("a3"));
}

#[test]
fn what_runs_on_a_cordoned_node_counts_for_those_who_hold_it() {
    let mut w = World::new("n1:4 n2:4", "a:0 b:0");
    w.run("submit a/x -g 4; submit a/y -g 1 --pods 4 --min 1; cordon n1");
    w.run("submit b/z -g 1 --pods 4 --min 1");
    assert_eq!(w.gpus(), "n1[x x x x] n2[z z z z]", "a holds its half");
}

#[test]
fn departments_share_what_both_can_use() {
    let mut w = World::new("n1:4 n2:4", "");
    for queue in ["d1", "d2", "d1/a:0", "d1/b:0", "d2/c:0"] {
        w.run(&format!("queue {queue}"));
    }
    w.run("cordon n2");
    for name in ["a", "b", "c"] {
        w.run(&format!("submit {name}/{name}1; submit {name}/{name}2; submit {name}/{name}3"));
    }
    let waits = |name: &str| w.waiting().matches(name).count();
    assert_eq!((waits("a"), waits("b"), waits("c")), (2, 2, 1), "{}", w.gpus());
}

/// Nodes by their taints (bits), with their GPUs.
type Nodes = Vec<(u8, u8)>;

/// Pods by project, and the taints that they tolerate.
type Pods = Vec<(u8, u8)>;

fn tainted() -> impl Strategy<Value = (Nodes, Pods)> {
    let nodes = prop::collection::vec((0u8..8, 1u8..4), 1..5);
    (nodes, prop::collection::vec((0u8..3, 0u8..8), 1..14))
}

/// GPU slots by the taints of their nodes, with the pod in each.
struct Slots<'a> {
    taints: Vec<u8>,
    pods: &'a [(u8, u8)],
    taken: Vec<Option<usize>>,
}

impl Slots<'_> {
    /// Gives a project one more slot, by augmenting paths through pods of any project.
    fn augment(&mut self, project: u8, seen: &mut [bool]) -> bool {
        for pod in 0..self.pods.len() {
            if self.pods[pod].0 != project || self.taken.contains(&Some(pod)) {
                continue;
            }
            for slot in 0..self.taints.len() {
                if seen[slot] || self.taints[slot] & !self.pods[pod].1 != 0 {
                    continue;
                }
                seen[slot] = true;
                let had = self.taken[slot].replace(pod);
                if had.is_none_or(|other| self.augment(self.pods[other].0, seen)) {
                    return true;
                }
                self.taken[slot] = had;
            }
        }
        false
    }
}

/// Maximum number of GPUs that pods can use together, at most `most` of each project.
fn most_together(nodes: &[(u8, u8)], pods: &[(u8, u8)], most: [u64; 3]) -> u64 {
    let of_node = |&(taints, gpus): &(u8, u8)| vec![taints; usize::from(gpus)];
    let taints: Vec<u8> = nodes.iter().flat_map(of_node).collect();
    let mut slots = Slots { taken: vec![None; taints.len()], taints, pods };
    let mut held = 0;
    for (project, most) in (0..3).zip(most) {
        for _ in 0..most.min(pods.len() as u64) {
            held += u64::from(slots.augment(project, &mut vec![false; slots.taints.len()]));
        }
    }
    held
}

proptest! {
    #[test]
    fn shares_are_possible_and_leave_nothing_that_could_be_used((nodes, pods) in tainted()) {
        let names: Vec<_> = (1..=nodes.len()).map(|at| format!("n{at}")).collect();
        let all: Vec<_> =
            names.iter().zip(&nodes).map(|(name, (_, gpus))| format!("{name}:{gpus}")).collect();
        let mut w = World::new(&all.join(" "), "a:0 b:0 c:0");
        let bits = |of: u8, flag: &str| -> String {
            let set = (0..3).filter(|bit| of & (1 << bit) != 0);
            set.map(|bit| format!(" {flag}t{bit}")).collect()
        };
        for (name, (taints, _)) in names.iter().zip(&nodes) {
            w.run(&format!("label {name}{}", bits(*taints, "!")));
        }
        for (at, (project, tolerates)) in pods.iter().enumerate() {
            let project = ["a", "b", "c"][usize::from(*project)];
            w.run(&format!("submit {project}/j{at}{}", bits(*tolerates, "--tolerate ")));
        }
        let fair = sched::fair_shares(&w.cluster, &w.policy);
        let share = |name: &str| {
            let (id, _) = w.cluster.queues().iter().find(|(_, row)| row.name == name).unwrap();
            fair[&id].gpu_millis / units::GPU_MILLIS
        };
        let shares = [share("a"), share("b"), share("c")];
        let most = most_together(&nodes, &pods, shares);
        prop_assert_eq!(shares.iter().sum::<u64>(), most, "possible: {:?}", shares);
        prop_assert_eq!(most, most_together(&nodes, &pods, [u64::MAX; 3]), "{:?}", shares);
    }
}

#[test]
fn of_more_groups_than_are_told_apart_the_sum_is_still_what_can_be_used() {
    let names: Vec<_> = (1..=12).map(|at| format!("n{at}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| format!("{name}:1")).collect();
    let mut w = World::new(&nodes.join(" "), "a:0 b:0");
    for name in &names {
        w.run(&format!("label {name} at={name}; submit a/on-{name} --on at={name}"));
    }
    w.run("cordon n12; delete on-n12; submit b/x --pods 12 --min 1");
    let fair = sched::fair_shares(&w.cluster, &w.policy);
    let sum = |name: &str| {
        let rows = w.cluster.queues().iter().filter(|(_, row)| row.name == name);
        rows.map(|(id, _)| fair[&id].gpu_millis / units::GPU_MILLIS).sum::<u64>()
    };
    assert_eq!(sum("a") + sum("b"), 11, "a {} and b {}", sum("a"), sum("b"));
}
