//! Common parts of every interface over HTTP: connections and TLS, reading requests and refusing
//! them, lists, and the description of routes.
//!
//! Owns: statuses, error bodies, list queries, and the checks of every request except
//! authentication. Does not know which routes there are, and everything behind them.

mod allowed_characters;
mod answer;
mod blocking;
mod body;
mod client;
mod connection;
mod connections;
mod csv;
mod decode;
mod error;
mod fair_queue;
mod guard;
mod heads;
mod host;
mod list;
mod nearest;
mod no_parameters;
pub mod openapi;
mod origin;
mod parameters;
mod proxies;
mod query_parameters;
mod request_id;
mod row;
mod serve;
mod socket;
mod tls;
mod tree;

pub use answer::{
    Accepted, Attachment, Binary, Created, Done, Html, JsonText, NoContent, Noticed, PlainText,
    Switched, Written,
};
pub use blocking::run_blocking;
pub use body::{Body, Format, parse as parse_json, read as read_body, read_part, take_part};
pub use connections::{CONNECTIONS_MAX, ConnectionPermit, Limits};
pub use csv::csv_line;
pub use error::{ApiError, ErrorMessage};
pub use fair_queue::{FairQueue, Permit};
pub use guard::{bearer, keep_nowhere, limit_time, panicked, wants_page};
pub use host::{Hosts, check_host, host_of, is_loopback, name_one_host, without_port};
pub use list::{ListQuery, date, flag, parameters, unknown_word};
pub use nearest::nearest;
pub use no_parameters::NoParameters;
pub use origin::{Origin, note_origin};
pub use parameters::{Allowed, Parameter, VERBOSITY};
pub use proxies::{FORWARDED_FOR, Proxies};
pub use query_parameters::{Deleted, OrderedPage, Page, QueryParameters, Takes};
pub use request_id::{REQUEST_ID, RequestId};
pub use row::{Row, Scalar, Type};
pub use serve::{Shutdown, serve, serve_within};
pub use socket::{is_websocket, must_be_own_page, names_own_page};
pub use tls::{Tls, TlsError};
