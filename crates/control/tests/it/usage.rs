//! Fairness over time: past use of the projects is shown, counts, and survives a restart.

use model::{UsageWindow, WindowKind};
use view::Phase;

use crate::world::{World, nodes, training};

const MINUTE: u64 = 60_000;

/// Steps of one minute.
fn policy() -> sched::Policy {
    let window = UsageWindow::new(168 * MINUTE, WindowKind::Sliding, None);
    sched::Policy { usage: Some(window.unwrap()), ..sched::Policy::default() }
}

fn gpu_ppm(w: &World, project: u64) -> Option<u64> {
    w.handle.view().projects[&project].unit.status.usage.map(|usage| usage.gpu_ppm)
}

#[tokio::test]
async fn without_a_window_there_is_no_usage() {
    let w = World::new(nodes(1, 4), &[0]).await;
    assert_eq!(gpu_ppm(&w, 1), None);
}

#[tokio::test]
async fn what_a_project_used_is_shown_and_survives_a_restart() {
    let mut w = World::with(nodes(1, 4), &[0, 0], policy()).await;
    w.submit(1, training("t", 2)).await;
    w.phase("t", Phase::Running).await;
    w.clock.advance_ms(10 * MINUTE);
    // Something has to happen for time to be seen.
    w.submit(2, training("x", 1)).await;
    w.phase("x", Phase::Running).await;
    let used = gpu_ppm(&w, 1).unwrap();
    assert!((440_000..=500_000).contains(&used), "{used}");
    for _ in 0..2 {
        w.restart().await;
        assert_eq!(gpu_ppm(&w, 1), Some(used), "the figures of the last step");
    }
    w.clock.advance_ms(10 * MINUTE);
    w.submit(2, training("y", 1)).await;
    w.phase("y", Phase::Running).await;
    let (first, second) = (gpu_ppm(&w, 1).unwrap(), gpu_ppm(&w, 2).unwrap());
    assert!((460_000..=500_000).contains(&first), "it was there all the time: {first}");
    assert!((100_000..=150_000).contains(&second), "a quarter for half the time: {second}");
}

#[tokio::test]
async fn who_used_less_goes_first() {
    let w = World::with(nodes(1, 2), &[0, 0], policy()).await;
    w.submit(1, training("a1", 1)).await;
    w.submit(1, training("a2", 1)).await;
    w.phase("a2", Phase::Running).await;
    w.clock.advance_ms(60 * MINUTE);
    w.submit(2, training("b1", 1)).await;
    w.submit(2, training("b2", 1)).await;
    w.becomes("a1 Pending 0/1\na2 Pending 0/1\nb1 Running 1/1\nb2 Running 1/1").await;
}
