//! Bytes: integers, texts, moments and spans. A reader checks every limit.

use super::{DecodeError, Wrong};
use crate::values::{Moment, Span};

/// Appends an integer as LEB128: seven bits per byte, lowest first.
pub(super) fn put_u64(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed integer in zigzag form: small ones of either sign are short.
pub(super) fn put_i64(out: &mut Vec<u8>, number: i64) {
    put_u64(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends a text, preceded by its length.
pub(super) fn put_str(out: &mut Vec<u8>, text: &str) {
    put_u64(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the bits of a float.
pub(super) fn put_f64(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(&number.to_bits().to_le_bytes());
}

/// Reads fields from the front.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    /// The number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }

    /// Takes all remaining bytes.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(super) fn byte(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.take(field, 1)?[0])
    }

    fn take(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], DecodeError> {
        let split = self.0.split_at_checked(count);
        let (taken, rest) = split.ok_or(DecodeError { field, wrong: Wrong::Short })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(field)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(invalid(field, "an integer above 2^64"))
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        u32::try_from(self.u64(field)?).map_err(|_| invalid(field, "an integer above 2^32"))
    }

    pub(super) fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        let number = self.u64(field)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn f64(&mut self, field: &'static str) -> Result<f64, DecodeError> {
        let bytes = self.take(field, 8)?.first_chunk().copied().unwrap_or_default();
        Ok(f64::from_bits(u64::from_le_bytes(bytes)))
    }

    pub(super) fn str(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        // A length that exceeds memory also exceeds the bytes left.
        let length = usize::try_from(self.u64(field)?).unwrap_or(usize::MAX);
        std::str::from_utf8(self.take(field, length)?).map_err(|error| invalid(field, error))
    }

    pub(super) fn moment(&mut self, field: &'static str) -> Result<Moment, DecodeError> {
        let millis = self.u64(field)?;
        moment(field, Some(millis))
    }

    /// Reads a moment written as its difference to another.
    pub(super) fn moment_from(
        &mut self,
        field: &'static str,
        from: Moment,
    ) -> Result<Moment, DecodeError> {
        let difference = self.i64(field)?;
        moment(field, from.millis().checked_add_signed(difference))
    }

    pub(super) fn span(&mut self, field: &'static str) -> Result<Span, DecodeError> {
        let millis = self.u64(field)?;
        let span = Some(Span::from_millis(millis)).filter(|span| span.millis() == millis);
        span.ok_or_else(|| invalid(field, "more than 1000 years"))
    }
}

/// Appends a moment as its difference to another.
pub(super) fn put_moment_from(out: &mut Vec<u8>, moment: Moment, from: Moment) {
    // Both are below 2^48.
    put_i64(out, moment.millis() as i64 - from.millis() as i64);
}

fn moment(field: &'static str, millis: Option<u64>) -> Result<Moment, DecodeError> {
    let moment = millis.map(Moment::from_millis).filter(|moment| Some(moment.millis()) == millis);
    moment.ok_or_else(|| invalid(field, "not between 1970 and 9999"))
}

/// The error for a field out of its limits.
pub(super) fn invalid(field: &'static str, why: impl ToString) -> DecodeError {
    DecodeError { field, wrong: Wrong::Invalid(why.to_string()) }
}
