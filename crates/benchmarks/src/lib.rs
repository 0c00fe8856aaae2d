//! What decisions are compared with. Owns: published loads played from first to last, published ways
//! to pack, clusters on which trainings stretch, and the best that there is on instances small enough to try everything. No part of the
//! programs.

pub mod elasticity;
pub mod exact;
pub mod loads;
pub mod packing;
