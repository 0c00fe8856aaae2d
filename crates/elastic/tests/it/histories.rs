//! Random histories: whatever workers do and whenever they are killed, every record counts as often
//! as it should.

use std::collections::BTreeMap;

use elastic::{
    Answer, Cut, Epochs, Ledger, Limits, Order, Outcome, Plan, Shard, Task, TaskId, WorkerId,
};
use proptest::prelude::*;
use units::Instant;

#[derive(Debug, Clone, Copy)]
enum Step {
    Ask(u32),
    /// Trains so many more records of its oldest task.
    Train(u32, u64),
    Report(u32),
    Finish(u32),
    HandBack(u32),
    Fail(u32),
    Kill(u32),
    /// Kills it where parameter servers know what it has trained.
    Orphan(u32),
    /// The parameter servers say what they know of all that were killed.
    Settle,
    Checkpoint,
    /// The servers of the model die and come back with the last checkpoint.
    Restore,
    /// The master dies and comes back with its document.
    Restart,
}

fn steps(with_kills: bool) -> impl Strategy<Value = Vec<Step>> {
    let worker = 0..4_u32;
    let graceful = prop_oneof![
        5 => worker.clone().prop_map(Step::Ask),
        5 => (worker.clone(), 1..6_u64).prop_map(|(worker, count)| Step::Train(worker, count)),
        2 => worker.clone().prop_map(Step::Report),
        4 => worker.clone().prop_map(Step::Finish),
        2 => worker.clone().prop_map(Step::HandBack),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Restore),
        1 => Just(Step::Restart),
    ];
    let known = prop_oneof![worker.clone().prop_map(Step::Orphan), Just(Step::Settle)];
    let graceful = prop_oneof![8 => graceful, 1 => known];
    let kills = prop_oneof![worker.clone().prop_map(Step::Kill), worker.prop_map(Step::Fail)];
    let step =
        if with_kills { prop_oneof![8 => graceful, 1 => kills].boxed() } else { graceful.boxed() };
    proptest::collection::vec(step, 0..120)
}

fn plans() -> impl Strategy<Value = Plan> {
    let counts = proptest::collection::vec(0..12_u64, 1..4);
    let order = prop_oneof![
        Just(Order::Given),
        Just(Order::Tasks { seed: 3 }),
        Just(Order::Records { seed: 3 })
    ];
    (counts, 1..6_u64, 1..4_u32, order).prop_filter_map(
        "no records",
        |(counts, size, epochs, order)| {
            let named = counts.iter().zip('a'..);
            let shard = |(&count, name): (&u64, char)| Shard { name: name.into(), start: 2, count };
            let plan = Plan::training(named.map(shard).collect(), size);
            let plan = Plan { epochs: Epochs::Count(epochs), order, ..plan };
            plan.check().is_ok().then_some(plan)
        },
    )
}

/// How often each record of each pass is in the model.
type Model = BTreeMap<(u32, u32, u64), u32>;

struct Job {
    plan: Plan,
    ledger: Ledger,
    model: Model,
    saved: (Model, Cut),
    /// The tasks of each worker, and how many records of each it has trained and reported.
    hands: BTreeMap<u32, Vec<(Task, u64, u64)>>,
    /// How far each task of a worker was that is gone, while the ledger does not know it.
    gone: BTreeMap<u32, BTreeMap<TaskId, u64>>,
    /// Records that may be in the model twice, because who trained them was killed.
    twice: u64,
}

