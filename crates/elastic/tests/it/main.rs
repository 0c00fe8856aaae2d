//! Situations of elastic training, and random histories of them.

mod evaluation;
mod gate;
mod histories;
mod job;
mod ledger;
mod rejections;
mod rendezvous;
mod resize;
