//! Whole trainings: reports of workers, and the effects of each.

use std::collections::{BTreeMap, BTreeSet};

use elastic::{
    Effect, Input, Job, Kind, Limits, Outcome, Plan, Refused, ResizeStep, Shard, Task, TaskId,
    Training, WorkerId, WorldLimits,
};
use proptest::prelude::*;
use units::Instant;

const A: WorkerId = WorkerId(0);
const B: WorkerId = WorkerId(1);
const C: WorkerId = WorkerId(2);

fn training(records: u64, records_per_task: u64) -> Training {
    let shard = Shard { name: "a".into(), start: 0, count: records };
    let plan = Plan::training(vec![shard], records_per_task);
    let limits = Limits::default();
    Training { plan, limits, evaluation: None, world: None, silent_ms: None, settles: false }
}

struct Scene {
    job: Job<u32>,
    now: u64,
}

impl Scene {
    fn new(training: Training) -> Self {
        Self { job: Job::new(training).expect("a training"), now: 0 }
    }

    fn with(training: Training, workers: &[WorkerId]) -> Self {
        let mut scene = Self::new(training);
        workers.iter().for_each(|worker| drop(scene.on(Input::Joined(*worker))));
        scene
    }

    fn on(&mut self, input: Input<u32>) -> Vec<Effect<u32>> {
        self.job.apply(input, Instant(self.now)).expect("accepted")
    }

    /// The task that a worker gets when it asks for one.
    fn ask(&mut self, worker: WorkerId) -> Task {
        given(&self.on(Input::Asked(worker))).expect("a task").1
    }
}

fn given(effects: &[Effect<u32>]) -> Option<(WorkerId, Task)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Give(worker, task) => Some((*worker, task.clone())),
        _ => None,
    })
}

#[test]
fn a_worker_that_waits_gets_what_comes_back_without_asking_again() {
    let mut s = Scene::with(training(2, 2), &[A, B]);
    let task = s.ask(A);
    assert_eq!(s.on(Input::Asked(B)), []);
    let effects = s.on(Input::HandedBack(A, task.id, 1));
    let (worker, rest) = given(&effects).expect("a task");
    assert_eq!((worker, rest.records.range), (B, 1..2));
}

#[test]
fn who_waits_at_the_end_may_leave() {
    let mut s = Scene::with(training(1, 1), &[A, B]);
    let task = s.ask(A);
    s.on(Input::Asked(B));
    let effects = s.on(Input::Finished(A, task.id));
    assert_eq!(effects, [Effect::Leave(B), Effect::Ended(Outcome::Finished)]);
    assert_eq!(s.on(Input::Asked(A)), [Effect::Leave(A)]);
}

#[test]
fn the_last_worker_is_preempted_and_the_next_one_goes_on() {
    let mut s = Scene::with(training(4, 4), &[A]);
    let task = s.ask(A);
    s.on(Input::Advanced(A, task.id, 3));
    assert_eq!(s.on(Input::Left(A)), []);
    s.on(Input::Joined(B));
    assert_eq!(s.ask(B).records.range, 3..4);
}

#[test]
fn a_number_is_used_once() {
    let mut s = Scene::with(training(1, 1), &[A, B]);
    s.on(Input::Left(A));
    let refused = s.job.apply(Input::Joined(A), Instant(0)).expect_err("it has left");
    assert_eq!(refused, Refused::Unknown(A));
    assert!(refused.to_string().contains("joins under a new number"));
    assert!(s.job.apply(Input::Asked(C), Instant(0)).is_err(), "it has not joined");
}

#[test]
fn a_restored_model_is_trained_on_what_its_checkpoint_lacks() {
    let mut s = Scene::with(training(6, 2), &[A]);
    let task = s.ask(A);
    s.on(Input::Finished(A, task.id));
    let (version, oldest) = (5, 5);
    s.on(Input::Held { version, positions: BTreeMap::new() });
    let task = s.ask(A);
    // While it is written, training goes on.
    s.on(Input::Finished(A, task.id));
    s.on(Input::Checkpointed { version, oldest });
    let task = s.ask(A);
    assert_eq!(s.on(Input::Restored(5)), [Effect::Drop(A, task.id)]);
    assert_eq!((s.job.progress().records, s.ask(A).records.range), (2, 2..4));
    let refused = s.job.apply(Input::Restored(0), Instant(0)).expect_err("not kept");
    assert_eq!(refused.to_string(), "no checkpoint of version 0 is known; known are [5]");
}

#[test]
fn without_a_checkpoint_a_lost_model_begins_again() {
    let mut s = Scene::with(training(2, 2), &[A]);
    let task = s.ask(A);
    s.on(Input::Finished(A, task.id));
    assert_eq!(s.on(Input::Restored(0)), []);
    assert_eq!(s.job.outcome(), None);
    assert_eq!(s.ask(A).records.range, 0..2);
}

