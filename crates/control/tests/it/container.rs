//! Container settings of pods, on their way to a run.

use engine::{Exit, RunEvent};
use spec::{
    Container, Limits, Mount, MountSource, Port, Propagation, PullPolicy, Repository, Seccomp,
    SecretTo, SecretUse, Security, User, WorkloadSpec,
};
use view::Phase;

use crate::secrets::credential;
use crate::world::{World, nodes, training, with};

fn mount(to: &str, from: MountSource) -> Mount {
    Mount { to: to.into(), from, read_only: true }
}

fn git(branch: Option<&str>) -> MountSource {
    let repository = "https://git.example/x".to_owned();
    let (branch, revision) = (branch.map(str::to_owned), Some("v1".to_owned()));
    MountSource::Git(Repository { address: repository, branch, revision, login: None })
}

/// Something of everything.
fn everything() -> Container {
    let propagation = Propagation::HostToContainer;
    Container {
        mounts: vec![
            mount("/host", MountSource::HostPath { path: "/etc".into(), propagation }),
            mount("/vol", MountSource::Volume { name: "p1-data".into(), ephemeral: true }),
            mount("/nfs", MountSource::Nfs { server: "nas".into(), path: "/export".into() }),
            mount("/tmp2", MountSource::Scratch { bytes_max: Some(9), in_memory: true }),
            mount("/code", git(Some("main"))),
        ],
        ports: vec![Port { container: 80, host: Some(8080) }, Port { container: 81, host: None }],
        user: User { uid: Some(7), gid: Some(8), groups: vec![9] },
        limits: Limits { cpu_millis_max: Some(5000), memory_bytes_max: Some(1 << 30) },
        shared_memory_large: true,
        pull: PullPolicy::Always,
        security: Security {
            capabilities: vec!["SYS_PTRACE".to_owned()],
            privileged: true,
            privilege_escalation: Some(false),
            not_root: true,
            read_only_root: true,
            host_network: true,
            host_ipc: true,
            seccomp: Some(Seccomp::Unconfined),
        },
    }
}

fn around(container: Container) -> WorkloadSpec {
    with(training("t", 1), |pod| pod.container = container)
}

#[tokio::test]
async fn a_run_gets_what_was_asked_for_also_after_a_crash() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    let asked = with(around(everything()), |pod| (pod.stdin, pod.tty) = (true, true));
    w.submit(1, asked).await;
    w.phase("t", Phase::Running).await;
    assert_eq!(w.engine.run_of("t").container, everything());
    w.crash().await;
    w.start().await;
    let id = w.id("t");
    w.handle.suspend("ann", id).await.unwrap();
    w.phase("t", Phase::Stopped).await;
    w.handle.resume("ann", id).await.unwrap();
    w.phase("t", Phase::Running).await;
    let run = w.engine.run_of("t");
    assert_eq!((run.container, run.stdin, run.tty), (everything(), true, true));
}

#[tokio::test]
async fn logins_reach_who_pulls_and_copies_and_nobody_else() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let object = credential(&w, r#"{"username":"bob","password":"hush","pw2":"other"}"#).await;
    let of = |to| SecretUse { object: object.clone(), named: "keys".to_owned(), key: None, to };
    let repository = |mount: &str, password_key: &str| SecretTo::Copy {
        mount: mount.into(),
        user_key: "username".to_owned(),
        password_key: password_key.to_owned(),
    };
    let mounts = vec![mount("/a", git(None)), mount("/b", git(None)), mount("/c", git(None))];
    let secrets = vec![
        of(SecretTo::Registry("ghcr.io".to_owned())),
        of(repository("/a", "password")),
        of(repository("/b", "pw2")),
    ];
    let container = Container { mounts, ..Container::default() };
    w.submit(1, with(around(container), |pod| pod.secrets = secrets)).await;
    w.phase("t", Phase::Running).await;
    let run = w.engine.run_of("t");
    assert!(run.secrets.is_empty() && !format!("{run:?}").contains("hush"), "{run:?}");
    let registry = run.registry.unwrap();
    assert_eq!((registry.registry.as_str(), registry.login.password.as_str()), ("ghcr.io", "hush"));
    let logins = run.container.mounts.iter().map(|mount| match &mount.from {
        MountSource::Git(Repository { login, .. }) => {
            login.as_ref().map(|login| login.password.clone())
        }
        _ => None,
    });
    let want = [Some("hush".to_owned()), Some("other".to_owned()), None];
    assert_eq!(logins.collect::<Vec<_>>(), want);
}

