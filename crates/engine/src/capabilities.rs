//! Capabilities of an engine, and its current outages. Owns: the data that the API and `elastane
//! status` show. Does not know how any engine finds out.

use spec::{DiskRoom, PoolFractions, TimeSlicing};
use units::Instant;

use crate::LimitsKept;

/// How well an engine limits a fraction of a GPU to its share of memory, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enforcement {
    /// Shares are only counted; a run can take more.
    None,
    /// A program that takes more gets an error, unless its user circumvents the limit.
    Cooperative,
    /// A run that takes more always gets an error.
    Hard,
}

impl Enforcement {
    /// Name in the API and in `elastane status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cooperative => "cooperative",
            Self::Hard => "hard",
        }
    }
}

/// Mechanism that limits a run to its part of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// No mechanism.
    None,
    /// Libraries in the place of the driver's, mounted where a run cannot remove them.
    MountedLibraries,
    /// A library that the loader of a container always loads before the driver's.
    PreloadedLibraries,
    /// The mounted libraries, but found by variables that a run can change.
    Variables,
    /// NVIDIA's MPS server, found by variables that a run can change.
    Mps,
    /// The kernel, by the run's control group.
    ControlGroup,
    /// The hardware, by a MIG instance for the run alone.
    Mig,
}

impl Mechanism {
    /// Name in the API and in `elastane status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::MountedLibraries => "mounted-libraries",
            Self::PreloadedLibraries => "preloaded-libraries",
            Self::Variables => "variables",
            Self::Mps => "mps",
            Self::ControlGroup => "dmem",
            Self::Mig => "mig",
        }
    }

    /// Description in one sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::None => "shares are counted when work is placed; nothing stops a program",
            Self::MountedLibraries => {
                "libraries in the driver's place refuse memory beyond the share; they stop mistakes, \
                 not a user who works around them"
            }
            Self::PreloadedLibraries => {
                "a library that every program of a container loads first refuses memory beyond the \
                 share; it stops mistakes, not a user who works around it"
            }
            Self::Variables => {
                "libraries found by variables refuse memory beyond the share; they stop mistakes, \
                 and a cleared environment lifts them"
            }
            Self::Mps => {
                "the MPS server refuses each program memory beyond the share, by variables; it stops \
                 mistakes, and a cleared environment lifts it"
            }
            Self::ControlGroup => {
                "the kernel refuses memory beyond the share to all programs in the control group of a run"
            }
            Self::Mig => {
                "each run has a MIG instance, a part of the hardware with its own memory and compute"
            }
        }
    }

    /// True if the mechanism can divide compute time this way.
    #[must_use]
    pub const fn divides(self, time_slicing: TimeSlicing) -> bool {
        match (self, time_slicing) {
            (_, TimeSlicing::None) => true,
            (Self::None | Self::ControlGroup | Self::Mig, _) | (Self::Mps, TimeSlicing::Fair) => {
                false
            }
            (Self::MountedLibraries | Self::PreloadedLibraries | Self::Variables, _) => true,
            (Self::Mps, TimeSlicing::Strict) => true,
        }
    }
}

/// How limits on fractions of a GPU are enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FractionLimit {
    /// Strength of the limit.
    pub level: Enforcement,
    /// Mechanism of the limit.
    pub mechanism: Mechanism,
    /// How the mechanism divides compute time.
    pub time_slicing: TimeSlicing,
    /// Missing guarantees, their reason, and what to do; empty if nothing is missing.
    pub why: String,
}

impl FractionLimit {
    /// Reason why shares of a simulated GPU have no limit in a run without the simulated driver.
    pub const NO_SIMULATED_DRIVER: &str = "no simulated driver here (--simulated-driver)";

    /// Missing guarantee on nodes with simulated GPUs.
    pub const WITH_SIMULATED_DRIVER: &str =
        "on simulated GPUs only in runs with the simulated driver (--simulated-driver)";

    /// Division of compute time in a node pool with this setting; `None` uses the engine's own.
    #[must_use]
    pub fn time_slicing(&self, of_pool: Option<TimeSlicing>) -> TimeSlicing {
        let wanted = of_pool.unwrap_or(self.time_slicing);
        if self.mechanism.divides(wanted) { wanted } else { TimeSlicing::None }
    }

    /// Description of that division in one sentence.
    #[must_use]
    pub fn time_slicing_meaning(&self, of_pool: Option<TimeSlicing>) -> &'static str {
        match (self.mechanism, self.time_slicing(of_pool)) {
            (Mechanism::Mps, TimeSlicing::Strict) => {
                "a program uses at most its share of the multiprocessors of the GPU at a time"
            }
            (_, time_slicing) => time_slicing.meaning(),
        }
    }

    /// Enforcement in a node pool with this setting; `None` uses the engine's own.
    #[must_use]
    pub fn in_pool(&self, fractions: Option<PoolFractions>) -> Self {
        match fractions {
            None => self.clone(),
            Some(PoolFractions::Counted) => Self::none("the node pool has them counted only"),
            Some(PoolFractions::HardOnly) if self.level == Enforcement::Hard => self.clone(),
            Some(PoolFractions::HardOnly) => {
                let none = "the node pool gives out no part of a GPU, as nothing keeps it hard";
                let both = [none, &self.why].into_iter().filter(|text| !text.is_empty());
                Self { why: both.collect::<Vec<_>>().join("; "), ..self.clone() }
            }
        }
    }

    /// No enforcement, for this reason.
    #[must_use]
    pub fn none(why: &str) -> Self {
        Self {
            level: Enforcement::None,
            mechanism: Mechanism::None,
            time_slicing: TimeSlicing::None,
            why: why.to_owned(),
        }
    }
}

