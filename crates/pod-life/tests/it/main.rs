//! Tests of the life of a pod.

mod samples;
mod sequences;
mod table;
