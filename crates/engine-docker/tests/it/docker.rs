//! Properties of this engine alone: what a container gets, images, networks, and a daemon that
//! dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bench::Bench;
use crate::bench::watched::Watched;
use crate::registry;
use crate::stalled::Stalled;
use bollard::models::{NetworkConnectRequest, NetworkCreateRequest};
use bollard::query_parameters::{KillContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use engine::{
    ExecSpec, Exit, Framework, Gang, Input, MASTER, Member, Mount, MountSource, Output, Port,
    PullPolicy, Repository, RunEvent, RunKey, RunNews, RunSpec, RunState, Secret, SecretPlace,
    WORKER,
};
use engine_conformance::{Fixture, GitServer, S3Server};
use engine_docker::Daemon;
use engine_docker::testing::DockerServer;
use tokio::io::AsyncReadExt as _;

/// Runs a specification to its end, and returns its output.
async fn printed(bench: &Bench, spec: RunSpec) -> String {
    let watched = Watched::new(bench);
    let key = watched.start(spec).await;
    watched.output(key).await
}

/// A client of the daemon.
async fn docker(bench: &Bench) -> bollard::Docker {
    Daemon::at(&bench.socket).await.expect("it answers").client()
}

fn name(key: RunKey) -> String {
    format!("elastane-{key}")
}

#[tokio::test]
async fn a_container_that_others_kill_or_remove_is_told_apart() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let docker = docker(&bench).await;
    let mut watched = Watched::new(&bench);
    let killed = watched.start(bench.script("sleep 600")).await;
    assert_eq!(watched.engine.pod_name(killed).await.as_deref(), Some("job0-0-1"));
    let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
    docker.kill_container(&name(killed), Some(options)).await.expect("killed");
    assert_eq!(watched.end(killed).await, Exit::Signal(9));
    let (one, other) = (bench.script("sleep 600"), bench.script("tail /dev/zero"));
    let removed = watched.start(one).await;
    watched.running(removed).await;
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    docker.remove_container(&name(removed), Some(options)).await.expect("removed");
    assert!(matches!(watched.end(removed).await, Exit::Lost | Exit::Signal(9)));
    let mut greedy = other;
    greedy.container.limits.memory_bytes_max = Some(16 << 20);
    let greedy = watched.start(greedy).await;
    assert_eq!(watched.end(greedy).await, Exit::OutOfMemory);
}

#[tokio::test]
async fn containers_are_the_installations_wherever_its_directory_is() {
    let Some(mut bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let runs = watched.start(bench.script("echo one; exec sleep 600")).await;
    watched.running(runs).await;
    let ended = watched.start(bench.script("exit 3")).await;
    watched.end(ended).await;
    drop(watched);
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::rename(bench.folder.path(), elsewhere.path()).expect("moved");
    // The folder is not there any more, so nothing is left to delete.
    let _gone = std::mem::replace(&mut bench.folder, elsewhere).keep();
    bench.reopen().await;
    let mut watched = Watched::new(&bench);
    let list = watched.engine.list().await.expect("a list");
    let found = |key| list.iter().find(|seen| seen.key == key).map(|seen| seen.state.clone());
    assert!(matches!(found(runs), Some(RunState::Running { .. })), "{list:?}");
    assert!(matches!(found(ended), Some(RunState::Exited { exit: Exit::Code(3), .. })), "{list:?}");
    watched.engine.stop(runs, 0).await.expect("stopped");
    // Its events are still its own.
    assert!(matches!(watched.end(runs).await, Exit::Signal(_)));
    assert_eq!(watched.output(runs).await, "one\n");
}

#[tokio::test]
async fn a_container_starts_without_a_channel_that_its_daemon_cannot_see() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    // The daemon has another file there, or none.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let folder = std::fs::File::open(elsewhere.path()).expect("it is there");
    let folder = rustix::io::fcntl_dupfd_cloexec(&folder, 700).expect("a number");
    let seen_here = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder));
    std::os::unix::fs::symlink(seen_here, bench.folder.path().join("channels")).expect("a link");
    let mut watched = Watched::new(&bench);
    let key = watched.start(bench.script("echo \"${ELASTANE_CHANNEL-none}\"")).await;
    watched.end(key).await;
    assert_eq!(watched.output(key).await, "none\n");
    assert!(!elsewhere.path().join(key.to_string()).exists(), "its folder is gone");
}

