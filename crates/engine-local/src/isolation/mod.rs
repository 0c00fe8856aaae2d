//! Isolation of runs from each other and from the server. Owns: which means this machine supports
//! (found by trying, not by version), the boundary of each run, and entering it between fork and
//! exec.
//!
//! ```text
//! server is root      accounts    another user, and a view without the state directory
//! server is not root  namespaces  a user and mount namespace, so the same view; the kernel
//!                                 lets no process of such a namespace look into one outside
//!                     landlock    no files of the state directory, no processes outside
//! neither             none        as the server itself; the start and the status say so
//! ```

mod accounts;
mod landlock;
mod mounts;
mod view;

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use engine::{Error, Isolation, IsolationKind};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Uid, chdir, getgid, getuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use serde::{Deserialize, Serialize};

pub(crate) use accounts::{Account, Accounts};
pub use accounts::{AccountPolicy, restore_private_ids};
use landlock::Ruleset;
use view::View;
pub(crate) use view::{first_closed, permits};

use crate::{sys, tasks};

/// The isolation settings of an engine.
#[derive(Debug, Clone, Default)]
pub struct Separation {
    /// Which accounts runs have, where the server is root.
    pub accounts: AccountPolicy,
    /// Files of the server outside the state directory that no run may read.
    pub private_files: Vec<PathBuf>,
}

/// Isolation of a run, entered before its command starts. Part of `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Boundary {
    pub(crate) means: IsolationMeans,
    /// The state directory.
    private: PathBuf,
    /// Parts of the state directory that the run may use.
    visible: Vec<PathBuf>,
    /// Parts of the state directory that the run may only read.
    fixed: Vec<PathBuf>,
    /// The program that stands in for images, which runs may execute.
    program: PathBuf,
    private_files: Vec<PathBuf>,
    /// Mounts of the run: source and mount point; only if root makes the mounts.
    #[serde(default)]
    mounts: Vec<(PathBuf, PathBuf)>,
    /// The memory folder of all runs, of which this run sees only its visible parts.
    #[serde(default)]
    memory: Option<PathBuf>,
}

/// The means of isolation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum IsolationMeans {
    /// Another account, and a view.
    Account { account: Account, hides_processes: bool },
    /// The server's account, and a view in a user namespace.
    Namespaces,
    /// The server's account, without its files.
    Landlock,
}

/// Isolation that this machine supports.
#[derive(Debug)]
pub(crate) struct Isolator {
    accounts: Option<Accounts>,
    hides_processes: bool,
    private: PathBuf,
    program: PathBuf,
    private_files: Vec<PathBuf>,
    found: Isolation,
}

impl Isolator {
    /// Runs are not isolated.
    pub(crate) fn none(missing: &str) -> Self {
        Self {
            accounts: None,
            hides_processes: false,
            private: PathBuf::new(),
            program: PathBuf::new(),
            private_files: Vec::new(),
            found: Isolation { kind: IsolationKind::None, missing: missing.to_owned() },
        }
    }

    /// Finds out what this machine supports by starting a shell that sees the folder of the pods
    /// and that of the shims.
    ///
    /// # Errors
    /// The file of the private ids cannot be read, or a private file has no absolute path.
    pub(crate) fn find(
        wanted: Separation,
        state_dir: &Path,
        [pods, shims]: [&Path; 2],
        program: &Path,
    ) -> Result<Self, Error> {
        let Separation { accounts: policy, private_files } = wanted;
        // A shell that hides them needs another working directory.
        let private_files = absolute(&private_files)?;
        let (private, program) = (state_dir.to_owned(), program.to_owned());
        let first = Account::private(*policy.pool.start());
        let boundary = |means| Boundary {
            means,
            private: private.clone(),
            // As every run has some, so that every system call of a run is tried.
            visible: vec![pods.to_owned()],
            fixed: vec![shims.to_owned()],
            program: program.clone(),
            private_files: private_files.clone(),
            mounts: Vec::new(),
            memory: None,
        };
        let works = |means| boundary(means).attempt();
        let is_root = getuid().is_root();
        let (found, hides_processes) =
            if is_root { find_accounts(&first, works) } else { (find_unprivileged(works), false) };
        let accounts = match found.kind {
            IsolationKind::Accounts => Some(Accounts::open(policy, state_dir)?),
            _ => None,
        };
        Ok(Self { accounts, hides_processes, private, program, private_files, found })
    }

