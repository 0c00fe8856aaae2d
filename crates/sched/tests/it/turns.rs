//! Turns: over hours siblings get their fair shares, for work of any size.

use std::collections::BTreeMap;

use testkit::World;

const MINUTE: u64 = 60_000;

/// Work of a project, more than can run.
#[derive(Debug, Clone, Copy)]
struct Stream {
    project: &'static str,
    gpus: u64,
    minutes: u64,
}

const fn stream(project: &'static str, gpus: u64, minutes: u64) -> Stream {
    Stream { project, gpus, minutes }
}

/// Streams on a cluster, by the minute.
struct History {
    w: World,
    streams: Vec<Stream>,
    minute: u64,
    submitted: u64,
    ends: BTreeMap<String, u64>,
    /// Pending workloads, with their streams.
    waiting: Vec<(String, usize)>,
    /// GPU-minutes of each project so far.
    had: BTreeMap<&'static str, u64>,
    stopped: usize,
}

impl History {
    fn new(nodes: &str, projects: &str, streams: &[Stream]) -> Self {
        let had = streams.iter().map(|stream| (stream.project, 0)).collect();
        Self {
            w: World::new(nodes, projects),
            streams: streams.to_vec(),
            minute: 0,
            submitted: 0,
            ends: BTreeMap::new(),
            waiting: Vec::new(),
            had,
            stopped: 0,
        }
    }

    fn run(&mut self, minutes: u64) {
        for _ in 0..minutes {
            let due: Vec<_> = self.ends.iter().filter(|(_, at)| **at == self.minute).collect();
            let due: Vec<_> = due.into_iter().map(|(name, _)| name.clone()).collect();
            for name in due {
                self.ends.remove(&name);
                self.w.run(&format!("delete {name}"));
            }
            for at in 0..self.streams.len() {
                while self.waiting.iter().filter(|(_, of)| *of == at).count() < 2 {
                    self.submit(at);
                }
            }
            self.look();
            for stream in &self.streams {
                let running = self.ends.keys().filter(|name| {
                    name.starts_with(stream.project) && name.contains(&format!("-{}-", stream.gpus))
                });
                *self.had.get_mut(stream.project).expect("a project") +=
                    running.count() as u64 * stream.gpus;
            }
            self.minute += 1;
            self.w.run(&format!("wait {MINUTE}"));
        }
    }

    fn submit(&mut self, at: usize) {
        let Stream { project, gpus, minutes } = self.streams[at];
        self.submitted += 1;
        let name = format!("{project}-{gpus}-{minutes}-{}", self.submitted);
        self.w.run(&format!("submit {project}/{name} -g {gpus}"));
        self.stopped += self.w.stopped().lines().count();
        self.waiting.push((name, at));
        self.look();
    }

    /// Records the waiting workloads that run now.
    fn look(&mut self) {
        let (w, minute, streams) = (&self.w, self.minute, &self.streams);
        for (name, at) in self.waiting.extract_if(.., |(name, _)| w.has_place(name)) {
            self.ends.insert(name, minute + streams[at].minutes);
        }
    }
}

#[test]
fn of_two_equal_projects_neither_starves() {
    for (a, b) in [((4, 10), (4, 10)), ((3, 10), (4, 10)), ((4, 60), (4, 10)), ((1, 10), (4, 10))] {
        for projects in ["a:0 b:0", "b:0 a:0"] {
            let streams = [stream("a", a.0, a.1), stream("b", b.0, b.1)];
            let mut h = History::new("n1:4", projects, &streams);
            h.run(1000);
            let (a_had, b_had) = (h.had["a"], h.had["b"]);
            assert!(
                a_had.abs_diff(b_had) <= 4 * (a.1 + b.1),
                "{a:?} {b:?} {projects}: {a_had} and {b_had} GPU-minutes"
            );
        }
    }
}
