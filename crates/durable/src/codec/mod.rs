//! The codec: the binary form of every stored row. Pure; no input makes it panic.
//!
//! # A value
//! ```text
//!   ┌─────────┬──────────────────────────┬───────────────────────────────────────┐
//!   │ version │ fields                   │ CRC32C of table name, key, all before │
//!   │ 1 byte  │ integers are LEB128      │ 4 bytes, little-endian                │
//!   └─────────┴──────────────────────────┴───────────────────────────────────────┘
//! ```
//!
//! - The checksum covers the name of the table and the key, so a value stored under another key does not verify.
//! - A value is read completely: leftover bytes are an error, and so is a field out of its limits.
//! - Every value has its own version, so that a later version can read rows written by an earlier one.
//!
//! | file | what it holds |
//! |---|---|
//! | `bytes` | integers, texts and moments |
//! | `record` | the row of a timer |
//! | `rows` | the other rows |

mod bytes;
mod record;
mod rows;

use std::fmt;

use crate::values::Moment;
pub use bytes::Reader;
pub use rows::{BucketRow, DayCells, Home, LogRow, Marks, ShardState};

/// The version that is written.
pub const VERSION: u8 = 1;

/// A type with a binary form.
pub trait Row: Sized {
    /// Appends its fields.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads its fields.
    ///
    /// # Errors
    /// The bytes are not what [`write`](Row::write) would have written.
    fn read(bytes: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// Encodes a row under its key in a table.
///
/// ```
/// use tourbillon_durable::codec::{Home, decode, encode};
/// use tourbillon_durable::record::Generation;
/// use tourbillon_durable::values::Moment;
/// let home = Home { generation: Generation(7), moment: Moment::ZERO };
/// let value = encode("keys", b"order-17", &home);
/// assert_eq!(decode("keys", b"order-17", &value), Ok(home));
/// assert!(decode::<Home>("keys", b"order-18", &value).is_err());
/// ```
pub fn encode(table: &str, key: &[u8], row: &impl Row) -> Vec<u8> {
    let mut value = Vec::with_capacity(192);
    encode_into(&mut value, table, key, row);
    value
}

/// As [`encode`], into an existing buffer, so that a commit of many rows allocates once.
pub fn encode_into(value: &mut Vec<u8>, table: &str, key: &[u8], row: &impl Row) {
    value.clear();
    value.push(VERSION);
    row.write(value);
    seal(table, key, value);
}

/// Appends the checksum to a version and fields.
pub fn seal(table: &str, key: &[u8], value: &mut Vec<u8>) {
    let sum = checksum(table, key, value);
    value.extend_from_slice(&sum.to_le_bytes());
}

/// Decodes a value.
///
/// # Errors
/// Its version is unknown, its checksum differs, or it is not a row of that kind.
pub fn decode<R: Row>(table: &str, key: &[u8], value: &[u8]) -> Result<R, DecodeError> {
    let mut reader = fields(table, key, value)?;
    let row = R::read(&mut reader)?;
    match reader.left() {
        0 => Ok(row),
        left => Err(DecodeError { field: "value", wrong: Wrong::Left(left) }),
    }
}

/// The queue and the next attempt in a timer's row, without allocating. Used to sort a bucket of a million rows.
///
/// # Errors
/// As [`decode`], but the fields that follow are not read.
pub(crate) fn decode_order<'a>(
    table: &str,
    key: &[u8],
    value: &'a [u8],
) -> Result<(&'a str, Moment), DecodeError> {
    let start = record::Start::read(&mut fields(table, key, value)?)?;
    Ok((start.queue, start.next_attempt))
}

/// The fields of a value, once its checksum and version are verified.
fn fields<'a>(table: &str, key: &[u8], value: &'a [u8]) -> Result<Reader<'a>, DecodeError> {
    let wrong = |wrong| Err(DecodeError { field: "value", wrong });
    let Some((body, stored)) = value.split_last_chunk::<4>() else {
        return wrong(Wrong::Short);
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), checksum(table, key, body));
    if stored != computed {
        return wrong(Wrong::Checksum { stored, computed });
    }
    let Some((&version, body)) = body.split_first() else { return wrong(Wrong::Short) };
    if version != VERSION {
        return wrong(Wrong::Version(version));
    }
    Ok(Reader::new(body))
}

fn checksum(table: &str, key: &[u8], body: &[u8]) -> u32 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(table.as_bytes()), key);
    crc32c::crc32c_append(sum, body)
}

/// A value that cannot be decoded: which field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub wrong: Wrong,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// The bytes end too early.
    Short,
    /// The value was read completely, and this many bytes are left over.
    Left(usize),
    /// The checksum differs.
    Checksum {
        /// The stored checksum.
        stored: u32,
        /// The computed one.
        computed: u32,
    },
    /// The value has this version, which this program does not know.
    Version(u8),
    /// It is out of its limits.
    Invalid(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field;
        match &self.wrong {
            Wrong::Short => write!(f, "the {field} is cut short"),
            Wrong::Left(left) => write!(f, "{left} bytes follow the {field}"),
            Wrong::Checksum { stored, computed } => {
                write!(f, "the checksum of the {field} is {stored:08x}, not {computed:08x}")
            }
            Wrong::Version(version) => {
                write!(f, "the {field} has version {version}; this program knows {VERSION}")
            }
            Wrong::Invalid(why) => write!(f, "the {field} is not valid: {why}"),
        }
    }
}

impl std::error::Error for DecodeError {}

#[cfg(test)]
mod tests;
