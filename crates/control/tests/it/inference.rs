//! Inferences: replicas that come and go, and one revision after another.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Exit, LogRange};
use futures_util::StreamExt as _;
use orchestrator::Readiness;
use spec::{
    Audience, Metric, Probe, Restart, Scaling, Serving, Target, WorkloadKind, WorkloadSpec,
};
use uuid::Uuid;
use view::{PendingReason, Phase, PodState, PodView, View, WorkloadView};

use crate::world::{World, given, gpus, nodes, training, with};

pub(crate) fn inference(name: &str, gpus: u32, min: u32, max: u32) -> WorkloadSpec {
    let target = Target { metric: Metric::Concurrency, threshold: 10, percent_millis: 70_000 };
    let serving = Serving {
        container_port: 8000,
        scaling: Scaling {
            replicas_min: min,
            replicas_max: max,
            replicas_initial: min,
            replicas_activation: min.max(1),
            target: Some(target),
            window_ms: 60_000,
            down_delay_ms: 0,
            zero_retention_ms: 0,
        },
        concurrency_max: None,
        start_ms_max: 600_000,
        request_ms_max: 300_000,
        local_only: false,
        audience: Audience::Everyone,
        probe: Probe::default(),
        recreate: false,
    };
    let spec = WorkloadSpec {
        kind: WorkloadKind::Inference,
        serving: Some(serving),
        priority: spec::Priority::default_of(WorkloadKind::Inference),
        preemptible: false,
        ..training(name, gpus)
    };
    with(spec, |pod| {
        pod.restart = Restart::Always;
        pod.args = vec!["--port=$(PORT)".to_owned()];
    })
}

/// The revisions of an inference, the oldest first.
fn revisions(w: &World, name: &str) -> Vec<Arc<WorkloadView>> {
    let (view, head) = (w.handle.view(), w.get(name).unwrap());
    head.revisions.iter().map(|id| view.revisions[id].clone()).collect()
}

fn newest(w: &World, name: &str) -> Uuid {
    *w.get(name).unwrap().revisions.last().unwrap()
}

async fn scale(w: &World, revision: Uuid, wanted: &[u32]) {
    let wanted: BTreeSet<u32> = wanted.iter().copied().collect();
    w.handle.scale(revision, wanted, "as the test wants".to_owned()).await.unwrap();
}

fn numbers(w: &World, name: &str) -> Vec<u32> {
    w.engine.runs_of(name).iter().map(|run| run.pod_index).collect()
}

async fn update(w: &World, name: &str, image: &str) {
    let head = w.get(name).unwrap();
    let spec = with((*head.spec).clone(), |pod| pod.image = image.to_owned());
    w.handle.update_inference("bob", head.id, newest(w, name), spec).await.unwrap();
}

#[tokio::test]
async fn replicas_come_one_by_one_and_each_has_its_port() {
    let w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 2, 4)).await;
    w.becomes("svc Running 2/2").await;
    scale(&w, newest(&w, "svc"), &[0, 1, 2, 3]).await;
    w.becomes("svc Running 4/4").await;
    let runs = w.engine.runs_of("svc");
    let ports: BTreeSet<_> = runs.iter().map(|run| run.env["PORT"].clone()).collect();
    assert_eq!(ports.len(), 4, "each has its own");
    for run in &runs {
        assert_eq!(run.args, [format!("--port={}", run.env["PORT"])]);
        assert_eq!(run.workload_id, w.id("svc"), "it is known by the inference");
    }
    let shown: BTreeSet<_> = w
        .get("svc")
        .unwrap()
        .pods
        .iter()
        .filter_map(|pod| pod.port)
        .map(|p| p.to_string())
        .collect();
    assert_eq!(shown, ports);
    let events = w.events(w.id("svc")).await;
    let of =
        |kind| events.iter().filter(move |e| e.kind == kind).filter_map(|e| e.pod_name.as_ref());
    let told: BTreeSet<_> = of("Started").collect();
    assert_eq!(of("Scheduled").collect::<BTreeSet<_>>(), told, "told of by the names they have");
}

#[tokio::test]
async fn replicas_that_stand_as_they_did_are_not_written_again() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 1, 100)).await;
    w.becomes("svc Running 1/1").await;
    w.refuse_same_pods().await;
    scale(&w, newest(&w, "svc"), &[0, 1]).await;
    w.becomes("svc Running 2/2").await;
    w.restart().await;
    scale(&w, newest(&w, "svc"), &[0, 7]).await;
    w.until("0 and 7", |_| numbers(&w, "svc") == [0, 7]).await;
}

