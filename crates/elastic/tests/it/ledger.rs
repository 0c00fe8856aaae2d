//! Single situations of the ledger.

use std::collections::BTreeMap;

use elastic::{
    Answer, Cut, Epochs, Kind, Ledger, LedgerError, Limits, Measure, Order, Outcome, Plan, Shard,
    Task, WorkerId,
};
use units::Instant;

const A: WorkerId = WorkerId(0);
const B: WorkerId = WorkerId(1);

fn shards(counts: &[u64]) -> Vec<Shard> {
    let named = counts.iter().zip('a'..);
    named.map(|(&count, name)| Shard { name: name.into(), start: 0, count }).collect()
}

fn plan(counts: &[u64], records_per_task: u64) -> Plan {
    Plan::training(shards(counts), records_per_task)
}

fn ledger(plan: Plan) -> Ledger {
    Ledger::new(plan, Limits { held_max: 9, ..Limits::default() }).expect("a plan")
}

fn ask(ledger: &mut Ledger, worker: WorkerId) -> Task {
    match ledger.next(worker, Instant(0)) {
        Ok(Answer::Task(task)) => task,
        other => panic!("no task: {other:?}"),
    }
}

/// `shard[start..end)`, as in `a0..3`.
fn shown(task: &Task) -> String {
    let shard = task
        .records
        .shard
        .map_or('?', |shard| char::from(b'a' + u8::try_from(shard).expect("few")));
    format!("{shard}{}..{}", task.records.range.start, task.records.range.end)
}

fn finish(ledger: &mut Ledger, worker: WorkerId, task: &Task) {
    ledger.finish((worker, task.id), Instant(0)).expect("held");
}

/// Remaining tasks, as one worker gets them.
fn rest(ledger: &mut Ledger) -> String {
    let mut all = Vec::new();
    while let Ok(Answer::Task(task)) = ledger.next(B, Instant(0)) {
        all.push(shown(&task));
        finish(ledger, B, &task);
    }
    all.join(" ")
}

#[test]
fn shards_are_cut_and_given_out_in_order() {
    let mut l = ledger(plan(&[5, 0, 3], 2));
    assert_eq!(rest(&mut l), "a0..2 a2..4 a4..5 c0..2 c2..3");
    assert_eq!(l.outcome(), Some(&Outcome::Finished));
    assert_eq!(l.next(A, Instant(0)), Ok(Answer::Ended));
    assert_eq!((l.progress().records, l.progress().tasks), (8, 5));
}

#[test]
fn what_is_handed_back_goes_on_where_it_stopped() {
    let mut l = ledger(plan(&[6], 3));
    let task = ask(&mut l, A);
    l.hand_back((A, task.id), 2, Instant(0)).expect("held");
    assert_eq!(rest(&mut l), "a2..3 a3..6");
    assert_eq!(l.progress().records, 6);
}

#[test]
fn the_tasks_of_a_lost_worker_come_back_oldest_first_without_what_it_reported() {
    let mut l = ledger(plan(&[9], 3));
    let (first, second) = (ask(&mut l, A), ask(&mut l, A));
    l.advance((A, first.id), 1, Instant(0)).expect("held");
    l.lose(A);
    assert_eq!(rest(&mut l), "a1..3 a3..6 a6..9");
    let late = l.finish((A, second.id), Instant(0));
    assert_eq!(late, Err(LedgerError::NotHeld { worker: A, task: second.id }));
}

#[test]
fn a_worker_waits_while_others_may_hand_something_back() {
    let mut l = ledger(plan(&[2], 2));
    let task = ask(&mut l, A);
    assert_eq!(l.next(B, Instant(0)), Ok(Answer::Wait));
    l.lose(A);
    assert_eq!(shown(&ask(&mut l, B)), shown(&task));
}

#[test]
fn the_next_pass_begins_while_the_last_one_ends() {
    let mut l = ledger(Plan { epochs: Epochs::Count(2), ..plan(&[2], 1) });
    let first = ask(&mut l, A);
    let seen: Vec<_> = (0..3).map(|_| ask(&mut l, B)).map(|t| (t.epoch, shown(&t))).collect();
    let all = [(0, "a1..2".into()), (1, "a0..1".into()), (1, "a1..2".into())];
    assert_eq!((first.epoch, seen), (0, all.to_vec()));
}