#[tokio::test]
async fn a_container_finds_its_channel_and_the_next_server_hears_on_it() {
    let Some(mut bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let script = "test -S \"$ELASTANE_CHANNEL\" && echo there; \
                  ( : > \"$ELASTANE_CHANNEL.new\" ) 2>/dev/null || echo fixed; exec sleep 600";
    let key = watched.start(bench.script(script)).await;
    watched.running(key).await;
    let folder = bench.folder.path().join("channels").join(key.to_string());
    // All processes that reach the folder are heard.
    let announced = |seconds| {
        let socket = folder.join(engine_channel::SOCKET);
        let next_in_s = Some(seconds);
        let report = engine_channel::Report { next_in_s, ..engine_channel::Report::default() };
        tokio::task::spawn_blocking(move || engine_channel::report(&socket, report))
    };
    announced(1.0).await.expect("a thread").expect("heard");
    drop(watched);
    bench.reopen().await;
    announced(600.0).await.expect("a thread").expect("heard again");
    let mut watched = Watched::new(&bench);
    watched.said(key, "fixed").await;
    // It is too far away to be waited for.
    watched.engine.await_checkpoint(key, 20_000).await;
    watched.engine.stop(key, 0).await.expect("stopped");
    watched.end(key).await;
    assert_eq!(watched.output(key).await, "there\nfixed\n");
    assert!(announced(1.0).await.expect("a thread").is_err(), "it is closed");
    watched.engine.remove(key).await.expect("removed");
    assert!(!folder.exists());
}

#[tokio::test]
async fn output_without_end_is_bounded_and_its_end_is_read() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let lines = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
    let key = watched.start(bench.script(lines)).await;
    assert_eq!(watched.end(key).await, Exit::Code(0));
    let output = watched.output(key).await;
    assert!(output.ends_with("line 19998\nline 19999\n"), "{}", output.len());
    assert!(!output.contains("line 0\n") && output.len() < 256 << 10, "{}", output.len());
    let kept: Vec<u32> = output.lines().map(|line| line[5..].parse().expect("a number")).collect();
    assert!(kept.windows(2).all(|two| two[0] + 1 == two[1]), "in order, across its files");
    let docker = docker(&bench).await;
    let found = docker.inspect_container(&name(key), None).await.expect("there");
    let log = std::path::PathBuf::from(found.log_path.expect("a path"));
    if let Ok(files) = std::fs::read_dir(log.parent().expect("a folder")) {
        let sizes =
            files.flatten().filter(|file| file.file_name().to_string_lossy().contains("-json.log"));
        let bytes: u64 = sizes.map(|file| file.metadata().expect("there").len()).sum();
        assert!(bytes < 1200 << 10, "{bytes} bytes are kept");
    }
}

#[tokio::test]
async fn an_image_is_pulled_and_whom_it_names_can_read_the_secrets() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let image = registry::image(Some("1234:5")).await;
    let mut spec = RunSpec { image, ..bench.script("id -u; cat /run/key") };
    let to = SecretPlace::File { path: "/run/key".into(), mode: 0o400 };
    spec.secrets = vec![Secret { to, value: "hush\n".to_owned() }];
    spec.container.security.not_root = true;
    let key = watched.start(spec).await;
    assert_eq!(watched.end(key).await, Exit::Code(0));
    assert_eq!(watched.output(key).await, "1234\nhush\n");
}

