//! Which Unix account a submitter's runs have. Owns: the table, the mapping by name, and the
//! private ids of all other submitters with the file that stores them. Does not know how a process
//! takes an account on.
//!
//! The name service is queried through `getent`, so directories such as LDAP count where the
//! machine uses them; without that program the files in `/etc` are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use engine::Error;
use serde::{Deserialize, Serialize};

/// The file of the private ids, in the state directory.
const FILE: &str = "accounts.json";
/// Accounts below are the system's.
const FIRST_USER_ID: u32 = 1000;
/// `nobody`, and the id that means "none" to the kernel in 16 bits. Neither is a person.
const RESERVED_IDS: RangeInclusive<u32> = 65534..=65535;

/// Which accounts submitters have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPolicy {
    /// Accounts by submitter. Only these may be system accounts, or root.
    pub table: BTreeMap<String, String>,
    /// Domains of e-mail addresses whose local part names an account; `*` for every domain.
    pub domains: Vec<String>,
    /// Ids for all other submitters, as user and group.
    pub pool: RangeInclusive<u32>,
}

impl AccountPolicy {
    /// Ids that can be private. Lower ones belong to the system and to people, and the next one
    /// means "none" to the kernel.
    pub const POOL_BOUNDS: RangeInclusive<u32> = 10_000..=u32::MAX - 1;
    /// Private ids that no tool of a Linux distribution assigns by itself.
    pub const POOL_DEFAULT: RangeInclusive<u32> = 1_900_000_000..=1_900_065_535;
}

impl Default for AccountPolicy {
    fn default() -> Self {
        Self { table: BTreeMap::new(), domains: Vec::new(), pool: Self::POOL_DEFAULT }
    }
}

/// A Unix account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    pub(crate) name: String,
    /// Home folder; `None` for a private id.
    pub(crate) home: Option<PathBuf>,
    pub(crate) shell: Option<String>,
}

impl Account {
    /// A private id.
    pub(crate) fn private(id: u32) -> Self {
        let name = format!("elastane-{id}");
        Self { uid: id, gid: id, groups: Vec::new(), name, home: None, shell: None }
    }

    pub(crate) fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// Finds the account of each submitter.
#[derive(Debug)]
pub(crate) struct Accounts {
    policy: AccountPolicy,
    pool: Mutex<Pool>,
}

impl Accounts {
    /// # Errors
    /// The file of the private ids cannot be read.
    pub(crate) fn open(policy: AccountPolicy, state_dir: &Path) -> Result<Self, Error> {
        let pool = Mutex::new(Pool::open(state_dir.join(FILE))?);
        Ok(Self { policy, pool })
    }

    /// The first id of the pool, which a submitter may have.
    pub(crate) fn first(&self) -> Account {
        Account::private(*self.policy.pool.start())
    }

    /// The account of a submitter, which stays the same until the policy changes. `id`
    /// distinguishes submitters if the name is used again.
    ///
    /// # Errors
    /// The table names an account that does not exist, or there is no private id left.
    pub(crate) fn of(&self, submitter: &str, id: &str) -> Result<Account, Error> {
        if let Some(name) = self.policy.table.get(submitter) {
            return look_up(name)?.ok_or_else(|| {
                Error::Invalid(format!(
                    "`{submitter}` has the account `{name}` (setting `accounts`), which does not \
                     exist on this machine; create it, or change the setting"
                ))
            });
        }
        let Some(name) = self.named(submitter) else {
            return self.private(key(submitter, id)).map(Account::private);
        };
        match self.person(name, look_up(name)?)? {
            Some(account) => Ok(account),
            None => self.private(key(submitter, id)).map(Account::private),
        }
    }

    /// The account of this name, if the name service finds it and it belongs to a person.
    ///
    /// # Errors
    /// The account existed before and is not found now. Most name services report an account as
    /// missing while they cannot be reached, and the files of a private id are not the account's.
    fn person(&self, name: &str, found: Option<Account>) -> Result<Option<Account>, Error> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Some(account) if is_person(account.uid) => {
                pool.remember(name)?;
                Ok(Some(account))
            }
            None if pool.given.named.contains(name) => {
                let why = format!(
                    "the directory service of this machine does not know it now, and did before; \
                     is it out of reach? `getent passwd {name}` must show the account. If it was \
                     deleted for good, stop the server, remove the name from `named` in {}, and \
                     start the server",
                    pool.path.display()
                );
                Err(Error::io(format!("look up the account `{name}`"), io::Error::other(why)))
            }
            _ => Ok(None),
        }
    }

    /// The private id of a submitter. Waits for nothing, does not query the name service and
    /// assigns no id; so none may mean that it is not known yet.
    pub(crate) fn known(&self, submitter: &str, id: &str) -> Option<Account> {
        if self.policy.table.contains_key(submitter) || self.named(submitter).is_some() {
            return None;
        }
        // Its holder may wait for the name service or the disk.
        let pool = match self.pool.try_lock() {
            Ok(pool) => pool,
            Err(TryLockError::Poisoned(pool)) => pool.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        pool.given.ids.get(key(submitter, id)).copied().map(Account::private)
    }

    /// `true` for an id that runs of a submitter cannot have, as far as that is known without
    /// querying the name service.
    pub(crate) fn never_has(&self, submitter: &str, uid: u32) -> bool {
        let is_private = self.policy.pool.contains(&uid);
        match (self.policy.table.contains_key(submitter), self.named(submitter)) {
            (true, _) => false,
            (false, Some(_)) => !is_private && !is_person(uid),
            (false, None) => !is_private,
        }
    }

    /// The account name that an e-mail address stands for, where the policy trusts its domain.
    fn named<'a>(&self, submitter: &'a str) -> Option<&'a str> {
        let (local, domain) = submitter.rsplit_once('@')?;
        let trusted = |known: &String| known == "*" || known.eq_ignore_ascii_case(domain);
        (self.policy.domains.iter().any(trusted) && is_account_name(local)).then_some(local)
    }

    fn private(&self, key: &str) -> Result<u32, Error> {
        // No code panics between two changes of it.
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.id_of(key, &self.policy.pool, &id_is_taken)
    }
}