#[test]
fn code_that_fails_too_often_on_the_same_records_fails_the_job_and_preemption_never_does() {
    let mut l = ledger(plan(&[2], 2));
    for _ in 0..20 {
        ask(&mut l, A);
        l.lose(A);
    }
    for at in 0..4 {
        assert_eq!(l.outcome(), None, "after {at} failures");
        let task = ask(&mut l, B);
        l.fail((B, task.id), "shape (3,) does not fit").expect("held");
    }
    let Some(Outcome::Failed { message, epoch: 0, .. }) = l.outcome() else { panic!("{l:?}") };
    assert_eq!(message, "shape (3,) does not fit");
}

#[test]
fn unreadable_records_are_counted_and_the_one_too_many_is_named() {
    let limits = Limits { bad_records_max: 1, ..Limits::default() };
    let mut l = Ledger::new(plan(&[4], 4), limits).expect("a plan");
    let id = (A, ask(&mut l, A).id);
    l.bad_record(id, 1, "cut short").expect("held");
    l.bad_record(id, 1, "cut short").expect("the same, again");
    assert_eq!((l.outcome(), l.progress().bad_records), (None, 1));
    let elsewhere = l.bad_record(id, 4, "cut short").expect_err("not in the task");
    assert_eq!(
        elsewhere.to_string(),
        "record 4 is not in task 1 (records 0 to 4, the end not included)"
    );
    l.bad_record(id, 3, "checksum").expect("held");
    let message = "checksum".to_owned();
    assert_eq!(l.outcome(), Some(&Outcome::BadRecords { count: 2, record: 3, message }));
}

#[test]
fn saving_comes_once_after_everything_and_again_if_its_worker_is_lost() {
    let mut l = ledger(Plan { saves: true, ..plan(&[2], 1) });
    let (one, two) = (ask(&mut l, A), ask(&mut l, B));
    finish(&mut l, A, &one);
    assert_eq!(l.next(A, Instant(0)), Ok(Answer::Wait));
    finish(&mut l, B, &two);
    assert_eq!(ask(&mut l, A).kind, Kind::Save);
    assert_eq!(l.next(B, Instant(0)), Ok(Answer::Wait));
    l.lose(A);
    let save = ask(&mut l, B);
    assert_eq!((save.kind, l.outcome()), (Kind::Save, None));
    finish(&mut l, B, &save);
    assert_eq!((l.outcome(), l.progress().records), (Some(&Outcome::Finished), 2));
}

#[test]
fn no_more_records_than_the_job_may_see() {
    let mut l = ledger(Plan { epochs: Epochs::Endless, records_max: Some(7), ..plan(&[4], 3) });
    assert_eq!(rest(&mut l), "a0..3 a3..4 a0..3");
    assert_eq!((l.outcome(), l.progress().records), (Some(&Outcome::Finished), 7));
}

#[test]
fn an_evaluation_goes_first_and_counts_no_training() {
    let mut l = ledger(plan(&[2], 1));
    let validation = Plan { kind: Kind::Evaluate, ..plan(&[3], 2) };
    assert_eq!(l.evaluate(7, &validation), Ok(2));
    let task = ask(&mut l, A);
    assert_eq!(
        (task.kind, task.measures),
        (Kind::Evaluate, Some(Measure { version: 7, piece: 0 }))
    );
    l.hand_back((A, task.id), 1, Instant(0)).expect("held");
    assert_eq!(rest(&mut l), "a0..2 a2..3 a0..1 a1..2");
    assert_eq!(l.progress().records, 2);
}

#[test]
fn everything_after_a_checkpoint_is_open_again() {
    let mut l = ledger(plan(&[8], 2));
    let (one, two) = (ask(&mut l, A), ask(&mut l, B));
    finish(&mut l, A, &one);
    let cut = l.cut(&BTreeMap::from([(two.id, 1)]));
    let three = ask(&mut l, A);
    finish(&mut l, A, &three);
    finish(&mut l, B, &two);
    l.rewind(cut);
    assert_eq!(l.progress().records, 3);
    assert_eq!(rest(&mut l), "a3..4 a4..6 a6..8");
}