    /// For people.
    pub(crate) const fn found(&self) -> &Isolation {
        &self.found
    }

    /// The first of the accounts that runs have; `None` if they have the server's.
    pub(crate) fn first(&self) -> Option<Account> {
        self.accounts.as_ref().map(Accounts::first)
    }

    /// Has a command start as a run of that account does which may read this folder, with mounts.
    ///
    /// # Errors
    /// Runs have no accounts, or a path has a zero byte.
    pub(crate) fn enter_first(
        &self,
        command: &mut Command,
        fixed: &Path,
        mounts: Vec<(PathBuf, PathBuf)>,
    ) -> io::Result<()> {
        let none = || io::Error::other("runs have no accounts here");
        let boundary = self.boundary(self.first(), Vec::new(), vec![fixed.to_owned()]);
        let boundary = boundary.ok_or_else(none)?.mounting(mounts);
        sys::behind(command, boundary.entry(Path::new("/"))?.with(|why| why));
        Ok(())
    }

    /// Account of a submitter's runs; `None` for the server's account.
    pub(crate) fn account(&self, submitter: &str, id: &str) -> Result<Option<Account>, Error> {
        self.accounts.as_ref().map(|accounts| accounts.of(submitter, id)).transpose()
    }

    /// Account of a submitter's runs without waiting; `None` also if it is not known yet.
    pub(crate) fn known_account(&self, submitter: &str, id: &str) -> Option<Account> {
        self.accounts.as_ref()?.known(submitter, id)
    }

    /// `true` for an id that runs of a submitter cannot have; see [`Accounts::never_has`].
    pub(crate) fn never_has(&self, submitter: &str, uid: u32) -> bool {
        self.accounts.as_ref().is_some_and(|accounts| accounts.never_has(submitter, uid))
    }

    /// The boundary of a run of this account, which of the private files sees `visible` and may
    /// read `fixed`.
    pub(crate) fn boundary(
        &self,
        account: Option<Account>,
        visible: Vec<PathBuf>,
        fixed: Vec<PathBuf>,
    ) -> Option<Boundary> {
        let hides_processes = self.hides_processes;
        let means = match (account, self.found.kind) {
            (Some(account), _) => IsolationMeans::Account { account, hides_processes },
            (None, IsolationKind::Namespaces) => IsolationMeans::Namespaces,
            (None, IsolationKind::Landlock) => IsolationMeans::Landlock,
            (None, _) => return None,
        };
        Some(Boundary {
            means,
            private: self.private.clone(),
            visible,
            fixed,
            program: self.program.clone(),
            private_files: self.private_files.clone(),
            mounts: Vec::new(),
            memory: None,
        })
    }
}

fn absolute(files: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let one = |file: &PathBuf| {
        let failed = |source| {
            let what = format!("find the file {} that runs may not read", file.display());
            Error::io(what, source)
        };
        std::path::absolute(file).map_err(failed)
    };
    files.iter().map(one).collect()
}

