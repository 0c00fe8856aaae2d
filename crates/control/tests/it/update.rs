//! Changes to workloads that exist: what can change, when, and that it lasts.

use engine::Exit;
use orchestrator::{Error, WorkloadChange};
use spec::{Bounds, GpuLimit, GpuRequest, WorkloadSpec};
use view::{Phase, WorkloadView};

use crate::world::{World, nodes, training};

fn priority(value: u32, name: &str) -> WorkloadChange {
    WorkloadChange {
        priority: Some(spec::Priority { value, class: name.to_owned() }),
        ..WorkloadChange::default()
    }
}

fn preemptible(yes: bool) -> WorkloadChange {
    WorkloadChange { preemptible: Some(yes), ..WorkloadChange::default() }
}

fn labels(pairs: &[(&str, Option<&str>)]) -> WorkloadChange {
    let pair =
        |(name, value): &(&str, Option<&str>)| (str::to_owned(name), value.map(str::to_owned));
    WorkloadChange { labels: pairs.iter().map(pair).collect(), ..WorkloadChange::default() }
}

async fn update(w: &World, name: &str, change: WorkloadChange) -> Result<WorkloadView, Error> {
    let made = w.handle.update_workload("bob", w.id(name), change).await;
    made.map(|view| (*view).clone())
}

#[tokio::test]
async fn a_waiting_training_with_a_higher_priority_takes_the_place_of_another() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    w.submit(1, training("urgent", 1)).await;
    assert_eq!(w.get("urgent").unwrap().phase, Phase::Pending);

    let changed = update(&w, "urgent", priority(90, "high")).await.unwrap();
    assert_eq!((changed.spec.priority.value, changed.spec.priority.class.as_str()), (90, "high"));
    w.phase("urgent", Phase::Running).await;
    w.phase("first", Phase::Pending).await;
    assert!(w.story(changed.id).await.contains(&"Updated".to_owned()));
    w.restart().await;
    assert_eq!(w.get("urgent").unwrap().spec.priority.value, 90, "it outlives the server");
}

#[tokio::test]
async fn a_running_training_with_a_lower_priority_gives_way() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    w.submit(1, training("second", 1)).await;
    update(&w, "first", priority(25, "very-low")).await.unwrap();
    w.phase("second", Phase::Running).await;
    w.phase("first", Phase::Pending).await;
}

#[tokio::test]
async fn the_same_change_twice_is_one_change() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    for _ in 0..2 {
        update(&w, "t", labels(&[("team", Some("x")), ("none", None)])).await.unwrap();
    }
    let told = w.story(w.id("t")).await;
    assert_eq!(told.iter().filter(|kind| *kind == "Updated").count(), 1);
}

#[tokio::test]
async fn of_two_changes_of_labels_at_once_both_count() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let old = [("old".to_owned(), "1".to_owned())].into();
    w.submit(1, WorkloadSpec { labels: old, ..training("t", 1) }).await;
    let (one, other) = tokio::join!(
        update(&w, "t", labels(&[("a", Some("1"))])),
        update(&w, "t", labels(&[("b", Some("2")), ("old", None)])),
    );
    one.and(other).unwrap();
    let names: Vec<_> = w.get("t").unwrap().spec.labels.keys().cloned().collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn what_runs_becomes_non_preemptible_only_while_it_holds_nothing() {
    let w = World::new(nodes(1, 2), &[1]).await;
    w.submit(1, training("t", 2)).await;
    w.phase("t", Phase::Running).await;
    let refused = update(&w, "t", preemptible(false)).await.unwrap_err();
    assert!(refused.to_string().contains("suspend it, change it, and resume it"), "{refused}");

    w.handle.suspend("bob", w.id("t")).await.unwrap();
    w.phase("t", Phase::Stopped).await;
    update(&w, "t", preemptible(false)).await.unwrap();
    w.handle.resume("bob", w.id("t")).await.unwrap();
    w.phase("t", Phase::Pending).await;
    update(&w, "t", preemptible(true)).await.unwrap();
    w.phase("t", Phase::Running).await;
}

#[tokio::test]
async fn what_has_ended_keeps_how_it_ran_and_goes_when_it_is_told_to() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, WorkloadSpec { delete_after_ms: Some(9_000_000), ..training("t", 1) }).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(0));
    w.phase("t", Phase::Completed).await;
    let refused = update(&w, "t", priority(90, "high")).await.unwrap_err();
    assert!(refused.to_string().contains("has ended, so its priority"), "{refused}");

    let sooner = WorkloadChange { delete_after_ms: Some(5000), ..WorkloadChange::default() };
    update(&w, "t", sooner).await.unwrap();
    w.clock.advance_ms(5000);
    // Any request makes the dispatcher look at the clock.
    w.submit(1, training("other", 0)).await;
    w.until("only the other", |v| v.workloads.len() == 1).await;
}

