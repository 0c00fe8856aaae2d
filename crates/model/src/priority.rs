//! Names of priorities. Owns: which there are and what they are worth (reference D.4), the old ones
//! included. Does not know about: who has which.

/// Name and value, lowest first; the name first given to a value is the one shown for it.
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

/// Those that are steps of one ladder, and not the usual priority of something.
const STEPS: [&str; 7] =
    ["very-low", "low", "medium-low", "medium", "medium-high", "high", "very-high"];

/// The steps of the ladder, lowest first, with what they are worth.
pub fn priority_steps() -> impl Iterator<Item = (&'static str, u32)> {
    PRIORITY_CLASSES.into_iter().filter(|(name, _)| STEPS.contains(name))
}
