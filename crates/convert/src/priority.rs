//! Priority classes as the interface has them. Owns: the defaults of kinds of workloads, and what
//! is said of a name that is none. Does not know which classes there are.

use model::PRIORITY_CLASSES as CLASSES;
use orchestrator::view::WorkloadKind;

/// From this value on a workload is not preemptible unless it says so.
const NON_PREEMPTIBLE_FROM: u32 = 100;

/// A priority class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// The higher, the sooner.
    pub value: u32,
}

impl Class {
    /// The class of a kind of workload that names none.
    pub const fn default_of(kind: WorkloadKind) -> Self {
        match kind {
            WorkloadKind::Training | WorkloadKind::Distributed => Self { name: "train", value: 50 },
            WorkloadKind::Inference => Self { name: "inference", value: 125 },
            WorkloadKind::Workspace => Self { name: "build", value: 100 },
        }
    }

    /// All of them, the lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        CLASSES.iter().map(|&(name, value)| Self { name, value })
    }

    /// The class of this name; otherwise what is allowed.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = CLASSES.iter().find(|(known, _)| *known == name);
        found.map(|&(name, value)| Self { name, value }).ok_or_else(|| {
            let known: Vec<&str> = CLASSES.iter().map(|(known, _)| *known).collect();
            format!("`{name}` is not a priority class; allowed are {}", known.join(", "))
        })
    }

    /// Whether a workload of this class may be evicted when it does not say.
    pub const fn preemptible(self) -> bool {
        self.value < NON_PREEMPTIBLE_FROM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_classes_themselves() {
        use WorkloadKind::{Distributed, Inference, Training, Workspace};
        for kind in [Training, Workspace, Distributed, Inference] {
            let class = Class::default_of(kind);
            assert_eq!(Class::named(class.name), Ok(class));
        }
        assert!(Class::default_of(WorkloadKind::Training).preemptible());
        assert!(!Class::default_of(WorkloadKind::Workspace).preemptible());
        assert!(Class::named("urgent").unwrap_err().contains("very-low, low, train"));
    }
}
