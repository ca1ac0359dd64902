//! Percent-encoding: of keys in paths, and of queries. Pure.

use std::fmt::Write as _;

use crate::problem::{Code, Problem};

/// Encodes a text as one segment of a path.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes a text. `None` for a `%` without two hexadecimal digits, or invalid UTF-8. With `plus`, a plus sign is a
/// space, as in forms.
pub(crate) fn decoded(text: &str, plus: bool) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                (high * 16 + low) as u8
            }
            b'+' if plus => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

/// The names and values of a query, in order.
pub(crate) fn query(text: &str) -> Result<Vec<(String, String)>, Problem> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let both = decoded(name, true).zip(decoded(value, true));
        both.ok_or_else(|| {
            let detail = format!("{pair:?} of the query cannot be decoded: encode it as UTF-8");
            Problem::new(Code::BadValue, detail)
        })
    };
    text.split('&').filter(|pair| !pair.is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for text in ["order-17", "a/b", "ä ö", "100%", "a+b", "~1", "?#&="] {
            assert_eq!(decoded(&encoded(text), true).as_deref(), Some(text));
        }
        assert_eq!(encoded("a/ä"), "a%2F%C3%A4");
    }

    #[test]
    fn what_is_not_encoded_well_is_refused() {
        for text in ["%", "%4", "%zz", "%+1", "%ff", "%c3"] {
            assert_eq!(decoded(text, false), None, "{text}");
        }
        assert_eq!(decoded("a+b", false).as_deref(), Some("a+b"));
        assert_eq!(decoded("a+b", true).as_deref(), Some("a b"));
    }

    #[test]
    fn a_query_has_pairs() {
        let pairs = query("a=1&&b=%26&c").unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "&"), ("c", "")]);
        assert!(query("a=%").is_err());
    }
}