#[tokio::test]
async fn what_would_be_an_option_of_another_program_is_refused() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let from = |from| vec![mount("/x", from)];
    let cloned = |repository: &str, revision: Option<&str>| {
        let (repository, revision) = (repository.to_owned(), revision.map(str::to_owned));
        from(MountSource::Git(Repository {
            address: repository,
            branch: None,
            revision,
            login: None,
        }))
    };
    let nfs = |server: &str, path: &str| {
        from(MountSource::Nfs { server: server.to_owned(), path: path.to_owned() })
    };
    let host = |path: &str| {
        from(MountSource::HostPath { path: path.into(), propagation: Propagation::None })
    };
    let scratch = || MountSource::Scratch { bytes_max: None, in_memory: false };
    for (mounts, want) in [
        (cloned("file:///etc", None), "storage.git"),
        (cloned("/var/lib/elastane", None), "storage.git"),
        (cloned("ssh://git@host/x", None), "storage.git"),
        (cloned("ext::sh -c true", None), "storage.git"),
        (cloned("https://-oProxy/x", None), "storage.git"),
        (cloned("https://bob:hush@git.example/x", None), "holds a login"),
        (cloned("https://git.example/x", Some("--upload-pack=x")), "storage.git"),
        (nfs("nas,addr=1.2.3.4", "/x"), "storage.nfs"),
        (nfs("nas", "/x,rw"), "storage.nfs"),
        (host("/data/../etc"), "storage.hostPath"),
        (host("data"), "storage.hostPath"),
        (vec![mount("/", scratch())], "storage.emptyDirVolume"),
        (vec![mount("/a", scratch()), mount("/a", scratch())], "both be /a"),
    ] {
        let spec = around(Container { mounts, ..Container::default() });
        let why = w.handle.submit(1, spec, false).await.unwrap_err().to_string();
        assert!(why.contains(want), "{why}");
    }
    for (cpu_millis_max, memory_bytes_max, want) in [
        (Some(50), None, "compute.cpuCoreLimit: the CPU limit is below the CPU request"),
        (Some(9), None, "compute.cpuCoreLimit: too little for any program; at least 0.01 cores"),
        (None, Some(10), "compute.cpuMemoryLimit: 10B is too little for any program; at least 4Mi"),
    ] {
        let limits = Limits { cpu_millis_max, memory_bytes_max };
        let why =
            w.handle.submit(1, around(Container { limits, ..Container::default() }), false).await;
        assert_eq!(why.unwrap_err().to_string().find(want), Some(0), "{want}");
    }
    let ports = vec![Port { container: 80, host: None }; 2];
    let why = w.handle.submit(1, around(Container { ports, ..Container::default() }), false).await;
    assert!(why.unwrap_err().to_string().contains("twice"));
}

#[tokio::test]
async fn limits_that_are_not_kept_are_told_and_one_that_kills_is_named() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let limits = Limits { cpu_millis_max: Some(2500), memory_bytes_max: Some(1 << 40) };
    let spec = around(Container { limits, ..Container::default() });
    w.submit(1, WorkloadSpec { backoff_limit: 0, ..spec }).await;
    w.phase("t", Phase::Running).await;
    let key = w.engine.run_of("t").key;
    w.engine.tell(key, RunEvent::Struck(2));
    w.engine.tell(key, RunEvent::GpuUnlimited("its program is static".to_owned()));
    w.engine.end(key, Exit::OutOfMemory);
    let failed = w.phase("t", Phase::Failed).await;
    let said = w.events(failed.id).await;
    let told: Vec<_> =
        said.iter().filter_map(|event| Some((event.code.as_deref()?, &*event.message))).collect();
    let not_kept = ("E206", "it may use more than its limit of 2.5 cores: this is a test");
    let killed = "out of memory: killed because it had more than its limit of 1TiB; submit it again with \
                  a larger one (--memory-limit, --cpu-memory-limit)";
    let struck = "out of memory: 2 of its processes killed because it had more than its limit of 1TiB; the \
                  main one goes on";
    let gpu = ("E206", "it may use more than its part of a GPU: its program is static");
    assert_eq!(
        told,
        [not_kept, ("E205", struck), gpu, ("E205", killed)],
        "of memory it keeps them"
    );
    assert_eq!(failed.pods[0].last_exit.as_deref(), Some(killed));
}