impl Job {
    fn new(plan: Plan) -> Self {
        let limits = Limits { failures_max: u32::MAX, ..Limits::default() };
        let ledger = Ledger::new(plan.clone(), limits).expect("a plan");
        let saved = (Model::new(), ledger.cut(&BTreeMap::new()));
        let (model, hands, gone) = (Model::new(), BTreeMap::new(), BTreeMap::new());
        Self { plan, ledger, model, saved, hands, gone, twice: 0 }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Ask(worker) => {
                if let Ok(Answer::Task(task)) = self.ledger.next(WorkerId(worker), Instant(0)) {
                    self.hands.entry(worker).or_default().push((task, 0, 0));
                }
            }
            Step::Train(worker, count) => self.train(worker, count),
            Step::Report(worker) => {
                if let Some((task, trained, reported)) = self.oldest(worker) {
                    *reported = *trained;
                    let (id, trained) = ((WorkerId(worker), task.id), *trained);
                    self.ledger.advance(id, trained, Instant(0)).expect("held");
                }
            }
            Step::Finish(worker) => {
                self.train(worker, u64::MAX);
                if let Some((task, ..)) = self.drop_oldest(worker) {
                    self.ledger.finish((WorkerId(worker), task.id), Instant(0)).expect("held");
                }
            }
            Step::HandBack(worker) => {
                if let Some((task, trained, _)) = self.drop_oldest(worker) {
                    let id = (WorkerId(worker), task.id);
                    self.ledger.hand_back(id, trained, Instant(0)).expect("held");
                }
            }
            Step::Fail(worker) => {
                if let Some((task, trained, reported)) = self.drop_oldest(worker) {
                    self.twice += trained - reported;
                    self.ledger.fail((WorkerId(worker), task.id), "code").expect("held");
                }
            }
            Step::Kill(worker) => {
                let hands = self.hands.remove(&worker).unwrap_or_default();
                self.twice += hands.iter().map(|(_, trained, told)| trained - told).sum::<u64>();
                self.ledger.lose(WorkerId(worker));
            }
            Step::Orphan(worker) => {
                let hands = self.hands.remove(&worker).unwrap_or_default();
                let positions = hands.into_iter().map(|(task, trained, _)| (task.id, trained));
                self.gone.entry(worker).or_default().extend(positions);
                self.ledger.orphan(WorkerId(worker));
            }
            Step::Settle => {
                for (worker, positions) in std::mem::take(&mut self.gone) {
                    self.ledger.settle(WorkerId(worker), &positions);
                }
            }
            Step::Checkpoint => {
                let hands = self.hands.values().flatten();
                let hands = hands.map(|(task, trained, _)| (task.id, *trained));
                let positions = hands.chain(self.gone.values().flatten().map(|(&id, &n)| (id, n)));
                let positions = positions.collect();
                self.saved = (self.model.clone(), self.ledger.cut(&positions));
            }
            Step::Restore => self.restore(),
            Step::Restart => {
                let kept = serde_json::to_string(&self.ledger).expect("a document");
                self.ledger = serde_json::from_str(&kept).expect("the same");
            }
        }
    }

    fn restore(&mut self) {
        let (model, cut) = self.saved.clone();
        self.model = model;
        self.ledger.rewind(cut);
        let hands = std::mem::take(&mut self.hands);
        for (worker, tasks) in hands {
            for (task, ..) in tasks {
                let late = self.ledger.finish((WorkerId(worker), task.id), Instant(0));
                assert!(late.is_err(), "what was given out before counts no more");
            }
        }
    }

    fn train(&mut self, worker: u32, count: u64) {
        let plan = self.plan.clone();
        let Some((task, trained, _)) = self.oldest(worker) else { return };
        let from = task.records.range.start + *trained;
        let to = task.records.range.end.min(from.saturating_add(count));
        *trained += to - from;
        let (epoch, records) = (task.epoch, task.records.clone());
        for at in from..to {
            let (shard, record) = plan.record(epoch, &records, at);
            *self.model.entry((epoch, shard, record)).or_default() += 1;
        }
    }

    fn oldest(&mut self, worker: u32) -> Option<&mut (Task, u64, u64)> {
        self.hands.get_mut(&worker)?.first_mut()
    }

    fn drop_oldest(&mut self, worker: u32) -> Option<(Task, u64, u64)> {
        let hands = self.hands.get_mut(&worker).filter(|hands| !hands.is_empty())?;
        Some(hands.remove(0))
    }

    /// All workers go on until nothing is left.
    fn end(&mut self) {
        for worker in 0..4 {
            while self.hands.get(&worker).is_some_and(|hands| !hands.is_empty()) {
                self.step(Step::Finish(worker));
            }
        }
        self.step(Step::Settle);
        while self.ledger.outcome().is_none() {
            self.step(Step::Ask(0));
            self.step(Step::Finish(0));
        }
    }

    /// How often each record should be in the model.
    fn wanted(&self) -> Model {
        let Epochs::Count(epochs) = self.plan.epochs else { unreachable!("plans end") };
        let shards = || (0..).zip(&self.plan.shards);
        let of_pass = |epoch| {
            shards().flat_map(move |(number, shard)| {
                (shard.start..shard.start + shard.count)
                    .map(move |record| ((epoch, number, record), 1))
            })
        };
        (0..epochs).flat_map(of_pass).collect()
    }
}

proptest! {
    #[test]
    fn with_graceful_hand_back_or_known_pushes_every_record_of_every_pass_counts_once(
        (plan, steps) in (plans(), steps(false)),
    ) {
        let mut job = Job::new(plan);
        steps.into_iter().for_each(|step| job.step(step));
        job.end();
        prop_assert_eq!(&job.model, &job.wanted());
        let records: u64 = job.model.len() as u64;
        prop_assert_eq!(job.ledger.progress().records, records);
        prop_assert_eq!(job.ledger.outcome(), Some(&Outcome::Finished));
    }

    #[test]
    fn after_kills_only_what_was_not_reported_is_trained_again(
        (plan, steps) in (plans(), steps(true)),
    ) {
        let mut job = Job::new(plan);
        steps.into_iter().for_each(|step| job.step(step));
        job.end();
        let wanted = job.wanted();
        let missing = wanted.keys().find(|record| !job.model.contains_key(record));
        prop_assert_eq!(missing, None);
        let twice: u64 = job.model.values().map(|&count| u64::from(count) - 1).sum();
        prop_assert!(twice <= job.twice, "{} repeated, {} allowed", twice, job.twice);
    }

    #[test]
    fn no_task_is_in_two_hands((plan, steps) in (plans(), steps(true))) {
        let mut job = Job::new(plan);
        for step in steps {
            job.step(step);
            let mut held: Vec<TaskId> = Vec::new();
            for worker in 0..4 {
                held.extend(job.ledger.held_by(WorkerId(worker)).map(|task| task.id));
            }
            let mut own: Vec<_> = job.hands.values().flatten().map(|(task, ..)| task.id).collect();
            held.sort_unstable();
            own.sort_unstable();
            prop_assert_eq!(held, own);
        }
    }
}
