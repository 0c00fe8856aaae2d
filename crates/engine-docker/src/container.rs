//! The container of a run. Owns: its labels, environment, devices, mounts and limits. Pure.
//! Does not know when it is created and started.

use std::collections::BTreeMap;

use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, EndpointSettings, HostConfig,
    HostConfigLogConfig, Mount, MountType, MountVolumeOptions, NetworkingConfig,
};
use engine::{
    Error, Framework, Gang, JOB_TOKEN_FILE, JOB_TOKEN_VARIABLE, Member, RunSpec, SecretPlace,
    environment,
};
use engine_fractions::Added;

use crate::daemon::{DaemonProperties, Gpus};
use crate::image::ImageDefaults;
use crate::names::{
    OWN_DIR, POD_ID_LABEL, POD_LABEL, PROJECT_LABEL, RUN_LABEL, WORKLOAD_ID_LABEL, WORKLOAD_LABEL,
};
use crate::owner::Owner;
use crate::user::ContainerUser;
use crate::{container_options, files, names};

/// Data for later runs of a pod.
const CHECKPOINT_DIR: &str = "/elastane/checkpoint";
/// The hostfile of MPI.
const HOSTFILE: &str = "/elastane/hostfile";
/// Where secret files and copies are for processes; containers have them at their own paths.
const SECRETS_VARIABLE: &str = "ELASTANE_SECRETS_DIR";
const MOUNTS_VARIABLE: &str = "ELASTANE_MOUNTS_DIR";

/// CPU shares of one core, and the fewest that the daemon accepts.
const SHARES_PER_CORE: u64 = 1024;
const SHARES_MIN: u64 = 2;
/// Longest host name, in bytes.
const HOST_NAME_BYTES_MAX: usize = 63;

/// The program and the arguments that replace the image's; `None` keeps the image's.
pub(crate) fn command(spec: &RunSpec) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let given = |words: &[String]| {
        let mut words = words.to_vec();
        if let Some(gang) = &spec.gang {
            gang.fill(&mut words, &|member: &Member| names::address(&spec.workload_name, member));
        }
        engine::environment::fill_completion_index(&mut words, spec);
        engine::fill_base_path(&mut words, spec);
        (!words.is_empty()).then_some(words)
    };
    (given(spec.command.as_deref().unwrap_or_default()), given(&spec.args))
}

/// Checks what no container can have.
pub(crate) fn check(spec: &RunSpec, facts: &DaemonProperties) -> Result<(), Error> {
    let (command, args) = command(spec);
    let words = [command.unwrap_or_default(), args.unwrap_or_default()].concat();
    environment::check(spec, &words)?;
    container_options::check(spec)?;
    // The paths of files do not depend on the user.
    files::archives(spec, ContainerUser::of(spec, ""))?;
    if spec.image.trim().is_empty() {
        return Err(Error::Invalid("the image is empty; name one with --image".to_owned()));
    }
    if spec.command.as_ref().is_some_and(|words| words.first().is_some_and(String::is_empty)) {
        let message = "the command is empty; its first word must name a program";
        return Err(Error::Invalid(message.to_owned()));
    }
    let real = spec.devices.iter().any(|device| !device.simulated);
    if real && facts.gpus == Gpus::None {
        return Err(Error::Invalid(format!(
            "{} cannot hand GPUs to containers; install the NVIDIA container toolkit and restart it, \
             or use `elastane up --runtime process`",
            facts.name
        )));
    }
    Ok(())
}