/// The key of a submitter in the file of the private ids.
const fn key<'a>(submitter: &'a str, id: &'a str) -> &'a str {
    if id.is_empty() { submitter } else { id }
}

const fn is_person(uid: u32) -> bool {
    uid >= FIRST_USER_ID && !(*RESERVED_IDS.start() <= uid && uid <= *RESERVED_IDS.end())
}

/// True if `getent` and the files accept it as a name: no number, option or separator.
fn is_account_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.len() <= 255 && name.starts_with(first) && name.chars().all(inside)
}

/// The account of this name, if it exists.
fn look_up(name: &str) -> Result<Option<Account>, Error> {
    let failed = |source| Error::io(format!("look up the account `{name}`"), source);
    if !is_account_name(name) {
        return Ok(None);
    }
    let Some(line) = entry("passwd", name).map_err(failed)? else { return Ok(None) };
    let Some(mut account) = parse_passwd(&line).filter(|found| found.name == name) else {
        return Ok(None);
    };
    account.groups = groups(&account).map_err(failed)?;
    Ok(Some(account))
}

/// True if an account has this id already.
fn id_is_taken(id: u32) -> bool {
    // If this is unknown the id counts as free: the range is private.
    entry("passwd", &id.to_string()).is_ok_and(|line| line.is_some())
}

fn parse_passwd(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.trim_end().split(':').collect();
    let [name, _, uid, gid, _, home, shell] = fields.as_slice() else { return None };
    Some(Account {
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        groups: Vec::new(),
        name: (*name).to_owned(),
        home: Some(PathBuf::from(home)).filter(|home| home.is_absolute()),
        shell: Some((*shell).to_owned()).filter(|shell| !shell.is_empty()),
    })
}

/// The supplementary groups of an account, as `initgroups` sets them.
fn groups(account: &Account) -> io::Result<Vec<u32>> {
    let numbers = match ask(&["initgroups", &account.name])? {
        GetentAnswer::Lines(text) => {
            let words = text.split_ascii_whitespace().skip(1);
            words.filter_map(|word| word.parse().ok()).collect()
        }
        GetentAnswer::Nothing => Vec::new(),
        GetentAnswer::NoProgram => groups_in(&fs::read_to_string("/etc/group")?, &account.name),
    };
    Ok(numbers.into_iter().filter(|gid| *gid != account.gid).collect())
}

fn groups_in(text: &str, name: &str) -> Vec<u32> {
    let group = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, gid, members] = fields.as_slice() else { return None };
        members.split(',').any(|member| member.trim() == name).then(|| gid.parse().ok())?
    };
    text.lines().filter_map(group).collect()
}

/// The entry of a name service database.
fn entry(database: &str, key: &str) -> io::Result<Option<String>> {
    match ask(&[database, key])? {
        GetentAnswer::Lines(text) => Ok(text.lines().next().map(ToOwned::to_owned)),
        GetentAnswer::Nothing => Ok(None),
        GetentAnswer::NoProgram => {
            let text = fs::read_to_string(format!("/etc/{database}"))?;
            let is = |line: &&str| {
                let mut fields = line.split(':');
                let name = fields.next();
                name == Some(key) || fields.nth(1) == Some(key)
            };
            Ok(text.lines().find(is).map(ToOwned::to_owned))
        }
    }
}

/// The answer of `getent`.
enum GetentAnswer {
    Lines(String),
    Nothing,
    NoProgram,
}

/// Exit code of `getent` for a key that does not exist.
const GETENT_NO_KEY: i32 = 2;

/// A directory service that does not answer can block `getent` for minutes.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Pause between two checks whether it has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

