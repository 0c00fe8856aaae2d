//! The memory of this program's own processes. Owns: releasing what only a start, or a burst of
//! work, needed.
//!
//! The kernel maps code in pieces of 64 KiB around each page used, so a start leaves most of a
//! large program resident. Unmapped pages stay in the page cache, from where a page that is used
//! again comes back; under memory pressure the kernel drops them like any other.

use std::fs;
use std::io;
use std::ops::Range;

use crate::sys;

/// A process that has grown by less is left alone.
const GROWTH_BYTES_MIN: u64 = 4 << 20;
/// After this many checks the process has mapped again what it needs at rest, unless that is more
/// than this; the remainder is growth.
const SETTLE_CHECKS: u32 = 4;
const SETTLE_BYTES_MAX: u64 = 8 << 20;

/// Unmaps the code that this process has used so far, and returns freed memory to the kernel.
///
/// # Errors
/// `/proc` is not readable, or the kernel refuses.
pub(crate) fn release_memory() -> io::Result<()> {
    for pages in as_in_files(&fs::read_to_string("/proc/self/maps")?) {
        sys::unmap_file_pages(pages)?;
    }
    sys::trim_heap();
    Ok(())
}

/// Releases the memory of a long-lived process each time it has grown.
#[derive(Debug, Default)]
pub struct Footprint {
    /// Resident after the last release; 0 before the first.
    released_bytes: u64,
    /// Resident at rest, some checks later.
    rest_bytes: u64,
    /// Checks until that is known.
    settles: u32,
}

impl Footprint {
    /// Call it every few seconds, or when idle: reads one small file, unless the process has
    /// grown.
    ///
    /// # Errors
    /// `/proc` is not readable, or the kernel refuses.
    pub fn keep_small(&mut self) -> io::Result<()> {
        let resident_bytes = resident_bytes()?;
        if self.settles > 0 {
            self.settles -= 1;
            self.rest_bytes = resident_bytes.min(self.released_bytes + SETTLE_BYTES_MAX);
        } else if resident_bytes >= self.rest_bytes + GROWTH_BYTES_MIN {
            release_memory()?;
            self.released_bytes = self::resident_bytes()?;
            self.settles = SETTLE_CHECKS;
        }
        Ok(())
    }
}

/// Resident memory of this process (proc_pid_statm(5)).
fn resident_bytes() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm has no resident pages"))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// The address ranges whose memory equals the file, for a process with these mappings
/// (proc_pid_maps(5)): code, and the read-only data before it in the program and its libraries.
/// Writable and relocated data are elsewhere.
fn as_in_files(mappings: &str) -> Vec<Range<usize>> {
    let rows: Vec<_> = mappings.lines().filter_map(Mapping::read).collect();
    let is_code = |row: &Mapping<'_>| row.access == "r-xp" && row.path.starts_with('/');
    let has_code = |path: &str| rows.iter().any(|row| row.path == path && is_code(row));
    let begins = |row: &Mapping<'_>| row.access == "r--p" && row.is_start && has_code(row.path);
    let found = rows.iter().filter(|row| is_code(row) || begins(row));
    found.map(|row| row.addresses.clone()).collect()
}

/// A line of `/proc/self/maps`.
struct Mapping<'a> {
    addresses: Range<usize>,
    access: &'a str,
    /// True if it maps the start of the file.
    is_start: bool,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let addresses = address(start)?..address(end)?;
        let (access, offset) = (fields.next()?, fields.next()?);
        let is_start = offset.bytes().all(|digit| digit == b'0');
        Some(Self { addresses, access, is_start, path: fields.nth(2)?.trim_start() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_in_the_program_and_its_libraries_is_found() {
        let mappings = "\
7f00-7f40 r--p 00000000 08:01 12 /opt/my elastane
7f40-7f80 r-xp 00040000 08:01 12                         /opt/my elastane
7f80-7f90 r--p 00080000 08:01 12 /opt/my elastane
7f90-7fa0 rw-p 00090000 08:01 12 /opt/my elastane
8000-8010 r-xp 00010000 08:01 13 /lib/libc.so.6
8010-8018 r--p 00000000 08:01 14 /usr/lib/locale/locale-archive
8018-8020 r--s 00000000 08:01 15 /state/elastane.db-shm
8020-8030 rw-p 00000000 00:00 0
8030-8040 r-xp 00000000 00:00 0                          [vdso]
";
        assert_eq!(as_in_files(mappings), [0x7f00..0x7f40, 0x7f40..0x7f80, 0x8000..0x8010]);
    }

    #[test]
    fn a_process_runs_on_after_its_code_was_unmapped() {
        let here = resident_bytes as fn() -> io::Result<u64> as usize;
        let mappings = fs::read_to_string("/proc/self/maps").unwrap();
        assert!(as_in_files(&mappings).iter().any(|pages| pages.contains(&here)));
        let mut footprint = Footprint::default();
        footprint.keep_small().unwrap();
        assert!(footprint.released_bytes > 0);
        footprint.keep_small().unwrap();
    }
}
