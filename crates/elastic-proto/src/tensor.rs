//! Arrays on the wire. Owns: reading and writing their content, and which server has which
//! variable. Does not know about: what is computed with them.

use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::v1::{DType, Tensor, Variable};

/// Error of a variable in a message. The text names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The variable has no value.
    #[error("{name}: value is missing; send dtype, shape and content")]
    Missing {
        /// The variable.
        name: String,
    },
    /// The type is unknown.
    #[error("{name}: dtype {dtype} is not one of the protocol: {}", known())]
    DType {
        /// The variable.
        name: String,
        /// Type, as sent.
        dtype: i32,
    },
    /// The type is not that of gradients and trainable variables.
    #[error("{name}: dtype {dtype}; trainable variables and gradients are DTYPE_FLOAT32")]
    NotFloat {
        /// The variable.
        name: String,
        /// Type, as sent.
        dtype: &'static str,
    },
    /// The number of bytes does not match the shape.
    #[error(
        "{name}: {dtype} of shape {shape:?} has {} bytes of content; it came with {found}",
        expected.map_or_else(|| "more than 2^64".to_owned(), |bytes| bytes.to_string())
    )]
    Content {
        /// The variable.
        name: String,
        /// Its type.
        dtype: &'static str,
        /// Its shape.
        shape: Vec<u64>,
        /// Bytes that its shape requires; `None` if more than 2^64.
        expected: Option<u64>,
        /// Bytes that were sent.
        found: usize,
    },
}

fn known() -> String {
    let all = (1..).map_while(|number| DType::try_from(number).ok());
    all.map(|dtype| dtype.as_str_name()).collect::<Vec<_>>().join(", ")
}

impl DType {
    fn bytes(self) -> u64 {
        match self {
            Self::DtypeUnspecified => 0,
            Self::DtypeUint8 | Self::DtypeBool => 1,
            Self::DtypeFloat32 | Self::DtypeInt32 => 4,
            Self::DtypeFloat64 | Self::DtypeInt64 => 8,
        }
    }
}

impl Variable {
    /// Its value, if type, shape and content agree.
    ///
    /// # Errors
    ///
    /// [`TensorError`], if they do not.
    pub fn checked(&self) -> Result<(DType, &Tensor), TensorError> {
        let name = || self.name.clone();
        let value = self.value.as_ref().ok_or_else(|| TensorError::Missing { name: name() })?;
        let dtype = DType::try_from(value.dtype).ok();
        let dtype = dtype.filter(|dtype| *dtype != DType::DtypeUnspecified);
        let dtype = dtype.ok_or(TensorError::DType { name: name(), dtype: value.dtype })?;
        let product = |bytes: u64, length: &u64| bytes.checked_mul(*length);
        let expected = value.shape.iter().try_fold(dtype.bytes(), product);
        let found = value.content.len();
        if expected != u64::try_from(found).ok() {
            let (dtype, shape) = (dtype.as_str_name(), value.shape.clone());
            return Err(TensorError::Content { name: name(), dtype, shape, expected, found });
        }
        Ok((dtype, value))
    }

    /// Its value as numbers, and its shape.
    ///
    /// # Errors
    ///
    /// [`TensorError`], if it is not of float32, or malformed.
    pub fn floats(&self) -> Result<(Vec<f32>, &[u64]), TensorError> {
        let (dtype, value) = self.checked()?;
        if dtype != DType::DtypeFloat32 {
            let dtype = dtype.as_str_name();
            return Err(TensorError::NotFloat { name: self.name.clone(), dtype });
        }
        Ok((floats(&value.content), &value.shape))
    }
}

/// Numbers from their bytes.
#[must_use]
pub fn floats(content: &[u8]) -> Vec<f32> {
    let (chunks, _) = content.as_chunks::<4>();
    chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// An array of float32.
#[must_use]
pub fn tensor(shape: &[u64], values: &[f32]) -> Tensor {
    let content: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { dtype: DType::DtypeFloat32.into(), shape: shape.into(), content: Bytes::from(content) }
}

/// The server, of so many (at least 1), that has the variable of this name.
#[must_use]
pub fn server_of(name: &str, servers: u32) -> u32 {
    let digest = Sha256::digest(name.as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    // The number fits: it is below `servers`.
    u32::try_from(number % u64::from(servers.max(1))).unwrap_or_default()
}
