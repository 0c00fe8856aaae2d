//! The pages of a run as files. Owns: making them whole before the run can find them, changing
//! limits in place, and reading claims. Both are read and written as bytes and never mapped here: a
//! run that shares the server's account could cut them short, which would end a process that maps
//! them. Does not know about: what a device is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use fraction_abi::control::{self, Control, Limit};
use fraction_abi::{CLAIM_FILE, CONTROL_FILE, claim};

use crate::libraries::open_folder;
use crate::reach::Unreached;
use crate::{Error, failed};

/// There once it was reported that the libraries do not reach the program of the run.
const REPORTED_FILE: &str = "unreached-reported";

/// Limit of a run on one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// UUID that the driver gives the GPU.
    pub uuid: [u8; 16],
    /// Memory in bytes.
    pub bytes: u64,
    /// Memory that a context takes on it, in bytes; 0 if unknown.
    pub context: u64,
}

/// Account that writes the claims of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The account of the server.
    Server,
    /// A user and a group.
    Account(u32, u32),
    /// Every account of its container: the folder of the pages is closed to others.
    Container,
}

/// The folder of a run's pages.
#[derive(Debug, Clone)]
pub struct Pages(PathBuf);

impl Pages {
    /// Pages in this folder, which may not exist.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Makes both pages. The claim page belongs to its writer, everything else to the server.
    /// Replaces pages of an interrupted start.
    ///
    /// # Errors
    /// They cannot be written whole.
    pub fn make(&self, grants: &[Grant], writer: Writer) -> Result<(), Error> {
        let limit = |grant: &Grant| {
            let Grant { uuid, bytes, context } = *grant;
            Limit { uuid, bytes, uncounted: 0, context }
        };
        let limits: Vec<Limit> = grants.iter().map(limit).collect();
        let mut page = Control::new(&limits, 0).as_bytes().to_vec();
        page.resize(control::BYTES, 0);
        let mut empty = claim::header().to_vec();
        empty.resize(claim::BYTES, 0);
        open_folder(&self.0).map_err(failed("make", &self.0))?;
        let reported = self.0.join(REPORTED_FILE);
        remove(&reported).map_err(failed("remove", &reported))?;
        self.put(CONTROL_FILE, &page, 0o644, Writer::Server)?;
        let mode = if writer == Writer::Container { 0o666 } else { 0o600 };
        self.put(CLAIM_FILE, &empty, mode, writer)
    }

