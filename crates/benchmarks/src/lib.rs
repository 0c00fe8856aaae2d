//! Baselines to compare decisions with. Owns: published loads played from first to last, published
//! packing algorithms, clusters with elastic trainings, histories of projects that request more
//! than the capacity, and the optimum of instances small enough for exhaustive search. No part of
//! the programs.

pub mod elasticity;
pub mod exact;
pub mod fairness;
pub mod loads;
pub mod packing;
