//! Where groups of runs are made. Owns: finding a folder for them in the hierarchies that the kernel
//! shows, and why there is none. Refuses to know: what is done with a group.
//!
//! Tried first is the top of a hierarchy (root's, or a container's own), as daemons of containers do: runs
//! outlive the session that the server was started from. Then the group of the server itself, which is
//! where others than root have been given one (`systemd-run --user --scope -p Delegate=yes`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::{LimitsKept, RunKey};

use super::{Controller, Group, Version, set};

/// The folder that holds the groups of runs, of all servers that may make some here.
const FOLDER: &str = "elastane";
/// Where the server goes itself, if it has to: under version 2 only the top of the hierarchy may have both
/// processes and groups that are limited.
const SERVER: &str = "elastane-server";
/// Each controller by the name of its hierarchy under version 1.
const CONTROLLERS: [(Controller, &str); 5] = [
    (Controller::Cpu, "cpu"),
    (Controller::Cpuacct, "cpuacct"),
    (Controller::Memory, "memory"),
    (Controller::Pids, "pids"),
    (Controller::Freezer, "freezer"),
];

/// Where groups of runs are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    version: Version,
    /// By controller; without an entry, there is none for it.
    folders: BTreeMap<Controller, PathBuf>,
    /// Why not, for what is missing.
    why: Option<String>,
}

/// A hierarchy that is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    unified: bool,
    /// Its controllers under version 1.
    options: Vec<String>,
    /// The top of it that is seen here.
    top: PathBuf,
    /// The group of this process.
    own: PathBuf,
}

impl Place {
    /// Looks for one, and makes what it takes. Nothing that fails keeps runs from starting.
    pub(crate) fn find() -> Self {
        let read = |name| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        Self::among(&hierarchies(&read("mountinfo"), &read("cgroup")))
    }

    /// None at all.
    pub(crate) fn none(why: &str) -> Self {
        Self { version: Version::V2, folders: BTreeMap::new(), why: Some(why.to_owned()) }
    }

    fn among(hierarchies: &[Hierarchy]) -> Self {
        let unified = hierarchies.iter().filter(|hierarchy| hierarchy.unified);
        let mut whys = Vec::new();
        for base in unified.flat_map(Hierarchy::bases) {
            match unified_place(&base) {
                Ok(Some(place)) => return place,
                Ok(None) => {}
                Err(error) => whys.push(format!("{}: {error}", base.display())),
            }
        }
        let mut folders = BTreeMap::new();
        for (controller, name) in CONTROLLERS {
            let of = |h: &&Hierarchy| h.options.iter().any(|option| option == name);
            let bases = hierarchies.iter().filter(of).flat_map(Hierarchy::bases);
            for base in bases {
                match folder_in(&base) {
                    Ok(folder) => drop(folders.insert(controller, folder)),
                    Err(error) => {
                        whys.push(format!("{}: {error}", base.display()));
                        continue;
                    }
                }
                break;
            }
        }
        let limits = [Controller::Cpu, Controller::Memory];
        if limits.iter().all(|controller| folders.contains_key(controller)) {
            return Self { version: Version::V1, folders, why: None };
        }
        let why = match whys.is_empty() {
            true => "this machine does not show the control groups it takes".to_owned(),
            false => format!(
                "control groups cannot be made ({}); start the server as root, or with a group of its own: \
                 `systemd-run --user --scope -p Delegate=yes elastane up`",
                whys.join("; ")
            ),
        };
        Self { version: Version::V1, folders, why: Some(why) }
    }

    /// Which limits are kept here.
    pub(crate) fn keeps(&self) -> LimitsKept {
        let has = |controller| self.folders.contains_key(&controller);
        LimitsKept {
            cpu: has(Controller::Cpu),
            memory: has(Controller::Memory),
            why: self.why.clone().unwrap_or_default(),
        }
    }

    /// The group of a run; none where there are none.
    pub(crate) fn group(&self, key: RunKey) -> Option<Group> {
        let of = |(controller, folder): (&Controller, &PathBuf)| {
            (*controller, folder.join(key.to_string()))
        };
        let folders: BTreeMap<_, _> = self.folders.iter().map(of).collect();
        (!folders.is_empty()).then_some(Group { version: self.version, folders })
    }

