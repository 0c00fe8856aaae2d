//! Tests of the whole product: the built binaries, a real server, real processes.
//!
//! Owns: the list of scenarios. Does not know about: the inside of the product; these tests use
//! only interfaces for users.

mod archived;
mod browser;
mod checkpoints;
mod clients;
mod clock;
mod commands;
mod costs;
mod crash;
mod docker;
mod document;
mod elastic_allreduce;
mod elastic_containers;
mod elastic_counting;
mod elastic_crash;
mod elastic_gpus;
mod elastic_training;
mod examples;
mod faults;
mod follow;
mod gang;
mod inference;
mod install;
mod isolation;
mod kubernetes;
mod limits;
mod links;
mod load;
mod matching;
mod moved;
mod no_room;
mod nodes;
mod policies;
mod pool_quotas;
mod quickstart;
mod recordings;
mod repositories;
mod sandbox;
mod secrets;
mod sessions;
mod statuses;
mod tls;
mod tops;
mod torchrun;
mod updates;
mod waiting;
mod walkthroughs;
mod workers;
