//! Lowers the flags of container and pod options, for both dialects. Pure.

use api_types::{
    HostPathInstance, ImagePullPolicy, NfsInstance, Port, PvcInstance, Security, Storage,
};

use crate::args::pod_flags::{Common, Opened, ServiceType, Timing, V1, V2, opened};
use crate::intent::{Access, ContainerOptions};

/// Takes the ports that are forwarded to the submitting machine out of those of the workload;
/// `None` if none are. Ports of ingress lose their external number.
pub(super) fn ports(typed: &mut V1, notes: &mut Vec<String>) -> Result<Option<Access>, String> {
    if typed.service_type.is_some() && typed.port.is_empty() {
        return Err("--service-type: say of which port, with --port EXTERNAL:INTERNAL".to_owned());
    }
    if typed.service_type != Some(ServiceType::PortForward) {
        if typed.address.is_some() {
            let why = "--address is where ports are brought on this machine; add --service-type";
            return Err(format!("{why} portforward"));
        }
        let outside = |port: &&mut Port| port.external != port.container;
        for port in typed.port.iter_mut().filter(outside) {
            if typed.service_type == Some(ServiceType::Ingress)
                && let (Some(outer), Some(inner)) = (port.external.take(), port.container)
            {
                let why = "has an address of its own in a browser";
                notes.push(format!("Port {outer} is not used: port {inner} {why}"));
            }
        }
        return Ok(None);
    }
    let number = |port: Option<u32>| port.and_then(|port| u16::try_from(port).ok());
    let pair = |port: Port| Some((number(port.external)?, number(port.container)?));
    let ports = std::mem::take(&mut typed.port).into_iter().filter_map(pair).collect();
    let address = typed.address.take().unwrap_or_else(|| "localhost".to_owned());
    Ok(Some(Access { ports, address, ..Access::default() }))
}

pub(super) fn v1(typed: V1) -> Result<ContainerOptions, String> {
    let mut around = common(typed.common);
    for volume in typed.volume {
        let (path, mount_path) = (Some(volume.from), Some(volume.to));
        let read_only = Some(volume.read_only);
        match volume.server.or_else(|| typed.nfs_server.clone()) {
            server @ Some(_) => {
                let one =
                    NfsInstance { server, path, mount_path, read_only, ..NfsInstance::default() };
                around.storage.nfs.get_or_insert_default().push(one);
            }
            None => {
                let seen = typed.mount_propagation.then(|| "HostToContainer".to_owned());
                let one = HostPathInstance {
                    path,
                    mount_path,
                    read_only,
                    mount_propagation: seen,
                    ..HostPathInstance::default()
                };
                around.storage.host_path.get_or_insert_default().push(one);
            }
        }
    }
    around.storage.pvc = some([typed.pvc, typed.pvc_exists, typed.pvc_new].concat());
    for port in typed.port {
        around.open(opened(port, typed.service_type).map_err(|why| format!("--port: {why}"))?);
    }
    around.cpu_millis_max = typed.cpu_limit;
    around.memory_max = typed.memory_limit;
    around.delete_after_s = typed.ttl_after_finish;
    timing(&mut around, typed.timing);
    around.security.capabilities = some(typed.add_capability);
    if typed.prevent_privilege_escalation {
        around.security.allow_privilege_escalation = Some(false);
    }
    if typed.always_pull_image {
        around.pull = Some(ImagePullPolicy::Always);
    }
    Ok(around)
}

impl ContainerOptions {
    fn open(&mut self, what: Opened) {
        match what {
            Opened::Port(port) => self.ports.push(port),
            Opened::Url(url) => self.urls.push(url),
        }
    }
}

pub(super) fn v2(typed: V2) -> ContainerOptions {
    let mut around = common(typed.common);
    let storage = &mut around.storage;
    storage.pvc = some([typed.new_pvc, typed.existing_pvc].concat());
    typed.port.into_iter().for_each(|port| around.open(port));
    around.urls.extend(typed.external_url);
    around.cpu_millis_max = typed.cpu_core_limit;
    around.memory_max = typed.cpu_memory_limit;
    around.security = Security {
        capabilities: some(typed.capability),
        privileged: typed.privileged,
        uid_gid_source: typed.user_group_source,
        seccomp_profile_type: typed.seccomp_profile,
        ..around.security
    };
    around
}

/// Mounts that exclude the claims of the workers from the master; each has the path of a claim.
pub(super) fn none_of(claims: Option<&[PvcInstance]>) -> Option<Vec<PvcInstance>> {
    let gone = |claim: &PvcInstance| PvcInstance {
        path: claim.path.clone(),
        exclude: Some(true),
        ..PvcInstance::default()
    };
    claims.map(|claims| claims.iter().map(gone).collect())
}

/// Label that turns the simulated driver of a workload on or off.
const SIMULATED_DRIVER: &str = "elastane/simulated-driver";

/// The labels of a workload.
pub(super) fn labels(mut typed: Vec<(String, String)>, of: &Common) -> Vec<(String, String)> {
    if let Some(wanted) = of.simulated_driver {
        typed.push((SIMULATED_DRIVER.to_owned(), wanted.to_string()));
    }
    typed
}

fn common(typed: Common) -> ContainerOptions {
    ContainerOptions {
        storage: Storage {
            git: some(typed.git_sync),
            s3: some(typed.s3),
            nfs: some(typed.nfs),
            host_path: some(typed.host_path),
            empty_dir_volume: some(typed.empty_dir_volume),
            config_map_volume: some(typed.configmap_map_volume),
            ..Storage::default()
        },
        security: Security {
            run_as_uid: typed.run_as_uid.map(Into::into),
            run_as_gid: typed.run_as_gid.map(Into::into),
            run_as_non_root: typed.run_as_non_root,
            supplemental_groups: typed.supplemental_groups,
            host_ipc: typed.host_ipc,
            host_network: typed.host_network,
            allow_privilege_escalation: typed.allow_privilege_escalation,
            ..Security::default()
        },
        shared_memory_large: typed.large_shm,
        pull: typed.image_pull_policy.map(Into::into),
        home: typed.create_home_dir,
        ..ContainerOptions::default()
    }
}

fn some<T>(all: Vec<T>) -> Option<Vec<T>> {
    Some(all).filter(|all| !all.is_empty())
}

/// Sets the scheduling gates, the preemption delay and the time limit.
pub(super) fn timing(around: &mut ContainerOptions, typed: Timing) {
    around.gates = gates(typed.scheduling_gate);
    around.preemption_delay_s = typed.preemption_delay;
    around.time_limit_s = typed.time_limit;
}

/// Names of the gates; `''` = none.
pub(super) fn gates(typed: Vec<String>) -> Option<Vec<String>> {
    let named = |typed: Vec<String>| typed.into_iter().filter(|gate| !gate.is_empty()).collect();
    (!typed.is_empty()).then(|| named(typed))
}