fn find_accounts(
    first: &Account,
    works: impl Fn(IsolationMeans) -> io::Result<()>,
) -> (Isolation, bool) {
    let accounts = IsolationKind::Accounts;
    let attempt = |hides_processes| {
        works(IsolationMeans::Account { account: first.clone(), hides_processes })
    };
    if attempt(true).is_ok() {
        return (Isolation { kind: accounts, missing: String::new() }, true);
    }
    let Err(error) = attempt(false) else {
        let missing = "processes of others are in the process list, without their environment: \
                       /proc cannot be mounted with `hidepid=invisible` (Linux 5.8 or later)";
        return (Isolation { kind: accounts, missing: missing.to_owned() }, false);
    };
    let missing = format!(
        "the server is root but cannot give a run another account and a mount namespace ({error}); \
         in a container give it the capabilities SYS_ADMIN, SETUID and SETGID and ids of \
         --account-pool that exist in it, or start the server as another user"
    );
    (Isolation { kind: IsolationKind::None, missing }, false)
}

fn find_unprivileged(works: impl Fn(IsolationMeans) -> io::Result<()>) -> Isolation {
    let shared = "runs of all users have one account, and can change its files outside the state \
                  directory; start the server as root to give each user an account of their own";
    let Err(namespaces) = works(IsolationMeans::Namespaces) else {
        return Isolation { kind: IsolationKind::Namespaces, missing: shared.to_owned() };
    };
    let Err(landlock) = works(IsolationMeans::Landlock) else {
        return Isolation { kind: IsolationKind::Landlock, missing: shared.to_owned() };
    };
    let missing = format!(
        "user namespaces are not permitted ({namespaces}) and Landlock does not work \
         ({landlock}); start the server as root, use `--runtime docker`, or permit user \
         namespaces (`sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`, \
         with AppArmor also `kernel.apparmor_restrict_unprivileged_userns=0`)"
    );
    Isolation { kind: IsolationKind::None, missing }
}

impl Boundary {
    /// This boundary with these mounts: source and mount point.
    pub(crate) fn mounting(self, mounts: Vec<(PathBuf, PathBuf)>) -> Self {
        Self { mounts, ..self }
    }

    /// This boundary without the memory folder of all runs.
    pub(crate) fn without_memory(self, root: Option<&Path>) -> Self {
        Self { memory: root.map(Path::to_owned), ..self }
    }

    /// The account of the run, if it is not the server's.
    pub(crate) const fn account(&self) -> Option<&Account> {
        match &self.means {
            IsolationMeans::Account { account, .. } => Some(account),
            IsolationMeans::Namespaces | IsolationMeans::Landlock => None,
        }
    }

    /// Drops the server's keyring, for the run and its sessions. Call it in the supervisor, so
    /// that it uses one of root's many keyrings and none of the account's.
    pub(crate) fn leave_keys(&self) -> io::Result<()> {
        match (&self.means, sys::leave_keyring()) {
            // A user has few keyrings. The keyring kept here belongs to the same user as the run.
            (IsolationMeans::Namespaces | IsolationMeans::Landlock, Err(Errno::DQUOT)) => Ok(()),
            (_, left) => Ok(left?),
        }
    }

    /// The private files outside the state directory, at all their paths.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let own = self.private_files.iter().filter_map(|file| file.canonicalize().ok());
        let mut all: Vec<PathBuf> = own.collect();
        for at in 0..all.len() {
            let others = mounts::other_paths(&all[at])?;
            all.extend(others);
        }
        Ok(all)
    }

    /// Starts a shell inside the boundary, with an empty state directory.
    fn attempt(&self) -> io::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", ":"]).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sys::behind(&mut command, self.entry(Path::new("/"))?.with(|why| why));
        let status = command.status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
    }

    /// The steps in the child, and its working directory.
    pub(crate) fn entry(&self, working_dir: &Path) -> io::Result<Entry> {
        let Self { private, visible, fixed, program, memory, .. } = self;
        let memory = memory.as_deref().filter(|root| root.is_dir());
        let covered = [Some(private.as_path()), memory];
        let covered: Vec<&Path> = covered.into_iter().flatten().collect();
        let view = || View::new(self.account(), &covered, visible, fixed, program);
        let step = match &self.means {
            IsolationMeans::Account { account, hides_processes } => {
                let groups = account.groups.iter().copied().map(Gid::from_raw).collect();
                let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
                let view = view()?.mounting(&self.mounts)?.hiding_processes(*hides_processes);
                Step::Account { view, uid, gid, groups }
            }
            IsolationMeans::Namespaces => {
                let line = |id: u32| CString::new(format!("{id} {id} 1\n"));
                Step::Namespaces {
                    view: view()?
                        .covering(&mounts::other_paths(private)?)?
                        .hiding(&self.files()?)?,
                    users: line(getuid().as_raw())?,
                    groups: line(getgid().as_raw())?,
                    scope: Ruleset::of_scope().ok(),
                }
            }
            IsolationMeans::Landlock => {
                let closed = [mounts::other_paths(private)?, self.files()?].concat();
                Step::Landlock(Ruleset::without(private, visible, fixed, &closed)?)
            }
        };
        let working_dir = CString::new(working_dir.as_os_str().as_bytes())?;
        Ok(Entry { step, working_dir })
    }
}

