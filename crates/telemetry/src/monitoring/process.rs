//! This process, by the names that all exporters use. Owns: reading them from the kernel.
//! Unreadable values are left out.

use std::{fmt, fs};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use units::Instant;

use super::{Gauges, number, whole};

/// This process.
#[derive(Debug)]
pub(super) struct Process {
    started: Instant,
}

impl Process {
    /// Metrics of a process that has served since `started`.
    pub(super) const fn started(started: Instant) -> Self {
        Self { started }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cpu = ConstCounter::new(cpu_seconds());
        let about = "CPU time of the server, of all its threads.";
        let unit = Some(Unit::Seconds);
        let to =
            encoder.encode_descriptor("process_cpu", about, unit.as_ref(), cpu.metric_type())?;
        cpu.encode(to)?;
        let mut gauges = Gauges(encoder);
        let about = "When the server was started, in seconds since 1970.";
        gauges.one(("process_start_time", unit), about, whole(self.started.0))?;
        if let Some(bytes) = resident_bytes() {
            let about = "Memory of the server that is in RAM.";
            gauges.one(("process_resident_memory", Some(Unit::Bytes)), about, number(bytes))?;
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            let about = "Files, sockets and pipes that the server has open.";
            // The count includes the directory itself.
            let open = open.count().saturating_sub(1) as u64;
            gauges.one(("process_open_fds", None), about, number(open))?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            let about = "How many of them it may have open.";
            gauges.one(("process_max_fds", None), about, number(most))?;
        }
        Ok(())
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = number(u64::try_from(time.tv_sec).unwrap_or_default());
    seconds + number(u64::try_from(time.tv_nsec).unwrap_or_default()) / 1e9
}

fn resident_bytes() -> Option<u64> {
    let pages = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