#[tokio::test]
async fn an_image_that_does_not_exist_fails_the_run_with_what_the_registry_says() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let image = registry::image(None).await;
    let spec = RunSpec { image: image.clone(), ..bench.script("exit 0") };
    let key = watched.start(spec.clone()).await;
    let told = watched.wait(key, |state| match state {
        RunNews::Event(RunEvent::Preparing(what)) => Some(what),
        _ => None,
    });
    assert!(told.await.contains(&image));
    match watched.end(key).await {
        Exit::CannotRun(why) => assert!(why.contains(&image) && why.contains("manifest"), "{why}"),
        other => panic!("not told that it cannot run: {other:?}"),
    }
    watched.engine.remove(key).await.expect("removed");
    let mut never = RunSpec { key: bench.script("").key, ..spec };
    never.container.pull = PullPolicy::Never;
    let refused = watched.engine.start(never).await.expect_err("not here").to_string();
    assert!(refused.contains("Never"), "{refused}");
}

/// How often a pull has failed.
fn failed_pulls(news: RunNews) -> Option<u32> {
    match news {
        RunNews::Event(RunEvent::PullFailed(failure)) => Some(failure.tries),
        _ => None,
    }
}

#[tokio::test]
async fn a_registry_that_is_away_is_asked_again_until_it_answers() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let there = Arc::new(AtomicBool::new(false));
    let image = registry::image_while(Some("0"), Arc::clone(&there)).await;
    let key = watched.start(RunSpec { image: image.clone(), ..bench.script("echo here") }).await;
    let failed = |state| match state {
        RunNews::Event(RunEvent::PullFailed(failure)) if failure.tries == 5 => Some(failure),
        _ => None,
    };
    let fifth = watched.wait(key, failed).await;
    assert!(fifth.why.contains(&image) && fifth.again_in_ms == 1600, "{fifth:?}");
    // Others start meanwhile.
    let other = watched.start(bench.script("exit 0")).await;
    assert_eq!(watched.end(other).await, Exit::Code(0));
    there.store(true, Ordering::SeqCst);
    assert_eq!(watched.end(key).await, Exit::Code(0));
    assert_eq!(watched.output(key).await, "here\n");
}

#[tokio::test]
async fn a_pull_that_failed_is_not_tried_again_once_its_run_is_stopped() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let there = Arc::new(AtomicBool::new(false));
    let image = registry::image_while(None, there).await;
    let key = watched.start(RunSpec { image, ..bench.script("exit 0") }).await;
    watched.wait(key, failed_pulls).await;
    watched.engine.stop(key, 600_000).await.expect("stopped");
    assert_eq!(watched.end(key).await, Exit::Signal(15));
    watched.engine.remove(key).await.expect("nothing of it is left");
}

#[tokio::test]
async fn an_image_whose_name_is_not_valid_is_refused_at_once() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let spec = RunSpec { image: "UPPER/Case:1".to_owned(), ..bench.script("exit 0") };
    let refused = bench.engine().start(spec).await.expect_err("no name").to_string();
    assert!(refused.contains("`UPPER/Case:1` is not a valid name of an image"), "{refused}");
}

#[tokio::test]
async fn a_pull_ends_when_its_run_is_stopped() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    // Accepts connections and sends nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let image = format!("127.0.0.1:{port}/slow:1");
    let key = watched.start(RunSpec { image, ..bench.script("exit 0") }).await;
    watched.engine.stop(key, 600_000).await.expect("stopped");
    assert_eq!(watched.end(key).await, Exit::Signal(15));
    assert_eq!(watched.output(key).await, "");
}

#[tokio::test]
async fn a_copy_that_is_being_unpacked_holds_no_stop_up() {
    let mut daemon = Stalled::open();
    let bench = Bench::on(Some(&daemon.socket)).await.expect("it answers");
    let mut watched = Watched::new(&bench);
    let bucket = S3Server::open(std::collections::BTreeMap::new());
    let mut spec = bench.script("exit 0");
    let from = MountSource::S3(bucket.bucket("b"));
    spec.container.mounts = vec![Mount { to: "/data".into(), from, read_only: false }];
    let key = watched.start(spec).await;
    daemon.hears("unpack").await;
    watched.engine.stop(key, 600_000).await.expect("stopped");
    assert_eq!(watched.end(key).await, Exit::Signal(15));
    daemon.hears(&format!("DELETE /containers/{}", name(key))).await;
}

