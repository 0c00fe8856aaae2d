//! The engine suite against a real daemon.

use crate::bench::Bench;
use engine_docker::testing::DockerServer;

engine_conformance::conformance_suite!(match Bench::on(DockerServer::shared()).await {
    Some(bench) => bench,
    None => return,
});

engine_conformance::conformance_suite!(copies of match Bench::on(DockerServer::shared()).await {
    Some(bench) => bench,
    None => return,
});

engine_conformance::conformance_suite!(background of match Bench::on(DockerServer::shared()).await {
    Some(bench) => bench,
    None => return,
});
