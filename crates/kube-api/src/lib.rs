//! A client of the API server of Kubernetes, for what a scheduler does: lists and watches that
//! survive everything between it and the server, and a few writes.
//!
//! Owns: connections, credentials, requests, and hand-written types of the fields that are read.
//! Does not know about: workloads, quotas, decisions.

mod access;
mod answer;
mod back_off;
mod client;
mod config;
mod connector;
mod credentials;
mod discovery;
mod error;
mod list;
mod path;
mod plugin;
mod status;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
pub mod types;
mod verbs;
mod watch;

pub use client::Client;
pub use config::{Config, Kubeconfig};
pub use discovery::{ApiResource, Version};
pub use error::{Call, ConfigError, Error, Refusal, Rule, Verb};
pub use list::{Listed, Page, UnreadableObject};
pub use path::Query;
pub use status::{Cause, Reason};
pub use verbs::{DeleteOptions, ObjectRef};
pub use watch::{Change, Watch, WatchSettings};
