//! What every request passes: reading, checking who and from where, and refusing.

mod answer;
mod body;
mod csv;
mod decode;
mod fault;
mod given;
mod guard;
mod host;
mod list;
mod none;
mod origin;
mod parameters;
mod proxies;
mod shape;
mod socket;
mod tree;

pub(crate) use answer::{
    Accepted, Attachment, Binary, Created, Html, JsonText, NoContent, PlainText, Rows, Switched,
};
pub(crate) use body::{
    Body, Format, nearest, parse as parse_json, read as read_body, read_part, take_part,
};
pub(crate) use csv::csv_line;
pub(crate) use fault::{Fault, Said};
pub(crate) use given::{Deleted, Given, OrderedPage, Page, Takes, takes};
pub(crate) use guard::{Caller, authenticate, bearer, limit_time, panicked, wants_page};
pub use host::Hosts;
pub(crate) use host::{check_host, host_of, is_loopback, name_one_host};
pub(crate) use list::{ListQuery, Row, Scalar, Type, date, flag, parameters, unknown_word};
pub(crate) use none::NoParameters;
pub(crate) use origin::{Origin, note_origin};
pub(crate) use parameters::{Allowed, Parameter, VERBOSITY};
pub(crate) use proxies::FORWARDED_FOR;
pub use proxies::Proxies;
pub(crate) use socket::must_be_own_page;