#[tokio::test]
async fn what_is_seen_of_several_replicas_is_shown_by_one_command() {
    let w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 3, 3)).await;
    w.becomes("svc Running 3/3").await;
    let seen = |fault: Option<&str>| {
        let pods = w.get("svc").unwrap().pods.clone();
        let one = |pod: &PodView| (pod.id, pod.generation, fault.map(str::to_owned));
        let all = pods.iter().map(one);
        all.map(|(pod, generation, fault)| Readiness { pod, generation, fault }).collect()
    };
    let shown = || w.get("svc").unwrap().pods.iter().filter(|pod| pod.condition.is_some()).count();
    w.handle.note_ready(seen(Some("it does not answer"))).await.unwrap();
    assert_eq!(shown(), 3);
    let told = w.events(w.id("svc")).await;
    assert_eq!(told.iter().filter(|event| event.kind == "NotReady").count(), 3);
    w.handle.note_ready(seen(None)).await.unwrap();
    assert_eq!(shown(), 0);
}

#[tokio::test]
async fn what_finds_no_place_waits_and_the_others_serve() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 3, 3)).await;
    w.becomes("svc Degraded 2/3").await;
    let pending = &w.get("svc").unwrap().pending;
    assert!(!pending.is_empty(), "the third says why it waits");
    let found = w.handle.diagnose(w.id("svc"), ()).await.unwrap();
    assert!(found.is_some(), "and at length");
}

#[tokio::test]
async fn down_to_zero_and_up_again() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 0, 3)).await;
    w.becomes("svc Running 0/0").await;
    let none = w.handle.logs(w.id("svc"), None, LogRange::default()).await.err().unwrap();
    assert!(none.to_string().contains("`svc` has no replicas at the moment"), "{none}");
    let revision = newest(&w, "svc");
    w.clock.advance_ms(5000);
    scale(&w, revision, &[0, 1, 2]).await;
    w.becomes("svc Running 3/3").await;
    let head = w.get("svc").unwrap();
    let ages: Vec<_> = head.pods.iter().map(|p| p.created_at.since_ms(head.created_at)).collect();
    assert_eq!(ages, [5000; 3], "they are younger than what they are replicas of");
    scale(&w, revision, &[1]).await;
    w.becomes("svc Running 1/1").await;
    assert_eq!(numbers(&w, "svc"), [1], "the one that was to stay");
    w.restart().await;
    w.becomes("svc Running 1/1").await;
    assert_eq!(numbers(&w, "svc"), [1], "also after a restart");
    scale(&w, revision, &[]).await;
    w.becomes("svc Running 0/0").await;
    // Replicas beyond the wanted number are not shown.
    w.until("no pods", |_| w.get("svc").unwrap().pods.is_empty()).await;
    let events = w.events(w.id("svc")).await;
    let told: Vec<_> = events.iter().filter(|e| e.kind == "Scaled").map(|e| &e.message).collect();
    assert_eq!(told[0], "from 0 to 3 replicas: as the test wants");
    assert_eq!(told[1], "from 3 to 1 replica: as the test wants");
}

#[tokio::test]
async fn a_replica_that_comes_again_is_the_one_that_left() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 1, 100)).await;
    let revision = newest(&w, "svc");
    let names = |view: &View| -> Vec<String> {
        let head = view.workloads.values().find(|one| one.spec.name == "svc").unwrap();
        head.pods.iter().map(|pod| pod.name.clone()).collect()
    };
    for (wanted, shown) in [
        (&[0, 1, 2][..], &["svc.1-0-1", "svc.1-1-1", "svc.1-2-1"][..]),
        (&[0], &["svc.1-0-1"]),
        (&[0, 1], &["svc.1-0-1", "svc.1-1-2"]),
    ] {
        scale(&w, revision, wanted).await;
        w.until("they run", |view| names(view) == shown).await;
        w.becomes(&format!("svc Running {0}/{0}", wanted.len())).await;
        w.restart().await;
        w.until("also after a restart", |view| names(view) == shown).await;
    }
    assert!(w.gate.pods_most() <= 3, "the scheduler knows those that are wanted");
    let refused = w.handle.scale(revision, [100].into(), String::new()).await.unwrap_err();
    assert!(refused.to_string().contains("there is no replica 100; there are 100"), "{refused}");
}

