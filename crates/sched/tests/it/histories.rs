//! Random histories of a cluster. Owns: the possible events, and their execution.

use proptest::prelude::*;
use testkit::World;

/// Number of histories for each property: `usual`, unless `PROPTEST_CASES` is set.
pub(crate) fn histories(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let told = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if told { config.cases } else { usual }, ..config }
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Submit {
        project: usize,
        flags: &'static str,
    },
    Delete(usize),
    Suspend(usize),
    Resume(usize),
    Quota {
        project: usize,
        gpus: u32,
    },
    Cordon {
        node: usize,
        closed: bool,
    },
    Drain(usize),
    Ungate {
        at: usize,
        pod: usize,
    },
    LoseNode(usize),
    Gpu {
        node: usize,
        gpu: usize,
        word: &'static str,
    },
    Guarantee {
        project: usize,
        ms: u64,
    },
    Lose(usize),
    Wait(u32),
    Checkpoint(usize),
    Slow(bool),
    Gone,
    PoolQuota {
        project: usize,
        gpus: u32,
    },
    MoveNode {
        node: usize,
        pool: bool,
    },
    /// Back-off of a workload, in seconds.
    NotBefore(usize, u64),
    Share {
        project: usize,
        gpu: u64,
        cpu: u64,
        cpu_limit: u64,
        weight: u64,
        dept: bool,
    },
    Precedence(usize, u32, bool),
    /// Several equal workloads.
    Many(usize, usize, &'static str),
}

const PROJECTS: [&str; 3] = ["a", "b", "c"];
pub(crate) const SHAPES: [&str; 43] = [
    "-g 1 --label app=x",
    "-g 1 --label app=x --apart app=x",
    "-g 1 --pods 3 --min 2 --label app=x --apart app=x@rack",
    "-g 1 --with app=x@zone --priority 80",
    "-g 1 --pods 2 --label app=y --with app=y@zone --apart app=x",
    "-g 0.5 --label app=y --rather-with app=x --rather-apart app=y@rack",
    "--mig 1g.5gb",
    "--mig 1g.5gb*2,3g.20gb --pods 2 --min 1",
    "--mig 3g.20gb --priority 80",
    "-g 1 --limit 20000",
    "-g 2 --limit 60000 --priority 80",
    "-g 4 --pods 2",
    "-g 2 --pods 2 --interactive",
    "-g 1",
    "-g 2",
    "-g 4",
    "-g 0.5",
    "-g 0.3 --interactive",
    "-g 1 --interactive",
    "-g 2 --elastic",
    "-g 1 --elastic",
    "-g 4 --elastic",
    "-g 1 --pods 3",
    "-g 2 --priority 80",
    "--devices 2 -g 0.5",
    "-g 1 --on zone=a",
    "-g 1 --prefer zone=a --delay 3000",
    "-g 1 --pods 4 --min 2",
    "-g 1 --pods 3 --min 2 --gated",
    "-g 1 --pools p,default",
    "-g 1 --pods 3 --min 2 --pools default,p",
    "-g 2 --elastic --pools p,default",
    "-g 2 --mem 4GiB",
    "-g 0 --cpu 30",
    "-g 1 --pods 3 --required rack",
    "-g 1 --pods 4 --min 2 --required rack",
    "-g 1 --pods 2 --preferred rack",
    "--set p -g 1 --pods 3 --min 1 --set q -g 1",
    "--min 1 --set p -g 2 --set q -g 1 --task-priority 5 --set r -g 1 --task-priority 9",
    "--set p -g 1 --pods 3 --min 1 --set q -g 1 --pods 3 --min 1 --task-priority 5",
    "--min 1 --group r --set p --in r -g 1 --pods 2 --set q -g 1 --pods 2 --min 1",
    "--required rack --set p -g 1 --pods 2 --min 1 --set q -g 0.5 --pods 2",
    "--group r --required rack --set p --in r -g 1 --set q --in r -g 0.5 --set s -g 1",
];

const GPU_WORDS: [&str; 4] = ["take-gpu", "lose-gpu", "return-gpu", "return-gpu"];

