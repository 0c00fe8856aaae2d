//! Ports of workloads in a browser, and inferences: each at an address, and so at a host, of its
//! own. Pages are programs of users; a host of its own keeps their cookies, storage and scripts
//! away from each other and from the interface of this server.

mod address;
mod browser;
mod front;
mod page;
mod passes;
mod socket;
mod ticket;

pub(crate) use address::{Origins, addresses, check, is_of_a_workload, is_of_an_inference};
pub(crate) use browser::take_ticket;
pub(crate) use front::divert;
pub(crate) use passes::Passes;
pub(crate) use socket::admit_pages;
pub(crate) use ticket::{redeem_for_socket, ticket, ticket_for_socket};
