//! Finds code that the tests on this system do not build or that is not the engine's: code for models and for other
//! systems, and test helpers. No test could catch mutants there.

use std::ops::Range;

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, Lit, Meta, Token};

use crate::shell::Outcome;

/// The ranges of those parts.
pub(super) fn left_out(text: &str) -> Outcome<Vec<Range<usize>>> {
    let syntax = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut finder = Finder { found: Vec::new() };
    finder.visit_file(&syntax);
    Ok(finder.found)
}

struct Finder {
    found: Vec<Range<usize>>,
}

impl Finder {
    /// Whether the item is built. If not, records its range.
    fn is_built(&mut self, attributes: &[Attribute], item: &impl Spanned) -> bool {
        let mut conditions = attributes.iter().filter(|it| it.path().is_ident("cfg"));
        let built = conditions.all(|it| it.parse_args::<Meta>().is_ok_and(|it| holds(&it)));
        if !built {
            self.found.push(item.span().byte_range());
        }
        built
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            Item::Mod(it) => &it.attrs,
            Item::Trait(it) => &it.attrs,
            _ => return,
        };
        if self.is_built(attributes, item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(it) = item {
            self.is_built(&it.attrs, item);
        }
    }
}

/// Whether a condition holds in the tests: all features, on Linux.
fn holds(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("unix"),
        Meta::NameValue(it) => {
            let Expr::Lit(value) = &it.value else { return false };
            let Lit::Str(value) = &value.lit else { return false };
            it.path.is_ident("feature") || value.value() == "linux" || value.value() == "64"
        }
        Meta::List(it) => {
            let parts = it.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            let Ok(parts) = parts else { return false };
            match it.path.get_ident().map(ToString::to_string).as_deref() {
                Some("all") => parts.iter().all(holds),
                Some("any") => parts.iter().any(holds),
                Some("not") => !parts.iter().any(holds),
                _ => false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_models_tests_and_other_systems_is_left_out() {
        let text = "
            #[cfg(all(loom, test))] fn a() {}
            #[cfg(not(target_os = \"linux\"))] fn b() {}
            #[cfg(any(feature = \"x\", shuttle))] fn c() {}
            #[cfg(not(loom))] impl A { #[cfg(test)] fn d() {} fn e() {} }
            #[cfg(target_os = \"linux\")] mod f { #[cfg(shuttle)] fn g() {} fn h() {} }
        ";
        let found = left_out(text).unwrap();
        let names: Vec<char> = found
            .into_iter()
            .map(|range| text[range].split("fn ").nth(1).unwrap().chars().next().unwrap())
            .collect();
        assert_eq!(names, ['a', 'b', 'd', 'g']);
    }
}
