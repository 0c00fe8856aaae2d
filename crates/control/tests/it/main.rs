//! The dispatcher through its handle, over a real state directory and a scripted engine.

mod fake;
mod life;
mod refusals;
mod restart;
mod walks;
mod world;
