//! Assignment of rows to servers. Does not know about: the assignment of variables, which clients
//! need as well (`elastic_proto::server_of`).

/// Index of a server, and the number of servers.
pub(crate) type Place = (u32, u32);

/// The server of a row.
pub(crate) fn server_of_row(id: u64, servers: u32) -> u64 {
    id % u64::from(servers.max(1))
}

/// True if a server has a row.
pub(crate) fn has_row((index, servers): Place, id: u64) -> bool {
    server_of_row(id, servers) == u64::from(index)
}
