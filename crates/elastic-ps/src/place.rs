//! Which server has which row. Does not know about: which has which variable, which clients have to
//! know as well (`elastic_proto::server_of`).

/// Which of how many servers.
pub(crate) type Place = (u32, u32);

/// The server of a row.
pub(crate) fn server_of_row(id: u64, servers: u32) -> u64 {
    id % u64::from(servers.max(1))
}

/// True if a server has a row.
pub(crate) fn has_row((index, servers): Place, id: u64) -> bool {
    server_of_row(id, servers) == u64::from(index)
}