pub(crate) const NODES: &str = "n1:4 n2:4 n3:2+3g.20gb,1g.5gb*3";
pub(crate) const LABELS: &str = "label n1 rack=1 node-pool=p; label n2 zone=a rack=1; \
                      label n3 zone=a rack=2 node-pool=p !dedicated";

/// Events in a cluster whose node pools have queues of their own.
pub(crate) fn action_with_pools() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => action(),
        1 => (0..3_usize, 0..5_u32)
            .prop_map(|(project, gpus)| Action::PoolQuota { project, gpus }),
        1 => (0..3_usize, any::<bool>()).prop_map(|(node, pool)| Action::MoveNode { node, pool }),
    ]
}

/// Also with changes of quotas, limits, weights and priorities, delays, and many equal workloads.
pub(crate) fn action_with_settings() -> impl Strategy<Value = Action> {
    prop_oneof![
        20 => action_with_pools(),
        3 => (0..100_usize, 0..30_u64).prop_map(|(a, s)| Action::NotBefore(a, s)),
        3 => (0..3_usize, 0..6_u64, 0..8_u64, 1..40_u64, 0..3_u64, any::<bool>()).prop_map(|(project, gpu, cpu, cpu_limit, weight, dept)| Action::Share { project, gpu, cpu, cpu_limit, weight, dept }),
        2 => (0..100_usize, 40..60_u32, any::<bool>()).prop_map(|(a, p, b)| Action::Precedence(a, p, b)),
        3 => (0..3_usize, 2..6_usize, proptest::sample::select(&["-g 1 --cpu 2", "-g 2 --cpu 3 --delay 3000", "-g 0 --cpu 7", "-g 0.5 --cpu 1 --priority 60", "-g 1 --pools p,default --cpu 2", "-g 1 --on zone=a --cpu 1"][..])).prop_map(|(a, n, s)| Action::Many(a, n, s)),
        2 => Just(Action::Wait(3_000)),
        2 => Just(Action::Wait(500)),
    ]
}

pub(crate) fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..3_usize, proptest::sample::select(&SHAPES[..]))
            .prop_map(|(project, flags)| Action::Submit { project, flags }),
        3 => (0..100_usize).prop_map(Action::Delete),
        1 => (0..100_usize).prop_map(Action::Suspend),
        1 => (0..100_usize).prop_map(Action::Resume),
        1 => (0..3_usize, 0..5_u32).prop_map(|(project, gpus)| Action::Quota { project, gpus }),
        1 => (0..3_usize, any::<bool>()).prop_map(|(node, closed)| Action::Cordon { node, closed }),
        1 => (0..3_usize).prop_map(Action::Drain),
        1 => (0..100_usize, 0..4_usize).prop_map(|(at, pod)| Action::Ungate { at, pod }),
        1 => (0..3_usize).prop_map(Action::LoseNode),
        2 => (0..3_usize, 0..4_usize, proptest::sample::select(&GPU_WORDS[..]))
            .prop_map(|(node, gpu, word)| Action::Gpu { node, gpu, word }),
        1 => (0..3_usize, 0..9_u64)
            .prop_map(|(project, s)| Action::Guarantee { project, ms: s * 1000 }),
        1 => (0..100_usize).prop_map(Action::Lose),
        1 => proptest::sample::select(&[20_000, 200_000][..]).prop_map(Action::Wait),
        1 => (0..100_usize).prop_map(Action::Checkpoint),
        1 => any::<bool>().prop_map(Action::Slow),
        2 => Just(Action::Gone),
    ]
}

fn pick(alive: &[String], at: usize) -> Option<String> {
    alive.get(at % alive.len().max(1)).cloned()
}

