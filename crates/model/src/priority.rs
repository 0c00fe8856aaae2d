//! Names of priorities. Owns: the names and their values (reference D.4), the old ones included.
//! Does not know about: the priority of a workload.

/// Name and value, lowest first; the first name of a value is the one shown for it.
pub const PRIORITY_CLASSES: [(&str, u32); 13] = [
    ("very-low", 25),
    ("low", 40),
    ("train", 50),
    ("medium-low", 65),
    ("interactive-preemptible", 75),
    ("build-preemptible", 75),
    ("medium", 80),
    ("medium-high", 90),
    ("build", 100),
    ("interactive", 100),
    ("high", 125),
    ("inference", 125),
    ("very-high", 150),
];

/// Names on the scale from very low to very high; the others are defaults of kinds of workloads.
const STEPS: [&str; 7] =
    ["very-low", "low", "medium-low", "medium", "medium-high", "high", "very-high"];

/// The names on this scale with their values, lowest first.
pub fn priority_steps() -> impl Iterator<Item = (&'static str, u32)> {
    PRIORITY_CLASSES.into_iter().filter(|(name, _)| STEPS.contains(name))
}