#[tokio::test]
async fn a_replica_that_leaves_while_it_starts_is_gone_when_its_run_is() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 1, 2)).await;
    w.becomes("svc Running 1/1").await;
    let revision = newest(&w, "svc");
    w.engine.stubborn(true);
    scale(&w, revision, &[0, 1]).await;
    w.until("it starts", |_| numbers(&w, "svc") == [0, 1]).await;
    scale(&w, revision, &[0]).await;
    w.submit(1, training("other", 1)).await;
    w.becomes("svc Running 1/1\nother Pending 0/1").await;
    w.restart().await;
    w.becomes("svc Running 1/1\nother Pending 0/1").await;
    assert_eq!(numbers(&w, "svc"), [0, 1], "it holds its place still");
    w.engine.let_go();
    w.becomes("svc Running 1/1\nother Running 1/1").await;
    assert_eq!(numbers(&w, "svc"), [0]);
}

#[tokio::test]
async fn a_replica_that_ends_is_started_again_at_another_port() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.phase("svc", Phase::Running).await;
    let first = w.engine.run_of("svc");
    w.engine.end(first.key, Exit::Code(0));
    w.becomes("svc Initializing 1/1").await;
    w.clock.advance_ms(2000);
    w.until("runs again", |_| !w.engine.runs_of("svc").is_empty()).await;
    let second = w.engine.run_of("svc");
    assert_eq!(second.key.generation, 2);
    assert_ne!(second.env["PORT"], first.env["PORT"]);
    w.becomes("svc Running 1/1").await;
    let earlier = Some("svc.1-0-1".to_owned());
    let mut log = w.handle.logs(w.id("svc"), earlier, LogRange::default()).await.unwrap();
    assert_eq!(log.chunks.next().await.unwrap().unwrap(), b"output of 1");
}

#[tokio::test]
async fn a_change_is_a_revision_that_takes_over() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 1, 2)).await;
    w.phase("svc", Phase::Running).await;
    let old = newest(&w, "svc");
    scale(&w, old, &[0, 1]).await;
    w.becomes("svc Running 2/2").await;
    update(&w, "svc", "better").await;
    w.becomes("svc Updating 4/4").await;
    let head = w.get("svc").unwrap();
    assert_eq!(head.spec.pods.pod.image, "better");
    assert_eq!(head.spec.name, "svc");
    let images =
        || -> BTreeSet<_> { w.engine.runs_of("svc").iter().map(|run| run.image.clone()).collect() };
    w.until("both run until the old one is retired", |_| images().len() == 2).await;
    w.restart().await;
    w.becomes("svc Updating 4/4").await;
    assert_eq!(w.get("svc").unwrap().spec.pods.pod.image, "better", "also after a restart");
    w.handle.retire(old).await.unwrap();
    w.becomes("svc Running 2/2").await;
    let shown: Vec<_> = revisions(&w, "svc")
        .iter()
        .map(|r| (r.spec.revision.unwrap().number, r.phase, r.spec.pods.pod.image.clone()))
        .collect();
    let want = [(1, Phase::Stopped, "quickstart"), (2, Phase::Running, "better")];
    assert_eq!(shown, want.map(|(number, phase, image)| (number, phase, image.to_owned())));
    let again = w.handle.retire(old).await.unwrap_err().to_string();
    assert!(again.contains("not a revision that serves"), "{again}");
}

/// Changes the minimum and the maximum of an inference, and nothing else.
async fn rescale(w: &World, name: &str, min: u32, max: u32) {
    let head = w.get(name).unwrap();
    let mut spec = (*head.spec).clone();
    let scaling = &mut spec.serving.as_mut().unwrap().scaling;
    (scaling.replicas_min, scaling.replicas_max) = (min, max);
    (scaling.replicas_initial, scaling.replicas_activation) = (min.max(1), min.max(1));
    w.handle.update_inference("bob", head.id, newest(w, name), spec).await.unwrap();
}

fn bounds(w: &World, name: &str) -> (u32, u32) {
    let head = w.get(name).unwrap();
    let scaling = &head.spec.serving.as_ref().unwrap().scaling;
    (scaling.replicas_min, scaling.replicas_max)
}

