//! Property of hours: two projects that always have pending work get GPU time in proportion to
//! their shares. The difference is bounded by the largest workload of either, for the longest time
//! until room is made for it, and a turn.

use std::collections::BTreeMap;

use proptest::prelude::*;
use testkit::World;

const MINUTE: u64 = 60_000;
/// Length of a turn in minutes.
const TURN: u64 = 60;
const PROJECTS: [&str; 2] = ["a", "b"];

/// Equal workloads of a project, more than can run.
#[derive(Debug, Clone, Copy)]
struct Stream {
    gpus: u64,
    pods: u64,
    minutes: u64,
}

/// A project: its weight and its streams.
type Project = (u64, Vec<Stream>);

fn stream() -> impl Strategy<Value = Stream> {
    let sizes = [(1, 1), (2, 1), (4, 1), (8, 1), (1, 3), (1, 4), (1, 6)];
    let minutes = prop::sample::select(vec![5, 10, 20, 40, 90]);
    let stream = |((gpus, pods), minutes)| Stream { gpus, pods, minutes };
    (prop::sample::select(sizes.to_vec()), minutes).prop_map(stream)
}

fn project() -> impl Strategy<Value = Project> {
    (prop::sample::select(vec![1, 1, 2, 3]), prop::collection::vec(stream(), 1..3))
}

/// Two projects on a cluster, by the minute.
struct History {
    w: World,
    gpus: u64,
    streams: Vec<(usize, Stream)>,
    submitted: u64,
    waiting: Vec<(String, usize)>,
    /// End of each running workload, and its stream.
    running: BTreeMap<String, (u64, usize)>,
}

impl History {
    fn new(nodes: u64, per_node: u64, projects: &[Project]) -> Self {
        let names: Vec<_> = (0..nodes).map(|node| format!("n{node}:{per_node}")).collect();
        let mut w = World::new(&names.join(" "), "a:0 b:0");
        let (gpus, mut streams) = (nodes * per_node, Vec::new());
        for (project, (weight, of_project)) in projects.iter().enumerate() {
            w.run(&format!("weight {} {weight}", PROJECTS[project]));
            let fits = |stream: &Stream| Stream {
                gpus: stream.gpus.min(per_node),
                pods: stream.pods.min(gpus),
                ..*stream
            };
            streams.extend(of_project.iter().map(|stream| (project, fits(stream))));
        }
        let (waiting, running) = (Vec::new(), BTreeMap::new());
        Self { w, gpus, streams, submitted: 0, waiting, running }
    }

    /// One minute; returns the GPUs that each project holds in it.
    fn pass(&mut self, minute: u64) -> [u64; 2] {
        let over = self.running.iter().filter(|(_, (end, _))| *end == minute);
        for name in over.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.running.remove(&name);
            self.w.run(&format!("delete {name}"));
        }
        for (at, &(project, Stream { gpus, pods, .. })) in self.streams.iter().enumerate() {
            let waits = self.waiting.iter().filter(|(_, of)| *of == at).count() as u64;
            // The request is at least the capacity, so the shares follow from the weights.
            for _ in waits..self.gpus.div_ceil(gpus * pods) {
                self.submitted += 1;
                let name = format!("{}{}", PROJECTS[project], self.submitted);
                let pods = if pods > 1 { format!(" --pods {pods}") } else { String::new() };
                self.w.run(&format!("submit {}/{name} -g {gpus}{pods}", PROJECTS[project]));
                self.waiting.push((name, at));
            }
        }
        // A stopped workload waits again, with all of its run time.
        let w = &self.w;
        let stopped = self.running.extract_if(.., |name, _| !w.has_place(name));
        self.waiting.extend(stopped.map(|(name, (_, at))| (name, at)));
        for (name, at) in self.waiting.extract_if(.., |(name, _)| w.has_place(name)) {
            self.running.insert(name, (minute + self.streams[at].1.minutes, at));
        }
        let mut held = [0; 2];
        for (_, at) in self.running.values() {
            let (project, Stream { gpus, pods, .. }) = self.streams[*at];
            held[project] += gpus * pods;
        }
        self.w.run(&format!("wait {MINUTE}"));
        held
    }

    /// Fair share of each project in GPUs.
    fn shares(&self) -> [u64; 2] {
        let share = |name: &str| {
            let mut queues = self.w.cluster.queues().iter();
            let (id, _) = queues.find(|(_, queue)| queue.name == name).expect("a project");
            self.w.plan.shares[&id].gpu_millis / 1000
        };
        PROJECTS.map(share)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn two_projects_are_no_further_apart_than_the_largest_and_longest_work(
        nodes in 1_u64..4,
        per_node in prop::sample::select(vec![4_u64, 8]),
        projects in prop::collection::vec(project(), 2),
    ) {
        let mut history = History::new(nodes, per_node, &projects);
        let (mut apart, mut least, mut most) = (0_i64, 0, 0);
        for minute in 0..360 {
            let held = history.pass(minute);
            let shares = history.shares();
            // GPU time over share, on one denominator.
            apart += (held[0] * shares[1]).cast_signed() - (held[1] * shares[0]).cast_signed();
            (least, most) = (apart.min(least), apart.max(most));
        }
        let streams = || history.streams.iter().map(|(_, stream)| stream);
        let largest = streams().map(|stream| stream.gpus * stream.pods).max();
        let longest = streams().map(|stream| stream.minutes.max(TURN) + TURN).max();
        let gpu_minutes = largest.zip(longest).map_or(0, |(gpus, minutes)| gpus * minutes);
        let shares = history.shares();
        let bound = (gpu_minutes * (shares[0] + shares[1])).cast_signed();
        prop_assert!(most - least <= bound, "{} > {bound}, shares {shares:?}", most - least);
    }
}