fn gang(framework: Framework, members: Vec<Member>, rank: usize) -> Gang {
    let members_min = u32::try_from(members.len()).expect("few");
    let workload = uuid::Uuid::from_u128(9);
    let may_meet_at_server = false;
    Gang {
        workload,
        framework,
        members,
        rank,
        members_min,
        slots_per_worker: 1,
        may_meet_at_server,
    }
}

#[tokio::test]
async fn networks_of_others_stay_and_one_without_containers_goes() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let docker = docker(&bench).await;
    let mut watched = Watched::new(&bench);
    for by_hand in [false, true] {
        let spec = bench.script("sleep 600");
        let spec = RunSpec { gang: Some(gang(Framework::PyTorch, vec![], 0)), ..spec };
        let (own, others) = (format!("elastane-{}", spec.workload_id), format!("x-{}", spec.key));
        let key = watched.start(spec).await;
        watched.running(key).await;
        let wanted = NetworkCreateRequest { name: others.clone(), ..Default::default() };
        docker.create_network(wanted).await.expect("made");
        let joins = NetworkConnectRequest { container: name(key), ..Default::default() };
        docker.connect_network(&others, joins).await.expect("in it");
        if by_hand {
            let options = RemoveContainerOptionsBuilder::default().force(true).build();
            docker.remove_container(&name(key), Some(options)).await.expect("removed");
        } else {
            watched.engine.stop(key, 0).await.expect("stopped");
        }
        watched.end(key).await;
        watched.engine.remove(key).await.expect("removed");
        assert!(docker.inspect_network(&own, None).await.is_err(), "it went");
        docker.remove_network(&others).await.expect("it stayed");
    }
}

#[tokio::test]
async fn pods_of_a_gang_meet_by_name_in_a_network_that_goes_with_them() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let member =
        |role: &str| Member { role: role.to_owned(), index: 0, node: String::new(), port: 7000 };
    let members = vec![member(MASTER), member(WORKER)];
    let pod = |rank, role: &str, script: &str| RunSpec {
        pod_name: format!("meet-{role}-0"),
        gang: Some(gang(Framework::PyTorch, members.clone(), rank)),
        ..bench.script(script)
    };
    // Without an input that stays open it would say at once that it has nothing more to send, and
    // the other side may take that for the end before it has sent anything.
    let mut master = pod(0, MASTER, "mkfifo /tmp/in; nc -l -p $MASTER_PORT <> /tmp/in");
    master.workload_name = "meet".to_owned();
    let send = "until echo hello | nc $MASTER_ADDR $MASTER_PORT; do sleep 0.1; done";
    let mut worker = pod(1, WORKER, send);
    (worker.workload_name, worker.workload_id) = ("meet".to_owned(), master.workload_id);
    let network = format!("elastane-{}", master.workload_id);
    let (master, worker) = (watched.start(master).await, watched.start(worker).await);
    assert_eq!(watched.output(master).await, "hello\n");
    watched.end(worker).await;
    let docker = docker(&bench).await;
    docker.inspect_network(&network, None).await.expect("there while they are");
    for key in [master, worker] {
        watched.engine.stop(key, 0).await.expect("stopped");
        while watched.engine.remove(key).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    assert!(docker.inspect_network(&network, None).await.is_err(), "it went with them");
}

