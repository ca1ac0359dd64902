//! The changes of a commit as bytes. They are written to the log, and applied to a copy.
//!
//! ```text
//!   ┌──────────────┬───────┬───────────────────────────────────────────────────────────┐
//!   │ room for the │ 0     │ length of the name (2 bytes), name: the table from here on│
//!   │ head of a    │ 1     │ length of the key (2), of the value (4), key, value: put  │
//!   │ log's record │ 2     │ length of the key (2), key: remove                        │
//!   │ (`log.rs`)   │ 3     │ the table is dropped                                      │
//!   └──────────────┴───────┴───────────────────────────────────────────────────────────┘
//! ```
//!
//! Every change is absolute, so applying a commit's changes twice is the same as applying them once. Keys of numbered
//! tables are big-endian, so that they compare as their numbers do.

use redb::WriteTransaction;

use super::error::Outcome;
use super::table::{Numbered, Small};

const TABLE: u8 = 0;
const PUT: u8 = 1;
const REMOVE: u8 = 2;
const DROP: u8 = 3;

/// The bytes in front, which `log.rs` fills.
pub(super) const HEAD: usize = 32;

/// The changes of one commit, in order.
pub(super) struct Changes {
    bytes: Vec<u8>,
    /// The table of the last change.
    table: String,
    /// The number of changes.
    pub(super) count: usize,
}

/// A change of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    Put(&'a str, &'a [u8], &'a [u8]),
    Remove(&'a str, &'a [u8]),
    Drop(&'a str),
}

impl<'a> Change<'a> {
    pub(super) fn table(&self) -> &'a str {
        let (Change::Put(name, ..) | Change::Remove(name, _) | Change::Drop(name)) = self;
        name
    }

    pub(super) fn key(&self) -> Option<&'a [u8]> {
        match self {
            Change::Put(_, key, _) | Change::Remove(_, key) => Some(key),
            Change::Drop(_) => None,
        }
    }
}

impl Changes {
    pub(super) fn new() -> Self {
        Changes { bytes: vec![0; HEAD], table: String::new(), count: 0 }
    }

    pub(super) fn put(&mut self, table: &str, key: &[u8], value: &[u8]) {
        self.begin(table, PUT);
        self.bytes.extend_from_slice(&short(key));
        self.bytes.extend_from_slice(&u32::try_from(value.len()).unwrap_or(0).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    pub(super) fn remove(&mut self, table: &str, key: &[u8]) {
        self.begin(table, REMOVE);
        self.bytes.extend_from_slice(&short(key));
        self.bytes.extend_from_slice(key);
    }

    pub(super) fn drop_table(&mut self, table: &str) {
        self.begin(table, DROP);
    }

    fn begin(&mut self, table: &str, tag: u8) {
        if self.table != table {
            self.table.clear();
            self.table.push_str(table);
            self.bytes.push(TABLE);
            self.bytes.extend_from_slice(&short(table.as_bytes()));
            self.bytes.extend_from_slice(table.as_bytes());
        }
        self.bytes.push(tag);
        self.count += 1;
    }

    /// The bytes, with room for a record's head in front.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The length in bytes, including the head.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn iter(&self) -> Iter<'_> {
        Iter::new(&self.bytes[HEAD..])
    }
}

/// A length of two bytes. The longest key is that of the index: two names and a zero.
fn short(bytes: &[u8]) -> [u8; 2] {
    debug_assert!(bytes.len() <= usize::from(u16::MAX), "a key is short");
    u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes()
}

/// Reads changes from their bytes. Ends at the first invalid change.
pub(super) struct Iter<'a> {
    rest: &'a [u8],
    table: &'a str,
}

impl<'a> Iter<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Iter { rest: bytes, table: "" }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        let length = self.take(2)?.first_chunk::<2>()?;
        Some(u16::from_le_bytes(*length).into())
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        loop {
            match self.take(1)?[0] {
                TABLE => {
                    let length = self.length()?;
                    self.table = str::from_utf8(self.take(length)?).ok()?;
                }
                PUT => {
                    let key = self.length()?;
                    let value = u32::from_le_bytes(*self.take(4)?.first_chunk::<4>()?);
                    let (key, value) = (self.take(key)?, self.take(value as usize)?);
                    return Some(Change::Put(self.table, key, value));
                }
                REMOVE => {
                    let key = self.length()?;
                    return Some(Change::Remove(self.table, self.take(key)?));
                }
                DROP => return Some(Change::Drop(self.table)),
                _ => return None,
            }
        }
    }
}

/// Applies changes to another transaction. Each table is opened once; the changes of a table keep their order.
pub(super) fn repeat<'a>(
    changes: impl Iterator<Item = Change<'a>>,
    transaction: &WriteTransaction,
) -> Outcome {
    let mut changes: Vec<Change<'_>> = changes.collect();
    changes.sort_by_key(Change::table);
    for changes in changes.chunk_by(|one, other| one.table() == other.table()) {
        let name = changes[0].table();
        let dropped = changes.iter().rposition(|change| matches!(change, Change::Drop(_)));
        if dropped.is_some() {
            transaction.delete_table(Numbered::new(name))?;
        }
        repeat_in(name, &changes[dropped.map_or(0, |at| at + 1)..], transaction)?;
    }
    Ok(())
}

/// Applies the changes of one table.
fn repeat_in(name: &str, changes: &[Change<'_>], transaction: &WriteTransaction) -> Outcome {
    if changes.is_empty() {
        return Ok(());
    }
    if let Some(small) = Small::from_name(name) {
        let mut table = transaction.open_table(small.definition())?;
        for change in changes {
            match *change {
                Change::Put(_, key, value) => drop(table.insert(key, value)?),
                Change::Remove(_, key) => drop(table.remove(key)?),
                Change::Drop(_) => {}
            }
        }
        return Ok(());
    }
    let mut table = transaction.open_table(Numbered::new(name))?;
    let number = |key: &[u8]| key.try_into().map_or(0, u64::from_be_bytes);
    for change in changes {
        match *change {
            Change::Put(_, key, value) => drop(table.insert(number(key), value)?),
            Change::Remove(_, key) => drop(table.remove(number(key))?),
            Change::Drop(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_back_in_their_order() {
        let mut changes = Changes::new();
        changes.put("out", b"k", b"value");
        changes.put("out", b"", b"");
        changes.remove("keys", b"k");
        changes.drop_table("hour.0");
        changes.put("hour.0", &[0; 8], &[7; 300]);
        let read: Vec<Change<'_>> = changes.iter().collect();
        let whole = [
            Change::Put("out", b"k", b"value"),
            Change::Put("out", b"", b""),
            Change::Remove("keys", b"k"),
            Change::Drop("hour.0"),
            Change::Put("hour.0", &[0; 8], &[7; 300]),
        ];
        assert_eq!(read, whole);
        assert_eq!(changes.count, whole.len());
        let bytes = changes.bytes();
        for cut in HEAD..bytes.len() {
            assert!(Iter::new(&bytes[HEAD..cut]).count() < whole.len(), "cut short at {cut}");
        }
    }
}
