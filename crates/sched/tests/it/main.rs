//! What the scheduler decides, by topic. One binary, because each would link the scheduler again.

mod advice;
mod affinity;
mod decisions;
mod diagnosis;
mod fair_share;
mod gates;
mod groups;
mod grow_back;
mod histories;
mod kai;
mod mig;
mod nodes_that_go;
mod oracle;
mod out_of_service;
mod packing;
mod pool_quota;
mod pools;
mod properties;
mod reasons;
mod reservation;
mod rule_histories;
mod rules;
mod topology;
mod truth;
mod victims;
mod walkthroughs;
