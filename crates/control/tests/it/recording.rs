//! Recordings of the dispatcher, and replaying them. Every world of these tests is replayed when it
//! ends; this file tests the other properties of recordings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::Exit;
use orchestrator::{NewId, NewObject, OrgChange};
use recording::{Fault, Outcome, Played, Replay, Writer};
use records::AuditDetail;
use serde_json::{Value, json};
use view::{Phase, Scope};

use crate::chaos::Dice;
use crate::world::{
    World, distributed, elastic, given, gpus, nodes, project, training, with, workspace,
};

/// Writer of the recording in a state directory.
pub(crate) fn writer(dir: &Path, bytes_max: u64) -> Writer {
    Writer::start(&dir.join(recording::FOLDER), bytes_max).unwrap()
}

/// The recording in a state directory.
fn saved(dir: &Path) -> Vec<u8> {
    let mut file = Vec::new();
    recording::save(&dir.join(recording::FOLDER), &mut file).unwrap();
    file
}

/// Result of replaying a recording.
#[derive(Debug, Default)]
struct Story {
    states: usize,
    decisions: usize,
    gaps: usize,
    is_cut_off: bool,
    batches: Vec<Outcome>,
}

impl Story {
    /// True if this text is in a result of some batch.
    fn tells(&self, text: &str) -> bool {
        self.batches.iter().flat_map(|batch| &batch.came).any(|line| line.contains(text))
    }

    fn failures(&self) -> Vec<&str> {
        self.batches.iter().filter_map(|batch| batch.failed.as_deref()).collect()
    }
}

fn played(file: &[u8]) -> Result<Story, Fault> {
    let (mut replay, mut story) = (Replay::new(file), Story::default());
    while let Some(played) = replay.play()? {
        match played {
            Played::Segment(release) => assert_eq!(release, recording::RELEASE),
            Played::CutOff => story.is_cut_off = true,
            Played::Built => story.states += 1,
            Played::Gap => story.gaps += 1,
            Played::Batch(batch) => {
                story.decisions += usize::from(batch.decided);
                story.batches.push(batch);
            }
        }
    }
    Ok(story)
}

/// Replays a recording without differences.
fn same(file: &[u8]) -> Story {
    let story = played(file).unwrap();
    for batch in &story.batches {
        assert_eq!(batch.difference, None, "batch {}: {batch:#?}", batch.number);
    }
    story
}

/// Checks that the recording in a state directory replays without differences.
pub(crate) fn plays_again(dir: &Path) {
    let file = saved(dir);
    // The thread that writes may not have begun.
    if !file.is_empty() {
        same(&file);
    }
}

/// Ends, fails, suspends, deletes, and changes quotas.
async fn busy_morning(w: &mut World) {
    for (name, gpus) in [("a", 2), ("b", 1), ("c", 1)] {
        w.submit(1, training(name, gpus)).await;
    }
    w.submit(2, elastic("e", 2)).await;
    w.submit(2, distributed("d", 1)).await;
    w.engine.end(w.engine.run_of("a").key, Exit::Code(0));
    w.phase("a", Phase::Completed).await;
    w.handle.update_project("admin", 2, given(gpus(4))).await.unwrap();
    w.phase("d", Phase::Running).await;
    w.engine.end(w.engine.run_of("d").key, Exit::Code(1));
    w.decided().await;
    w.clock.advance_ms(60_000);
    w.handle.suspend("alice", w.id("e")).await.unwrap();
    w.handle.fail_gpu("admin", "node-1", 0).await.unwrap();
    w.handle.resume("alice", w.id("e")).await.unwrap();
    w.delete("c").await;
}

/// A decision is made while something else happens, a write fails, and the server is killed.
async fn busy_afternoon(w: &mut World) {
    w.gate.shut();
    w.prompt.submit(1, workspace("s", 1), false).await.unwrap();
    w.gate.is_holding().await;
    w.prompt.delete_workload("alice", w.id("b")).await.unwrap();
    w.gate.open();
    w.decided().await;
    w.refuse_events(true).await;
    assert!(w.handle.submit(1, training("never", 1), false).await.is_err());
    w.refuse_events(false).await;
    w.decided().await;
    w.restart().await;
    w.handle.heal_gpu("admin", "node-1", 0).await.unwrap();
    w.handle.create_project("admin", 1, project("team-z", 1)).await.unwrap();
    w.submit(3, training("z", 1)).await;
    assert!(w.handle.create_project("admin", 1, project("team-z", 1)).await.is_err());
    w.clock.advance_ms(10_000);
    w.decided().await;
}

