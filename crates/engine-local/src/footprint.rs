//! The memory of this program's own processes. Owns: what a start used and nothing needs after it.
//!
//! The kernel maps code in pieces of 64 KiB around each page that is used, so a start leaves most of
//! a large program resident. What is unmapped here stays in the page cache, and a page that is used
//! again comes back from there without reading the disk.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::sys;

/// Unmaps the code that the start of this process used, and returns freed memory to the kernel.
///
/// # Errors
/// `/proc` is not readable, or the kernel refuses.
pub fn release_start_memory() -> io::Result<()> {
    let program = fs::read_link("/proc/self/exe")?;
    for code in code_of(&program, &fs::read_to_string("/proc/self/maps")?) {
        sys::unmap_code(code)?;
    }
    release_free_memory();
    Ok(())
}

/// Returns the memory that this process has freed to the kernel; the allocator keeps what lies
/// between allocations in use.
pub fn release_free_memory() {
    sys::trim_heap();
}

/// The addresses of a program's code, of a process with these mappings (proc_pid_maps(5)).
fn code_of(program: &Path, mappings: &str) -> Vec<Range<usize>> {
    let code = |line: &str| {
        let mut fields = line.splitn(6, ' ');
        let (addresses, access) = (fields.next()?, fields.next()?);
        let path = fields.nth(3)?.trim_start();
        // Writable pages and those that were relocated differ from the file. Code does not.
        (access == "r-xp" && Path::new(path) == program).then_some(())?;
        let (start, end) = addresses.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(address(start)?..address(end)?)
    };
    mappings.lines().filter_map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_code_of_the_program_is_found() {
        let mappings = "\
7f00-7f40 r--p 00000000 08:01 12 /opt/my elastane
7f40-7f80 r-xp 00040000 08:01 12                         /opt/my elastane
7f80-7f90 r--p 00080000 08:01 12 /opt/my elastane
7f90-7fa0 rw-p 00090000 08:01 12 /opt/my elastane
8000-8010 r-xp 00000000 08:01 13 /lib/libc.so.6
8020-8030 rw-p 00000000 00:00 0
";
        assert_eq!(code_of(Path::new("/opt/my elastane"), mappings), [0x7f40..0x7f80]);
    }

    #[test]
    fn a_process_runs_on_without_the_code_of_its_start() {
        let program = fs::read_link("/proc/self/exe").unwrap();
        let mappings = fs::read_to_string("/proc/self/maps").unwrap();
        let here = only_the_code_of_the_program_is_found as fn() as usize;
        assert!(code_of(&program, &mappings).iter().any(|code| code.contains(&here)));
        release_start_memory().unwrap();
        only_the_code_of_the_program_is_found();
    }
}
