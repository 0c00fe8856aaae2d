//! Errors of messages about a model. Owns: the words, which name the variable or table. Does not
//! know about: the checks.

use elastic_proto::TensorError;

use crate::optimizer::OptimizerError;

/// Error of a message about a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ModelError {
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error(transparent)]
    Optimizer(#[from] OptimizerError),
    #[error("optimizer is missing")]
    NoOptimizer,
    #[error("{name} comes twice in one message")]
    Twice { name: String },
    #[error("{name} belongs to parameter server {right}; this is {index} of {servers}")]
    Elsewhere { name: String, right: u32, index: u32, servers: u32 },
    #[error("{name} is not in the model; it has {known} on this server")]
    Unknown { name: String, known: String },
    #[error("{name} has shape {shape:?} in the model and {found:?} in the message")]
    Shape { name: String, shape: Vec<u64>, found: Vec<u64> },
    #[error("learning_rate {0} is not allowed; a number above 0, or 0 for that of the optimizer")]
    Rate(f32),
    #[error("{name}: {found} slots; its optimizer has {expected}")]
    Slots { name: String, found: usize, expected: usize },
    #[error("embedding table {table:?}: {what}")]
    Table { table: String, what: String },
    #[error("embedding table {table:?} is not in the model; it has {known}")]
    NoTable { table: String, known: String },
    #[error(
        "embedding table {table:?} has rows of {dim} numbers in the model and of {found} in the message"
    )]
    Dim { table: String, dim: u32, found: u32 },
    #[error("embedding table {table:?}: ids have {bytes} bytes; they are 8 for each")]
    IdBytes { table: String, bytes: usize },
    #[error("embedding table {table:?}: id {second} comes after {first}; each comes once, rising")]
    Ids { table: String, first: u64, second: u64 },
    #[error("embedding table {table:?}: {rows} rows of {dim} numbers came with {bytes} bytes")]
    Rows { table: String, rows: usize, dim: u32, bytes: usize },
    #[error("embedding table {table:?}: the gradient of row {id} has {value}; the loss diverges")]
    NotFinite { table: String, id: u64, value: f32 },
    #[error(
        "embedding table {table:?}: row {id} belongs to parameter server {right}; this is {index} of {servers}"
    )]
    RowElsewhere { table: String, id: u64, right: u64, index: u32, servers: u32 },
}
