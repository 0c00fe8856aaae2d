//! A daemon that dies, or is restarted. A program of its own: daemons that start remove others'
//! packet filter rules.

#[path = "it/bench/mod.rs"]
mod bench;

use bench::Bench;
use bench::watched::Watched;
use engine::{Exit, ListedRun, RunState};
use engine_conformance::Fixture as _;
use engine_docker::testing::DockerServer;

#[tokio::test]
async fn a_daemon_that_goes_loses_what_ran_and_forgets_nothing() {
    let Some(server) = DockerServer::own() else { return };
    let Some(mut bench) = Bench::on(Some(server.socket())).await else { return };
    for goes in [DockerServer::kill, DockerServer::stop] {
        let mut watched = Watched::new(&bench);
        // It ends well when the daemon asks it to, while that goes down or when the next one
        // starts.
        let polite = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done";
        let spec = bench.script(polite);
        let ran = watched.start(spec.clone()).await;
        let plain = watched.start(bench.script("exec sleep 600")).await;
        watched.running(plain).await;
        let ended = watched.start(bench.script("exit 3")).await;
        assert_eq!(watched.end(ended).await, Exit::Code(3));
        watched.said(ran, "ready").await;
        goes(&server);
        server.up();
        // The order of these is not fixed.
        let mut lost = std::collections::BTreeSet::from([ran, plain]);
        while !lost.is_empty() {
            let (key, exit) = watched.next_end().await;
            assert_eq!(exit, Exit::Lost);
            lost.remove(&key);
        }
        watched.start(spec).await;
        assert_eq!(watched.output(ran).await, "ready\n", "it was not started again");
        let fresh = watched.start(bench.script("exit 4")).await;
        assert_eq!(watched.end(fresh).await, Exit::Code(4), "it can be worked with as before");
        let list = watched.engine.list().await.expect("a list");
        let has = |list: &[ListedRun], key, exit: Exit| {
            list.iter().any(|seen| {
                let same = |one: &Exit| *one == exit;
                seen.key == key
                    && matches!(&seen.state, RunState::Exited { exit, .. } if same(exit))
            })
        };
        assert!(has(&list, ended, Exit::Code(3)), "it had ended before: {list:?}");
        drop(watched);
        bench.reopen().await;
        let list = bench.engine().list().await.expect("a list");
        assert!(has(&list, ran, Exit::Lost) && has(&list, fresh, Exit::Code(4)), "{list:?}");
    }
}