    fn put(&self, name: &str, bytes: &[u8], mode: u32, writer: Writer) -> Result<(), Error> {
        let path = self.0.join(name);
        let aside = self.0.join(format!("{name}.new"));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file =
                options.create(true).truncate(true).write(true).mode(mode).open(&aside)?;
            // All zeros are written, so that a disk which is full later ends no program.
            file.write_all(bytes)?;
            fs::set_permissions(&aside, fs::Permissions::from_mode(mode))?;
            if let Writer::Account(uid, gid) = writer {
                chown(&aside, Some(uid), Some(gid))?;
            }
            fs::rename(&aside, &path)
        };
        write().map_err(failed("write", &path))
    }

    /// Current limits of the run.
    ///
    /// # Errors
    /// The page cannot be read, or has another form.
    pub fn limits(&self) -> Result<Vec<Limit>, Error> {
        let path = self.0.join(CONTROL_FILE);
        let page = read(&path, control::BYTES).map_err(failed("read", &path))?;
        let limits = control::limits(&page).map(Iterator::collect);
        limits.ok_or(Error::Page(path))
    }

    /// Changes the limit of the run on a GPU, which its programs see at once. A limit below their
    /// memory in use takes nothing away and grants nothing more. Returns `false` if the run does
    /// not have this GPU.
    ///
    /// # Errors
    /// The page cannot be changed, or is none.
    pub fn set_limit(&self, uuid: [u8; 16], bytes: u64) -> Result<bool, Error> {
        self.change(uuid, |limit| limit.bytes = bytes)
    }

    /// Changes the uncounted memory of the run on a GPU. Returns `false` if the run does not have
    /// this GPU.
    ///
    /// # Errors
    /// As there.
    pub fn set_uncounted(&self, uuid: [u8; 16], bytes: u64) -> Result<bool, Error> {
        self.change(uuid, |limit| limit.uncounted = bytes)
    }

    fn change(&self, uuid: [u8; 16], change: impl Fn(&mut Limit)) -> Result<bool, Error> {
        let path = self.0.join(CONTROL_FILE);
        let before = self.limits()?;
        let mut after = before.clone();
        let Some(limit) = after.iter_mut().find(|limit| limit.uuid == uuid) else {
            return Ok(false);
        };
        change(limit);
        let [before, after] = [before, after].map(|limits| Control::new(&limits, 0));
        let write = || -> io::Result<()> {
            let file = OpenOptions::new().write(true).open(&path)?;
            let words = |page: &'_ Control| page.as_bytes().chunks(8).map(<[u8]>::to_vec).collect();
            let [before, after]: [Vec<Vec<u8>>; 2] = [words(&before), words(&after)];
            // Word by word, so that a program which reads meanwhile finds the old or the new.
            for (at, (_, word)) in
                (0_u64..).zip(before.iter().zip(&after)).filter(|(_, (old, new))| old != new)
            {
                file.write_all_at(word, at * 8)?;
            }
            Ok(())
        };
        write().map_err(failed("change", &path))?;
        Ok(true)
    }

    /// Claims of all processes of the run on a device of the control page, in bytes. The run may
    /// write anything into the page; an unreadable page claims nothing.
    #[must_use]
    pub fn claimed(&self, device: usize) -> u64 {
        let page = read(&self.0.join(CLAIM_FILE), claim::BYTES).unwrap_or_default();
        let held = claim::claims(&page).filter_map(|claimed| claimed.bytes.get(device).copied());
        held.fold(0, u64::saturating_add)
    }

    /// Records for readers of the claims that the libraries do not reach the program of the run.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn set_unreached(&self, why: Unreached) -> Result<(), Error> {
        let path = self.0.join(CLAIM_FILE);
        let file = OpenOptions::new().write(true).open(&path);
        let number = why.number().to_le_bytes();
        let written = file.and_then(|file| file.write_all_at(&number, claim::unreached_at()));
        written.map_err(failed("write", &path))
    }

    /// The recorded reason; `None` if there is none. The page may have any content.
    #[must_use]
    pub fn unreached(&self) -> Option<Unreached> {
        // The beginning alone: it is read often.
        let page = read(&self.0.join(CLAIM_FILE), 64).unwrap_or_default();
        claim::unreached(&page).and_then(Unreached::numbered)
    }

    /// Records that the reason was reported. Returns `true` the first time since the pages were
    /// made, also across servers.
    ///
    /// # Errors
    /// That cannot be written.
    pub fn report_unreached(&self) -> Result<bool, Error> {
        let path = self.0.join(REPORTED_FILE);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(failed("write", &path)(error)),
        }
    }
}

