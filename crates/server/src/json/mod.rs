//! JSON: the shapes of bodies, and how an answer is written. Pure.
//!
//! A body is one object, at most [`DEPTH`] deep. Its fields are those of its [`Shape`], each at most once; a shape is
//! also what the OpenAPI document says of the body. `fields` reads a body by its shape. Payloads are not looked into:
//! they are kept as the text that came.

mod shape;
mod write;

pub(crate) use shape::{Field, Form, Shape};
pub(crate) use write::{List, Object, quoted};

/// The deepest nesting of a body; the outer object is 1.
pub(crate) const DEPTH: usize = 64;