#[tokio::test]
async fn a_container_has_its_files_user_limits_and_mounts() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut spec = bench.script(
        "id -u; cat /etc/deep/key; cat $ELASTANE_SECRETS_DIR/etc/deep/key; \
         touch /elastane/checkpoint/x /scratch/y && echo written; stat -f -c %T /scratch; \
         touch /ro/z 2> /dev/null || echo read only; cat /ro/given; df /dev/shm | grep -c 65536; \
         echo $TOKEN; cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2> /dev/null",
    );
    let host = tempfile::tempdir().expect("a folder");
    std::fs::write(host.path().join("given"), "given\n").expect("written");
    let file = SecretPlace::File { path: "/etc/deep/key".into(), mode: 0o400 };
    let token = SecretPlace::Variable("TOKEN".to_owned());
    spec.secrets = vec![
        Secret { to: file, value: "hush\n".to_owned() },
        Secret { to: token, value: "t0".to_owned() },
    ];
    let mount = |to: &str, read_only, from| Mount { to: to.into(), from, read_only };
    let path = host.path().to_owned();
    spec.container.mounts = vec![
        mount(
            "/scratch",
            false,
            MountSource::Scratch { bytes_max: Some(1 << 20), in_memory: true },
        ),
        mount("/ro", true, MountSource::HostPath { path, propagation: Default::default() }),
    ];
    spec.container.user.uid = Some(1234);
    let said = printed(&bench, spec).await;
    let want = "1234\nhush\nhush\nwritten\ntmpfs\nread only\ngiven\n1\nt0\n16384\n";
    assert_eq!(said, want);
}

#[tokio::test]
async fn a_folder_that_a_link_took_the_place_of_is_not_mounted() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let host = tempfile::tempdir().expect("a folder");
    let path = host.path().canonicalize().expect("real").join("sets");
    std::os::unix::fs::symlink("/etc", &path).expect("linked");
    let mut spec = bench.script("cat /sets/hostname");
    let from = MountSource::HostPath { path, propagation: Default::default() };
    spec.container.mounts = vec![Mount { to: "/sets".into(), from, read_only: true }];
    let mut watched = Watched::new(&bench);
    let key = watched.start(spec).await;
    match watched.end(key).await {
        Exit::CannotRun(why) => assert!(why.contains("replaced by a link"), "{why}"),
        other => panic!("it had it: {other:?}"),
    }
}

#[tokio::test]
async fn a_root_that_is_read_only_leaves_the_pods_own_folder() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut spec = bench.script(
        "touch /x 2> /dev/null || echo read only; cat $OMPI_MCA_orte_default_hostfile; \
         touch /elastane/checkpoint/x && ls /elastane",
    );
    spec.container.security.read_only_root = true;
    spec.container.user.uid = Some(1234);
    let node = String::new();
    let members = vec![Member { role: WORKER.to_owned(), index: 0, node, port: 7000 }];
    spec.gang = Some(gang(Framework::Mpi, members, 0));
    let host = format!("{}-worker-0 slots=1", spec.workload_name);
    let said = printed(&bench, spec).await;
    assert_eq!(said, format!("read only\n{host}\ncheckpoint\nhostfile\n"));
}

#[tokio::test]
async fn a_copy_of_a_repository_is_the_users_of_the_container_and_ends_with_it() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let server = GitServer::open();
    let copied = |uid, script| {
        let (address, branch) = (server.http(), Some("side".to_owned()));
        let from = MountSource::Git(Repository { address, branch, revision: None, login: None });
        let mut spec = bench.script(script);
        spec.container.mounts = vec![Mount { to: "/a/code".into(), from, read_only: false }];
        spec.container.user.uid = uid;
        spec
    };
    let script = "cd /a/code && cat hello && touch .git/x x && stat -c %u . hello";
    let watched = Watched::new(&bench);
    for (uid, owner) in [(Some(1000), 1000), (None, 0)] {
        let key = watched.start(copied(uid, script)).await;
        assert_eq!(watched.output(key).await, format!("side\n{owner}\n{owner}\n"));
    }
    let left = std::fs::read_dir(bench.folder.path().join("copies")).expect("it was needed");
    // Deleted beside everything else.
    for folder in left.flatten() {
        while folder.path().exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[tokio::test]
async fn what_a_pod_leaves_is_there_for_its_next_run_and_goes_when_it_is_forgotten() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let script = "cat /elastane/checkpoint/at /v/at 2> /dev/null; \
                  echo first > /elastane/checkpoint/at; echo kept > /v/at";
    let mut first = bench.script(script);
    let from = MountSource::Volume { name: "team-a.data".to_owned(), ephemeral: false };
    first.container.mounts = vec![Mount { to: "/v".into(), from, read_only: false }];
    let again = |spec: &RunSpec, pod, generation| {
        let key = RunKey { pod, generation };
        RunSpec { key, ..spec.clone() }
    };
    let pod = first.key.pod;
    for (generation, want) in [(1, ""), (2, "first\nkept\n")] {
        let key = watched.start(again(&first, pod, generation)).await;
        assert_eq!(watched.output(key).await, want);
        watched.end(key).await;
        watched.engine.remove(key).await.expect("removed");
    }
    watched.engine.forget_pod(pod).await.expect("forgotten");
    let key = watched.start(again(&first, pod, 3)).await;
    assert_eq!(watched.output(key).await, "kept\n", "the volume is not the pod's");
    watched.end(key).await;
    watched.engine.remove(key).await.expect("removed");
    watched.engine.remove_volume("team-a.data").await.expect("deleted");
    let other = again(&first, bench.script("").key.pod, 1);
    assert_eq!(watched.output(watched.start(other).await).await, "");
}