fn ask(words: &[&str]) -> io::Result<GetentAnswer> {
    let mut command = Command::new("getent");
    command.args(words);
    let output = match output_within(&mut command, ANSWER_WAIT) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(GetentAnswer::NoProgram),
        other => other?,
    };
    match output.status.code() {
        Some(0) => Ok(GetentAnswer::Lines(String::from_utf8_lossy(&output.stdout).into_owned())),
        Some(GETENT_NO_KEY) => Ok(GetentAnswer::Nothing),
        // A `getent` without this database, such as Alpine's.
        Some(1) => Ok(GetentAnswer::NoProgram),
        _ => Err(io::Error::other(format!(
            "`getent {}` failed: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

/// The output of a program that ends in time. One that does not is killed.
fn output_within(command: &mut Command, most: Duration) -> io::Result<Output> {
    let end = Instant::now() + most;
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn()?;
    // Read in parallel: the output may exceed the capacity of a pipe.
    let (output, errors) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            let program = command.get_program().display();
            let why = format!("`{program}` did not answer within {} seconds", most.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        thread::sleep(CHECK_INTERVAL);
    };
    let stdout = output.join().unwrap_or_else(|_| Err(io::Error::other("a reader panicked")))?;
    let stderr = errors.join().unwrap_or_else(|_| Err(io::Error::other("a reader panicked")))?;
    Ok(Output { status, stdout, stderr })
}

fn read_all(from: Option<impl Read + Send + 'static>) -> JoinHandle<io::Result<Vec<u8>>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        from.map_or(Ok(0), |mut from| from.read_to_end(&mut all))?;
        Ok(all)
    })
}

/// Imports the private ids of a backup (the text of its `accounts.json`) into a state directory.
/// Ids assigned on this machine stay: files belong to them. A submitter whose id is used here, or
/// is not a private one, gets a new id at its next run.
///
/// # Errors
/// The text is not such a file, or the file cannot be read or written.
pub fn restore_private_ids(state_dir: &Path, saved: &str) -> Result<(), Error> {
    let wrong = |error: serde_json::Error| Error::io("read the private ids of it", error.into());
    let saved: Ids = serde_json::from_str(saved).map_err(wrong)?;
    let mut pool = Pool::open(state_dir.join(FILE))?;
    let mut ids = pool.given.ids.clone();
    let mut given: BTreeSet<u32> = ids.values().copied().collect();
    for (submitter, id) in saved.ids {
        let is_private = AccountPolicy::POOL_BOUNDS.contains(&id) && !id_is_taken(id);
        if is_private && !ids.contains_key(&submitter) && given.insert(id) {
            ids.insert(submitter, id);
        }
    }
    let named = pool.given.named.union(&saved.named).cloned().collect();
    pool.keep(Ids { next: pool.given.next, ids, named })
}

/// `accounts.json`: private ids by submitter.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ids {
    /// No id from here on was assigned on this machine.
    next: u32,
    ids: BTreeMap<String, u32>,
    /// Accounts that submitters had by their name. If the name service does not find one of these,
    /// it is not assumed to be deleted.
    #[serde(default)]
    named: BTreeSet<String>,
}

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    given: Ids,
}

impl Pool {
    fn open(path: PathBuf) -> Result<Self, Error> {
        let failed = |source| Error::io(format!("read {}", path.display()), source);
        let given = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(error.into()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Ids::default(),
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { path, given })
    }

    /// The id of a submitter: its earlier one, else the next unused one. It is on disk before it
    /// is used.
    fn id_of(
        &mut self,
        submitter: &str,
        range: &RangeInclusive<u32>,
        taken: &dyn Fn(u32) -> bool,
    ) -> Result<u32, Error> {
        if let Some(id) = self.given.ids.get(submitter) {
            return Ok(*id);
        }
        let (first, last) = (*range.start(), *range.end());
        // Ids of a backup are anywhere in the range.
        let given: BTreeSet<u32> = self.given.ids.values().copied().collect();
        let mut free = self.given.next.max(first)..=last;
        let id = free.find(|id| !given.contains(id) && !taken(*id)).ok_or_else(|| {
            Error::Invalid(format!(
                "no private id is left for `{submitter}`: those from {first} to {last} were all given out; \
                 start the server with a further range, `elastane up --account-pool FIRST-LAST`"
            ))
        })?;
        let mut ids = self.given.ids.clone();
        ids.insert(submitter.to_owned(), id);
        self.keep(Ids { next: id + 1, ids, named: self.given.named.clone() })?;
        Ok(id)
    }

    /// Records that an account of this name exists.
    fn remember(&mut self, name: &str) -> Result<(), Error> {
        if self.given.named.contains(name) {
            return Ok(());
        }
        let mut named = self.given.named.clone();
        named.insert(name.to_owned());
        self.keep(Ids { next: self.given.next, ids: self.given.ids.clone(), named })
    }

    fn keep(&mut self, given: Ids) -> Result<(), Error> {
        let failed = |source| Error::io(format!("write {}", self.path.display()), source);
        self.write(&given).map_err(failed)?;
        self.given = given;
        Ok(())
    }

    fn write(&self, given: &Ids) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        let mut open = OpenOptions::new();
        let mut file = open.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec_pretty(given)?)?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

#[cfg(test)]
mod tests;
