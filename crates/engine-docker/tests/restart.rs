//! A daemon that dies. In a program of its own: daemons that start take others' rules for packets away.

mod bench;
#[path = "bench/watched.rs"]
mod watched;

use bench::Bench;
use engine::conformance::Fixture as _;
use engine::{Exit, Observation, RunState};
use engine_docker::testing::DockerServer;
use watched::Watched;

#[tokio::test]
async fn a_daemon_that_is_killed_loses_what_ran_and_forgets_nothing() {
    let Some(server) = DockerServer::own() else { return };
    let Some(mut bench) = Bench::on(Some(server.socket())).await else { return };
    let mut watched = Watched::new(&bench);
    // It would end well if it were asked to, as the daemon does when it starts.
    let polite = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done";
    let spec = bench.script(polite);
    let ran = watched.start(spec.clone()).await;
    watched.running(ran).await;
    let ended = watched.start(bench.script("exit 3")).await;
    assert_eq!(watched.end(ended).await, Exit::Code(3));
    server.kill();
    server.up();
    assert_eq!(watched.end(ran).await, Exit::Lost);
    watched.start(spec).await;
    assert_eq!(watched.output(ran).await, "ready\n", "it was not started again");
    let fresh = watched.start(bench.script("exit 4")).await;
    assert_eq!(watched.end(fresh).await, Exit::Code(4), "it can be worked with as before");
    drop(watched);
    bench.reopen().await;
    let watched = Watched::new(&bench);
    let list = watched.engine.list().await.expect("a list");
    for (key, exit) in [(ran, Exit::Lost), (ended, Exit::Code(3)), (fresh, Exit::Code(4))] {
        let same = |seen: &&Observation| {
            seen.key == key && matches!(&seen.state, RunState::Exited { exit: e, .. } if *e == exit)
        };
        assert!(list.iter().any(|seen| same(&seen)), "{key} {exit:?}: {list:?}");
    }
}
