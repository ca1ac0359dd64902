//! JSON, strictly: what a body may be, and how an answer is written. Pure.
//!
//! A body is one object, at most [`DEPTH`] deep. Its fields are those of its [`Shape`], each at most once; a shape is
//! also what the OpenAPI document says of the body. Payloads are not looked into: they are kept as the text that came.

mod fields;
mod shape;
mod write;

pub(crate) use fields::{Fields, check_depth};
pub(crate) use shape::{Field, Form, Shape};
pub(crate) use write::{List, Object, quoted};

/// The deepest nesting of a body; the outer object is 1.
pub(crate) const DEPTH: usize = 64;
