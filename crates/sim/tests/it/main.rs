//! Scenario files and random histories, run in virtual time.

mod affinity;
mod bad_input;
mod chaos;
mod departments;
mod examples;
mod expectations;
mod fairness;
mod forecast;
mod kept;
mod kept_room;
mod machine;
mod mig;
mod moments;
mod mutations;
mod overcommitted;
mod parts;
mod places;
mod pools;
mod refusals;
mod reservation;
mod runs;
mod what_if;
