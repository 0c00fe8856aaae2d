//! Random histories of two programs of a run, beside a model that is nothing but sums: what each
//! call answers, what the claims say, what the simulated device has given out, and what the
//! programs are shown.

use std::os::unix::ffi::OsStrExt as _;

use fraction_abi::claim::Claim;
use fraction_abi::control::Limit;
use fraction_abi::ledger::Ledger;
use fraction_abi::owner::Owner;
use proptest::prelude::*;

use crate::support::{MIB, Machine, Run, Started};

/// A pool takes memory in blocks.
const BLOCK: u64 = 2 * MIB;
const CONTEXT: u64 = MIB;
const OUT_OF_MEMORY: i32 = 2;

#[derive(Debug, Clone, Copy)]
enum Step {
    Linear(u64),
    Managed(u64),
    Pitched(u64, u64),
    Array(u64, u64),
    Mipmap(u64, u64),
    /// An allocation from the pool of the device.
    Ordered(u64),
    /// Frees the newest allocation.
    Pop,
    /// Pools release their unused memory.
    Wait,
    /// Launches a graph of this many nodes of this many bytes.
    Graph(u64, u64),
    TrimGraphs,
    /// The program is killed, and another one takes its place in the history.
    Kill,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Step(usize, Step),
    Limit(u64),
}

impl Step {
    /// The step as the program's command line has it.
    fn word(self) -> String {
        match self {
            Self::Linear(bytes) => format!("alloc:{bytes}"),
            Self::Managed(bytes) => format!("managed:{bytes}"),
            Self::Pitched(width, rows) => format!("pitch:{width}:{rows}"),
            Self::Array(width, height) => format!("array:{width}:{height}:0"),
            Self::Mipmap(width, height) => format!("mipmap:{width}:{height}"),
            Self::Ordered(bytes) => format!("async:{bytes}"),
            Self::Pop => "pop".into(),
            Self::Wait => "sync".into(),
            Self::Graph(nodes, bytes) => format!("nodes:{nodes}:{bytes}"),
            Self::TrimGraphs => "trimgraphs".into(),
            Self::Kill => "kill".into(),
        }
    }

    /// Bytes that the device gives for a single allocation; `None` for other steps.
    fn bytes(self) -> Option<u64> {
        match self {
            Self::Linear(bytes) | Self::Managed(bytes) => Some(bytes),
            Self::Pitched(width, rows) => Some(width.next_multiple_of(512) * rows),
            Self::Array(width, height) => Some(width * height * 4),
            Self::Mipmap(width, height) => {
                Some((width * height + (width / 2).max(1) * (height / 2).max(1)) * 4)
            }
            _ => None,
        }
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let bytes = 1..6 * MIB;
    let side = 1..1200_u64;
    let step = prop_oneof![
        4 => bytes.clone().prop_map(Step::Linear),
        2 => bytes.clone().prop_map(Step::Managed),
        2 => (side.clone(), side.clone()).prop_map(|(width, rows)| Step::Pitched(width, rows)),
        2 => (side.clone(), side.clone()).prop_map(|(width, height)| Step::Array(width, height)),
        1 => (side.clone(), side).prop_map(|(width, height)| Step::Mipmap(width, height)),
        4 => bytes.clone().prop_map(Step::Ordered),
        6 => Just(Step::Pop),
        1 => Just(Step::Wait),
        2 => (1..4_u64, bytes).prop_map(|(nodes, bytes)| Step::Graph(nodes, bytes)),
        1 => Just(Step::TrimGraphs),
        1 => Just(Step::Kill),
    ];
    let event = prop_oneof![
        12 => (0..2_usize, step).prop_map(|(program, step)| Event::Step(program, step)),
        1 => (2..24_u64).prop_map(|limit| Event::Limit(limit * MIB)),
    ];
    prop::collection::vec(event, 1..60)
}

/// Memory of a program.
#[derive(Debug, Default)]
struct Held {
    /// Bytes of each allocation, and whether it is in the pool.
    made: Vec<(u64, bool)>,
    /// Bytes in use in the pool, and bytes that it has reserved.
    in_pool: u64,
    pool: u64,
    graphs: u64,
}

impl Held {
    fn sum(&self) -> u64 {
        let apart = self.made.iter().filter(|(_, in_pool)| !in_pool).map(|(bytes, _)| bytes);
        CONTEXT + apart.sum::<u64>() + self.pool + self.graphs
    }

    fn trim_pool(&mut self) {
        self.pool = self.in_pool.next_multiple_of(BLOCK);
    }
}

/// Memory of both programs, and their common limit.
struct Model {
    held: [Held; 2],
    limit: u64,
}

impl Model {
    fn sum(&self) -> u64 {
        self.held.iter().map(Held::sum).sum()
    }

