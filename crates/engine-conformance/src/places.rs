//! Places of runs in the list of an engine.

use engine::{Device, RunKey, RunPlace, RunSpec};

use super::{Fixture, LONG_MS, Stage};

impl Stage {
    /// Where the list says that this run is.
    async fn place(&self, key: RunKey) -> Option<RunPlace> {
        let list = self.engine.list().await.expect("a list");
        let found = list.into_iter().find(|run| run.key == key);
        found.expect("a run in the list").place
    }
}

/// The list says of a run that has not ended where it is and which GPUs it has, after a crash too.
pub async fn says_what_a_run_holds(fixture: &mut dyn Fixture) {
    let device = |index: u32| Device {
        index,
        uuid: format!("GPU-sim-node-1-{index}"),
        simulated: true,
        millis: 250,
        memory_bytes: 1 << 30,
        memory: engine::Bounds::of(1 << 28),
    };
    let mut stage = Stage::new(fixture);
    let script = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
    let spec = RunSpec { devices: vec![device(0), device(3)], ..fixture.script(script) };
    let holds = Some(RunPlace::of(&spec));
    let key = stage.start(spec).await;
    stage.running(key).await;
    assert_eq!(stage.place(key).await, holds);
    drop(stage);
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    assert_eq!(stage.place(key).await, holds);
    stage.stop(key, LONG_MS).await;
    stage.exit(key).await;
    assert_eq!(stage.place(key).await, None);
}
