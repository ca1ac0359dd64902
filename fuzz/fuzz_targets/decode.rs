//! The decoder of stored values: no bytes make it panic, and what it accepts survives another round trip.
//!
//! `cargo +nightly fuzz run decode`. The fuzzer cannot guess a checksum, so it is given the right one; the first byte
//! chooses the kind of row.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tourbillon_durable::codec::{
    BucketRow, DayCells, Home, Marks, Row, ShardState, VERSION, decode, encode, seal,
};
use tourbillon_durable::record::{Place, Record};
use tourbillon_durable::store::QueueRow;

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, fields)) = bytes.split_first() else { return };
    // As they are, with a checksum that is almost surely wrong.
    let _ = decode::<Record>("out", b"key", bytes);
    match kind % 8 {
        0 => try_row::<ShardState>(fields),
        1 => try_row::<QueueRow>(fields),
        2 => try_row::<BucketRow>(fields),
        3 => try_row::<Home>(fields),
        4 => try_row::<Place>(fields),
        5 => try_row::<Marks>(fields),
        6 => try_row::<DayCells>(fields),
        _ => try_row::<Record>(fields),
    }
});

fn try_row<R: Row + PartialEq + std::fmt::Debug>(fields: &[u8]) {
    let mut value = vec![VERSION];
    value.extend_from_slice(fields);
    seal("out", b"key", &mut value);
    if let Ok(row) = decode::<R>("out", b"key", &value) {
        let again = encode("out", b"key", &row);
        assert_eq!(decode::<R>("out", b"key", &again).as_ref(), Ok(&row));
    }
}
