//! Limits of what users can create. Owns: the one table of them (name, default, what is counted,
//! what helps) and the words of a refusal. Does not know about: where each is counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of items.
    Count,
    /// Bytes.
    Bytes,
}

/// Effect of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLimit {
    /// The request is refused, because of this field of it.
    RefusesField(&'static str),
    /// The request is refused, because of the existing items.
    Refuses,
    /// The oldest items are dropped.
    DropsOldest,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    unit: Unit,
    default: u64,
    what: &'static str,
    at_limit: AtLimit,
    relief: &'static str,
}

macro_rules! user_limits {
    ($($(#[doc = $doc:literal])+ $limit:ident = $row:expr;)+) => {
        /// A limit of what users can make.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum UserLimit {
            $($(#[doc = $doc])+ $limit,)+
        }

        impl UserLimit {
            /// All limits, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$limit),+];

            const fn row(self) -> Row {
                match self {
                    $(Self::$limit => $row,)+
                }
            }
        }
    };
}

user_limits! {
    /// Environment of a submission.
    EnvironmentBytes = Row {
        name: "environment-bytes",
        unit: Unit::Bytes,
        default: 128 << 10,
        what: "names and values of the environment variables of a submission",
        at_limit: AtLimit::RefusesField("environmentVariables"),
        relief: "put large values into a config map (`elastane config-map set`), or into a file \
            of a volume",
    };
    /// Labels and annotations of a workload.
    LabelsBytes = Row {
        name: "labels-bytes",
        unit: Unit::Bytes,
        default: 64 << 10,
        what: "labels and annotations of a workload, names and values",
        at_limit: AtLimit::RefusesField("labels"),
        relief: "leave some out; data for programs belongs into a config map \
            (`elastane config-map set`)",
    };
    /// Workloads of a project in memory.
    ProjectWorkloads = Row {
        name: "project-workloads",
        unit: Unit::Count,
        default: 200_000,
        what: "workloads of a project that wait, run or ended lately",
        at_limit: AtLimit::Refuses,
        relief: "wait until some have ended, or delete some (`runai list`, `runai delete`)",
    };
    /// Submissions of a project in memory.
    ProjectWorkloadBytes = Row {
        name: "project-workload-bytes",
        unit: Unit::Bytes,
        default: 256 << 20,
        what: "submissions of the workloads of a project that wait, run or ended lately, as JSON",
        at_limit: AtLimit::Refuses,
        relief: "delete some (`runai list`, `runai delete`), or put what they share into a config map",
    };
    /// Pods of a project in memory.
    ProjectPods = Row {
        name: "project-pods",
        unit: Unit::Count,
        default: 500_000,
        what: "pods of the workloads of a project that wait, run or ended lately",
        at_limit: AtLimit::Refuses,
        relief: "ask for fewer workers, or delete some workloads (`runai list`, `runai delete`)",
    };
    /// Workloads of a user of a project in memory.
    UserWorkloads = Row {
        name: "user-workloads",
        unit: Unit::Count,
        default: 100_000,
        what: "workloads of a user in a project that wait, run or ended lately",
        at_limit: AtLimit::Refuses,
        relief: "wait until some have ended, or delete some (`runai list`, `runai delete`)",
    };
    /// Submissions of a user of a project in memory.
    UserWorkloadBytes = Row {
        name: "user-workload-bytes",
        unit: Unit::Bytes,
        default: 128 << 20,
        what: "submissions of the workloads of a user in a project that wait, run or ended lately, \
            as JSON",
        at_limit: AtLimit::Refuses,
        relief: "delete some (`runai list`, `runai delete`), or put what they share into a config map",
    };
    /// Pods of a user of a project in memory.
    UserPods = Row {
        name: "user-pods",
        unit: Unit::Count,
        default: 250_000,
        what: "pods of the workloads of a user in a project that wait, run or ended lately",
        at_limit: AtLimit::Refuses,
        relief: "ask for fewer workers, or delete some workloads (`runai list`, `runai delete`)",
    };
    /// Archived workloads of a project.
    ProjectArchivedWorkloads = Row {
        name: "project-archived-workloads",
        unit: Unit::Count,
        default: 1_000_000,
        what: "workloads of a project that ended earlier and were not deleted",
        at_limit: AtLimit::Refuses,
        relief: "delete some (`runai delete`)",
    };
    /// Archived workloads of a user of a project.
    UserArchivedWorkloads = Row {
        name: "user-archived-workloads",
        unit: Unit::Count,
        default: 500_000,
        what: "workloads of a user in a project that ended earlier and were not deleted",
        at_limit: AtLimit::Refuses,
        relief: "delete some (`runai delete`)",
    };
    /// Submissions of archived workloads of a project.
    ProjectArchivedBytes = Row {
        name: "project-archived-workload-bytes",
        unit: Unit::Bytes,
        default: 4 << 30,
        what: "submissions of the workloads of a project that ended earlier and were not deleted, \
            as JSON",
        at_limit: AtLimit::Refuses,
        relief: "delete some (`runai delete`)",
    };
    /// Submissions of archived workloads of a user of a project.
    UserArchivedBytes = Row {
        name: "user-archived-workload-bytes",
        unit: Unit::Bytes,
        default: 2 << 30,
        what: "submissions of the workloads of a user in a project that ended earlier and were not \
            deleted, as JSON",
        at_limit: AtLimit::Refuses,
        relief: "delete some (`runai delete`)",
    };
    /// Objects of one kind.
    Objects = Row {
        name: "objects",
        unit: Unit::Count,
        default: 50_000,
        what: "objects of one kind (assets, users, access rules, access keys, …)",
        at_limit: AtLimit::Refuses,
        relief: "delete some that are not used",
    };
    /// Objects of one kind that belong together.
    ObjectsOfOne = Row {
        name: "objects-of-one",
        unit: Unit::Count,
        default: 1000,
        what: "objects of one kind of one project, department, user or service account",
        at_limit: AtLimit::Refuses,
        relief: "delete some that are not used",
    };
    /// Objects of all kinds that belong together.
    ObjectsOfOneBytes = Row {
        name: "objects-of-one-bytes",
        unit: Unit::Bytes,
        default: 64 << 20,
        what: "objects of all kinds of one project, department, user or service account, with config \
            maps and credentials",
        at_limit: AtLimit::Refuses,
        relief: "delete some that are not used (`elastane config-map list --project PROJECT`)",
    };
    /// Objects of one kind of a user.
    UserObjects = Row {
        name: "user-objects",
        unit: Unit::Count,
        default: 10_000,
        what: "objects of one kind that a user created in all projects and departments",
        at_limit: AtLimit::Refuses,
        relief: "delete some that are not used",
    };
    /// Objects of all kinds of a user.
    UserObjectsBytes = Row {
        name: "user-objects-bytes",
        unit: Unit::Bytes,
        default: 256 << 20,
        what: "objects of all kinds that a user created anywhere, with config maps and credentials",
        at_limit: AtLimit::Refuses,
        relief: "delete some that are not used (`elastane config-map list --project PROJECT`)",
    };
    /// Objects of one kind of a user that belong together.
    UserObjectsOfOne = Row {
        name: "user-objects-of-one",
        unit: Unit::Count,
        default: 500,
        what: "objects of one kind that a user created in one project or department",
        at_limit: AtLimit::Refuses,
        relief: "delete some that are not used",
    };
    /// Objects of all kinds of a user that belong together.
    UserObjectsOfOneBytes = Row {
        name: "user-objects-of-one-bytes",
        unit: Unit::Bytes,
        default: 32 << 20,
        what: "objects of all kinds that a user created in one project or department, with config \
            maps and credentials",
        at_limit: AtLimit::Refuses,
        relief: "delete some that are not used (`elastane config-map list --project PROJECT`)",
    };
    /// One object.
    ObjectBytes = Row {
        name: "object-bytes",
        unit: Unit::Bytes,
        default: 64 << 10,
        what: "one object, beside the data of a config map or credential",
        at_limit: AtLimit::RefusesField("body"),
        relief: "make it smaller, or make several of it",
    };
    /// Sessions of a user.
    Sessions = Row {
        name: "sessions",
        unit: Unit::Count,
        default: 20,
        what: "sessions of a user",
        at_limit: AtLimit::DropsOldest,
        relief: "log in again where one has ended",
    };
    /// Deleted workloads.
    DeletedWorkloads = Row {
        name: "deleted-workloads",
        unit: Unit::Count,
        default: 10_000,
        what: "deleted workloads that are shown",
        at_limit: AtLimit::DropsOldest,
        relief: "read their events in the audit log",
    };
    /// Events.
    Events = Row {
        name: "events",
        unit: Unit::Count,
        default: 1_000_000,
        what: "events, however young",
        at_limit: AtLimit::DropsOldest,
        relief: "read them before they go (`GET /api/v1/workloads/{id}/events`)",
    };
    /// Rows of the audit log.
    AuditRows = Row {
        name: "audit-rows",
        unit: Unit::Count,
        default: 10_000_000,
        what: "rows of the audit log, however young",
        at_limit: AtLimit::DropsOldest,
        relief: "read them before they go (`GET /api/v1/audit/log`)",
    };
}

impl Unit {
    fn amount(self, value: u64) -> String {
        match self {
            Self::Count => value.to_string(),
            Self::Bytes => format!("{value} bytes"),
        }
    }

    /// Text of a value, as in a setting.
    #[must_use]
    pub fn text(self, value: u64) -> String {
        match self {
            Self::Count => value.to_string(),
            Self::Bytes => units::format_bytes(value),
        }
    }
}

impl UserLimit {
    /// Its name in the setting `user-limits`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Finds a limit by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.name() == name)
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> Unit {
        self.row().unit
    }

    /// Default value.
    #[must_use]
    pub const fn default(self) -> u64 {
        self.row().default
    }

    /// The things that are counted, in words.
    #[must_use]
    pub const fn what(self) -> &'static str {
        self.row().what
    }

    /// Its effect.
    #[must_use]
    pub const fn at_limit(self) -> AtLimit {
        self.row().at_limit
    }

    /// Advice for a user who has reached it.
    #[must_use]
    pub const fn relief(self) -> &'static str {
        self.row().relief
    }
}

/// The value of each limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserLimits {
    /// Values that differ from the default, by name of the limit.
    set: BTreeMap<String, u64>,
}