/// Enforcement of fractions, by the driver of the GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fractions {
    /// Enforcement on real GPUs.
    pub installed: FractionLimit,
    /// Enforcement on simulated GPUs, for workloads that have the simulated driver.
    pub simulated: FractionLimit,
}

impl Fractions {
    /// No enforcement on any GPU, for this reason.
    #[must_use]
    pub fn none(why: &str) -> Self {
        Self { installed: FractionLimit::none(why), simulated: FractionLimit::none(why) }
    }

    /// Enforcement on a simulated or a real GPU.
    #[must_use]
    pub const fn of(&self, simulated: bool) -> &FractionLimit {
        if simulated { &self.simulated } else { &self.installed }
    }
}

/// An outage of the engine, or of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outage {
    /// The program that runs pods does not answer; the known state of runs dates from before.
    Silent {
        /// Name of the program, for a message.
        who: String,
        /// Reason, as the system reports it.
        why: String,
        /// Start of the outage.
        since: Instant,
    },
    /// A disk that the server or its containers write to has no more room than the reserve for the
    /// server. The known state of runs is current.
    DiskFull {
        /// The state directory, or that of the container daemon.
        folder: String,
        /// Free bytes and files when the engine noticed the outage.
        free: DiskRoom,
        /// Bytes and files reserved for the server.
        kept: DiskRoom,
        /// `true` if the run that grows most is stopped before the reserve is used.
        stops_runs: bool,
        /// Start of the outage.
        since: Instant,
    },
    /// The disk of the database is full: nothing can be changed. The known state of runs is that
    /// before.
    DatabaseFull {
        /// Name of the database.
        database: String,
        /// Start of the outage.
        since: Instant,
    },
}

impl Outage {
    /// Start of the outage.
    #[must_use]
    pub const fn since(&self) -> Instant {
        match self {
            Self::Silent { since, .. }
            | Self::DiskFull { since, .. }
            | Self::DatabaseFull { since, .. } => *since,
        }
    }

    /// `true` if a disk is full, and the engine answers.
    #[must_use]
    pub const fn is_of_disk(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::DatabaseFull { .. })
    }
}

/// Capabilities of an engine, as data that the API and the UI show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Name of the engine and runtime: `process`, `docker`, `kubernetes`.
    pub runtime: String,
    /// Enforcement of fractions of GPUs.
    pub fractions: Fractions,
    /// Limits of a run that the engine enforces.
    pub keeps_limits: LimitsKept,
    /// Isolation of runs.
    pub isolation: Isolation,
}

/// Isolation of runs from each other and from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// Mechanism of the isolation.
    pub kind: IsolationKind,
    /// Missing isolation, its reason, and what to do; empty if nothing is missing.
    pub missing: String,
}

/// Mechanism that isolates runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationKind {
    /// A run is a container.
    Containers,
    /// A run has the Unix account of its submitter, and a view of the file system without the
    /// state directory.
    Accounts,
    /// A run has the account of the server, in a user and mount namespace of its own.
    Namespaces,
    /// A run has the account of the server, and Landlock keeps it out of the state directory.
    Landlock,
    /// A run can do what the server can.
    None,
}

impl IsolationKind {
    /// Name in the API and in `elastane status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::Accounts => "accounts",
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }

    /// Description in one sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Containers => "each run is a container",
            Self::Accounts => {
                "runs have their submitter's Unix account and cannot see the state directory"
            }
            Self::Namespaces => {
                "runs have the server's account, in namespaces without the state directory"
            }
            Self::Landlock => {
                "runs have the server's account, and Landlock keeps them out of the state directory"
            }
            Self::None => "runs have the server's account and can read the administrator's token",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mechanism_says_how_it_divides_compute_time_or_that_it_does_not() {
        let by = |mechanism, time_slicing| FractionLimit {
            level: Enforcement::Cooperative,
            mechanism,
            time_slicing,
            why: String::new(),
        };
        let libraries = by(Mechanism::Variables, TimeSlicing::Fair);
        assert_eq!(libraries.time_slicing(None), TimeSlicing::Fair);
        assert_eq!(libraries.time_slicing(Some(TimeSlicing::Strict)), TimeSlicing::Strict);
        let mps = by(Mechanism::Mps, TimeSlicing::Strict);
        assert_eq!(mps.time_slicing(None), TimeSlicing::Strict);
        assert!(mps.time_slicing_meaning(None).contains("multiprocessors"));
        assert_eq!(mps.time_slicing(Some(TimeSlicing::Fair)), TimeSlicing::None);
        let of_pool = libraries.in_pool(Some(PoolFractions::HardOnly));
        assert_eq!((of_pool.level, of_pool.why.is_empty()), (Enforcement::Cooperative, false));
        assert_eq!(libraries.in_pool(None), libraries);
        let counted = libraries.in_pool(Some(PoolFractions::Counted));
        assert_eq!(
            (counted.level, counted.time_slicing(None)),
            (Enforcement::None, TimeSlicing::None)
        );
        let counted = FractionLimit::none("");
        assert_eq!(counted.time_slicing(Some(TimeSlicing::Strict)), TimeSlicing::None);
    }
}