#[tokio::test]
async fn what_pods_of_another_installation_keep_is_not_touched() {
    let Some(own) = Bench::on(DockerServer::shared()).await else { return };
    let Some(other) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&other);
    let spec = other.script("echo kept > /elastane/checkpoint/at");
    let key = watched.start(spec.clone()).await;
    watched.end(key).await;
    watched.engine.remove(key).await.expect("removed");
    assert!(!own.engine().kept_pods().await.expect("a list").contains(&key.pod));
    own.engine().forget_pod(key.pod).await.expect("nothing to forget");
    assert_eq!(watched.engine.kept_pods().await.expect("a list"), [key.pod]);
    let mut again = RunSpec { key: RunKey { generation: 2, ..key }, ..spec };
    again.command = Some(["cat", "/elastane/checkpoint/at"].map(str::to_owned).into());
    let again = watched.start(again).await;
    assert_eq!(watched.output(again).await, "kept\n");
    watched.end(again).await;
    watched.engine.remove(again).await.expect("removed");
    watched.engine.forget_pod(key.pod).await.expect("forgotten");
}

/// Output of a command, and its exit status.
async fn said(session: &mut engine::Session) -> (String, Exit) {
    let mut text = Vec::new();
    loop {
        match session.output.recv().await.expect("an end comes last") {
            Output::Stdout(bytes) | Output::Stderr(bytes) => text.extend(bytes),
            Output::End(exit) => return (String::from_utf8(text).expect("text"), exit),
        }
    }
}

fn command(words: &[&str]) -> ExecSpec {
    ExecSpec { command: words.iter().map(ToString::to_string).collect(), ..ExecSpec::default() }
}

#[tokio::test]
async fn a_volume_that_ends_with_its_pod_is_no_other_pods() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    for _ in 0..2 {
        let mut spec = bench.script("cat /v/at 2> /dev/null; echo secret > /v/at; echo end");
        let from = MountSource::Volume { name: "own-0".to_owned(), ephemeral: true };
        spec.container.mounts = vec![Mount { to: "/v".into(), from, read_only: false }];
        let key = watched.start(spec).await;
        assert_eq!(watched.output(key).await, "end\n");
        watched.end(key).await;
    }
}

