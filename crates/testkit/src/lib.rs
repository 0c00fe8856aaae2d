//! A cluster in a string: the language tests are written in.
//!
//! Owns: building a cluster from a line, running a script of steps on it, printing where
//! everything is. Does not know about: processes and time other than its own counter.
//!
//! ```
//! let mut w = testkit::World::new("n1:2 n2:2", "a:2 b:2");
//! w.run("submit a/a2 -g 2; submit a/a1; submit b/b1");
//! assert_eq!(w.gpus(), "n1[a2 a2] n2[a1 b1]");
//! ```

mod colocation;
mod needless_evictions;
mod script;
mod table;
mod texts;
mod true_causes;
mod world;

pub use table::Table;
pub use texts::{assert_plain, table_of_texts};
pub use world::World;

/// The policy of profile `kai`, which everything that uses this crate is built with.
#[must_use]
pub fn kai() -> sched::Policy {
    sched::Policy::kai().expect("this crate asks for the feature")
}