#[tokio::test]
async fn numbers_of_replicas_change_without_a_revision() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 2, 2)).await;
    w.becomes("svc Running 2/2").await;
    let runs =
        |w: &World| -> Vec<_> { w.engine.runs_of("svc").iter().map(|run| run.key).collect() };
    let before = runs(&w);
    for (min, max) in [(0, 2), (1, 7), (2, 2), (2, 100)] {
        rescale(&w, "svc", min, max).await;
        assert_eq!(bounds(&w, "svc"), (min, max));
        assert_eq!(revisions(&w, "svc").len(), 1, "{min} to {max} makes no revision");
        w.becomes("svc Running 2/2").await;
        w.restart().await;
        assert_eq!(bounds(&w, "svc"), (min, max), "also after a restart");
    }
    assert_eq!(runs(&w), before, "no replica was restarted");
    scale(&w, newest(&w, "svc"), &[0, 99]).await;
    let events = w.events(w.id("svc")).await;
    let last = events.iter().rfind(|event| event.kind == "Updated").unwrap();
    assert_eq!(last.message, "bob changed its autoscaling; it has 2 to 100 replicas");
    // A change of other values begins with them.
    update(&w, "svc", "better").await;
    assert_eq!((bounds(&w, "svc"), revisions(&w, "svc").len()), ((2, 100), 2));
}

#[tokio::test]
async fn numbers_change_beside_a_failed_revision_and_start_a_failed_inference() {
    let w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.becomes("svc Running 1/1").await;
    update(&w, "svc", "better").await;
    w.handle.give_up(newest(&w, "svc"), "no replica was ready".to_owned()).await.unwrap();
    w.becomes("svc Running 1/1").await;
    rescale(&w, "svc", 1, 3).await;
    let scaled = revisions(&w, "svc");
    assert_eq!(scaled.len(), 2, "the failed values are not started again");
    for revision in &scaled {
        assert_eq!(revision.spec.serving.as_ref().unwrap().scaling.replicas_max, 3);
    }
    assert_eq!(scaled[0].spec.pods.pod.image, "quickstart", "the one that serves keeps its values");
    w.handle.give_up(scaled[0].id, "no replica was ready".to_owned()).await.unwrap();
    w.becomes("svc Failed 0/0").await;
    rescale(&w, "svc", 1, 2).await;
    assert_eq!(revisions(&w, "svc").len(), 3);
    w.becomes("svc Running 1/1").await;
}

#[tokio::test]
async fn a_change_that_finds_no_room_takes_nothing_away() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.phase("svc", Phase::Running).await;
    update(&w, "svc", "better").await;
    w.becomes("svc Updating 1/2").await;
    assert_eq!(w.engine.run_of("svc").image, "quickstart");
    // The user who changed it can see why, and take it back.
    assert!(!w.get("svc").unwrap().pending.is_empty());
    w.handle.give_up(newest(&w, "svc"), "no replica was ready".to_owned()).await.unwrap();
    w.becomes("svc Running 1/1").await;
    let head = w.get("svc").unwrap();
    let why = head.pending.iter().filter_map(PendingReason::own).next().unwrap();
    let want = "revision 2 failed: no replica was ready; revision 1 serves";
    assert_eq!((&*why.code, &*why.message), ("E220", want));
    update(&w, "svc", "best").await;
    w.handle.retire(newest(&w, "svc")).await.unwrap();
    assert!(w.get("svc").unwrap().pending.is_empty(), "only of the newest");
}

#[tokio::test]
async fn an_inference_of_which_no_replica_answers_is_degraded() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 2, 2)).await;
    w.becomes("svc Running 2/2").await;
    let seen = |silent: &[usize]| {
        let pods = w.get("svc").unwrap().pods.clone().into_iter().enumerate();
        let one = |(number, pod): (usize, PodView)| Readiness {
            pod: pod.id,
            generation: pod.generation,
            fault: silent.contains(&number).then(|| "it does not answer".to_owned()),
        };
        pods.map(one).collect::<Vec<_>>()
    };
    w.handle.note_ready(seen(&[0])).await.unwrap();
    w.becomes("svc Running 2/2").await;
    w.handle.note_ready(seen(&[0, 1])).await.unwrap();
    w.becomes("svc Degraded 2/2").await;
    w.handle.note_ready(seen(&[1])).await.unwrap();
    w.becomes("svc Running 2/2").await;
}

#[tokio::test]
async fn the_room_of_a_revision_is_its_successors_and_the_other_way_round() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.phase("svc", Phase::Running).await;
    // It waits for the same GPU, and was there before the next revision.
    w.submit(1, inference("other", 1, 1, 1)).await;
    let old = newest(&w, "svc");
    update(&w, "svc", "better").await;
    w.becomes("svc Updating 1/2\nother Pending 0/1").await;
    scale(&w, old, &[]).await;
    w.becomes("svc Running 1/1\nother Pending 0/1").await;
    assert_eq!(w.engine.run_of("svc").image, "better");
    w.handle.give_up(newest(&w, "svc"), "no replica was ready".to_owned()).await.unwrap();
    w.becomes("svc Running 1/1\nother Pending 0/1").await;
    assert_eq!(w.engine.run_of("svc").image, "quickstart");
}