    /// True if `bytes` more fit, possibly after trimming the pool of this program.
    fn fits(&mut self, program: usize, bytes: u64) -> bool {
        let fits = |model: &Self| model.sum() + bytes <= model.limit;
        fits(self) || {
            self.held[program].trim_pool();
            fits(self)
        }
    }

    /// The answer.
    fn step(&mut self, program: usize, step: Step) -> i32 {
        match step {
            Step::Ordered(bytes) => self.take_from_pool(program, bytes),
            Step::Graph(nodes, bytes) => self.launch(program, nodes, bytes),
            Step::Pop => match self.held[program].made.pop() {
                Some((bytes, true)) => {
                    self.held[program].in_pool -= bytes;
                    0
                }
                Some(_) => 0,
                None => -3,
            },
            Step::Wait => {
                self.held[program].trim_pool();
                0
            }
            Step::TrimGraphs => {
                self.held[program].graphs = 0;
                0
            }
            Step::Kill => 0,
            _ => {
                let bytes = step.bytes().unwrap();
                if !self.fits(program, bytes) {
                    return OUT_OF_MEMORY;
                }
                self.held[program].made.push((bytes, false));
                0
            }
        }
    }

    fn take_from_pool(&mut self, program: usize, bytes: u64) -> i32 {
        let others = self.sum() - self.held[program].pool;
        let held = &mut self.held[program];
        let needs = (held.in_pool + bytes).next_multiple_of(BLOCK);
        if others + held.pool.max(needs) <= self.limit {
            held.pool = held.pool.max(needs);
        } else if others + needs <= self.limit {
            held.pool = needs;
        } else {
            held.trim_pool();
            return OUT_OF_MEMORY;
        }
        held.in_pool += bytes;
        held.made.push((bytes, true));
        0
    }

    fn launch(&mut self, program: usize, nodes: u64, bytes: u64) -> i32 {
        if bytes > self.limit {
            return OUT_OF_MEMORY;
        }
        let (sum, kept) = (nodes * bytes, self.held[program].graphs);
        if self.fits(program, sum.saturating_sub(kept)) {
            self.held[program].graphs = kept.max(sum);
            return 0;
        }
        self.held[program].graphs = 0;
        if self.sum() + sum > self.limit {
            return OUT_OF_MEMORY;
        }
        self.held[program].graphs = sum;
        0
    }
}

/// A program that does these steps, one after the other.
fn start(run: &Run<'_>, steps: &[Step]) -> Started {
    let steps: Vec<_> = steps.iter().map(|step| format!("{} info pause", step.word())).collect();
    let mut program = run.start(&format!("init context:0 pause {}", steps.join(" ")));
    assert_eq!(program.prints(), "init 0, context 0");
    program
}

fn play(events: &[Event]) {
    let machine = Machine::with_contexts(CONTEXT);
    let first = Limit { uuid: [1; 16], bytes: 16 * MIB, uncounted: 0, context: CONTEXT };
    let run = machine.run_with("run", &[first], 0);
    let path = run.pages.join("claim");
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let (ledger, writer) = (Ledger::new(Claim::map(&path).unwrap()), run.writer());
    let of = |program: usize| {
        let steps = events.iter().filter_map(move |event| match event {
            Event::Step(by, step) if *by == program => Some(*step),
            _ => None,
        });
        steps.collect::<Vec<_>>()
    };
    let mut left = [of(0), of(1)];
    let mut programs = [0, 1].map(|program| start(&run, &left[program]));
    let mut model = Model { held: Default::default(), limit: first.bytes };
    for event in events {
        match *event {
            Event::Limit(bytes) => {
                writer.set_limit(0, bytes);
                model.limit = bytes;
            }
            Event::Step(program, Step::Kill) => {
                left[program].remove(0);
                programs[program].is_killed();
                ledger.reap(&Owner::current());
                model.held[program] = Held::default();
                // Its context needs room.
                if model.sum() > model.limit {
                    writer.set_limit(0, model.sum());
                    model.limit = model.sum();
                }
                programs[program] = start(&run, &left[program]);
            }
            Event::Step(program, step) => {
                left[program].remove(0);
                let answer = model.step(program, step);
                let (word, free) = (step.word(), model.limit.saturating_sub(model.sum()));
                let name = word.split(':').next().unwrap();
                assert_eq!(
                    programs[program].goes_on(),
                    format!("{name} {answer}, info 0 {} of {}", free / MIB, model.limit / MIB),
                    "{step:?} of {program}: {:?}",
                    model.held,
                );
            }
        }
        assert_eq!(ledger.used(0), model.sum(), "claims after {event:?}: {:?}", model.held);
        let given: u64 = machine.broker.holders(0).values().sum();
        assert_eq!(given, model.sum(), "the device after {event:?}: {:?}", model.held);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn random_histories_of_two_programs_are_as_sums_say(events in events()) {
        play(&events);
    }
}
