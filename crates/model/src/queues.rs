//! The queue tree as it changes. Owns: that only leaves hold workloads, and that the queues of all
//! node pools stay alike.

use crate::{Cluster, Error, Queue, QueueId, QueueSpec, Share, Usage};

impl Cluster {
    /// Adds a queue.
    ///
    /// # Errors
    /// The parent is not there, or holds workloads.
    pub fn add_queue(&mut self, spec: QueueSpec) -> Result<QueueId, Error> {
        let parent = spec.parent;
        if let Some(parent) = parent {
            let above = self.queues.get(parent).ok_or(Error::NoSuchQueue)?;
            if !above.workloads.is_empty() {
                return Err(Error::NotALeaf(above.name.clone()));
            }
        }
        let id = self.queues.insert(Queue::new(spec));
        if let Some(parent) = parent {
            self.queues[parent].children.insert(id);
        }
        self.add_twins(id);
        Ok(id)
    }

    /// Changes what a queue is entitled to.
    ///
    /// # Errors
    /// The queue is not there.
    pub fn set_share(&mut self, queue: QueueId, share: Share) -> Result<(), Error> {
        self.queues.get_mut(queue).ok_or(Error::NoSuchQueue)?.share = share;
        Ok(())
    }

    /// Records what a queue used of late; nothing happens to one that is not there.
    pub fn set_usage(&mut self, queue: QueueId, usage: Usage) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.usage = usage;
        }
    }

    /// Changes the name a queue is explained by.
    ///
    /// # Errors
    /// The queue is not there.
    pub fn rename_queue(&mut self, queue: QueueId, name: String) -> Result<(), Error> {
        self.queues.get(queue).ok_or(Error::NoSuchQueue)?;
        for twin in self.queues_of(queue).collect::<Vec<_>>() {
            self.queues[twin].name.clone_from(&name);
        }
        Ok(())
    }

    /// Removes an empty queue.
    ///
    /// # Errors
    /// The queue is not there or not empty.
    pub fn remove_queue(&mut self, id: QueueId) -> Result<(), Error> {
        let queue = self.queues.get(id).ok_or(Error::NoSuchQueue)?;
        if !queue.children.is_empty() || !queue.workloads.is_empty() {
            return Err(Error::QueueNotEmpty(queue.name.clone()));
        }
        self.remove_twins(id);
        if let Some(parent) = self.queues[id].parent {
            self.queues[parent].children.remove(&id);
        }
        self.queues.remove(id);
        Ok(())
    }
}
