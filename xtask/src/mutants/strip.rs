//! Removes planted faults: `planted!("name", wrong, right)` becomes `(right)`, with line numbers unchanged.
//!
//! cargo-mutants does not look into macros, so without this it would skip their arguments.

use std::ops::Range;
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, Token};

use crate::shell::Outcome;

/// The text without planted faults.
pub(super) fn strip(text: &str) -> Outcome<String> {
    let tokens = TokenStream::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    find(tokens, &mut found);
    let mut stripped = text.as_bytes().to_vec();
    for Planted { all, right } in found {
        for at in (all.start..right.start).chain(right.end..all.end) {
            if stripped[at] != b'\n' {
                stripped[at] = b' ';
            }
        }
        (stripped[right.start - 1], stripped[all.end - 1]) = (b'(', b')');
    }
    String::from_utf8(stripped).map_err(|error| error.to_string())
}

/// A use of the macro, and its third argument.
struct Planted {
    all: Range<usize>,
    right: Range<usize>,
}

fn find(tokens: TokenStream, found: &mut Vec<Planted>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        // Recorded before the uses inside it, which are then stripped from the remaining argument.
        if let Some(name) = at.checked_sub(2).map(|at| &tokens[at])
            && matches!(name, TokenTree::Ident(name) if name == "planted")
            && let Some(right) = right(group.stream())
        {
            found.push(Planted {
                all: name.span().byte_range().start..group.span().byte_range().end,
                right,
            });
        }
        find(group.stream(), found);
    }
}

/// The third argument.
fn right(arguments: TokenStream) -> Option<Range<usize>> {
    let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(arguments).ok()?;
    Some(arguments.iter().nth(2)?.span().byte_range())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_stays() {
        let text = "fn f() {\n    let x = planted!(\n        \"a\",\n        w(1, 2),\n        r(3)\n    ).y;\n}\n";
        let stripped = strip(text).unwrap();
        assert_eq!(stripped.lines().count(), text.lines().count());
        let words: Vec<&str> = stripped.split_whitespace().collect();
        assert_eq!(words.join(" "), "fn f() { let x = (r(3) ).y; }");
        let nested = strip("x(planted!(\"a\", 1, planted!(\"b\", 2, 3)))").unwrap();
        assert_eq!(nested.replace(' ', ""), "x(((3)))");
    }
}
