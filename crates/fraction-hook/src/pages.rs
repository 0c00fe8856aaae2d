//! Location of the pages of the run. Owns: finding them. Does not know about: their content.
//!
//! A library in a program means that the run has a limit. So one that finds no pages, or none that
//! it can use, lets the program take nothing: an environment that was emptied lifts no limit.

use core::ffi::CStr;

use fraction_abi::claim::Claim;
use fraction_abi::control::Control;
use fraction_abi::sys::{self, Access};
use fraction_abi::{CLAIM_FILE, CONTROL_FILE, DIRECTORY, DIRECTORY_VARIABLE};

use crate::elf;

/// Result of the search for pages.
pub(crate) enum PagesLookup {
    /// The program has other rights than the account that started it: the library does nothing in
    /// it.
    NotMeant,
    /// Pages that are missing, broken or of another version.
    Unusable,
    /// The pages of the run.
    Pages(&'static Control, &'static Claim),
}

/// Finds the pages.
pub(crate) fn find() -> PagesLookup {
    if elf::is_secure() {
        return PagesLookup::NotMeant;
    }
    let mut folder = Folder { path: [0; PATH_MAX], length: 0 };
    let mut pages = || {
        if !folder.is_found() {
            return None;
        }
        let control = Control::map(folder.file(CONTROL_FILE)?).ok()?;
        Some((control, Claim::map(folder.file(CLAIM_FILE)?).ok()?))
    };
    pages().map_or(PagesLookup::Unusable, |(control, claim)| PagesLookup::Pages(control, claim))
}

const PATH_MAX: usize = 4096;

/// The folder with the pages of the run.
struct Folder {
    path: [u8; PATH_MAX],
    length: usize,
}

impl Folder {
    /// At the fixed place, which a workload cannot change, or beside this library, or else where
    /// the environment said at the start of the program.
    fn is_found(&mut self) -> bool {
        let fixed = self.is_called(DIRECTORY.as_bytes());
        fixed || self.is_beside().unwrap_or(false) || self.is_of_environment().unwrap_or(false)
    }

    fn is_beside(&mut self) -> Option<bool> {
        let library = elf::own_path()?.to_bytes();
        let end = library.iter().rposition(|byte| *byte == b'/')?;
        Some(self.is_called(library.get(..end)?))
    }

    /// True if there is something at the place of the control page, however broken.
    #[inline(never)]
    fn is_called(&mut self, name: &[u8]) -> bool {
        self.length = 0;
        name.iter().for_each(|byte| self.push(*byte));
        let inode = self.file(CONTROL_FILE).map(sys::inode);
        inode.is_some_and(|inode| inode != Err(sys::ENOENT))
    }

    /// Reads the value of the variable.
    fn is_of_environment(&mut self) -> Option<bool> {
        let file = sys::open(c"/proc/self/environ", Access::Read).ok()?;
        let name = DIRECTORY_VARIABLE.as_bytes();
        let mut block = [0_u8; 1024];
        self.length = 0;
        // How many bytes of `NAME=` matched, and whether this variable is another one.
        let (mut matched, mut other) = (0, false);
        while let Ok(read @ 1..) = sys::read(&file, &mut block) {
            for byte in block.get(..read).unwrap_or(&[]) {
                let whole = matched > name.len();
                match (*byte, whole) {
                    (0, true) => return Some(self.length > 0),
                    (0, false) => (matched, other) = (0, false),
                    (byte, true) => self.push(byte),
                    (byte, false) => {
                        other |= byte != name.get(matched).copied().unwrap_or(b'=');
                        matched += usize::from(!other);
                    }
                }
            }
        }
        None
    }

    /// Adds to the name of the folder. One that is too long leads nowhere.
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.path.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    /// The path of a file in it.
    #[inline(never)]
    fn file(&mut self, name: &str) -> Option<&CStr> {
        let behind = self.path.get_mut(self.length..)?;
        let bytes = [b"/".as_slice(), name.as_bytes(), b"\0"].into_iter().flatten();
        for (slot, byte) in behind.iter_mut().zip(bytes) {
            *slot = *byte;
        }
        CStr::from_bytes_until_nul(&self.path).ok()
    }
}
