//! Which container settings a process can have. Owns: rejecting all others, by field.
//!
//! A process sees the machine's own file system: a mount would need a mount point, which may be a
//! new folder on the machine, visible to all and left behind. A private root (user and mount
//! namespace) would hide it, but not every machine allows one, and a shell outside the run would
//! see another file system. So settings that change nothing are accepted (a host folder at its own
//! path, a port under its own number, the machine's network and memory), as are copies and secret
//! files, which a run finds by a variable; everything else is rejected.

use std::path::Path;

use engine::{Container, Error, IsolationKind, Mount, MountSource, Port, PullPolicy, Seccomp};
use rustix::process::{getgid, getuid};

use crate::isolation::Account;

/// Why a process has no other user.
const OF_SUBMITTER: &str = "a process runs as the account of its submitter";

/// Rejects what a process cannot have.
///
/// # Errors
/// The field, why, and what to do.
pub(crate) fn check(
    container: &Container,
    account: Option<&Account>,
    isolation: IsolationKind,
) -> Result<(), Error> {
    // Limits apply where the machine supports them; capabilities say where it does not.
    let Container { mounts, ports, user, limits: _, shared_memory_large: _, pull, security } =
        container;
    mounts.iter().try_for_each(mount)?;
    no_copy_in_another(container)?;
    ports.iter().try_for_each(port)?;
    // `None` if each run has an account, and this one's is not known yet.
    let ids = match (account, isolation) {
        (Some(account), _) => Some((account.uid, account.gid)),
        (None, IsolationKind::Accounts) => None,
        (None, _) => Some((getuid().as_raw(), getgid().as_raw())),
    };
    let other = match isolation {
        IsolationKind::Accounts => OF_SUBMITTER,
        _ => "processes run as the user of the server",
    };
    let gains = security.privilege_escalation == Some(true)
        && matches!(isolation, IsolationKind::Namespaces | IsolationKind::Landlock);
    let security_fields = [
        (
            "security.runAsUid",
            user.uid.is_some_and(|id| ids.is_some_and(|(uid, _)| id != uid)),
            other,
        ),
        (
            "security.runAsGid",
            user.gid.is_some_and(|id| ids.is_some_and(|(_, gid)| id != gid)),
            other,
        ),
        ("security.supplementalGroups", !user.groups.is_empty(), other),
        (
            "security.runAsNonRoot",
            security.not_root && ids.is_some_and(|(uid, _)| uid == 0),
            "its account is root",
        ),
        (
            "security.allowPrivilegeEscalation",
            gains,
            "what keeps runs apart here lets no program gain rights",
        ),
        ("security.capabilities", !security.capabilities.is_empty(), "a process is given none"),
        ("security.privileged", security.privileged, "a process has the rights of the server"),
        (
            "security.readOnlyRootFilesystem",
            security.read_only_root,
            "a process has no file system of its own",
        ),
        (
            "security.seccompProfileType",
            security.seccomp == Some(Seccomp::RuntimeDefault),
            "system calls of processes are not filtered",
        ),
        (
            "imagePullPolicy",
            *pull == PullPolicy::Always,
            "images are names in a table, and nothing is pulled",
        ),
    ];
    match security_fields.into_iter().find(|(_, asked, _)| *asked) {
        Some((field, _, why)) => refused(field, why),
        None => Ok(()),
    }
}

/// Rejects a user that runs of the submitter cannot have.
pub(crate) fn refused_uid() -> Result<(), Error> {
    refused("security.runAsUid", OF_SUBMITTER)
}

/// Rejects a copy inside another.
fn no_copy_in_another(container: &Container) -> Result<(), Error> {
    let nested = engine::copy::copies(container).find_map(|(inner, origin)| {
        let around = |(outer, _): &(&Path, _)| inner != *outer && inner.starts_with(outer);
        let outer = engine::copy::copies(container).find(around).map(|(outer, _)| outer)?;
        Some((inner.display(), origin.field(), outer.display()))
    });
    if let Some((inner, field, outer)) = nested {
        let why = format!(
            "a process has no file system of its own in which a copy could be {inner}, inside \
             another at {outer}; give it another place"
        );
        return refused(field, &why);
    }
    Ok(())
}

fn port(port: &Port) -> Result<(), Error> {
    let Some(host) = port.host.filter(|host| *host != port.container) else { return Ok(()) };
    let inner = port.container;
    let why = format!(
        "a process listens on the machine itself, so its port {inner} cannot be {host} outside; \
         leave the outer one out, or let the program listen on {host}"
    );
    refused("ports", &why)
}

fn mount(mount: &Mount) -> Result<(), Error> {
    let to = mount.to.display();
    let own = "a process has no file system of its own in which";
    match &mount.from {
        MountSource::HostPath { path, .. } => {
            let from = path.display();
            if *path != mount.to {
                let why = format!("{own} {from} could be {to}; use {from} as it is");
                return refused("storage.hostPath", &why);
            }
            if mount.read_only {
                let why =
                    format!("{own} {from} could be read only; ask for it with readOnly false");
                return refused("storage.hostPath", &why);
            }
            if path.exists() {
                return Ok(());
            }
            refused("storage.hostPath", &format!("{from} does not exist on this machine"))
        }
        MountSource::Volume { .. } => {
            refused("storage.pvc", &format!("{own} a volume could be {to}"))
        }
        MountSource::Nfs { .. } => {
            let why = format!("{own} it could be {to}; mount it on the machine and use that path");
            refused("storage.nfs", &why)
        }
        MountSource::Scratch { .. } => {
            let why = format!("{own} a folder could be {to}; its working directory is its own");
            refused("storage.emptyDirVolume", &why)
        }
        MountSource::Git(_) | MountSource::S3(_) => Ok(()),
    }
}

