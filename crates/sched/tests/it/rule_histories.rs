//! The rules of `docs/concepts/decisions.md` under random histories of two departments with limits,
//! weights and priorities. [`World`] checks the invariants of each decision: for example, that no
//! pod was stopped that could have gone on. The invariants at rest are checked here.

use std::collections::BTreeSet;

use proptest::prelude::*;
use reasons::Pending;
use testkit::World;

use crate::histories::histories;
use crate::truth;

const MINUTE_MS: usize = 60_000;
const NODES: &str = "n1:4:16 n2:4:16 n3:2:8";
const LABELS: &str = "label n1 n=1; label n2 n=2; label n3 n=3";
const PROJECTS: [&str; 4] = ["a", "b", "c", "d"];
/// Tree of queues: the parent and the name of each.
const TREE: [(&str, &str); 10] = [
    ("", "r1"),
    ("", "r2"),
    ("r1/", "d1"),
    ("r1/", "d2"),
    ("r2/", "d3"),
    ("d1/", "a"),
    ("d1/", "b"),
    ("d2/", "c"),
    ("d3/", "d"),
    ("r2/", "e"),
];
const LEAVES: [&str; 5] = ["a", "b", "c", "d", "e"];
const QUEUES: [&str; 6] = ["d1", "d2", "a", "b", "c", "d"];
const SIZES: [&str; 17] = [
    "-g 1",
    "-g 2",
    "-g 3",
    "-g 4",
    "-g 0.5",
    "-g 1 --cpu 5",
    "-g 1 --pods 2",
    "-g 2 --pods 2",
    "-g 1 --pods 3 --min 1",
    "-g 2 --pods 3 --min 1",
    "-g 1 --pods 4 --min 2",
    "-g 2 --elastic",
    "-g 8",
    "-g 1 --pods 11",
    "--min 1 --set p --set q --task-priority 5 --set r --pods 2 --min 1 --task-priority 9",
    "--min 1 --group g --min 1 --set p --in g --set q --in g -g 2 --set r --task-priority 5",
    "--set p --pods 2 --set q -g 2 --pods 3 --min 1 --task-priority 5",
];

