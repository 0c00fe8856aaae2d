//! Where control groups of runs are created. Owns: finding a folder in the cgroup hierarchies, and
//! why there is none. Does not know what a group is used for.
//!
//! The root of a hierarchy (root's, or a container's own) is tried first, as container daemons do:
//! runs outlive the session of the server. Then the group of the server itself, for a user with a
//! delegated one (`systemd-run --user --scope -p Delegate=yes`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::{LimitsKept, RunKey};
use engine_fractions::DeviceGroups;

use super::{Controller, Group, Version, set};

/// The folder of all groups of runs, shared by all servers on the machine.
const FOLDER: &str = "elastane";
/// The server's group, if it has to move: under version 2 only the root may have both processes
/// and groups with limits.
const SERVER: &str = "elastane-server";
/// The controller of memory of devices.
const DMEM: &str = "dmem";
/// Each controller by the name of its hierarchy under version 1.
const CONTROLLERS: [(Controller, &str); 5] = [
    (Controller::Cpu, "cpu"),
    (Controller::Cpuacct, "cpuacct"),
    (Controller::Memory, "memory"),
    (Controller::Pids, "pids"),
    (Controller::Freezer, "freezer"),
];

/// The parent groups of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    version: Version,
    /// By controller; no entry: not available.
    folders: BTreeMap<Controller, PathBuf>,
    /// Why controllers are missing.
    why: Option<String>,
    /// Under version 2: the root of the hierarchy, and the group above the folder of all groups.
    unified: Option<(PathBuf, PathBuf)>,
}

/// A mounted hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    unified: bool,
    /// Controllers of the hierarchy under version 1.
    options: Vec<String>,
    /// Root of the hierarchy as seen here.
    top: PathBuf,
    /// The group of this process.
    own: PathBuf,
}

impl Place {
    /// Finds or creates one. A failure here does not prevent starting runs.
    pub(crate) fn find() -> Self {
        let read = |name| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        Self::among(&hierarchies(&read("mountinfo"), &read("cgroup")))
    }

    /// No control groups, for this reason.
    pub(crate) fn none(why: &str) -> Self {
        let why = Some(why.to_owned());
        Self { version: Version::V2, folders: BTreeMap::new(), why, unified: None }
    }

    fn among(hierarchies: &[Hierarchy]) -> Self {
        let unified = hierarchies.iter().filter(|hierarchy| hierarchy.unified);
        let mut whys = Vec::new();
        let bases = unified.flat_map(|own| own.bases().into_iter().map(move |base| (own, base)));
        for (hierarchy, base) in bases {
            match unified_place(&base) {
                Ok(Some(place)) => {
                    return Self { unified: Some((hierarchy.top.clone(), base)), ..place };
                }
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
            return Self { version: Version::V1, folders, why: None, unified: None };
        }
        let why = match whys.is_empty() {
            true => "this machine does not show the control groups it takes".to_owned(),
            false => format!(
                "control groups cannot be made ({}); start the server as root, or with a group of its own: \
                 `systemd-run --user --scope -p Delegate=yes elastane up`",
                whys.join("; ")
            ),
        };
        Self { version: Version::V1, folders, why: Some(why), unified: None }
    }

    /// Which limits apply here.
    pub(crate) fn keeps(&self) -> LimitsKept {
        let has = |controller| self.folders.contains_key(&controller);
        LimitsKept {
            cpu: has(Controller::Cpu),
            memory: has(Controller::Memory),
            why: self.why.clone().unwrap_or_default(),
        }
    }

    /// Has the groups of runs limit memory of GPUs too.
    ///
    /// # Errors
    /// Why they cannot.
    pub(crate) fn limit_devices(&mut self) -> Result<DeviceGroups, String> {
        let none = || "the control groups of runs are not of version 2".to_owned();
        let (top, base) =
            self.unified.as_ref().ok_or_else(|| self.why.clone().unwrap_or_else(none))?;
        let shown = |path: &Path, error| format!("{}: {error}", path.display());
        let offered = base.join("cgroup.controllers");
        let text = fs::read_to_string(&offered).map_err(|error| shown(&offered, error))?;
        if !text.split_ascii_whitespace().any(|name| name == DMEM) {
            return Err(format!("{} does not have the controller {DMEM}", base.display()));
        }
        let capacity = top.join("dmem.capacity");
        let regions = fs::read_to_string(&capacity).map_err(|error| shown(&capacity, error))?;
        let (folder, more) = (base.join(FOLDER), format!("+{DMEM}"));
        let given = hand_down(base, &more)
            .and_then(|()| set(&folder.join("cgroup.subtree_control"), &more));
        given.map_err(|error| error.to_string())?;
        // The kernel takes the guarantees of runs from that of the folder around them.
        let least = folder.join("dmem.min");
        let names = regions.lines().filter_map(|line| line.trim().rsplit_once(' '));
        for (region, _) in names.filter(|_| least.exists()) {
            set(&least, &format!("{region} max")).map_err(|error| error.to_string())?;
        }
        self.folders.insert(Controller::Dmem, folder.clone());
        Ok(DeviceGroups { folder, regions })
    }

    /// Control group of a run; `None` without control groups.
    pub(crate) fn group(&self, key: RunKey) -> Option<Group> {
        let of = |(controller, folder): (&Controller, &PathBuf)| {
            (*controller, folder.join(key.to_string()))
        };
        let folders: BTreeMap<_, _> = self.folders.iter().map(of).collect();
        (!folders.is_empty()).then_some(Group { version: self.version, folders })
    }

    /// The runs that have a group here, including those of other servers.
    pub(crate) fn runs(&self) -> BTreeSet<RunKey> {
        let entries = self.folders.values().filter_map(|folder| fs::read_dir(folder).ok());
        let names = entries.flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect()
    }
}

impl Hierarchy {
    /// The candidates.
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

/// The place in the unified hierarchy; `None` if controllers are in hierarchies of version 1.
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
    // Counting time and killing a group need no controller.
    let controllers = found.iter().map(|(controller, _)| *controller);
    let controllers = controllers.chain([Controller::Cpuacct, Controller::Freezer]);
    let folders: BTreeMap<_, _> = controllers.map(|one| (one, folder.clone())).collect();
    let missing: Vec<&str> =
        wanted.iter().map(|(_, name)| *name).filter(|name| !offered.contains(name)).collect();
    let why = (!missing.is_empty()).then(|| {
        format!("{} does not have the controllers {}", base.display(), missing.join(", "))
    });
    Ok(Some(Place { version: Version::V2, folders, why, unified: None }))
}

/// Enables these controllers for groups below a folder. Moves the server if it is in the way.
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

/// The folder for groups of runs; created if it does not exist.
fn folder_in(base: &Path) -> io::Result<PathBuf> {
    let folder = base.join(FOLDER);
    match fs::create_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // It may belong to another user.
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