#[tokio::test]
async fn a_successor_that_asks_for_more_has_no_claim_to_the_room() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.submit(1, inference("beside", 1, 1, 1)).await;
    w.phase("beside", Phase::Running).await;
    w.submit(1, inference("other", 1, 1, 1)).await;
    let (head, old) = (w.get("svc").unwrap(), newest(&w, "svc"));
    let more = with((*head.spec).clone(), |pod| pod.gpu = spec::GpuRequest::Whole(2));
    w.handle.update_inference("bob", head.id, old, more).await.unwrap();
    w.becomes("svc Updating 1/3\nbeside Running 1/1\nother Pending 0/1").await;
    scale(&w, old, &[]).await;
    w.phase("other", Phase::Running).await;
}

#[tokio::test]
async fn changing_what_somebody_else_has_changed_is_refused() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    let (head, first) = (w.get("svc").unwrap(), newest(&w, "svc"));
    update(&w, "svc", "better").await;
    let spec = with((*head.spec).clone(), |pod| pod.image = "other".to_owned());
    let refused = w.handle.update_inference("carol", head.id, first, spec).await.unwrap_err();
    assert!(refused.to_string().contains("changed by another request"), "{refused}");
    // Without a difference there is nothing to do.
    let head = w.get("svc").unwrap();
    let same = (*head.spec).clone();
    w.handle.update_inference("carol", head.id, newest(&w, "svc"), same).await.unwrap();
    assert_eq!(revisions(&w, "svc").len(), 2);
}

#[tokio::test]
async fn old_revisions_are_forgotten() {
    let w = World::new(nodes(1, 0), &[0]).await;
    w.submit(1, inference("svc", 0, 0, 1)).await;
    for number in 0..15 {
        let old = newest(&w, "svc");
        update(&w, "svc", &format!("image-{number}")).await;
        w.handle.retire(old).await.unwrap();
    }
    let numbers: Vec<_> =
        revisions(&w, "svc").iter().map(|r| r.spec.revision.unwrap().number).collect();
    assert_eq!(numbers, (7..=16).collect::<Vec<_>>());
    assert_eq!(w.handle.view().revisions.len(), 10);
}

#[tokio::test]
async fn what_was_retired_leaves_its_ports_and_the_scheduler() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.becomes("svc Running 1/1").await;
    let old = newest(&w, "svc");
    update(&w, "svc", "better").await;
    w.becomes("svc Updating 2/2").await;
    w.handle.retire(old).await.unwrap();
    w.becomes("svc Running 1/1").await;
    for _ in 0..2 {
        let known = w.handle.scheduling_state().await.unwrap().cluster.workloads().len();
        assert_eq!(known, 1, "the newer revision only");
        w.restart().await;
    }
}

#[tokio::test]
async fn what_never_got_ready_has_failed_and_can_be_changed() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.phase("svc", Phase::Running).await;
    w.handle.give_up(newest(&w, "svc"), "no replica was ready".to_owned()).await.unwrap();
    w.becomes("svc Failed 0/0").await;
    w.restart().await;
    let failed = w.get("svc").unwrap();
    assert_eq!(failed.failure.as_deref(), Some("no replica was ready"), "not how it was stopped");
    assert_eq!(failed.pods[0].state, PodState::Failed, "its output can be read");
    update(&w, "svc", "better").await;
    w.becomes("svc Running 1/1").await;
}

