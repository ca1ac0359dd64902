//! JSON: request schemas, and writing answers. Pure.
//!
//! A body is one object, nested at most [`DEPTH`] deep. Its fields are those of its [`Shape`], each at most once; the
//! shape also describes the body in the OpenAPI document. `fields` reads a body by its shape. Payloads are not parsed
//! into values, but kept as the text that arrived.

mod shape;
mod write;

pub(crate) use shape::{Field, Form, Shape};
pub(crate) use write::{List, Object, quoted};

/// The deepest nesting of a body; the outer object is 1.
pub(crate) const DEPTH: usize = 64;
