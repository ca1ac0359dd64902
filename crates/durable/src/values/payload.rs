//! Payloads: what the holder of a delivery gets, returned byte for byte as it came. Cheap to clone.

use std::ops::Deref;
use std::sync::Arc;

/// What the bytes of a payload are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Bytes that mean something to the caller alone.
    #[default]
    Bytes,
    /// The text of a JSON value.
    Json,
}

/// A payload and its content. It reads as its bytes.
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
    /// Bytes.
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Payload { content: Content::Bytes, bytes: Arc::from(bytes.as_ref()) }
    }

    /// The text of a JSON value. The caller has checked that it is one; nothing here reads it.
    pub fn json(text: impl AsRef<str>) -> Self {
        Payload { content: Content::Json, bytes: Arc::from(text.as_ref().as_bytes()) }
    }

    /// What it is.
    pub fn content(&self) -> Content {
        self.content
    }

    /// The text of the JSON value, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self.content {
            Content::Json => std::str::from_utf8(&self.bytes).ok(),
            Content::Bytes => None,
        }
    }
}

/// No bytes.
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