/// The engine is asked five times, over 8.5 seconds.
#[tokio::test]
async fn a_change_of_a_limit_that_is_given_up_is_an_event_of_the_workload() {
    let w = World::new(nodes(1, 2), &[1]).await;
    let mut spec = training("t", 1);
    spec.pods.pod.gpu = GpuRequest::share(1, 250);
    w.submit(1, spec).await;
    w.phase("t", Phase::Running).await;
    w.engine.refuse_limits();
    update(&w, "t", gpu_limit(GpuLimit::Portion(500))).await.unwrap();
    let said = loop {
        let events = w.events(w.id("t")).await;
        match events.iter().find(|event| event.code.as_deref() == Some("E206")) {
            Some(event) => break event.message.to_string(),
            None => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    };
    assert!(said.contains("the change does not reach it") && said.contains("suspend"), "{said}");
}

fn gpu_limit(limit: GpuLimit) -> WorkloadChange {
    WorkloadChange { gpu_limit: Some(limit), ..WorkloadChange::default() }
}

#[tokio::test]
async fn the_most_of_a_gpu_changes_where_it_runs_and_again_after_a_restart() {
    let mut w = World::new(nodes(1, 2), &[1]).await;
    let mut spec = training("t", 1);
    spec.pods.pod.gpu = GpuRequest::share(1, 250);
    w.submit(1, spec).await;
    w.phase("t", Phase::Running).await;
    let device = w.engine.run_of("t").devices[0].clone();
    assert_eq!(device.memory, Bounds::of(device.memory_bytes / 4));
    w.engine.calls();
    let asked = |call: &String| call.starts_with("limit");
    let limits = async |w: &World, wanted: &str| loop {
        match w.engine.calls().into_iter().find(asked) {
            Some(call) => break assert_eq!(call, wanted),
            None => tokio::task::yield_now().await,
        }
    };
    let half = format!("limit t [{}]", device.memory_bytes / 2);
    update(&w, "t", gpu_limit(GpuLimit::Portion(500))).await.unwrap();
    limits(&w, &half).await;
    update(&w, "t", gpu_limit(GpuLimit::Portion(500))).await.unwrap();
    update(&w, "t", labels(&[("a", Some("1"))])).await.unwrap();
    assert_eq!(w.engine.calls().into_iter().find(asked), None, "nothing changed");
    w.restart().await;
    limits(&w, &half).await;

    for (limit, why) in [
        (GpuLimit::Portion(200), "the GPU limit is below what is asked for"),
        (GpuLimit::Portion(1500), "between 0.001 and 1"),
        (GpuLimit::Memory(1 << 30), "does not ask for a part of a GPU of that kind"),
    ] {
        let refused = update(&w, "t", gpu_limit(limit)).await.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let key = w.engine.run_of("t").key;
    let (gpu, held_bytes, limit_bytes) = (device.uuid, 5 << 30, 4 << 30);
    let over = engine::GpuOver { gpu: gpu.clone(), held_bytes, limit_bytes, ended: None };
    w.engine.tell(key, engine::RunEvent::GpuOver(over));
    w.until("the event", |v| v.workloads.len() == 1).await;
    let said = loop {
        let events = w.events(w.id("t")).await;
        match events.iter().find(|event| event.code.as_deref() == Some("E216")) {
            Some(event) => break event.message.to_string(),
            None => tokio::task::yield_now().await,
        }
    };
    let text = format!(
        "holds 5GiB of GPU {gpu}, more than its limit of 4GiB: it keeps what it has, \
                        and gets no more until it holds less"
    );
    assert_eq!(said, text);
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_changes_nothing() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    let many = WorkloadChange { backoff_limit: Some(5000), ..priority(90, "high") };
    let refused = update(&w, "t", many).await.unwrap_err();
    assert!(refused.to_string().contains("0 to 1000 are allowed"), "{refused}");
    assert_eq!(w.get("t").unwrap().spec.priority.value, 50);
    let unknown = w.handle.update_workload("bob", uuid::Uuid::nil(), priority(1, "x")).await;
    assert!(matches!(unknown, Err(Error::NotFound { .. })));
}
