//! The priority of a workload. Owns: the class and its value as one, the usual class of each kind,
//! and which classes are preemptible by default. The classes themselves are those of `model`.

use model::PRIORITY_CLASSES as CLASSES;
use serde::{Deserialize, Serialize};

use crate::WorkloadKind;

/// Lowest value at which a workload is not preemptible by default.
const NON_PREEMPTIBLE_FROM: u32 = 100;

/// A priority class and its value. Stored documents name them `priority_class` and `priority`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Priority {
    /// Higher values are scheduled first inside a project.
    #[serde(rename = "priority")]
    pub value: u32,
    /// Name of the class.
    #[serde(rename = "priority_class")]
    pub class: String,
}

impl Priority {
    /// Default priority of a kind of workload.
    #[must_use]
    pub fn default_of(kind: WorkloadKind) -> Self {
        let (class, value) = match kind {
            WorkloadKind::Training | WorkloadKind::Distributed => ("train", 50),
            WorkloadKind::Inference => ("inference", 125),
            WorkloadKind::Workspace => ("build", 100),
        };
        Self { value, class: class.to_owned() }
    }

    /// All classes, the lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        CLASSES.iter().map(|&(class, value)| Self { value, class: class.to_owned() })
    }

    /// Finds a class by its name.
    ///
    /// # Errors
    /// There is no such class: the text lists the known ones.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::all().find(|one| one.class == name).ok_or_else(|| {
            let known: Vec<&str> = CLASSES.iter().map(|(known, _)| *known).collect();
            format!("`{name}` is not a priority class; allowed are {}", known.join(", "))
        })
    }

    /// True if a workload of this class is preemptible by default.
    #[must_use]
    pub const fn is_preemptible(&self) -> bool {
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
            let priority = Priority::default_of(kind);
            assert_eq!(Priority::named(&priority.class), Ok(priority));
        }
        assert!(Priority::default_of(Training).is_preemptible());
        assert!(!Priority::default_of(Workspace).is_preemptible());
        assert!(Priority::named("urgent").unwrap_err().contains("very-low, low, train"));
    }
}
