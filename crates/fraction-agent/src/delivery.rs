//! Delivery of libraries and pages to a run. Owns: the necessary variables and mounts. Does not
//! know about: making the mounts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fraction_abi::wire::SOCKET_VARIABLE;
use fraction_abi::{CLAIM_FILE, DIRECTORY, DIRECTORY_VARIABLE};

use crate::libraries::{Libraries, RealDriver};

/// Variable with the folders that loaders search first.
const SEARCH: &str = "LD_LIBRARY_PATH";
/// Variable with libraries that are loaded into every program.
const PRELOAD: &str = "LD_PRELOAD";
/// File with libraries that are loaded into every program, independent of the environment.
const PRELOAD_FILE: &str = "/etc/ld.so.preload";

/// Driver of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The installed driver.
    Installed,
    /// The simulated driver, with these sockets.
    Simulated(Vec<PathBuf>),
}

/// Means of delivery that the machine allows the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Mounts that a run cannot undo, so that nothing depends on its environment.
    Mounts,
    /// Variables, which a run can change.
    Variables,
    /// Mounts of a container, whose driver is in it.
    Containers,
}

/// Variables and mounts of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Variables, as they are set.
    pub variables: BTreeMap<String, String>,
    /// Search paths, placed before the value of the user's variable.
    pub before: BTreeMap<String, String>,
    /// Files and folders, with the paths they are mounted over; read-only in containers.
    pub mounts: Vec<(PathBuf, PathBuf)>,
    /// A container's own files in folders that it has read-only.
    pub writable: Vec<(PathBuf, PathBuf)>,
}

impl Delivery {
    /// Delivery for a run with these pages; `None` for whole GPUs without a limit.
    #[must_use]
    pub fn of(libraries: &Libraries, target: &Target, pages: Option<&Path>, way: Way) -> Self {
        let mut all = Self::default();
        let text = |path: &Path| path.display().to_string();
        match (target, pages, libraries.real()) {
            (Target::Simulated(sockets), pages, _) => {
                let (simulated, limited) = (libraries.simulated(), libraries.before_simulated());
                let first = if pages.is_some() { &limited } else { &simulated };
                all.before.insert(SEARCH.to_owned(), text(first));
                let sockets: Vec<String> = sockets.iter().map(|path| text(path)).collect();
                all.variables.insert(SOCKET_VARIABLE.to_owned(), sockets.join(":"));
                if way == Way::Containers {
                    all.mounts.push(libraries.mount());
                }
            }
            // A program that finds the driver by any path finds these functions first.
            (Target::Installed, Some(_), _) if way == Way::Containers => {
                all.mounts.push(libraries.mount());
                all.mounts.push((libraries.preload_list(), PathBuf::from(PRELOAD_FILE)));
            }
            (Target::Installed, Some(_), Some(RealDriver(files))) if way == Way::Mounts => {
                // Before the proxies are mounted over them.
                all.mounts.extend(files.iter().cloned().zip(libraries.real_moved()));
                let proxies = crate::libraries::NAMES.map(|name| libraries.in_place().join(name));
                all.mounts.extend(proxies.into_iter().zip(files.iter().cloned()));
            }
            (Target::Installed, Some(_), Some(_)) => {
                all.before.insert(SEARCH.to_owned(), text(&libraries.before_real()));
            }
            (Target::Installed, ..) => {}
        }
        let Some(pages) = pages else { return all };
        if way == Way::Variables {
            all.variables.insert(DIRECTORY_VARIABLE.to_owned(), text(pages));
            all.before.insert(PRELOAD.to_owned(), text(&libraries.preload()));
        } else {
            all.mounts.push((pages.to_owned(), PathBuf::from(DIRECTORY)));
        }
        if way == Way::Containers {
            let claims = Path::new(DIRECTORY).join(CLAIM_FILE);
            all.writable.push((pages.join(CLAIM_FILE), claims));
        }
        all
    }

    /// Adds the variables to an environment.
    pub fn complete(&self, env: &mut BTreeMap<String, String>) {
        env.extend(self.variables.clone());
        for (name, first) in &self.before {
            let value = match env.get(name).filter(|own| !own.is_empty()) {
                Some(own) => format!("{first}:{own}"),
                None => first.clone(),
            };
            env.insert(name.clone(), value);
        }
    }
}
