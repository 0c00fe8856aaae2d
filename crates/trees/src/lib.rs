//! Folder trees that other users made: deep, wide, without permissions, with links and names of any
//! bytes.
//!
//! Owns: walking and deleting them without recursion, with a few open files at any depth, and never
//! through a link or into a mount. Does not know about: the owner of a tree, and when it may be
//! deleted.

mod folder;
mod names;
mod removal;
mod trash;
mod walk;

pub use removal::{Progress, remove, within};
pub use trash::{COUNTED_MAX, Leftover, Trash};
pub use walk::{Entry, Next, Visitor, open, walk};

#[cfg(test)]
mod testing;