fn refused(field: &'static str, why: &str) -> Result<(), Error> {
    let why = format!("{why}; a server for containers can do it (`elastane up --runtime docker`)");
    Err(Error::NotHere { field, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Limits, Propagation, Repository, Security, User};

    fn field_of(container: &Container) -> Option<&'static str> {
        let text = check(container, None, IsolationKind::None).err()?;
        assert!(text.to_string().contains("`elastane up --runtime docker`"), "{text}");
        match text {
            Error::NotHere { field, .. } => Some(field),
            other => panic!("{other}"),
        }
    }

    fn mounted(from: MountSource, to: &str, read_only: bool) -> Option<&'static str> {
        let mounts = vec![Mount { to: to.into(), from, read_only }];
        field_of(&Container { mounts, ..Container::default() })
    }

    fn host(path: &str) -> MountSource {
        MountSource::HostPath { path: path.into(), propagation: Propagation::None }
    }

    #[test]
    fn what_is_so_without_a_container_is_accepted() {
        assert_eq!(field_of(&Container::default()), None);
        assert_eq!(mounted(host("/tmp"), "/tmp", false), None);
        let same = Container {
            ports: vec![Port { container: 80, host: None }, Port { container: 81, host: Some(81) }],
            user: User { uid: Some(getuid().as_raw()), ..User::default() },
            shared_memory_large: true,
            limits: Limits { cpu_millis_max: Some(1), memory_bytes_max: Some(1) },
            pull: PullPolicy::Never,
            security: Security { host_network: true, host_ipc: true, ..Security::default() },
            ..Container::default()
        };
        assert_eq!(field_of(&same), None);
    }

    #[test]
    fn other_mounts_are_refused_by_their_field() {
        let hosts = Some("storage.hostPath");
        assert_eq!(mounted(host("/tmp"), "/data", false), hosts);
        assert_eq!(mounted(host("/tmp"), "/tmp", true), hosts, "nothing makes it read only");
        assert_eq!(mounted(host("/no/such"), "/no/such", false), hosts);
        let scratch = MountSource::Scratch { bytes_max: None, in_memory: false };
        let nfs = MountSource::Nfs { server: "s".into(), path: "/x".into() };
        let volume = MountSource::Volume { name: "v".into(), ephemeral: false };
        assert_eq!(mounted(scratch, "/s", false), Some("storage.emptyDirVolume"));
        assert_eq!(mounted(nfs, "/s", false), Some("storage.nfs"));
        assert_eq!(mounted(volume, "/s", false), Some("storage.pvc"));
    }

    #[test]
    fn copies_of_repositories_are_accepted_beside_each_other() {
        let copies = |places: [&str; 2]| {
            let mount = |to: &str| {
                let address = "http://x/y".to_owned();
                let of = Repository { address, branch: None, revision: None, login: None };
                Mount { to: to.into(), from: MountSource::Git(of), read_only: false }
            };
            field_of(&Container { mounts: places.map(mount).to_vec(), ..Container::default() })
        };
        assert_eq!(copies(["/code", "/code2"]), None);
        assert_eq!(copies(["/code/sub", "/code"]), Some("storage.git"));
    }

    #[test]
    fn rights_and_other_ports_are_refused_by_their_field() {
        let none = Container::default;
        let secure = |security| field_of(&Container { security, ..none() });
        let ports = vec![Port { container: 80, host: Some(8080) }];
        assert_eq!(field_of(&Container { ports, ..none() }), Some("ports"));
        let user = User { uid: Some(getuid().as_raw() + 1), ..User::default() };
        assert_eq!(field_of(&Container { user, ..none() }), Some("security.runAsUid"));
        let pull = PullPolicy::Always;
        assert_eq!(field_of(&Container { pull, ..none() }), Some("imagePullPolicy"));
        let privileged = Security { privileged: true, ..Security::default() };
        assert_eq!(secure(privileged), Some("security.privileged"));
        for told in [false, true] {
            let security = Security { privilege_escalation: Some(told), ..Security::default() };
            assert_eq!(secure(security), None, "it is what they say");
        }
    }

    #[test]
    fn the_account_of_a_run_is_what_it_may_ask_for() {
        let ann = Account::private(1_900_000_000);
        let asked = |user: User, not_root: bool| {
            let security = Security { not_root, ..Security::default() };
            let container = Container { user, security, ..Container::default() };
            check(&container, Some(&ann), IsolationKind::Accounts).is_ok()
        };
        let uid = |uid| User { uid: Some(uid), ..User::default() };
        assert!(asked(uid(ann.uid), true) && asked(User::default(), true));
        assert!(!asked(uid(0), false) && !asked(uid(getuid().as_raw()), false));
        let container = Container { user: uid(ann.uid), ..Container::default() };
        assert!(check(&container, None, IsolationKind::Accounts).is_ok(), "not known yet");
    }

    #[test]
    fn no_rights_are_promised_where_none_can_be_gained() {
        let security = Security { privilege_escalation: Some(true), ..Security::default() };
        let container = Container { security, ..Container::default() };
        for (kind, ok) in [(IsolationKind::Landlock, false), (IsolationKind::None, true)] {
            assert_eq!(check(&container, None, kind).is_ok(), ok);
        }
    }
}