/// The container of a run in a network. `added`: its part of GPUs, of which the search paths are
/// before those of the run or its image.
pub(crate) fn body(
    spec: &RunSpec,
    owner: &Owner,
    network: &str,
    facts: &DaemonProperties,
    (image, added): (&ImageDefaults, Option<&Added>),
) -> Result<ContainerCreateBody, Error> {
    let (entrypoint, cmd) = command(spec);
    let mut env = variables(spec)?;
    if let Some(Added { delivery, .. }) = added {
        for name in delivery.before.keys() {
            if let (false, Some(value)) = (env.contains_key(name), image.variable(name)) {
                env.insert(name.clone(), value.to_owned());
            }
        }
        delivery.complete(&mut env);
    }
    let mut host_name = spec.pod_name.clone();
    host_name.truncate(HOST_NAME_BYTES_MAX);
    // The others look for it by its role and number; its name may be another.
    let member = spec.gang.as_ref().and_then(|gang| gang.members.get(gang.rank));
    let address = member.map(|own| names::address(&spec.workload_name, own));
    let address = address.filter(|address| *address != spec.pod_name);
    let aliases = std::iter::once(spec.pod_name.clone()).chain(address).collect();
    let endpoint = EndpointSettings { aliases: Some(aliases), ..EndpointSettings::default() };
    let mut body = ContainerCreateBody {
        image: Some(spec.image.clone()),
        entrypoint,
        cmd,
        hostname: Some(host_name.trim_end_matches('-').to_owned()),
        env: Some(env.into_iter().map(|(name, value)| format!("{name}={value}")).collect()),
        working_dir: spec.working_dir.as_ref().map(|dir| dir.display().to_string()),
        labels: Some(labels(spec, owner).into_iter().collect()),
        open_stdin: Some(spec.stdin),
        tty: Some(spec.tty),
        host_config: Some(host(spec, owner, network, facts)),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some([(network.to_owned(), endpoint)].into()),
        }),
        ..ContainerCreateBody::default()
    };
    container_options::apply_host_config(&mut body, spec, owner, facts);
    Ok(body)
}

fn labels(spec: &RunSpec, owner: &Owner) -> BTreeMap<String, String> {
    let all = [
        (RUN_LABEL, spec.key.to_string()),
        (POD_LABEL, spec.pod_name.clone()),
        (WORKLOAD_LABEL, spec.workload_name.clone()),
        (WORKLOAD_ID_LABEL, spec.workload_id.to_string()),
        (PROJECT_LABEL, spec.project_name.clone()),
    ];
    let all = all.map(|(name, value)| (name.to_owned(), value));
    owner.labels().into_iter().chain(all).collect()
}

/// The user's variables, defaults that an image of the user does not set, and the platform's,
/// which win.
fn variables(spec: &RunSpec) -> Result<BTreeMap<String, String>, Error> {
    let mut env = spec.env.clone();
    for secret in &spec.secrets {
        match &secret.to {
            SecretPlace::Variable(name) => drop(env.insert(name.clone(), secret.value.clone())),
            // `$ELASTANE_SECRETS_DIR/etc/x` works as in a process.
            SecretPlace::File { .. } => drop(env.insert(SECRETS_VARIABLE.into(), String::new())),
        }
    }
    if engine::copy::copies(&spec.container).next().is_some() {
        env.insert(MOUNTS_VARIABLE.into(), String::new());
    }
    environment::complete(&mut env, spec)?;
    env.insert("ELASTANE_CHECKPOINT_DIR".into(), CHECKPOINT_DIR.into());
    if spec.devices.iter().any(|device| !device.simulated) {
        // A container sees only its own GPUs, counted from 0.
        let own: Vec<_> = (0..spec.devices.len()).map(|at| at.to_string()).collect();
        env.insert("CUDA_VISIBLE_DEVICES".into(), own.join(","));
    }
    if let Some(gang) = &spec.gang {
        let address = |member: &Member| names::address(&spec.workload_name, member);
        gang.complete(&mut env, &address, spec.devices.len());
        if gang.framework == Framework::Mpi {
            env.extend(Gang::HOSTFILE_NAMES.map(|name| (name.to_owned(), HOSTFILE.to_owned())));
        }
        if gang.framework == Framework::ElasticDl {
            env.insert(JOB_TOKEN_VARIABLE.into(), JOB_TOKEN_FILE.into());
        }
    }
    Ok(env)
}

