//! The description of the interface (OpenAPI 3.1). Owns: the document, made from the table of
//! routes, and a page of it for people. Does not know which routes there are.

mod describe;
mod document;
mod handler;
mod page;
mod route;

pub use describe::{Description, Input, Output};
pub use document::document;
pub use page::page;
pub use route::{Access, Route, any, delete, get, patch, post, put};