/// A submission has a project, and flags for size, priority, node and preemptibility.
#[derive(Debug, Clone)]
enum Event {
    Submit { project: usize, flags: String },
    Delete(usize),
    Set { word: &'static str, queue: usize, number: u64 },
    Guarantee { project: usize, ms: u64 },
    Wait(u64),
}

fn submit() -> impl Strategy<Value = Event> {
    let size = prop::sample::select(&SIZES[..]);
    let priority = prop::sample::select(&["", "", " --priority 40", " --priority 80"][..]);
    let node = prop::sample::select(&["", "", "", "", " --on n=1", " --on n=2"][..]);
    let kind = prop::sample::select(&["", "", "", "", " --interactive", " --delay 3000"][..]);
    (0..PROJECTS.len(), size, priority, node, kind).prop_map(
        |(project, size, priority, node, kind)| Event::Submit {
            project,
            flags: format!("{size}{priority}{node}{kind}"),
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let word = prop::sample::select(&["quota", "limit", "weight"][..]);
    prop_oneof![
        10 => submit(),
        3 => (0..100_usize).prop_map(Event::Delete),
        2 => (word, 0..QUEUES.len(), 0..8_u64)
            .prop_map(|(word, queue, number)| Event::Set { word, queue, number }),
        1 => (0..PROJECTS.len(), 0..6_u64)
            .prop_map(|(project, s)| Event::Guarantee { project, ms: s * 1000 }),
        1 => prop::sample::select(vec![500, 3_000, 20_000]).prop_map(Event::Wait),
    ]
}

/// A cluster of two departments with two projects each, after these events.
fn after(quotas: &[u64], weights: &[u64], events: &[Event]) -> World {
    let mut w = World::new(NODES, "");
    w.run(LABELS);
    for (name, quota) in ["d1", "d2", "d1/a", "d1/b", "d2/c", "d2/d"].iter().zip(quotas) {
        w.run(&format!("queue {name}:{quota}"));
    }
    for (name, weight) in QUEUES.iter().zip(weights) {
        w.run(&format!("weight {name} {weight}"));
    }
    let (mut alive, mut next) = (Vec::new(), 0);
    for event in events {
        match event {
            Event::Submit { project, flags } => {
                w.run(&format!("submit {}/w{next} {flags}", PROJECTS[*project]));
                alive.push(format!("w{next}"));
                next += 1;
            }
            Event::Delete(_) if alive.is_empty() => {}
            Event::Delete(at) => {
                let name = alive.remove(at % alive.len());
                w.run(&format!("delete {name}"));
            }
            Event::Set { word, queue, number } => {
                w.run(&format!("{word} {} {number}", QUEUES[*queue]));
            }
            Event::Guarantee { project, ms } => {
                w.run(&format!("min-runtime {} {ms}", PROJECTS[*project]));
            }
            Event::Wait(ms) => w.run(&format!("wait {ms}")),
        }
    }
    w
}

proptest! {
    #![proptest_config(histories(500))]

    #[test]
    fn every_history_keeps_the_rules(
        quotas in prop::collection::vec(0..6_u64, 6),
        weights in prop::collection::vec(0..3_u64, 6),
        events in prop::collection::vec(event(), 1..25),
    ) {
        after(&quotas, &weights, &events);
    }

    #[test]
    fn every_minimum_comes_before_any_growth_of_the_same_priority(
        gpus in 1..9_u32,
        sizes in prop::collection::vec((1..5_u32, 0..4_u32), 1..6),
    ) {
        let mut w = World::new(&format!("n1:{gpus}"), "a:99");
        w.run("cordon n1");
        let mut free = gpus;
        let mut starts = Vec::new();
        for (number, &(min, more)) in sizes.iter().enumerate() {
            w.run(&format!("submit a/w{number} --min {min} --pods {}", min + more));
            starts.push(min <= free);
            free -= if min <= free { min } else { 0 };
        }
        w.run("uncordon n1");
        for (number, &starts) in starts.iter().enumerate() {
            prop_assert_eq!(w.has_place(&format!("w{number}")), starts, "w{}: {}", number, w.gpus());
        }
    }

    /// Workloads of one GPU on one node, so that only shares and limits decide, in queues of two
    /// and three levels.
    #[test]
    fn every_project_gets_its_share_below_every_limit(
        quotas in prop::collection::vec(0..6_u64, 10),
        weights in prop::collection::vec(0..3_u64, 10),
        limits in prop::collection::vec(0..9_u64, 10),
        counts in prop::collection::vec((0..LEAVES.len(), 1..5_u32), 1..8),
    ) {
        let mut w = World::new("n1:8:100", "");
        for (at, (above, name)) in TREE.iter().enumerate() {
            w.run(&format!("queue {above}{name}:{}:{}", quotas[at], limits[at]));
            w.run(&format!("weight {name} {}", weights[at]));
        }
        for (number, &(leaf, count)) in counts.iter().enumerate() {
            for one in 0..count {
                w.run(&format!("submit {}/w{number}-{one} -g 1", LEAVES[leaf]));
            }
        }
        for (id, queue) in w.cluster.queues().iter() {
            let (held, share) = (queue.allocated.gpu_millis, w.plan.shares[&id].gpu_millis);
            let limit = queue.share.limit.gpu_millis;
            prop_assert!(held <= limit, "{} holds {held} of {limit}: {}", queue.name, w.gpus());
            // A share below one GPU is too little for a workload.
            let leaf = queue.children.is_empty();
            let whole = share / 1000 * 1000;
            prop_assert!(!leaf || held >= whole, "{} holds {held} of {share}: {}", queue.name, w.gpus());
        }
    }

    #[test]
    fn what_could_not_start_alone_is_no_demand_and_what_could_is(
        quotas in prop::collection::vec(0..6_u64, 6),
        weights in prop::collection::vec(0..3_u64, 6),
        events in prop::collection::vec(event(), 1..25),
    ) {
        let w = after(&quotas, &weights, &events);
        let all: Vec<_> = w.cluster.workloads().iter().map(|(_, row)| row.spec.name.clone()).collect();
        for name in w.waiting().split_whitespace() {
            let mut alone = w.clone();
            // All at once: if they were deleted one by one, some would stop it for others.
            let others: Vec<_> = all.iter().map(String::as_str).filter(|other| *other != name).collect();
            alone.run(&format!("delete {}; wait 100000", others.join(" ")));
            let reasons = w.plan.pending.get(&w.id(name)).into_iter().flat_map(|all| all.iter());
            let none_counts = reasons.clone().any(|reason| {
                matches!(reason, Pending::NotCounted { left_out, requested, .. } if left_out == requested)
            });
            prop_assert_eq!(none_counts, !alone.has_place(name), "{}: {}", name, w.why(name));
            let spec = &w.cluster.workloads()[w.id(name)].spec;
            let warned = sched::never_fits(&w.cluster, spec);
            prop_assert!(warned.is_none() || none_counts, "{}: {:?}", name, warned);
        }
    }

    /// A workload that would start on an otherwise empty cluster waits by a rule, and names it.
    #[test]
    fn every_reason_is_so_and_names_a_rule_that_binds(
        quotas in prop::collection::vec(0..6_u64, 6),
        weights in prop::collection::vec(0..3_u64, 6),
        events in prop::collection::vec(event(), 1..25),
    ) {
        let w = after(&quotas, &weights, &events);
        for name in w.waiting().split_whitespace() {
            let reasons = w.plan.pending.get(&w.id(name)).into_iter().flat_map(|all| all.iter());
            for reason in reasons.clone() {
                prop_assert_eq!(truth::of_reason(&w, reason), Ok(()), "{}: {}", name, reason);
            }
            let is_rule = |reason: &Pending| !reason.code().code.starts_with("P1");
            prop_assert!(reasons.clone().any(is_rule), "{}: {}", name, w.why(name));
        }
    }

    #[test]
    fn a_demand_that_nothing_can_meet_changes_nothing(
        quotas in prop::collection::vec(0..6_u64, 6),
        weights in prop::collection::vec(0..3_u64, 6),
        events in prop::collection::vec(event(), 1..25),
        project in 0..PROJECTS.len(),
        flags in prop::sample::select(&["-g 5", "--pods 11", "-g 3 --on n=3", "--cpu 17", "-g 2 --pods 6"][..]),
    ) {
        let mut w = after(&quotas, &weights, &events);
        let (shares, gpus) = (w.plan.shares.clone(), w.gpus());
        w.run(&format!("submit {}/big {flags}", PROJECTS[project]));
        prop_assert_eq!((&w.plan.shares, w.gpus()), (&shares, gpus), "{}", w.why("big"));
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("few")
}

/// A workload of `parts` parts, of which `parts_min` are enough, with `pods` pods each.
#[derive(Debug)]
struct Stretch {
    parts: u32,
    parts_min: u32,
    pods: u32,
    pods_min: u32,
}

impl Stretch {
    fn flags(&self, gpus: u32) -> String {
        let Self { parts, parts_min, pods, pods_min } = self;
        let part = |at| {
            let group = format!(" --group g{at} --set s{at} --in g{at}");
            format!("{group} -g {gpus} --pods {pods} --min {pods_min}")
        };
        format!(" --min {parts_min}{}", (0..*parts).map(part).collect::<String>())
    }

    /// Possible numbers of optional pods: single ones above the minimum of their set, then parts.
    fn gives(&self) -> Vec<u32> {
        let alone = self.parts * (self.pods - self.pods_min);
        let parts = (1..=self.parts - self.parts_min).map(|parts| alone + parts * self.pods_min);
        (0..=alone).chain(parts).collect()
    }
}

/// Every subset.
fn choices<T: Copy>(of: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0..1_u32 << of.len()).map(move |set| {
        let chosen = (0..).zip(of).filter(|(at, _)| set >> at & 1 == 1);
        chosen.map(|(_, &one)| one).collect()
    })
}

/// `true` if pods of these GPU counts fit on nodes with these free GPUs.
fn fit(pods: &[u32], nodes: &mut [u32]) -> bool {
    let Some((&first, rest)) = pods.split_first() else { return true };
    (0..nodes.len()).any(|at| {
        let Some(left) = nodes[at].checked_sub(first) else { return false };
        let before = std::mem::replace(&mut nodes[at], left);
        let fits = fit(rest, nodes);
        nodes[at] = before;
        fits
    })
}

/// The node and the GPUs of each pod, by workload.
fn places(w: &World) -> Vec<Vec<(usize, u32)>> {
    let of = |workload: &model::Workload| {
        let pods = workload.pods.iter().filter_map(|&pod| {
            let place = w.cluster.pods()[pod].binding.effective()?;
            Some((place.node.raw() as usize, number(place.devices.len())))
        });
        pods.collect()
    };
    w.cluster.workloads().iter().map(|(_, workload)| of(workload)).collect()
}

/// Minimum of moves so that a pod of `taker` GPUs has room on three nodes of 4, over all choices of
/// pods of these workloads, each of which loses `lost` for each GPU that moves. The fewest
/// workloads first, then the least loss, then the fewest pods.
fn least_moved(
    held: &[Vec<(usize, u32)>],
    lost: &[u64],
    taker: u32,
) -> Option<(usize, u64, usize)> {
    let pods =
        held.iter().enumerate().flat_map(|(of, pods)| pods.iter().map(move |pod| (of, *pod)));
    let pods: Vec<(usize, (usize, u32))> = pods.collect();
    let cost = |set: u32| {
        let moved = (0..).zip(&pods).filter(|(at, _)| set >> at & 1 == 1);
        let mut last = None;
        moved.fold((0, 0, 0), |(workloads, work, count), (_, &(of, (_, gpus)))| {
            let is_next = last.replace(of) != Some(of);
            (workloads + usize::from(is_next), work + u64::from(gpus) * lost[of], count + 1)
        })
    };
    let makes_room = |set: u32| {
        let mut free = [4; 3];
        let mut places = vec![taker];
        for (at, &(_, (node, gpus))) in pods.iter().enumerate() {
            match set >> at & 1 {
                1 => places.push(gpus),
                _ => free[node] -= gpus,
            }
        }
        places.sort_unstable_by(|left, right| right.cmp(left));
        fit(&places, &mut free)
    };
    let all = (1 << pods.len()) - 1;
    if !makes_room(all) {
        return None;
    }
    let less = |least, set| if cost(set) < least && makes_room(set) { cost(set) } else { least };
    Some((0..all).fold(cost(all), less))
}

/// The workload number and the GPUs of each pod that has lost or changed its place.
fn moved(before: &World, after: &World) -> Vec<(usize, u32)> {
    let place = |w: &World, pod| w.cluster.pods()[pod].binding.effective().cloned();
    let of = |(at, row): (usize, &model::Workload)| {
        let moved = row.pods.iter().filter_map(|&pod| {
            let had = place(before, pod)?;
            (Some(&had) != place(after, pod).as_ref()).then(|| (at, number(had.devices.len())))
        });
        moved.collect::<Vec<_>>()
    };
    before.cluster.workloads().iter().map(|(_, row)| row).enumerate().flat_map(of).collect()
}

proptest! {
    #![proptest_config(histories(500))]

    /// Gangs on one node, so that only quotas and shares decide.
    #[test]
    fn victims_are_found_wherever_there_are_some_and_cost_at_most_one_gpu_too_much(
        quota in 0..5_u64,
        jobs in prop::collection::vec((1..4_u32, prop::bool::weighted(0.2)), 1..8),
        taker in 1..6_u32,
    ) {
        let all: u32 = jobs.iter().map(|job| job.0).sum();
        let mut w = World::new(&format!("n1:{all}"), &format!("a:{quota} b:0"));
        w.run("weight a 0");
        let (mut fixed, mut victims) = (0, Vec::new());
        for (number, &(size, interactive)) in jobs.iter().enumerate() {
            let is_fixed = interactive && u64::from(fixed + size) <= quota;
            w.run(&format!(
                "submit a/j{number} --pods {size}{}", if is_fixed { " --interactive" } else { "" }
            ));
            fixed += if is_fixed { size } else { 0 };
            victims.extend((!is_fixed).then_some(size));
        }
        w.run(&format!("submit b/taker --pods {taker}"));
        let share = |name: &str| {
            let queue = w.cluster.queues().iter().find(|(_, queue)| queue.name == name);
            u32::try_from(w.plan.shares[&queue.expect("a queue").0].gpu_millis / 1000).expect("few")
        };
        let (quota, share, theirs) = (u32::try_from(quota).expect("few"), share("a"), share("b"));
        // The largest goes last: until then the project uses more than its share.
        let is_just = |set: &Vec<u32>| {
            let (lost, last) = (set.iter().sum::<u32>(), set.iter().max().copied().unwrap_or(0));
            lost >= taker && all - lost >= quota && all - (lost - last) > share.max(quota)
        };
        let least = choices(&victims).filter(is_just).map(|set| set.iter().sum::<u32>()).min();
        let least = least.filter(|_| taker <= theirs);
        prop_assert_eq!(w.has_place("taker"), least.is_some(), "{}", w.why("taker"));
        let lost = w.stopped().lines().count();
        prop_assert!(lost <= least.map_or(0, |least| least as usize + 1), "{lost} {least:?}");
    }

    /// Fragmentation is removed wherever possible. The fewest workloads are moved; of equals those
    /// that lose the least: their moved GPUs times the whole minutes of their run, plus one for the
    /// restart; then the fewest pods. All other pods stay.
    #[test]
    fn no_more_is_moved_than_has_to_be(
        jobs in prop::collection::vec(
            (1..4_u32, 1..3_u32, 1..3_u32, 1..4_u32, 0..3_usize, prop::bool::weighted(0.4)), 3..7,
        ),
        taker in 2..5_u32,
    ) {
        let mut w = World::new("n1:4 n2:4 n3:4", "a:99");
        for (number, &(gpus, parts, pods, min, minutes, _)) in jobs.iter().enumerate() {
            // If the minimum exceeds the pods of a part, one part is enough.
            let (pods_min, parts_min) = (min.min(pods), if min > pods { 1 } else { parts });
            let job = Stretch { parts, parts_min, pods, pods_min };
            w.run(&format!("submit a/j{number}{}; wait {}", job.flags(gpus), MINUTE_MS * minutes));
        }
        for (number, _) in jobs.iter().enumerate().filter(|(_, job)| job.5) {
            w.run(&format!("delete j{number}"));
        }
        if !w.waiting().is_empty() || w.cluster.workloads().iter().any(|(_, row)| row.restarts > 0) {
            return Ok(());
        }
        let lost = |row: &model::Workload| {
            1 + (w.now.0 - row.last_start.expect("it runs").0) / MINUTE_MS as u64
        };
        let (rows, before) = (w.cluster.workloads().iter(), places(&w));
        let lost: Vec<u64> = rows.map(|(_, row)| lost(row)).collect();
        let least = least_moved(&before, &lost, taker);
        let mut after = w.clone();
        after.run(&format!("submit a/taker -g {taker}"));
        prop_assert_eq!(after.has_place("taker"), least.is_some(), "{}", after.why("taker"));
        let moved = moved(&w, &after);
        let gpus = |(of, gpus): &(usize, u32)| u64::from(*gpus) * lost[*of];
        let workloads: BTreeSet<usize> = moved.iter().map(|(of, _)| *of).collect();
        let cost = (workloads.len(), moved.iter().map(gpus).sum(), moved.len());
        prop_assert_eq!(cost, least.unwrap_or_default(), "{} {}", w.gpus(), after.stopped());
    }

    /// If one pod is enough for a workload, those of the highest priority run, in any order and
    /// grouping of its sets; when it has fewer GPUs, the lowest goes first.
    #[test]
    fn pods_of_the_highest_priority_run(
        priorities in Just((1..7_u32).collect::<Vec<_>>()).prop_shuffle(),
        groups in 0..7_usize,
        nested in any::<bool>(),
        gpus in 1..8_u32,
        taken in 0..8_u32,
    ) {
        let mut w = World::new(&format!("n1:{gpus}"), "a:0 b:9");
        let above = |group: usize| if nested && group > 0 { " --in g0" } else { "" };
        let groups_of = (0..groups).map(|one| format!(" --group g{one} --min 1{}", above(one)));
        let sets = priorities.iter().enumerate().map(|(at, one)| {
            let group = at.checked_rem(groups).map_or(String::new(), |at| format!(" --in g{at}"));
            format!(" --set s{one} --task-priority {one}{group}")
        });
        w.run("cordon n1");
        w.run(&format!("submit a/e --min 1{}{}", groups_of.collect::<String>(), sets.collect::<String>()));
        w.run("uncordon n1");
        let run = |w: &World| {
            let sets = &w.cluster.workloads()[w.id("e")].pod_sets;
            let placed = priorities.iter().zip(sets).filter(|(_, set)| set.placed > 0);
            let mut placed: Vec<_> = placed.map(|(&one, _)| one).collect();
            placed.sort_unstable_by(|left, right| right.cmp(left));
            placed
        };
        let highest = |count: u32| (1..7).rev().take(count as usize).collect::<Vec<_>>();
        prop_assert_eq!(run(&w), highest(gpus));
        for number in 0..taken {
            w.run(&format!("submit b/t{number}"));
            prop_assert_eq!(run(&w), highest(gpus.saturating_sub(number + 1)), "{}", w.gpus());
        }
    }

    /// No workload is stopped as a whole where the optional pods of all of them are enough; no more
    /// of these go than necessary, in any parts. Nothing that a part waits for stays idle.
    #[test]
    fn what_can_be_done_without_goes_before_all_of_any(
        jobs in prop::collection::vec((1..4_u32, 1..4_u32, 1..4_u32, 0..3_u32), 1..5),
        taker in 1..6_u32,
        is_gang in any::<bool>(),
    ) {
        let jobs = jobs.into_iter().map(|(parts, parts_min, pods_min, more)| Stretch {
            parts,
            parts_min: parts_min.min(parts),
            pods_min,
            pods: pods_min + more,
        });
        let jobs: Vec<_> = jobs.collect();
        let all = jobs.iter().map(|job| job.parts * job.pods).sum::<u32>();
        let mut w = World::new(&format!("n1:{all}"), &format!("a:0 b:{all}"));
        for (at, job) in jobs.iter().enumerate() {
            w.run(&format!("submit a/j{at}{}", job.flags(1)));
        }
        let gives = jobs.iter().map(Stretch::gives);
        let sums = gives.fold(BTreeSet::from([0]), |sums, gives| {
            sums.iter().flat_map(|sum| gives.iter().map(move |more| sum + more)).collect()
        });
        let Some(&least) = sums.range(taker..).next() else { return Ok(()) };
        w.run(&format!("submit b/x {} {taker}", if is_gang { "--pods" } else { "-g" }));
        prop_assert!(w.has_place("x"), "{}", w.why("x"));
        let lost = number(w.stopped().lines().count());
        prop_assert!(lost <= least + u32::from(is_gang), "{lost}, {least} would do: {}", w.stopped());
        let idle = number(w.gpus().matches('.').count());
        for (at, job) in jobs.iter().enumerate() {
            let row = &w.cluster.workloads()[w.id(&format!("j{at}"))];
            prop_assert!(row.enough(|set| row.pod_sets[set].placed), "j{at}: {}", w.stopped());
            for set in &row.pod_sets {
                let next = if set.placed < job.pods_min { job.pods_min } else { 1 };
                let is_full = set.placed == job.pods;
                prop_assert!(is_full || next > idle, "a part of j{at} waits: {}", w.gpus());
            }
        }
    }

    /// One GPU costs one optional pod if there is one, and nothing that a pod waits for stays idle.
    #[test]
    fn spare_pods_go_first_and_alone(
        quotas in (0..9_u64, 0..9_u64),
        jobs in prop::collection::vec((1..4_u32, 0..3_u32), 2..6),
    ) {
        let all: u32 = jobs.iter().map(|job| job.0 + job.1).sum();
        let nodes = format!("n1:{} n2:{}", all / 2, all - all / 2);
        let mut w = World::new(&nodes, &format!("a:{} b:{}", quotas.0, quotas.1));
        for (number, (min, more)) in jobs.iter().enumerate() {
            w.run(&format!("submit a/j{number} --min {min} --pods {}", min + more));
        }
        let has_spare = jobs.iter().any(|job| job.1 > 0);
        w.run("submit b/x");
        if w.has_place("x") && has_spare {
            prop_assert_eq!(w.stopped().lines().count(), 1, "{}", w.stopped());
        }
        let idle = number(w.gpus().matches('.').count());
        for (at, (min, more)) in jobs.iter().enumerate() {
            let name = format!("j{at}");
            let held = number(w.gpus().split([' ', '[', ']']).filter(|at| *at == name).count());
            let next = if held >= *min { 1 } else { *min };
            prop_assert!(held == min + more || next > idle, "{name} waits: {}", w.gpus());
        }
    }
}
