//! A daemon without addresses for one more network. A program of its own: daemons that start remove
//! others' packet filter rules.

#[path = "it/bench/mod.rs"]
mod bench;

use bench::Bench;
use bench::watched::Watched;
use engine::{Exit, Framework, Gang, RunSpec};
use engine_conformance::Fixture as _;
use engine_docker::testing::DockerServer;

#[tokio::test]
async fn a_gang_without_a_network_says_what_to_do_and_starts_when_there_is_one() {
    let Some(server) = DockerServer::with_one_network() else { return };
    let Some(bench) = Bench::on(Some(server.socket())).await else { return };
    let mut watched = Watched::new(&bench);
    let gang = |script: &str| RunSpec {
        gang: Some(Gang {
            workload: uuid::Uuid::from_u128(9),
            framework: Framework::PyTorch,
            members: vec![],
            rank: 0,
            members_min: 0,
            may_meet_at_server: false,
            slots_per_worker: 1,
        }),
        ..bench.script(script)
    };
    let first = watched.start(gang("echo ready; sleep 600")).await;
    watched.running(first).await;
    watched.said(first, "ready").await;
    let second = watched.start(gang("echo here")).await;
    let Exit::NotStarted(why) = watched.end(second).await else { panic!("it has no network") };
    assert!(why.contains("`docker network prune`"), "{why}");
    watched.engine.stop(first, 0).await.expect("stopped");
    watched.end(first).await;
    watched.engine.remove(first).await.expect("removed");
    let third = watched.start(gang("echo here")).await;
    assert_eq!(watched.output(third).await, "here\n");
}