/// Changes a setting of a workload or a queue.
fn change(w: &mut World, alive: &[String], action: &Action) {
    match action {
        Action::NotBefore(at, s) => {
            if let Some(name) = pick(alive, *at) {
                let id = w.id(&name);
                if w.cluster.workloads().get(id).is_some() {
                    let until = w.now.plus_ms(s * 1000);
                    w.cluster.set_not_before(id, until);
                    w.run("wait 1");
                }
            }
        }
        Action::Share { project, gpu, cpu, cpu_limit, weight, dept } => {
            let found = w
                .cluster
                .queues()
                .iter()
                .find(|(_, q)| q.name == PROJECTS[*project])
                .map(|(id, q)| (id, q.share, q.parent));
            if let Some((id, mut share, parent)) = found {
                share.quota.gpu_millis = gpu * 1000;
                share.quota.cpu_millis = cpu * 1000;
                share.limit.cpu_millis = (*cpu_limit).max(*cpu) * 1000;
                share.over_quota_weight = model::Weights::all(*weight);
                let at = if *dept { parent.unwrap_or(id) } else { id };
                w.cluster.set_share(at, share).expect("a share of a queue that is there");
                w.run("wait 1");
            }
        }
        Action::Precedence(at, p, b) => {
            if let Some(name) = pick(alive, *at) {
                let id = w.id(&name);
                if w.cluster.workloads().get(id).is_some() {
                    w.cluster.set_precedence(id, *p, *b);
                    w.run("wait 1");
                }
            }
        }
        _ => {}
    }
}

/// Applies an action; workloads are numbered in order.
pub(crate) fn apply(w: &mut World, alive: &mut Vec<String>, next: &mut usize, action: &Action) {
    if w.cluster.topologies().is_empty() {
        w.run("topology net rack");
    }
    match action {
        Action::Submit { project, flags } => {
            let name = format!("w{next}");
            *next += 1;
            w.run(&format!("submit {}/{name} {flags}", PROJECTS[*project]));
            alive.push(name);
        }
        Action::Delete(at) => {
            if let Some(name) = pick(alive, *at) {
                alive.retain(|other| *other != name);
                w.run(&format!("delete {name}"));
            }
        }
        Action::Suspend(at) => pick(alive, *at).iter().for_each(|n| w.run(&format!("suspend {n}"))),
        Action::Resume(at) => pick(alive, *at).iter().for_each(|n| w.run(&format!("resume {n}"))),
        Action::Quota { project, gpus } => w.run(&format!("quota {} {gpus}", PROJECTS[*project])),
        Action::Cordon { node, closed } => {
            let word = if *closed { "cordon" } else { "uncordon" };
            w.run(&format!("{word} n{}", node + 1));
        }
        Action::Ungate { at, pod } => {
            pick(alive, *at).iter().for_each(|n| w.run(&format!("ungate {n} {pod}")));
        }
        Action::Gpu { node, gpu, word } => w.run(&format!("{word} n{} {gpu}", node + 1)),
        Action::Drain(node) => w.run(&format!("drain n{}", node + 1)),
        Action::LoseNode(node) => {
            w.run(&format!(
                "lose-node n{0}; add-node n{0}:{1}",
                node + 1,
                ["4", "4", "2+3g.20gb,1g.5gb*3"][*node]
            ));
        }
        Action::Guarantee { project, ms } => {
            w.run(&format!("min-runtime {} {ms}", PROJECTS[*project]));
        }
        Action::Lose(at) => pick(alive, *at).iter().for_each(|n| w.run(&format!("lose {n} 0"))),
        Action::Wait(ms) => w.run(&format!("wait {ms}")),
        Action::Checkpoint(at) => {
            pick(alive, *at).iter().for_each(|n| w.run(&format!("checkpoint {n}")));
        }
        Action::Slow(slow) => w.slow = *slow,
        Action::Gone => w.run("gone"),
        Action::PoolQuota { project, gpus } => {
            w.run(&format!("quota {}@p {gpus}", PROJECTS[*project]));
        }
        Action::NotBefore(..) | Action::Share { .. } | Action::Precedence(..) => {
            change(w, alive, action);
        }
        Action::Many(project, count, flags) => {
            for _ in 0..*count {
                let name = format!("w{next}");
                *next += 1;
                w.run(&format!("submit {}/{name} {flags}", PROJECTS[*project]));
                alive.push(name);
            }
        }
        Action::MoveNode { node, pool } => {
            let pool = if *pool { "p" } else { "default" };
            let taint = ["", "", " !dedicated"][*node];
            w.run(&format!("label n{} rack=1 zone=a node-pool={pool}{taint}", node + 1));
        }
    }
}