#[tokio::test]
async fn commands_run_inside_and_their_input_and_end_come_through() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let key = watched.start(bench.script("sleep 600")).await;
    watched.running(key).await;
    let echo =
        ExecSpec { stdin: true, ..command(&["sh", "-c", "cat; echo $JOB_NAME >&2; exit 7"]) };
    let mut session = watched.engine.exec(key, echo).await.expect("a session");
    session.input.send(Input::Bytes(b"typed\n".to_vec())).await.expect("taken");
    session.input.send(Input::Eof).await.expect("taken");
    // The daemon forwards two pipes, in no order.
    let (text, exit) = said(&mut session).await;
    assert!(text.contains("typed\n") && text.contains("job0\n"), "{text}");
    assert_eq!(exit, Exit::Code(7));
    // More than any buffer on the way: input and output do not wait for each other.
    let cat = ExecSpec { stdin: true, ..command(&["cat"]) };
    let mut session = watched.engine.exec(key, cat).await.expect("a session");
    let input = session.input.clone();
    tokio::spawn(async move {
        for _ in 0..128 {
            input.send(Input::Bytes(vec![b'x'; 64 << 10])).await.expect("taken");
        }
        input.send(Input::Eof).await.expect("taken");
    });
    let (text, exit) = said(&mut session).await;
    assert_eq!((text.len(), exit), (128 * (64 << 10), Exit::Code(0)));
    let mut session = watched.engine.exec(key, command(&["no-such-program"])).await.expect("asked");
    assert!(
        matches!(said(&mut session).await.1, Exit::CannotRun(why) if why.contains("no-such-p"))
    );
    let mut left = watched.engine.exec(key, command(&["sleep", "4321"])).await.expect("asked");
    let runs = || async {
        let mut seen = watched.engine.exec(key, command(&["ps"])).await.expect("asked");
        said(&mut seen).await.0.contains("sleep 4321")
    };
    while !runs().await {}
    left.output.close();
    drop(left);
    while runs().await {}
}

#[tokio::test]
async fn a_terminal_is_attached_to_resized_and_typed_into() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let spec = bench.script(
        "trap 'stty size' WINCH; echo ready; while :; do \
                             read -r word && echo got $word; [ \"$word\" = end ] && exit 5; done",
    );
    let key = watched.start(RunSpec { stdin: true, tty: true, ..spec }).await;
    watched.running(key).await;
    watched.said(key, "ready").await;
    let size = engine::TerminalSize { rows: 33, columns: 77 };
    let mut session = watched.engine.attach(key, true, Some(size)).await.expect("attached");
    session.input.send(Input::Bytes(b"word\nend\n".to_vec())).await.expect("taken");
    let (text, exit) = said(&mut session).await;
    assert!(text.contains("33 77") && text.contains("got end"), "{text}");
    assert_eq!(exit, Exit::Code(5));
    let plain = watched.start(bench.script("sleep 600")).await;
    watched.running(plain).await;
    let refused = watched.engine.attach(plain, true, None).await.expect_err("no input").to_string();
    assert!(refused.contains("--stdin"), "{refused}");
}

#[tokio::test]
async fn a_port_is_reached_inside_and_published_outside() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let mut watched = Watched::new(&bench);
    let mut spec = bench.script("while :; do echo served | nc -l -p 8080; done");
    spec.container.ports = vec![Port { container: 8080, host: None }];
    let key = watched.start(spec).await;
    watched.running(key).await;
    let mut stream = loop {
        // It may not listen yet.
        match watched.engine.connect(key, 8080).await {
            Ok(stream) => break stream,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("read");
    assert_eq!(text, "served\n");
    let refused = watched.engine.connect(key, 8081).await.map(|_| ());
    assert!(matches!(refused, Err(engine::Error::Invalid(_))), "nobody listens: {refused:?}");
    let found = docker(&bench).await.inspect_container(&name(key), None).await.expect("there");
    let ports = found.network_settings.and_then(|all| all.ports).expect("ports");
    let outside = ports["8080/tcp"].as_ref().expect("published")[0].clone();
    assert_eq!(outside.host_ip.as_deref(), Some("127.0.0.1"));
    let mut spec = bench.script("sleep 600");
    spec.container.security.host_network = true;
    let key = watched.start(spec).await;
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = server.local_addr().expect("bound").port();
    let refused = watched.engine.connect(key, port).await.map(|_| ());
    assert!(matches!(refused, Err(engine::Error::Invalid(_))), "it is not the run's: {refused:?}");
}

#[tokio::test]
async fn a_program_of_this_machine_stands_for_an_image_that_cannot_be_pulled() {
    let Some(bench) = Bench::on(DockerServer::shared()).await else { return };
    let image = "docker.io/library/lister:2".to_owned();
    let said = printed(&bench, RunSpec { image, command: None, ..bench.script("") }).await;
    assert!(said.contains("a_program_of_this_machine_stands_for_an_image"), "{said}");
}
