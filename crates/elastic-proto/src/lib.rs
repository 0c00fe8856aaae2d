//! The protocol between the parts of an elastic training: workers, master, parameter servers. Owns:
//! the wire types (`proto/elastic.proto` is their one definition, for Python as well), which server
//! has which variable, the token and the version that every call carries. Does not know about: what
//! a call does.

mod credentials;
mod tensor;
mod tls;

/// The generated types. Their meaning is in `proto/elastic.proto`.
#[expect(missing_docs, clippy::allow_attributes, clippy::all, reason = "generated")]
#[rustfmt::skip]
pub mod v1 {
    tonic::include_proto!("elastane.elastic.v1");
}

/// HTTP/2 window: how many bytes of a message may be unacknowledged. With the default of 64 KiB a
/// gradient waits for each piece to be acknowledged.
pub const WINDOW_BYTES: u32 = 8 << 20;

pub use credentials::{Credentials, CredentialsError, PROTOCOL, Sign};
pub use tensor::{TensorError, floats, server_of, tensor};
pub use tls::TLS_NAME;

/// The pod of a worker: one of several processes of a pod is called `POD/N`.
#[must_use]
pub fn pod_of(worker: &str) -> &str {
    worker.split_once('/').map_or(worker, |(pod, _)| pod)
}
