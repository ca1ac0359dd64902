//! Payloads: passed unchanged, byte for byte, to the holder of a delivery. Cheap to clone.

use std::ops::Deref;
use std::sync::Arc;

/// The type of a payload's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Opaque bytes.
    #[default]
    Bytes,
    /// The text of a JSON value.
    Json,
}

/// A payload and its content type. Dereferences to its bytes.
///
/// ```
/// use tourbillon_durable::values::{Content, Payload};
/// let payload = Payload::json(r#"{"id": 17}"#);
/// assert_eq!((payload.content(), &*payload), (Content::Json, &br#"{"id": 17}"#[..]));
/// assert_eq!(Payload::bytes([7, 7]).text(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    content: Content,
    bytes: Arc<[u8]>,
}

impl Payload {
    /// A payload of opaque bytes.
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Payload { content: Content::Bytes, bytes: Arc::from(bytes.as_ref()) }
    }

    /// A payload that is the text of a JSON value. Not validated: the caller must have checked it.
    pub fn json(text: impl AsRef<str>) -> Self {
        Payload { content: Content::Json, bytes: Arc::from(text.as_ref().as_bytes()) }
    }

    /// Its content type.
    pub fn content(&self) -> Content {
        self.content
    }

    /// The text of the JSON value; `None` for opaque bytes.
    pub fn text(&self) -> Option<&str> {
        match self.content {
            Content::Json => std::str::from_utf8(&self.bytes).ok(),
            Content::Bytes => None,
        }
    }
}

/// An empty payload of opaque bytes.
impl Default for Payload {
    fn default() -> Self {
        Payload::bytes([])
    }
}

impl Deref for Payload {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Arc<[u8]>> for Payload {
    fn from(bytes: Arc<[u8]>) -> Self {
        Payload { content: Content::Bytes, bytes }
    }
}
