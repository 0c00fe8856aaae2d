//! Status of the engine and of the disks, for readers. Owns: which outage is shown. Does not know
//! about: its words.

use engine::{Capabilities, Leftover, Outage, SharedDisk};

use crate::Handle;

impl Handle {
    /// Capabilities of the engine.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.shared.engine.capabilities()
    }

    /// The disk of the state, if runs fill it as well; `None` if they have another.
    #[must_use]
    pub fn shared_disk(&self) -> Option<SharedDisk> {
        self.shared.engine.shared_disk()
    }

    /// Current outage of the engine or of a disk; `None` while both work. During an outage of the
    /// engine the view of workloads dates from before.
    #[must_use]
    pub fn outage(&self) -> Option<Outage> {
        self.shared.outage()
    }

    /// Remainders of deleted workloads that are still to be deleted, by folder. Reads these
    /// folders.
    #[must_use]
    pub fn leftovers(&self) -> Vec<Leftover> {
        self.shared.engine.leftovers()
    }
}