fn host(spec: &RunSpec, owner: &Owner, network: &str, facts: &DaemonProperties) -> HostConfig {
    let shares = (spec.cpu_millis.saturating_mul(SHARES_PER_CORE) / 1000).max(SHARES_MIN);
    let within = spec.container.limits.memory_bytes_max.unwrap_or(u64::MAX);
    let reserved = Some(spec.memory_bytes.min(within))
        .filter(|bytes| *bytes >= container_options::MEMORY_BYTES_MIN);
    let volume = Mount {
        typ: Some(MountType::VOLUME),
        source: Some(names::volume(spec.key.pod)),
        target: Some(OWN_DIR.to_owned()),
        volume_options: Some(MountVolumeOptions {
            labels: Some(
                owner
                    .labels()
                    .into_iter()
                    .chain([(POD_ID_LABEL.to_owned(), spec.key.pod.to_string())])
                    .collect(),
            ),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    };
    let (device_requests, devices) = gpus(spec, facts);
    HostConfig {
        // Reaps orphans and forwards signals.
        init: Some(true),
        network_mode: Some(network.to_owned()),
        cpu_shares: i64::try_from(shares).ok(),
        memory_reservation: reserved.and_then(|bytes| i64::try_from(bytes).ok()),
        mounts: Some(vec![volume]),
        device_requests,
        devices,
        // The readable log driver that every daemon has; Podman has its own limit.
        log_config: (!facts.podman).then(|| HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(owner.log_options(facts.free_bytes.unwrap_or(u64::MAX)).into()),
        }),
        ..HostConfig::default()
    }
}

/// GPUs, or a MIG instance, by the driver's names. Simulated ones are only variables.
fn gpus(
    spec: &RunSpec,
    facts: &DaemonProperties,
) -> (Option<Vec<DeviceRequest>>, Option<Vec<DeviceMapping>>) {
    let real = spec.devices.iter().filter(|device| !device.simulated);
    let uuids: Vec<String> = real.map(|device| device.uuid.clone()).collect();
    let by_name = |uuid: &String| format!("nvidia.com/gpu={uuid}");
    let request = |driver: &str, ids, capabilities| DeviceRequest {
        driver: Some(driver.to_owned()),
        device_ids: Some(ids),
        capabilities,
        ..DeviceRequest::default()
    };
    match (uuids.is_empty(), facts.gpus) {
        (true, _) | (_, Gpus::None) => (None, None),
        (_, Gpus::Requests) => {
            let gpu = Some(vec![vec!["gpu".to_owned()]]);
            (Some(vec![request("nvidia", uuids, gpu)]), None)
        }
        (_, Gpus::Cdi) if facts.podman => {
            let device = |uuid| DeviceMapping {
                path_on_host: Some(by_name(uuid)),
                ..DeviceMapping::default()
            };
            (None, Some(uuids.iter().map(device).collect()))
        }
        (_, Gpus::Cdi) => {
            (Some(vec![request("cdi", uuids.iter().map(by_name).collect(), None)]), None)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use engine::{Device, MASTER, RunKey, Secret, WORKER};
    use uuid::Uuid;

    use super::*;

    pub(crate) fn spec() -> RunSpec {
        RunSpec {
            key: RunKey { pod: Uuid::from_u128(7), generation: 2 },
            workload_id: Uuid::from_u128(3),
            pod_name: "train-0-2".into(),
            ..engine_conformance::spec("ubuntu")
        }
    }

    fn facts(gpus: Gpus, podman: bool) -> DaemonProperties {
        DaemonProperties { name: "Docker 1".into(), gpus, podman, ..DaemonProperties::default() }
    }

    fn made(spec: &RunSpec, facts: &DaemonProperties) -> (ContainerCreateBody, HostConfig) {
        made_with(spec, facts, None)
    }

    fn made_with(
        spec: &RunSpec,
        facts: &DaemonProperties,
        added: Option<&Added>,
    ) -> (ContainerCreateBody, HostConfig) {
        let owner = crate::owner::tests::owner();
        let image = ImageDefaults::default();
        let mut body = body(spec, &owner, "net", facts, (&image, added)).expect("a container");
        let host = body.host_config.take().expect("always there");
        (body, host)
    }

    fn with_gpu(simulated: bool) -> RunSpec {
        let uuid = "GPU-1".to_owned();
        let (memory_bytes, memory) = (16 << 30, engine::Bounds::of(8 << 30));
        let device = Device { index: 3, uuid, simulated, millis: 500, memory_bytes, memory };
        RunSpec { devices: vec![device], ..spec() }
    }

    #[test]
    fn a_command_replaces_the_entrypoint_and_arguments_what_follows_it() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let none = facts(Gpus::None, false);
        let (body, _) = made(&spec(), &none);
        assert_eq!((body.entrypoint, body.cmd), (None, None));
        let args = RunSpec { args: words(&["--fast"]), ..spec() };
        let (body, _) = made(&args, &none);
        assert_eq!((body.entrypoint, body.cmd), (None, Some(words(&["--fast"]))));
        let both = RunSpec { command: Some(words(&["python", "-u"])), ..args };
        let (body, _) = made(&both, &none);
        assert_eq!(body.entrypoint, Some(words(&["python", "-u"])));
        assert_eq!(body.cmd, Some(words(&["--fast"])));
    }

    #[test]
    fn a_gpu_is_handed_over_as_the_daemon_knows_it_and_counted_from_zero() {
        let visible = "CUDA_VISIBLE_DEVICES=0".to_owned();
        for (facts, driver, id) in [
            (facts(Gpus::Requests, false), "nvidia", "GPU-1"),
            (facts(Gpus::Cdi, false), "cdi", "nvidia.com/gpu=GPU-1"),
        ] {
            let (body, host) = made(&with_gpu(false), &facts);
            let requests = host.device_requests.expect("a request");
            assert_eq!(requests[0].driver.as_deref(), Some(driver));
            assert_eq!(requests[0].device_ids, Some(vec![id.to_owned()]));
            assert!(body.env.expect("variables").contains(&visible));
        }
        let (_, host) = made(&with_gpu(false), &facts(Gpus::Cdi, true));
        let path = host.devices.expect("a device")[0].path_on_host.clone();
        assert_eq!((path.as_deref(), host.device_requests), (Some("nvidia.com/gpu=GPU-1"), None));
    }

    #[test]
    fn a_mig_instance_is_handed_over_as_a_gpu_is() {
        let mut spec = with_gpu(false);
        spec.devices[0].uuid = "MIG-7".to_owned();
        let mut added = Added { fraction: Default::default(), delivery: Default::default() };
        added.delivery.variables.insert("CUDA_VISIBLE_DEVICES".to_owned(), "MIG-7".to_owned());
        let asked = |facts| {
            let (body, host) = made_with(&spec, &facts, Some(&added));
            let env = body.env.expect("variables");
            assert!(env.contains(&"CUDA_VISIBLE_DEVICES=MIG-7".to_owned()), "{env:?}");
            let paths = host.devices.unwrap_or_default().into_iter();
            let ids = host.device_requests.unwrap_or_default().into_iter();
            let paths = paths.filter_map(|device| device.path_on_host);
            ids.flat_map(|one| one.device_ids.unwrap_or_default()).chain(paths).collect::<Vec<_>>()
        };
        assert_eq!(asked(facts(Gpus::Requests, false)), ["MIG-7"]);
        assert_eq!(asked(facts(Gpus::Cdi, false)), ["nvidia.com/gpu=MIG-7"]);
        assert_eq!(asked(facts(Gpus::Cdi, true)), ["nvidia.com/gpu=MIG-7"]);
    }

    #[test]
    fn a_simulated_gpu_is_told_and_not_asked_for() {
        let none = facts(Gpus::None, false);
        check(&with_gpu(true), &none).expect("needs no toolkit");
        let spec = RunSpec { resized_from: Some(2000), ..with_gpu(true) };
        let (body, host) = made(&spec, &none);
        assert_eq!((host.device_requests, host.devices), (None, None));
        let env = body.env.expect("variables");
        for told in [
            "ELASTANE_SIMULATED_GPUS=1",
            "CUDA_VISIBLE_DEVICES=3",
            "GPU_PORTION=0.5",
            "ELASTANE_RESIZED_FROM=2",
        ] {
            assert!(env.contains(&told.to_owned()), "{told}: {env:?}");
        }
        let refused = check(&with_gpu(false), &none).expect_err("no toolkit").to_string();
        assert!(refused.contains("toolkit") && refused.contains("--runtime process"), "{refused}");
    }

    #[test]
    fn a_limit_of_cores_may_be_more_than_this_machine_has() {
        let mut spec = spec();
        spec.container.limits.cpu_millis_max = Some(3_000_000);
        let (_, host) = made(&spec, &facts(Gpus::None, false));
        assert_eq!((host.cpu_period, host.cpu_quota), (Some(100_000), Some(300_000_000)));
        assert_eq!(host.nano_cpus, None, "the daemon refuses more than there are");
    }

    #[test]
    fn pods_of_a_gang_are_reached_by_the_names_they_have_in_their_network() {
        let member = |role: &str, index| Member {
            role: role.to_owned(),
            index,
            node: String::new(),
            port: 7000,
        };
        let gang = Gang {
            workload: Uuid::nil(),
            framework: Framework::PyTorch,
            members: vec![member(MASTER, 0), member(WORKER, 0)],
            rank: 1,
            members_min: 2,
            may_meet_at_server: false,
            slots_per_worker: 1,
        };
        let mut worker = RunSpec { pod_name: "train-worker-0".into(), gang: Some(gang), ..spec() };
        let (body, host) = made(&worker, &facts(Gpus::None, false));
        assert!(body.env.expect("variables").contains(&"MASTER_ADDR=train-master-0".to_owned()));
        let networks = body.networking_config.and_then(|all| all.endpoints_config);
        let aliases = networks.expect("networks")["net"].aliases.clone();
        assert_eq!(aliases, Some(vec!["train-worker-0".to_owned()]));
        assert_eq!(host.network_mode.as_deref(), Some("net"));
        worker.args = vec!["$(LWS_LEADER_ADDRESS)".to_owned()];
        worker.gang.as_mut().expect("a gang").framework = Framework::Lws;
        assert_eq!(command(&worker).1, Some(vec!["train-master-0".to_owned()]));
    }

    #[test]
    fn the_platform_wins_over_the_user_and_secrets_are_variables_too() {
        let mut spec = spec();
        spec.env = [("ELASTANE_RUN".to_owned(), "x".to_owned())].into();
        let place = SecretPlace::Variable("TOKEN".to_owned());
        spec.secrets = vec![Secret { to: place, value: "hush".to_owned() }];
        let (body, _) = made(&spec, &facts(Gpus::None, false));
        let env = body.env.expect("variables");
        assert!(env.contains(&format!("ELASTANE_RUN={}", spec.key)), "{env:?}");
        assert!(env.contains(&"TOKEN=hush".to_owned()), "{env:?}");
        let labels = body.labels.expect("labels");
        assert_eq!(labels.get(RUN_LABEL), Some(&spec.key.to_string()));
    }

    #[test]
    fn what_no_container_can_be_made_of_is_refused() {
        let none = facts(Gpus::None, false);
        let no_image = RunSpec { image: " ".into(), ..spec() };
        assert!(check(&no_image, &none).expect_err("no image").to_string().contains("--image"));
        let program_error = RunSpec { command: Some(vec![String::new()]), ..spec() };
        assert!(check(&program_error, &none).is_err());
        let mut outside = spec();
        let to = SecretPlace::File { path: "/../x".into(), mode: 0o400 };
        outside.secrets = vec![Secret { to, value: String::new() }];
        let refused = check(&outside, &none).expect_err("it leads elsewhere").to_string();
        assert!(refused.contains("`/../x` of a file is not allowed"), "{refused}");
        let mut hidden = spec();
        let from = engine::MountSource::Scratch { bytes_max: None, in_memory: false };
        let to = "/elastane/x".into();
        hidden.container.mounts = vec![engine::Mount { to, from, read_only: false }];
        assert!(check(&hidden, &none).expect_err("ours").to_string().contains("elsewhere"));
        let mut group = spec();
        group.container.user.gid = Some(7);
        let refused = check(&group, &none).expect_err("root would be its user").to_string();
        assert!(refused.contains("security.runAsGid") && refused.contains("runAsUid"), "{refused}");
        check(&spec(), &none).expect("the image's own command");
    }
}
