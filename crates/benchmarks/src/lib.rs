//! Baselines to compare decisions with. Owns: published loads played from first to last, published
//! packing algorithms, clusters with elastic trainings, and the optimum of instances small enough
//! for exhaustive search. No part of the programs.

pub mod elasticity;
pub mod exact;
pub mod loads;
pub mod packing;
