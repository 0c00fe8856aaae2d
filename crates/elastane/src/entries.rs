//! Entries of the start text and of `elastane status`. Owns: a title and its value in lines, and the
//! entries that both have. Does not know about: the order of entries.

use engine::{DiskSpace, SharedDisk};
use units::format_bytes;

/// Text about the isolation of workloads, and its gaps.
pub(super) fn isolation(kind: &str, meaning: &str, missing: &str) -> String {
    let more = if missing.is_empty() { String::new() } else { entry("", missing) };
    format!("{}{more}", entry("Isolation", &format!("{kind}: {meaning}")))
}

/// A value with its title in front, in lines of at most 80 columns.
pub(super) fn entry(title: &str, value: &str) -> String {
    let mut lines = cli_kit::table::filled(value, 67).into_iter();
    let first = format!("  {title:<11}{}\n", lines.next().unwrap_or_default());
    lines.fold(first, |all, line| all + &format!("{:13}{line}\n", ""))
}

/// Text about the disk of the state, which workloads fill as well.
pub(super) fn shared_disk(SharedDisk { folder, stops_runs }: &SharedDisk) -> String {
    let Ok(DiskSpace { free, kept }) = DiskSpace::of(folder) else {
        return String::new();
    };
    let more = match stops_runs {
        true => "",
        false => {
            "; no container is stopped for it, and the output of each is bounded by what was free \
             at its start"
        }
    };
    let (free, kept) = (format_bytes(free.bytes), format_bytes(kept.bytes));
    let folder = folder.display();
    entry(
        "Disk",
        &format!(
            "workloads write to the disk of {folder}: {free} are free, {kept} are for the server{more}"
        ),
    )
}