#[test]
fn a_version_is_measured_by_those_who_are_there_and_each_piece_counts_once() {
    let validation = Plan { kind: Kind::Evaluate, ..training(4, 2).plan };
    let evaluation = Some((validation, 10));
    let mut s = Scene::with(Training { evaluation, ..training(9, 1) }, &[A, B]);
    s.on(Input::Version(10));
    let (one, two) = (s.ask(A), s.ask(B));
    assert_eq!((one.kind, two.kind), (Kind::Evaluate, Kind::Evaluate));
    s.on(Input::Left(A));
    assert_eq!(s.on(Input::Measured(B, two.id, 7)), []);
    let again = s.ask(B);
    let refused = s.job.apply(Input::Finished(B, again.id), Instant(0)).expect_err("not measured");
    assert_eq!(refused, Refused::Unmeasured(again.id));
    let effects = s.on(Input::Measured(B, again.id, 5));
    let [Effect::Evaluated(whole)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((whole.version, &whole.reports[..]), (10, &[5, 7][..]));
}

#[test]
fn workers_leave_when_their_places_are_taken_and_nothing_is_lost() {
    let mut s = Scene::with(training(8, 4), &[A, B, C]);
    let (one, two) = (s.ask(A), s.ask(B));
    let prepare = |worker| Effect::Resize(ResizeStep::Prepare { worker, deadline: Instant(30) });
    assert_eq!(s.on(Input::Leaving(B, Instant(30))), [prepare(B)]);
    let idle = Effect::Resize(ResizeStep::Release(C));
    assert_eq!(s.on(Input::Leaving(C, Instant(30))), [prepare(C), idle]);
    assert_eq!(s.on(Input::Asked(B)), [], "it has something to hand back");
    let effects = s.on(Input::HandedBack(B, two.id, 3));
    assert_eq!(effects, [Effect::Resize(ResizeStep::Release(B))]);
    s.on(Input::Finished(A, one.id));
    assert_eq!(s.ask(A).records.range, 7..8);
}

#[test]
fn the_worker_whose_place_is_taken_hands_back_and_the_others_stay() {
    let mut s = Scene::with(training(8, 4), &[A, B]);
    let (one, two) = (s.ask(A), s.ask(B));
    let prepare = ResizeStep::Prepare { worker: A, deadline: Instant(30) };
    assert_eq!(s.on(Input::Leaving(A, Instant(30))), [Effect::Resize(prepare)]);
    assert_eq!(s.on(Input::Leaving(A, Instant(90))), [], "asked twice, it leaves once");
    let effects = s.on(Input::HandedBack(A, one.id, 3));
    assert_eq!(effects, [Effect::Resize(ResizeStep::Release(A))]);
    s.on(Input::Left(A));
    s.on(Input::Finished(B, two.id));
    assert_eq!(s.ask(B).records.range, 3..4, "each record once");
    let unknown = s.job.apply(Input::Leaving(A, Instant(99)), Instant(40));
    assert_eq!(unknown.expect_err("it is gone"), Refused::Unknown(A));
}

#[test]
fn who_does_not_answer_is_stopped_at_its_deadline() {
    let mut s = Scene::with(training(8, 4), &[A, B]);
    s.ask(B);
    s.on(Input::Leaving(B, Instant(30)));
    assert_eq!(s.job.wake_at(), Some(Instant(30)));
    s.now = 30;
    assert_eq!(s.on(Input::Tick), [Effect::Resize(ResizeStep::Stop(vec![B]))]);
}

#[test]
fn a_world_changes_when_a_member_is_gone() {
    let sizes = WorldLimits { min: 1, max: 2, unit: 1, first_ms: 0, gather_ms: 0 };
    let mut s = Scene::new(Training { world: Some(sizes), ..training(8, 4) });
    let members = |effects: Vec<Effect<u32>>| match effects.into_iter().next() {
        Some(Effect::World(world)) => world.members,
        other => panic!("no world: {other:?}"),
    };
    // A worker that still loads its model would make the others wait.
    assert_eq!(s.on(Input::Joined(A)), []);
    assert_eq!(members(s.on(Input::Ready(A))), [A]);
    s.on(Input::Joined(B));
    assert_eq!(members(s.on(Input::Ready(B))), [A, B]);
    assert_eq!(members(s.on(Input::Left(A))), [B]);
    assert!(s.job.apply(Input::Ready(A), Instant(0)).is_err(), "it has left");
}

#[test]
fn a_silent_worker_is_replaced_and_its_late_report_refused() {
    let mut s = Scene::with(Training { silent_ms: Some(100), ..training(2, 1) }, &[A, B]);
    let task = s.ask(A);
    s.now = 100;
    assert_eq!(s.on(Input::Tick), []);
    s.now = 101;
    assert_eq!(s.on(Input::Tick), [Effect::Replace(A)]);
    assert!(s.job.apply(Input::Finished(A, task.id), Instant(101)).is_err());
    assert_eq!(s.ask(B).records, task.records);
}

/// A training on parameter servers of which a worker is gone with a task, after a report about it.
fn orphaned(records: u64) -> (Scene, Task) {
    let mut s = Scene::with(Training { settles: true, ..training(records, 4) }, &[A, B]);
    let task = s.ask(A);
    s.on(Input::Advanced(A, task.id, 1));
    assert_eq!(s.on(Input::Left(A)), []);
    assert_eq!(s.job.unsettled(), [A].into());
    (s, task)
}

#[test]
fn tasks_of_a_lost_worker_wait_until_the_servers_say_what_they_have_of_it() {
    let (mut s, task) = orphaned(4);
    assert_eq!(s.on(Input::Asked(B)), []);
    assert_eq!((s.job.progress().records, s.job.outcome()), (1, None));
    let effects = s.on(Input::Settled(A, [(task.id, 3), (TaskId(77), 4)].into()));
    let (worker, rest) = given(&effects).expect("a task");
    assert_eq!((worker, rest.records.range, s.job.progress().records), (B, 3..4, 3));
    assert_eq!(s.on(Input::Settled(A, [(rest.id, 1)].into())), []);
    assert_eq!((s.job.progress().records, s.job.progress().lost), (3, 1));
}

#[test]
fn new_tasks_are_given_out_while_those_of_a_lost_worker_wait() {
    let (mut s, task) = orphaned(8);
    let new = s.ask(B);
    assert_eq!(new.records.range, 4..8);
    assert!(s.job.apply(Input::Finished(A, task.id), Instant(0)).is_err(), "it was given up");
    s.on(Input::Finished(B, new.id));
    assert_eq!(s.job.outcome(), None);
}

#[test]
fn a_lost_worker_whose_pushes_were_all_accepted_ends_the_training() {
    let (mut s, task) = orphaned(4);
    s.on(Input::Asked(B));
    let effects = s.on(Input::Settled(A, [(task.id, 4)].into()));
    assert_eq!(effects, [Effect::Leave(B), Effect::Ended(Outcome::Finished)]);
}

#[test]
fn servers_that_have_less_than_was_reported_take_nothing_back() {
    let (mut s, _) = orphaned(4);
    s.on(Input::Settled(A, BTreeMap::new()));
    assert_eq!(s.ask(B).records.range, 1..4);
}

#[test]
fn a_restored_model_settles_what_waits() {
    let (mut s, task) = orphaned(4);
    let positions = || BTreeMap::from([(task.id, 2)]);
    s.on(Input::Held { version: 3, positions: positions() });
    s.on(Input::Checkpointed { version: 3, oldest: 3 });
    assert_eq!(s.on(Input::Restored(3)), []);
    assert_eq!((s.job.unsettled(), s.job.progress().records), (BTreeSet::new(), 2));
    assert_eq!(s.ask(B).records.range, 2..4);
    s.on(Input::Settled(A, positions()));
    assert_eq!(s.job.progress().records, 2);
}

#[test]
fn a_worker_that_has_handed_back_leaves_nothing_that_waits() {
    let mut s = Scene::with(Training { settles: true, ..training(4, 4) }, &[A, B]);
    let task = s.ask(A);
    s.on(Input::HandedBack(A, task.id, 3));
    s.on(Input::Left(A));
    assert_eq!((s.job.unsettled(), s.ask(B).records.range), (BTreeSet::new(), 3..4));
}

#[test]
fn measurements_of_a_lost_worker_do_not_wait() {
    let evaluation = Some((Plan { kind: Kind::Evaluate, ..training(4, 4).plan }, 10));
    let training = Training { settles: true, evaluation, ..training(4, 4) };
    let mut s = Scene::with(training, &[A, B]);
    s.on(Input::Version(10));
    let (measuring, trains) = (s.ask(A), s.ask(A));
    s.on(Input::Left(A));
    assert_eq!((s.ask(B).kind, measuring.kind, trains.kind), {
        (Kind::Evaluate, Kind::Evaluate, Kind::Train)
    });
    assert_eq!(s.on(Input::Asked(B)), []);
}

#[test]
fn the_model_is_saved_when_no_task_can_come_back() {
    let plan = Plan { saves: true, ..training(4, 4).plan };
    let mut s = Scene::with(Training { plan, settles: true, ..training(4, 4) }, &[A, B]);
    let task = s.ask(A);
    s.on(Input::Left(A));
    assert_eq!(s.on(Input::Asked(B)), []);
    let effects = s.on(Input::Settled(A, [(task.id, 4)].into()));
    assert_eq!(given(&effects).expect("a task").1.kind, Kind::Save);
}

#[test]
fn a_silent_worker_is_replaced_once_although_its_tasks_wait() {
    let training = Training { silent_ms: Some(100), settles: true, ..training(2, 1) };
    let mut s = Scene::with(training, &[A, B]);
    s.ask(A);
    s.now = 101;
    assert_eq!(s.on(Input::Tick), [Effect::Replace(A)]);
    s.now = 999;
    assert_eq!((s.on(Input::Tick), s.job.unsettled()), (vec![], [A].into()));
}

fn inputs() -> impl Strategy<Value = Input<u32>> {
    let (worker, task) = (|| (0..5_u32).prop_map(WorkerId), || (1..20_u64).prop_map(TaskId));
    prop_oneof![
        3 => worker().prop_map(Input::Joined),
        3 => worker().prop_map(Input::Ready),
        1 => worker().prop_map(Input::Left),
        1 => (worker(), task(), 0..4_u64).prop_map(|(w, t, n)| Input::Settled(w, [(t, n)].into())),
        6 => worker().prop_map(Input::Asked),
        3 => (worker(), task(), 0..4_u64).prop_map(|(w, t, n)| Input::Advanced(w, t, n)),
        6 => (worker(), task()).prop_map(|(w, t)| Input::Finished(w, t)),
        3 => (worker(), task(), 0..4_u64).prop_map(|(w, t, n)| Input::HandedBack(w, t, n)),
        1 => (worker(), task()).prop_map(|(w, t)| Input::Failed(w, t, "code".into())),
        3 => (worker(), task(), 0..9_u32).prop_map(|(w, t, n)| Input::Measured(w, t, n)),
        2 => (0..30_u64).prop_map(Input::Version),
        1 => (0..30_u64).prop_map(|version| {
            Input::Held { version, positions: BTreeMap::new() }
        }),
        1 => (0..30_u64).prop_map(|version| Input::Checkpointed { version, oldest: 0 }),
        1 => (0..30_u64).prop_map(Input::Restored),
        2 => (worker(), 0..99_u64).prop_map(|(w, until)| Input::Leaving(w, Instant(until))),
        2 => Just(Input::Tick),
    ]
}

fn kept(job: &Job<u32>) -> String {
    serde_json::to_string(job).expect("a document")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any inputs, wrong ones too: a refused one changes nothing, the journal of the others leads
    /// to the same state, also from a document in the middle, and with one more worker it ends.
    #[test]
    fn a_journal_leads_to_the_same_state_and_every_training_ends(
        inputs in proptest::collection::vec((inputs(), 0..40_u64), 0..150),
        compacted_at in 0..150_usize,
        settles in any::<bool>(),
    ) {
        let limits = Limits { failures_max: u32::MAX, ..Limits::default() };
        let world = WorldLimits { min: 2, max: 3, unit: 1, first_ms: 50, gather_ms: 20 };
        let evaluation = Some((Plan { kind: Kind::Evaluate, ..training(5, 2).plan }, 10));
        let training = Training { limits, evaluation, world: Some(world), ..training(12, 3) };
        let mut s = Scene::new(Training { silent_ms: Some(200), settles, ..training });
        let (mut document, mut journal) = (kept(&s.job), Vec::new());
        for (at, (input, later)) in inputs.into_iter().enumerate() {
            s.now += later;
            let before = kept(&s.job);
            match s.job.apply(input.clone(), Instant(s.now)) {
                Ok(_) => journal.push((input, s.now)),
                Err(_) => prop_assert_eq!(kept(&s.job), before),
            }
            if at == compacted_at {
                (document, journal) = (kept(&s.job), Vec::new());
            }
        }
        let mut again: Job<u32> = serde_json::from_str(&document).expect("the same");
        for (input, now) in journal {
            again.apply(input, Instant(now)).expect("it was accepted before");
        }
        prop_assert_eq!(kept(&again), kept(&s.job));
        // The present workers leave; one that works alone ends the training.
        s.now += 1_000;
        let there: Vec<_> = s.job.workers().iter().copied().collect();
        there.into_iter().for_each(|worker| drop(s.on(Input::Left(worker))));
        for gone in s.job.unsettled() {
            s.on(Input::Settled(gone, BTreeMap::new()));
        }
        s.on(Input::Joined(WorkerId(9)));
        while s.job.outcome().is_none() {
            let task = s.ask(WorkerId(9));
            s.on(Input::Measured(WorkerId(9), task.id, 0));
        }
        prop_assert_eq!(s.job.progress().records, 12);
    }
}
