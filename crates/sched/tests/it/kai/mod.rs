//! Profile `kai`: one rule of the scheduling reference per test, in both directions where it has
//! two. The outcome is derived from the text; § is its section.

mod affinity;
mod allocate;
mod consolidate;
mod explain;
mod gpus;
mod histories;
mod mig;
mod order;
mod parts;
mod pools;
mod preempt;
mod reclaim;
mod shares;
mod stale;
mod topology;

use testkit::Table;

/// The state after one cycle of these actions.
fn after(nodes: &str, queues: &str, jobs: &str, actions: &str) -> String {
    Table::new(nodes, queues, jobs).run(actions)
}