/// The steps of a child, prepared so that they do not allocate.
#[derive(Debug)]
pub(crate) struct Entry {
    step: Step,
    working_dir: CString,
}

#[derive(Debug)]
enum Step {
    Account { view: View, uid: Uid, gid: Gid, groups: Vec<Gid> },
    Namespaces { view: View, users: CString, groups: CString, scope: Option<Ruleset> },
    Landlock(Ruleset),
}

/// Why a child did not enter.
enum NotEntered {
    /// The machine refused.
    Boundary(Errno),
    /// The working directory does not exist, or the account may not enter it.
    WorkingDir,
}

impl Entry {
    /// For a process of a run: that the machine refuses is not the command's failure.
    pub(crate) fn of_run(self) -> sys::Enter {
        self.with(|_| Errno::IO)
    }

    /// Enters between fork and exec, which cannot be undone. `refused`: the error of the start
    /// where the machine refuses.
    fn with(self, refused: fn(Errno) -> Errno) -> sys::Enter {
        Box::new(move || {
            self.enter().map_err(|why| match why {
                NotEntered::Boundary(why) => refused(why),
                NotEntered::WorkingDir => sys::NO_WORKING_DIR,
            })
        })
    }

    fn enter(&self) -> Result<(), NotEntered> {
        self.step.take().map_err(NotEntered::Boundary)?;
        // With the rights and the view of the run.
        chdir(self.working_dir.as_c_str()).map_err(|_| NotEntered::WorkingDir)
    }
}

impl Step {
    fn take(&self) -> Result<(), Errno> {
        match self {
            Self::Account { view, uid, gid, groups } => {
                sys::unshare(UnshareFlags::NEWNS)?;
                view.enter()?;
                take_account(*uid, *gid, groups)?;
                // Last: with too many processes of the account already, the command could not
                // start.
                tasks::halve()
            }
            Self::Namespaces { view, users, groups, scope } => {
                sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
                // The supervisor is not dumpable, so its child's files in /proc would belong to
                // root.
                set_dumpable_behavior(DumpableBehavior::Dumpable)?;
                sys::write_to(c"/proc/self/setgroups", c"deny")?;
                sys::write_to(c"/proc/self/uid_map", users)?;
                sys::write_to(c"/proc/self/gid_map", groups)?;
                view.enter()?;
                set_no_new_privs(true)?;
                scope.as_ref().map_or(Ok(()), Ruleset::restrict)?;
                tasks::halve()?;
                give_up_capabilities()
            }
            Self::Landlock(ruleset) => {
                set_no_new_privs(true)?;
                ruleset.restrict()
            }
        }
    }
}

/// Groups before the user: they cannot be changed after it.
fn take_account(uid: Uid, gid: Gid, groups: &[Gid]) -> Result<(), Errno> {
    set_thread_groups(groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    if uid.is_root() { Ok(()) } else { give_up_capabilities() }
}

/// Drops all capabilities, including inheritable ones.
fn give_up_capabilities() -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
