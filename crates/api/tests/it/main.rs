//! The REST interface from outside: requests to the router, with a real dispatcher and store
//! behind it and an engine that runs nothing.

#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

mod access;
mod archived;
mod assets;
mod audit;
mod bounds;
mod browser_sessions;
mod changes;
mod compose;
mod config_maps;
mod connections;
mod credentials;
mod deleted;
mod departments;
mod distributed;
mod drills;
mod engine_double;
mod exec_sessions;
mod fields;
mod gateway;
mod guessing;
mod iam;
mod identity;
mod inferences;
mod interface;
mod manifests;
mod metrics;
mod migrated;
mod mounts;
mod never_fits;
mod openapi;
mod orders;
mod policy;
mod policy_lists;
mod policy_parts;
mod pools;
mod prometheus;
mod properties;
mod provider;
mod refusals;
mod scrape;
mod server;
mod shapes;
mod streams;
mod templates;
mod tenant;
mod tls;
mod topologies;
mod updates;
mod urls;
mod usage;
mod user_limits;
mod walk;
mod what_if;