impl UserLimits {
    /// The value of a limit.
    #[must_use]
    pub fn get(&self, limit: UserLimit) -> u64 {
        self.set.get(limit.name()).copied().unwrap_or(limit.default())
    }

    /// Changes a limit.
    pub fn set(&mut self, limit: UserLimit, value: u64) {
        self.set.insert(limit.name().to_owned(), value);
    }

    /// Checks an amount, the requested items included, against a limit.
    ///
    /// # Errors
    /// It is more than the limit.
    pub fn check(&self, limit: UserLimit, amount: u64) -> Result<(), OverLimit> {
        let most = self.get(limit);
        if amount <= most {
            return Ok(());
        }
        Err(OverLimit { limit, amount, most })
    }
}

/// More than a limit allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{} are too many: {} are limited to {}; {}, or have an administrator start the server with \
     `--user-limits {}={amount}` or more",
    .limit.unit().amount(*.amount),
    .limit.what(),
    .limit.unit().amount(*.most),
    .limit.relief(),
    .limit.name(),
)]
pub struct OverLimit {
    /// Which limit.
    pub limit: UserLimit,
    /// How much there would be.
    pub amount: u64,
    /// How much is allowed.
    pub most: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_there_the_limit_and_what_to_type_next() {
        for &limit in UserLimit::ALL {
            let mut limits = UserLimits::default();
            limits.set(limit, 7);
            assert!(limits.check(limit, 7).is_ok());
            let why = limits.check(limit, 8).expect_err("more than the limit").to_string();
            let set = format!("--user-limits {}=8", limit.name());
            for part in ["8", "limited to 7", limit.relief(), &set] {
                assert!(why.contains(part), "{part}: {why}");
            }
            assert_eq!(UserLimit::named(limit.name()), Some(limit));
        }
    }
}
