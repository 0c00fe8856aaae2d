//! Ports of workloads in a browser: each at an address, and so at a host, of its own. Pages are programs
//! of users; a host of its own keeps their cookies, storage and scripts away from each other and from
//! the interface of this server.

mod address;
mod front;
mod page;

pub(crate) use address::{Origins, addresses, check};
pub(crate) use front::divert;