#[tokio::test]
async fn a_busy_day_plays_again() {
    let mut w = World::new(nodes(2, 2), &[2, 1]).await;
    busy_morning(&mut w).await;
    busy_afternoon(&mut w).await;
    w.crash().await;
    let story = same(&saved(w.dir.path()));
    assert_eq!((story.gaps, story.is_cut_off), (0, false));
    assert!(story.states >= 3, "a start, a failed write, and a start after a kill");
    assert!(!story.failures().is_empty(), "what could not be written is in it, too");
    assert!(story.decisions > 10, "{}", story.decisions);
    for text in ["Scheduled", "E2", "project.create", "Pending", "engine: stop", "refused"] {
        assert!(story.tells(text), "{text}: {:#?}", story.batches);
    }
}

#[tokio::test]
async fn the_scheduler_fails_in_a_recording_as_it_did() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.prompt.submit(1, training("poison", 1), false).await.unwrap();
    w.waits_for("poison", "P307").await;
    w.submit(1, training("a", 1)).await;
    w.phase("a", Phase::Running).await;
    w.crash().await;
    assert!(same(&saved(w.dir.path())).tells("P307"));
}

/// Text that may be nowhere in a recording.
const MARK: &str = "hush-hush";

async fn tell_secrets(w: &World) {
    let hidden = |what: &str| format!("{MARK}-{what}");
    let object = |kind, body: Value| NewObject {
        kind,
        id: NewId::Any,
        scope: Scope::Project(1),
        owner: String::new(),
        name: kind.to_owned(),
        body,
        newest: None,
    };
    for (kind, body) in [
        ("credential", json!({ "secrets": hidden("sealed") })),
        ("config-map", json!({ "secrets": { "k": hidden("text") } })),
        ("user", json!({ "secrets": { "password": hidden("hash") }, "token": hidden("token") })),
        ("environment", json!({ "env": [{ "name": "K", "value": hidden("asset") }] })),
    ] {
        w.handle.create_object("ann", object(kind, body)).await.unwrap();
    }
    let mut spec = with(training("t", 1), |pod| {
        pod.env = [("TOKEN".to_owned(), hidden("env"))].into();
        pod.args = vec![hidden("arg")];
        pod.command = Some(vec![hidden("command")]);
    });
    spec.command_line = Some(hidden("line"));
    spec.manifest = Some(Arc::from(hidden("manifest")));
    let from = AuditDetail { source_ip: hidden("address"), ..AuditDetail::default() };
    w.handle.asked_from(from).submit(1, spec, false).await.unwrap();
    let login = format!("no clone of https://ann:{MARK}@git.example.org/x");
    w.engine.end(w.engine.run_of("t").key, Exit::CannotRun(login));
    w.phase("t", Phase::Failed).await;
}

#[tokio::test]
async fn secrets_are_not_in_it_and_it_plays_all_the_same() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    tell_secrets(&w).await;
    // The stored state has them, too.
    w.restart().await;
    w.submit(1, training("u", 1)).await;
    w.crash().await;
    let file = saved(w.dir.path());
    let story = same(&file);
    assert!(story.tells("@git.example.org/x"), "{:#?}", story.batches);
    let text = String::from_utf8(file).unwrap();
    let at = text.find(MARK).map(|at| &text[at - 200..at + 50]);
    assert_eq!(at, None);
    for kept in ["team-a", "\"t\"", "credential", "TOKEN"] {
        assert!(text.contains(kept), "{kept}");
    }
}

/// A recording of a few batches.
async fn short() -> String {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("a", 1)).await;
    w.crash().await;
    String::from_utf8(saved(w.dir.path())).unwrap()
}

