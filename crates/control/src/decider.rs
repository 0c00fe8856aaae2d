//! The scheduler beside the dispatcher: a thread with a replica of the cluster. Owns: that no
//! request waits for a decision, and that a fault of the scheduler costs only the replica.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant as Moment};

use model::{Cluster, WorkloadId};
use sched::{Memory, Policy};
use tokio::sync::{mpsc as channel, oneshot};
use units::Instant;

use crate::{DecisionFault, SchedulingState, culprits};
use model::Op;
use orchestrator::Error;
use orchestrator::{Culprits, Decision};

/// An order to the thread; orders are carried out in sequence.
pub(crate) enum Order {
    /// Continue with this cluster, a new replica of this number.
    Replace(u64, Box<Cluster>),
    Follow(Vec<Op>),
    /// Recompute all results about the replica, and publish all reasons again.
    Forget,
    /// Publish the reasons of these workloads again.
    TellAgain(BTreeSet<WorkloadId>),
    Decide(Question),
    /// Find the workloads that make decisions fail.
    FindCulprits(Question),
    /// Send a copy of the replica, with the inputs of decisions about it.
    Show(Question, oneshot::Sender<Box<SchedulingState>>),
}

/// Inputs of a decision beside the cluster.
pub(crate) struct Question {
    pub(crate) now: Instant,
    pub(crate) policy: Arc<Policy>,
}

/// Answer to a question.
pub(crate) struct Verdict {
    /// Number of the replica that the answer is about.
    pub(crate) replica: u64,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    Decided(Box<Decision>, Duration),
    /// The scheduler failed, and its replica is lost.
    Failed,
    Culprits(Culprits),
}

/// The scheduler's thread, as the dispatcher sees it.
pub(crate) struct Scheduler {
    orders: mpsc::Sender<Order>,
    pub(crate) verdicts: channel::UnboundedReceiver<Verdict>,
    /// Number of its replica: answers about earlier ones no longer matter.
    pub(crate) replica: u64,
    /// True if it has to get another replica.
    pub(crate) is_renewed: bool,
}

impl Scheduler {
    /// Starts the thread, which ends with this.
    pub(crate) fn start(fault: Option<DecisionFault>) -> Result<Self, Error> {
        let (orders, incoming) = mpsc::channel();
        let (outgoing, verdicts) = channel::unbounded_channel();
        let work = move || Decider { number: 0, replica: None, fault }.run(incoming, &outgoing);
        let started = std::thread::Builder::new().name("scheduler".to_owned()).spawn(work);
        started.map_err(|error| Error::Internal {
            message: format!("the scheduler cannot begin: {error}"),
        })?;
        Ok(Self { orders, verdicts, replica: 0, is_renewed: true })
    }

    /// Marks its replica as invalid.
    pub(crate) fn renew(&mut self) {
        self.is_renewed = true;
        self.replica += 1;
    }

    pub(crate) fn replace(&mut self, cluster: Cluster) {
        self.is_renewed = false;
        self.replica += 1;
        self.ask(Order::Replace(self.replica, Box::new(cluster)));
    }

    pub(crate) fn ask(&self, order: Order) {
        // The thread lives as long as its orders can be sent; a fault costs it the replica only.
        if self.orders.send(order).is_err() {
            tracing::error!(
                "the thread of the scheduler has ended, which is a fault of the server"
            );
        }
    }
}

struct Decider {
    number: u64,
    /// `None` after a failure, until there is another.
    replica: Option<(Box<Cluster>, Memory)>,
    fault: Option<DecisionFault>,
}

impl Decider {
    /// Takes orders until there are no more.
    fn run(mut self, orders: mpsc::Receiver<Order>, verdicts: &channel::UnboundedSender<Verdict>) {
        for order in orders {
            let taken = catch_unwind(AssertUnwindSafe(|| self.take(order)));
            let outcome = taken.unwrap_or_else(|_| {
                // The failure left the replica in the middle of a change.
                self.replica = None;
                Some(Outcome::Failed)
            });
            let replica = self.number;
            if let Some(outcome) = outcome
                && verdicts.send(Verdict { replica, outcome }).is_err()
            {
                break;
            }
        }
    }

    fn take(&mut self, order: Order) -> Option<Outcome> {
        if let Order::Replace(number, cluster) = order {
            (self.number, self.replica) = (number, Some((cluster, Memory::default())));
            return None;
        }
        let (cluster, memory) = self.replica.as_mut()?;
        match order {
            Order::Replace(..) => {}
            Order::Follow(ops) => ops.into_iter().for_each(|op| op(cluster)),
            Order::Forget => *memory = Memory::default(),
            Order::TellAgain(ids) => memory.tell_again(ids),
            Order::Decide(Question { now, policy }) => {
                let began = Moment::now();
                culprits::fail_if_wanted(self.fault.as_ref(), cluster, now);
                let decision = Box::new(Decision::made(memory, cluster, now, &policy));
                return Some(Outcome::Decided(decision, began.elapsed()));
            }
            Order::FindCulprits(Question { now, policy }) => {
                let culprits = culprits::culprits(cluster, now, &policy, self.fault.as_ref());
                return Some(Outcome::Culprits(culprits));
            }
            Order::Show(Question { now, policy }, to) => {
                let policy = Policy::clone(&policy);
                // The receiver may have gone.
                let _ = to.send(Box::new(SchedulingState {
                    cluster: (**cluster).clone(),
                    policy,
                    now,
                }));
            }
        }
        None
    }
}
