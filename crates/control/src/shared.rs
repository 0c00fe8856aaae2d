//! State shared by handles, the dispatcher and the tasks beside it. Owns: nothing; each part keeps
//! its own.

use std::sync::Arc;

use arc_swap::ArcSwap;
use engine::{Engine, Outage};
use spec::UserLimits;
use tokio::sync::broadcast;
use units::Instant;
use view::{Event, View};

use crate::ClusterInfo;
use crate::database::DatabaseDisk;
use crate::feed::Feed;
use crate::meter::{Sample, Traffic};
use crate::metrics::{Metrics, Purpose};
use crate::node_access::NodeAccess;

/// State shared by the handles and the service.
pub(crate) struct ControlState {
    pub(crate) view: ArcSwap<View>,
    pub(crate) sample: ArcSwap<Sample>,
    pub(crate) traffic: ArcSwap<Traffic>,
    pub(crate) events: broadcast::Sender<Arc<Event>>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) metrics: Metrics,
    pub(crate) cluster: ClusterInfo,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) store: store::Store,
    pub(crate) database: DatabaseDisk,
    pub(crate) node_access: Arc<NodeAccess>,
    pub(crate) user_limits: UserLimits,
}

impl ControlState {
    /// Writes all changes in one transaction.
    pub(crate) async fn write(
        &self,
        purpose: Purpose,
        changes: &[records::Change],
        now: Instant,
    ) -> Result<(), store::Error> {
        let written = self.metrics.apply(purpose, &self.store, changes).await;
        self.database.written(purpose, &written, now);
        written
    }

    /// Current outage of the engine or of a disk.
    pub(crate) fn outage(&self) -> Option<Outage> {
        self.engine.outage().or_else(|| self.database.outage())
    }
}
