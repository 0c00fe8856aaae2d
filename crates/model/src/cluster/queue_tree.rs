//! Changes of the queue tree. Owns: that only leaves hold workloads, and that the trees of all node
//! pools are equal.

use crate::{Cluster, Error, Lag, PoolId, Queue, QueueId, QueueSpec, Share, Usage};
use units::{Instant, Resources};

impl Cluster {
    /// Adds a queue.
    ///
    /// # Errors
    /// The parent does not exist, or holds workloads.
    pub fn add_queue(&mut self, spec: QueueSpec) -> Result<QueueId, Error> {
        let parent = spec.parent;
        if let Some(parent) = parent {
            let above = self.queues.get(parent).ok_or(Error::NoSuchQueue)?;
            if !above.workloads.is_empty() {
                return Err(Error::NotALeaf(above.name.clone()));
            }
        }
        let id = self.queues.insert(Queue::new(spec));
        self.tracker.division();
        match parent {
            Some(parent) => self.queues[parent].children.insert(id),
            None => self.roots.entry(PoolId::DEFAULT).or_default().insert(id),
        };
        self.add_twins(id);
        Ok(id)
    }

    /// Sets the share of a queue.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn set_share(&mut self, queue: QueueId, share: Share) -> Result<(), Error> {
        let row = self.queues.get_mut(queue).ok_or(Error::NoSuchQueue)?;
        if std::mem::replace(&mut row.share, share) != share {
            self.tracker.share(queue);
        }
        Ok(())
    }

    /// Records the recent usage of a queue; a queue that does not exist is ignored.
    pub fn set_usage(&mut self, queue: QueueId, usage: Usage) {
        if let Some(row) = self.queues.get_mut(queue).filter(|row| row.usage != usage) {
            row.usage = usage;
            self.tracker.share(queue);
        }
    }

    /// Records how far a queue is behind its share; a queue that does not exist is ignored. A lag
    /// only orders waiting workloads and lets no other work start, so earlier decisions without a
    /// change stay valid. A turn protects work.
    pub fn set_lag(&mut self, queue: QueueId, lag: Lag) {
        if let Some(row) = self.queues.get_mut(queue)
            && std::mem::replace(&mut row.lag, lag).turn_since != lag.turn_since
        {
            self.tracker.touch();
        }
    }

    /// Updates lags from the holdings and fair shares of queues; returns the changed lags.
    pub fn follow_lags<'a>(
        &mut self,
        now: Instant,
        fair: impl IntoIterator<Item = (&'a QueueId, &'a Resources)>,
    ) -> Vec<(QueueId, Lag)> {
        let followed = |(&id, fair): (&QueueId, &Resources)| {
            let queue = self.queues.get(id)?;
            let lag = queue.lag.followed(now, fair.gpu_millis, queue.held().gpu_millis)?;
            Some((id, lag))
        };
        let lags: Vec<_> = fair.into_iter().filter_map(followed).collect();
        lags.iter().for_each(|&(id, lag)| self.set_lag(id, lag));
        lags
    }

    /// Changes the name of a queue in explanations.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn rename_queue(&mut self, queue: QueueId, name: String) -> Result<(), Error> {
        self.queues.get(queue).ok_or(Error::NoSuchQueue)?;
        for twin in self.queues_of(queue).collect::<Vec<_>>() {
            self.queues[twin].name.clone_from(&name);
        }
        self.tracker.touch();
        Ok(())
    }

    /// Removes an empty queue.
    ///
    /// # Errors
    /// The queue does not exist or is not empty.
    pub fn remove_queue(&mut self, id: QueueId) -> Result<(), Error> {
        let queue = self.queues.get(id).ok_or(Error::NoSuchQueue)?;
        if !queue.children.is_empty() || !queue.workloads.is_empty() {
            return Err(Error::QueueNotEmpty(queue.name.clone()));
        }
        self.remove_twins(id);
        self.uproot(id);
        self.queues.remove(id);
        Ok(())
    }

    /// Removes a queue from the tree.
    pub(crate) fn uproot(&mut self, id: QueueId) {
        self.tracker.division();
        let Queue { parent, pool, .. } = self.queues[id];
        match parent {
            Some(parent) => self.queues[parent].children.remove(&id),
            None => self.roots.entry(pool).or_default().remove(&id),
        };
        self.roots.retain(|_, roots| !roots.is_empty());
    }
}
