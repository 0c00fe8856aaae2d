//! What pods need around them, between the engine's types and the storage types, both ways.

use std::path::PathBuf;

use engine::{
    Bucket, Container, Limits, Mount, MountSource, Port, Propagation, PullPolicy, Repository,
    Seccomp, Security, User,
};
use store::{ContainerBody, MountBody, MountSourceBody, SecurityBody};

use crate::Error;

words!(Propagation, propagation_word, propagation, "mount propagation":
    None = "none", HostToContainer = "host-to-container", Bidirectional = "bidirectional");
words!(PullPolicy, pull_word, pull, "pull policy":
    Always = "always", IfNotPresent = "if-not-present", Never = "never");
words!(Seccomp, seccomp_word, seccomp, "filter of system calls":
    RuntimeDefault = "runtime-default", Unconfined = "unconfined");

pub(super) fn body(container: &Container) -> ContainerBody {
    let Container { mounts, ports, user, limits, shared_memory_large, pull, security } = container;
    let pull = (*pull != PullPolicy::default()).then(|| pull_word(*pull).to_owned());
    ContainerBody {
        mounts: mounts.iter().map(mount_body).collect(),
        ports: ports.iter().map(|port| (port.container, port.host)).collect(),
        uid: user.uid,
        gid: user.gid,
        groups: user.groups.clone(),
        cpu_millis_max: limits.cpu_millis_max,
        memory_bytes_max: limits.memory_bytes_max,
        shared_memory_large: *shared_memory_large,
        pull,
        security: SecurityBody {
            capabilities: security.capabilities.clone(),
            privileged: security.privileged,
            privilege_escalation: security.privilege_escalation,
            not_root: security.not_root,
            read_only_root: security.read_only_root,
            host_network: security.host_network,
            host_ipc: security.host_ipc,
            seccomp: security.seccomp.map(|filter| seccomp_word(filter).to_owned()),
        },
    }
}

pub(super) fn from_body(body: ContainerBody) -> Result<Container, Error> {
    let SecurityBody {
        capabilities,
        privileged,
        privilege_escalation,
        not_root,
        read_only_root,
        host_network,
        host_ipc,
        seccomp: filter,
    } = body.security;
    Ok(Container {
        mounts: body.mounts.into_iter().map(mount).collect::<Result<_, _>>()?,
        ports: body.ports.into_iter().map(|(container, host)| Port { container, host }).collect(),
        user: User { uid: body.uid, gid: body.gid, groups: body.groups },
        limits: Limits {
            cpu_millis_max: body.cpu_millis_max,
            memory_bytes_max: body.memory_bytes_max,
        },
        shared_memory_large: body.shared_memory_large,
        pull: body.pull.as_deref().map(pull).transpose()?.unwrap_or_default(),
        security: Security {
            capabilities,
            privileged,
            privilege_escalation,
            not_root,
            read_only_root,
            host_network,
            host_ipc,
            seccomp: filter.as_deref().map(seccomp).transpose()?,
        },
    })
}

fn mount_body(mount: &Mount) -> MountBody {
    let text = |path: &PathBuf| path.display().to_string();
    let from = match &mount.from {
        MountSource::HostPath { path, propagation } => MountSourceBody::HostPath {
            path: text(path),
            propagation: propagation_word(*propagation).to_owned(),
        },
        MountSource::Volume { name, ephemeral } => {
            MountSourceBody::Volume { name: name.clone(), ephemeral: *ephemeral }
        }
        MountSource::Nfs { server, path } => {
            MountSourceBody::Nfs { server: server.clone(), path: path.clone() }
        }
        MountSource::Scratch { bytes_max, in_memory } => {
            MountSourceBody::Scratch { bytes_max: *bytes_max, in_memory: *in_memory }
        }
        // The login is a secret of the pod, which keeps a reference to it.
        MountSource::Git(Repository { address, branch, revision, login: _ }) => {
            MountSourceBody::Git {
                repository: address.clone(),
                branch: branch.clone(),
                revision: revision.clone(),
            }
        }
        MountSource::S3(Bucket { name, address, login: _ }) => {
            MountSourceBody::S3 { bucket: name.clone(), address: address.clone() }
        }
    };
    MountBody { to: text(&mount.to), read_only: mount.read_only, from }
}

fn mount(body: MountBody) -> Result<Mount, Error> {
    let from = match body.from {
        MountSourceBody::HostPath { path, propagation: word } => {
            MountSource::HostPath { path: path.into(), propagation: propagation(&word)? }
        }
        MountSourceBody::Volume { name, ephemeral } => MountSource::Volume { name, ephemeral },
        MountSourceBody::Nfs { server, path } => MountSource::Nfs { server, path },
        MountSourceBody::Scratch { bytes_max, in_memory } => {
            MountSource::Scratch { bytes_max, in_memory }
        }
        MountSourceBody::Git { repository, branch, revision } => {
            MountSource::Git(Repository { address: repository, branch, revision, login: None })
        }
        MountSourceBody::S3 { bucket, address } => {
            MountSource::S3(Bucket { name: bucket, address, login: None })
        }
    };
    Ok(Mount { to: body.to.into(), from, read_only: body.read_only })
}
