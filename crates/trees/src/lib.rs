//! Folder trees that other people made: deep, wide, closed, with links and names of any bytes.
//!
//! Owns: walking and deleting them without recursion, with a few open files however deep they are,
//! and never through a link or into a mount. Does not know about: whose trees they are, and when
//! they may go.

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