#[tokio::test]
async fn deleting_it_deletes_all_of_it() {
    let w = World::new(nodes(1, 4), &[4]).await;
    w.submit(1, inference("svc", 1, 1, 2)).await;
    w.phase("svc", Phase::Running).await;
    update(&w, "svc", "better").await;
    w.becomes("svc Updating 2/2").await;
    w.engine.stubborn(true);
    w.delete("svc").await;
    w.phase("svc", Phase::Deleting).await;
    let taken = w.handle.submit(1, inference("svc", 1, 1, 1), false).await.unwrap_err().to_string();
    assert!(taken.contains("still being deleted"), "{taken}");
    w.engine.let_go();
    w.until("gone", |v: &View| v.workloads.is_empty() && v.revisions.is_empty()).await;
    assert_eq!(w.engine.known(), 0, "nothing is left of its runs");
    w.submit(1, inference("svc", 1, 1, 1)).await;
    w.becomes("svc Running 1/1").await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_what_is_allowed() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let scaled = |change: fn(&mut Scaling)| {
        let mut spec = inference("svc", 1, 1, 2);
        change(&mut spec.serving.as_mut().unwrap().scaling);
        spec
    };
    for (spec, why) in [
        (scaled(|s| s.replicas_max = 101), "maxReplicas 101 is not allowed; use 1 to 100"),
        (scaled(|s| s.replicas_min = 3), "minReplicas 3 is above maxReplicas 2"),
        (scaled(|s| s.replicas_initial = 5), "initialReplicas 5 is not allowed; use 1 to 2"),
        (scaled(|s| s.target = None), "1 to 2 replicas need a metric"),
        (
            scaled(|s| {
                (s.replicas_min, s.replicas_initial) = (0, 0);
                s.target.as_mut().unwrap().metric = Metric::Latency;
            }),
            "latency cannot tell that no request comes",
        ),
    ] {
        let refused = w.handle.submit(1, spec, false).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    w.submit(1, inference("svc", 1, 1, 1)).await;
    let (id, revision) = (w.id("svc"), newest(&w, "svc"));
    let refused = w.handle.suspend("alice", id).await.unwrap_err().to_string();
    assert!(refused.contains("--min-replicas 0"), "{refused}");
    let refused = w.handle.delete_workload("alice", revision).await.unwrap_err();
    assert!(refused.to_string().contains("no workload"), "{refused}");
    let beyond = w.handle.scale(revision, BTreeSet::from([100]), String::new()).await.unwrap_err();
    assert!(beyond.to_string().contains("there is no replica 100"), "{beyond}");
}

#[tokio::test]
async fn the_quota_holds_for_replicas() {
    let w = World::new(nodes(1, 4), &[1]).await;
    w.submit(1, inference("svc", 1, 1, 3)).await;
    w.phase("svc", Phase::Running).await;
    scale(&w, newest(&w, "svc"), &[0, 1, 2]).await;
    w.becomes("svc Degraded 1/3").await;
    let view = w.get("svc").unwrap();
    assert_eq!(w.why("svc")[0].code, "P202", "it may not be preempted, so it stays in quota");
    let waiting = view.pods.iter().filter(|pod| pod.state == PodState::Pending).count();
    assert_eq!(waiting, 2);
    // The numbers of the reason change, and that is no event.
    w.handle.update_project("admin", 1, given(gpus(0))).await.unwrap();
    let is_told = |view: &View| {
        let svc = view.workloads.values().next().unwrap();
        view.why(svc)[0].message.contains("a quota of 0 GPUs") && svc.over_quota
    };
    w.until("the inference shows what its revision does", is_told).await;
}

#[tokio::test]
async fn an_inference_is_found_by_the_names_it_has_now() {
    let mut w = World::new(nodes(1, 1), &[1, 1]).await;
    w.submit(1, inference("svc", 0, 0, 1)).await;
    w.submit(2, inference("svc", 0, 0, 1)).await;
    w.submit(1, training("t", 0)).await;
    let project = |w: &World, id| w.handle.view().projects[&id].unit.name.clone();
    let found = |w: &World, id: u64, name: &str| {
        let found = w.handle.view().inference(&project(w, id), name).cloned();
        found.map(|found| (found.project_id, found.project_name.clone()))
    };
    assert_eq!(found(&w, 2, "svc"), Some((2, project(&w, 2))));
    assert_eq!(found(&w, 1, "t"), None, "it is a training");
    let (before, renamed) = (project(&w, 1), Some("other".to_owned()));
    let change = orchestrator::OrgChange { name: renamed, ..Default::default() };
    w.handle.update_project("ann", 1, change).await.unwrap();
    assert_eq!(found(&w, 1, "svc"), Some((1, "other".to_owned())));
    assert_eq!(w.handle.view().inference(&before, "svc"), None);
    w.restart().await;
    assert_eq!(found(&w, 1, "svc"), Some((1, "other".to_owned())));
    w.handle
        .delete_workload("ann", w.handle.view().inference("other", "svc").unwrap().id)
        .await
        .unwrap();
    w.until("it is gone", |view| view.inference("other", "svc").is_none()).await;
    assert!(found(&w, 2, "svc").is_some());
}