#[test]
fn a_job_that_was_over_goes_on_from_an_earlier_checkpoint() {
    let mut l = ledger(Plan { saves: true, ..plan(&[2], 1) });
    let cut = l.cut(&BTreeMap::new());
    let all = rest(&mut l);
    assert_eq!(l.outcome(), Some(&Outcome::Finished));
    l.rewind(cut);
    assert_eq!(l.outcome(), None);
    assert_eq!(rest(&mut l), all);
}

#[test]
fn a_worker_may_read_ahead_so_far() {
    let mut l = Ledger::new(plan(&[9], 1), Limits::default()).expect("a plan");
    ask(&mut l, A);
    ask(&mut l, A);
    let error = l.next(A, Instant(0)).expect_err("two are enough");
    let text = "worker 0 has 2 tasks and may have 2: finish or hand back one first";
    assert_eq!(error.to_string(), text);
}

#[test]
fn who_is_silent_for_longer_than_three_tasks_is_named() {
    let mut l = ledger(plan(&[9], 1));
    let one = ask(&mut l, A);
    l.finish((A, one.id), Instant(1_000)).expect("held");
    let two = ask(&mut l, A);
    let silent = |l: &Ledger, now| l.silent(500, Instant(now)).collect::<Vec<_>>();
    assert_eq!(silent(&l, 3_000), []);
    assert_eq!(silent(&l, 3_001), [(A, two.id)]);
    let three = ask(&mut l, A);
    l.advance((A, three.id), 0, Instant(3_001)).expect("held");
    assert_eq!(silent(&l, 3_001), [], "it works on what it reads ahead");
}

#[test]
fn shuffled_tasks_and_records_come_once_and_in_another_order_each_pass() {
    for order in [Order::Tasks { seed: 5 }, Order::Records { seed: 5 }] {
        let plan = Plan { order, epochs: Epochs::Count(2), ..plan(&[50, 30], 4) };
        let mut l = ledger(plan.clone());
        let mut passes = [Vec::new(), Vec::new()];
        while let Ok(Answer::Task(task)) = l.next(A, Instant(0)) {
            let range = task.records.range.clone();
            let pass = &mut passes[task.epoch as usize];
            pass.extend(range.map(|at| plan.record(task.epoch, &task.records, at)));
            finish(&mut l, A, &task);
        }
        assert_ne!(passes[0], passes[1]);
        let given: Vec<_> = (0..50).map(|n| (0, n)).chain((0..30).map(|n| (1, n))).collect();
        for mut pass in passes {
            assert_ne!(pass, given);
            pass.sort_unstable();
            assert_eq!(pass, given);
        }
    }
}

#[test]
fn a_billion_records_cost_as_much_as_their_shards() {
    let mut l = ledger(plan(&[1_000_000_000], 1));
    ask(&mut l, A);
    let kept = serde_json::to_string(&l).expect("a document");
    assert!(kept.len() < 1_500, "{} bytes", kept.len());
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused_with_the_field() {
    let said = |plan: Plan| Ledger::new(plan, Limits::default()).expect_err("refused").to_string();
    assert_eq!(
        said(plan(&[0], 1)),
        "the data have no records: give at least one shard that has some"
    );
    assert_eq!(said(plan(&[1], 0)), "records per task: 0 is too few; at least 1");
    let none = Plan { epochs: Epochs::Count(0), ..plan(&[1], 1) };
    assert!(said(none).starts_with("epochs: 0 passes"), "epochs");
    assert!(said(Plan { records_max: Some(0), ..plan(&[1], 1) }).starts_with("records in all"));
    let none = Ledger::new(plan(&[1], 1), Limits { held_max: 0, ..Limits::default() });
    assert!(none.is_err_and(|error| error.to_string().contains("at least 1")));
    assert!(said(plan(&[u64::MAX, 1], 1)).contains("64 bits"));
    assert!(said(Plan { kind: Kind::Save, ..plan(&[1], 1) }).contains("saving comes by itself"));
}

#[test]
fn a_cut_of_another_form_is_not_read() {
    let mut cut = serde_json::to_value(ledger(plan(&[1], 1)).cut(&BTreeMap::new())).expect("json");
    cut["form"] = (Cut::FORM + 1).into();
    let error = serde_json::from_value::<Cut>(cut).expect_err("newer");
    assert!(error.to_string().contains("form 2"), "{error}");
}