    /// The runs that have a group here, those of other servers included.
    pub(crate) fn runs(&self) -> BTreeSet<RunKey> {
        let entries = self.folders.values().filter_map(|folder| fs::read_dir(folder).ok());
        let names = entries.flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect()
    }
}

impl Hierarchy {
    /// Where to try.
    fn bases(&self) -> Vec<PathBuf> {
        let own = match self.own.file_name() {
            Some(name) if name == SERVER => self.own.parent().unwrap_or(&self.own),
            _ => &self.own,
        };
        if own == self.top {
            vec![self.top.clone()]
        } else {
            vec![self.top.clone(), own.to_owned()]
        }
    }
}

/// None: controllers are in hierarchies of version 1.
fn unified_place(base: &Path) -> io::Result<Option<Place>> {
    let offered = fs::read_to_string(base.join("cgroup.controllers"))?;
    let offered: Vec<&str> = offered.split_ascii_whitespace().collect();
    let wanted =
        [(Controller::Cpu, "cpu"), (Controller::Memory, "memory"), (Controller::Pids, "pids")];
    let found: Vec<_> = wanted.into_iter().filter(|(_, name)| offered.contains(name)).collect();
    if found.is_empty() {
        return Ok(None);
    }
    let folder = folder_in(base)?;
    let all: Vec<String> = found.iter().map(|(_, name)| format!("+{name}")).collect();
    hand_down(base, &all.join(" "))?;
    set(&folder.join("cgroup.subtree_control"), &all.join(" "))?;
    // Counting time and ending all at once take no controller.
    let controllers = found.iter().map(|(controller, _)| *controller);
    let controllers = controllers.chain([Controller::Cpuacct, Controller::Freezer]);
    let folders: BTreeMap<_, _> = controllers.map(|one| (one, folder.clone())).collect();
    let missing: Vec<&str> =
        wanted.iter().map(|(_, name)| *name).filter(|name| !offered.contains(name)).collect();
    let why = (!missing.is_empty()).then(|| {
        format!("{} does not have the controllers {}", base.display(), missing.join(", "))
    });
    Ok(Some(Place { version: Version::V2, folders, why }))
}

/// Gives groups below a folder these controllers. The server steps aside if it is in the way.
fn hand_down(base: &Path, controllers: &str) -> io::Result<()> {
    let control = base.join("cgroup.subtree_control");
    match set(&control, controllers) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
        done => return done,
    }
    let aside = base.join(SERVER);
    match fs::create_dir(&aside) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => set(&aside.join("cgroup.procs"), "0")?,
    }
    set(&control, controllers).map_err(|error| {
        io::Error::new(error.kind(), format!("{error}; other processes are in this group"))
    })
}

/// The folder for groups of runs, made if it is not there.
fn folder_in(base: &Path) -> io::Result<PathBuf> {
    let folder = base.join(FOLDER);
    match fs::create_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // It may be another user's.
    rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK)?;
    Ok(folder)
}

/// Reads proc_pid_mountinfo(5) and cgroups(7).
fn hierarchies(mounts: &str, groups: &str) -> Vec<Hierarchy> {
    let read = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, top) = (before.next()?, PathBuf::from(before.next()?));
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let options: Vec<String> = after.nth(1)?.split(',').map(str::to_owned).collect();
        let of = |line: &&str| {
            let mut names = line.split(':').nth(1).unwrap_or_default().split(',');
            if unified {
                line.starts_with("0::")
            } else {
                names.any(|n| options.iter().any(|o| o == n))
            }
        };
        let own = groups.lines().find(of).and_then(|line| line.splitn(3, ':').nth(2))?;
        // A container sees the part of the hierarchy below its own root.
        let inner = Path::new(own).strip_prefix(root).unwrap_or(Path::new(""));
        let own = if inner.as_os_str().is_empty() { top.clone() } else { top.join(inner) };
        Some(Hierarchy { unified, options, top, own })
    };
    mounts.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests;
