//! The dispatcher through its handle, over a real state directory and a scripted engine.

#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

mod adopted;
mod adopted_gangs;
mod archived;
mod chaos;
mod checkpoints;
mod clock;
mod container;
mod elastic_training;
mod expiry;
mod fake;
mod feed;
mod gang;
mod health;
mod inference;
mod instances;
mod kept;
mod ledger;
mod life;
mod limits;
mod meter;
mod metrics;
mod nodes;
mod objects;
mod org;
mod past;
mod places;
mod pod_groups;
mod pools;
mod postgres;
mod races;
mod recording;
mod refusals;
mod restart;
mod retention;
mod samples;
mod secrets;
mod set_aside;
mod told;
mod topologies;
mod update;
mod usage;
mod volumes;
mod walks;
mod world;