/// Removes a file that may not exist.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The beginning of a file. A run can replace nothing here, but only change or cut its own.
fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTS: [Grant; 2] = [
        Grant { uuid: [1; 16], bytes: 1000, context: 10 },
        Grant { uuid: [2; 16], bytes: 2000, context: 20 },
    ];

    fn pages() -> (tempfile::TempDir, Pages) {
        let top = tempfile::tempdir().unwrap();
        let pages = Pages::at(&top.path().join("fraction"));
        pages.make(&GRANTS, Writer::Server).unwrap();
        (top, pages)
    }

    #[test]
    fn a_limit_changes_in_place_and_alone() {
        let (_top, pages) = pages();
        assert!(pages.set_limit([2; 16], 5).unwrap() && pages.set_uncounted([1; 16], 7).unwrap());
        assert!(!pages.set_limit([3; 16], 5).unwrap(), "it does not have that one");
        let limits = pages.limits().unwrap();
        let shown: Vec<_> = limits.iter().map(|l| (l.bytes, l.uncounted, l.context)).collect();
        assert_eq!(shown, [(1000, 7, 10), (5, 0, 20)]);
    }

    #[test]
    fn a_page_that_is_none_is_an_error_and_claims_nothing() {
        let (_top, pages) = pages();
        let (control, claim) = (pages.0.join(CONTROL_FILE), pages.0.join(CLAIM_FILE));
        let whole = fs::read(&control).unwrap();
        for broken in [&b""[..], &whole[..100], &vec![0; 4096], &vec![255; 4096]] {
            fs::write(&control, broken).unwrap();
            assert!(matches!(pages.set_limit([1; 16], 5), Err(Error::Page(_))));
            assert!(pages.limits().is_err());
        }
        let any = [&claim::header()[..], &[255; 64]].concat();
        for broken in [&b""[..], b"x", &vec![255; 1 << 20], &claim::header(), &any] {
            fs::write(&claim, broken).unwrap();
            assert_eq!((pages.claimed(0), pages.claimed(99)), (0, 0));
            assert_eq!(pages.unreached(), None);
        }
        fs::remove_file(&claim).unwrap();
        assert_eq!(pages.claimed(0), 0);
    }

    #[test]
    fn on_a_full_disk_there_is_an_error_and_the_pages_before_it_stay() {
        let (_top, pages) = pages();
        let claim = pages.0.join(CLAIM_FILE);
        let before = fs::read(&claim).unwrap();
        std::os::unix::fs::symlink("/dev/full", pages.0.join("claim.new")).unwrap();
        let error = pages.make(&GRANTS, Writer::Server).unwrap_err();
        assert!(error.to_string().ends_with("/claim"), "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.starts_with("No space left"), "{cause}");
        assert_eq!(fs::read(&claim).unwrap(), before);
        let other = Pages::at(&pages.0.join("other"));
        fs::create_dir(&other.0).unwrap();
        std::os::unix::fs::symlink("/dev/full", other.0.join("control.new")).unwrap();
        assert!(other.make(&GRANTS, Writer::Server).is_err());
        assert!(other.limits().is_err() && !other.0.join(CLAIM_FILE).exists());
    }

    #[test]
    fn it_is_written_down_that_a_program_is_not_reached() {
        let (_top, pages) = pages();
        assert_eq!(pages.unreached(), None);
        pages.set_unreached(Unreached::OtherLibrary).unwrap();
        assert_eq!(pages.unreached(), Some(Unreached::OtherLibrary));
        fs::remove_file(pages.0.join(CLAIM_FILE)).unwrap();
        assert_eq!(pages.unreached(), None);
        assert!(pages.set_unreached(Unreached::Static).is_err(), "there is no page");
    }

    #[test]
    fn it_is_reported_once_until_the_pages_are_made_again() {
        let (_top, pages) = pages();
        assert!(pages.report_unreached().unwrap());
        assert!(!Pages::at(&pages.0).report_unreached().unwrap(), "by another server");
        pages.make(&GRANTS, Writer::Server).unwrap();
        assert!(pages.report_unreached().unwrap());
        let none = Pages::at(Path::new("/nowhere"));
        assert!(none.report_unreached().is_err());
    }

    #[test]
    fn what_a_process_claims_is_read() {
        use fraction_abi::{claim::Claim, ledger::Ledger, owner::Owner};
        let (_top, pages) = pages();
        let path = std::ffi::CString::new(pages.0.join(CLAIM_FILE).to_str().unwrap()).unwrap();
        let ledger = Ledger::new(Claim::map(&path).unwrap());
        let seat = ledger.attach(Owner::current()).unwrap();
        ledger.reserve(seat, 1, 300, 2000).unwrap();
        assert_eq!((pages.claimed(0), pages.claimed(1)), (0, 300));
    }
}