/// The lines, changed, with matching checksums.
fn forged(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let line = |line: &str| {
        let json = change(line.split_once("\"line\":").unwrap().1.strip_suffix('}').unwrap());
        sum = json
            .bytes()
            .fold(sum, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{{\"check\":\"{sum:016x}\",\"line\":{json}}}\n")
    };
    text.lines().map(line).collect()
}

#[tokio::test]
async fn another_input_comes_to_something_else() {
    let text = short().await;
    assert_eq!(forged(&text, str::to_owned), text, "the check sums are understood");
    let other = forged(&text, |json| json.replace("\"cpu_millis\":100", "\"cpu_millis\":200"));
    let story = played(other.as_bytes()).unwrap();
    let (then, now) = story.batches.iter().find_map(|batch| batch.difference.clone()).unwrap();
    assert!(then.starts_with("row: workload") && now.starts_with("row: workload"), "{then} {now}");
}

#[tokio::test]
async fn a_byte_that_is_not_as_it_was_written_is_found_wherever_it_is() {
    let text = short().await;
    let mut dice = Dice(18);
    for _ in 0..100 {
        let at = usize::try_from(dice.roll(text.len() as u64 - 1)).unwrap();
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1 << dice.roll(7);
        let fault = played(&bytes).map(|story| story.batches.len());
        assert!(matches!(fault, Err(Fault::Damaged { .. } | Fault::NotOne)), "{at}: {fault:?}");
    }
    let lines: Vec<_> = text.lines().collect();
    let without = [&lines[..3], &lines[4..]].concat().join("\n") + "\n";
    assert!(matches!(played(without.as_bytes()), Err(Fault::Damaged { number: 4, .. })));
}

#[tokio::test]
async fn one_that_is_cut_off_plays_up_to_there() {
    let text = short().await;
    let story = same(&text.as_bytes()[..text.len() - 20]);
    assert!(story.is_cut_off);
    assert_eq!(story.batches.len() + 1, same(text.as_bytes()).batches.len());
}

#[tokio::test]
async fn what_is_no_recording_or_of_another_version_says_so() {
    for text in ["", "x", "{}\n", "\u{0}\n"] {
        assert_eq!(played(text.as_bytes()).unwrap_err(), Fault::NotOne, "{text:?}");
    }
    assert_eq!(played(&[0xff, 0xfe, b'\n']).unwrap_err(), Fault::NotOne);
    let newer = forged(&short().await, |json| {
        json.replace("{\"recording\":{\"version\":1,", "{\"recording\":{\"version\":2,")
    });
    assert_eq!(played(newer.as_bytes()).unwrap_err(), Fault::Version(2));
}

/// The parts of a recording by name, and how long they are.
fn segments(w: &World) -> BTreeMap<String, u64> {
    let all = std::fs::read_dir(w.dir.path().join(recording::FOLDER)).unwrap();
    let length = |entry: std::fs::DirEntry| entry.metadata().map_or(0, |data| data.len());
    all.map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), length(entry)))
        .collect()
}

/// Total size of the segments. Segments only grow, and disappear: an equal list twice was valid at
/// a moment in between.
fn on_disk(w: &World) -> u64 {
    let mut before = segments(w);
    loop {
        let now = segments(w);
        if now == before {
            return now.into_values().sum();
        }
        before = now;
    }
}

fn newest(w: &World) -> u64 {
    segments(w).into_values().next_back().unwrap_or(0)
}

#[tokio::test]
async fn it_stays_small_and_its_newest_part_plays() {
    const MAX: u64 = 100_000;
    let mut w = World::recording(nodes(1, 1), &[1], MAX).await;
    let renamed = |round: u32| OrgChange {
        description: Some(format!("round {round}")),
        ..OrgChange::default()
    };
    for round in 0..400 {
        w.handle.update_project("admin", 1, renamed(round)).await.unwrap();
        assert!(on_disk(&w) <= MAX);
        // Long enough for the next, which begins when it is quiet.
        while newest(&w) > MAX / 3 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    w.crash().await;
    let story = same(&saved(w.dir.path()));
    assert!(story.states > 1 && story.gaps == 0, "{} {}", story.states, story.gaps);
    assert!(!segments(&w).contains_key("00000001.jsonl"), "the oldest part is gone");
}

#[tokio::test]
async fn without_room_for_the_state_nothing_is_recorded_and_the_server_works() {
    let w = World::recording(nodes(1, 1), &[1], 100).await;
    w.submit(1, training("a", 1)).await;
    w.phase("a", Phase::Running).await;
    assert_eq!(saved(w.dir.path()), b"");
}
