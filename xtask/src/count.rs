//! The size of each crate: lines of code, types, public types.
//!
//! A line of code holds at least one token. Comments, docs, and code built only for tests, models and planted faults do
//! not count; of `planted!("name", wrong, right)` only `right` counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item};

use crate::shell::{Outcome, root, tracked};

#[derive(Default)]
struct Size {
    files: usize,
    lines: usize,
    types: usize,
    public: usize,
}

/// Prints the size of each crate. The benches are divided into parts.
pub(crate) fn run() -> Outcome {
    let sources: BTreeSet<PathBuf> = tracked()?
        .into_iter()
        .filter(|file| file.components().any(|part| part.as_os_str() == "src"))
        .filter(|file| file.extension().is_some_and(|ending| ending == "rs"))
        .collect();
    let mut tests = BTreeSet::new();
    let mut parsed = Vec::new();
    for file in &sources {
        let text = fs::read_to_string(root().join(file)).map_err(|error| error.to_string())?;
        let syntax =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        for item in &syntax.items {
            if let Item::Mod(module) = item
                && module.content.is_none()
                && for_tests(&module.attrs)
            {
                tests.extend(files_of(file, &module.ident.to_string()));
            }
        }
        parsed.push((file, syntax));
    }
    let mut sizes: BTreeMap<String, Size> = BTreeMap::new();
    for (file, syntax) in parsed {
        if tests.iter().any(|test| file.starts_with(test)) {
            continue;
        }
        let size = sizes.entry(crate_of(file)).or_default();
        size.files += 1;
        size.lines += lines(&syntax.items);
        count_types(&syntax.items, size);
    }
    println!("{:<24} {:>6} {:>7} {:>6} {:>7}", "crate", "files", "lines", "types", "public");
    for (name, size) in sizes {
        let Size { files, lines, types, public } = size;
        println!("{name:<24} {files:>6} {lines:>7} {types:>6} {public:>7}");
    }
    Ok(())
}

/// The folder that contains `src`, or the part of the benches, for parts that grow with every measured item.
fn crate_of(file: &Path) -> String {
    let before: PathBuf = file.components().take_while(|part| part.as_os_str() != "src").collect();
    let name = before.to_string_lossy().into_owned();
    let text = file.to_string_lossy();
    let part = BENCH_PARTS.iter().find(|(_, places)| places.iter().any(|it| text.starts_with(it)));
    part.map_or(name, |(part, _)| (*part).to_owned())
}

const BENCH_PARTS: &[(&str, &[&str])] = &[
    ("bench, durable", &["bench/src/durable/"]),
    ("bench, serve", &["bench/src/serve/"]),
    ("bench, plots", &["bench/src/plots/"]),
    (
        "bench, peers' adapters",
        &[
            "bench/src/jvm.rs",
            "bench/src/task/peers.rs",
            "bench/src/timer/contestants/hash_wheel.rs",
            "bench/src/timer/contestants/pool.rs",
            "bench/src/timer/contestants/tokio_time.rs",
            "bench/src/wheel/contestants/intrusive.rs",
            "bench/src/wheel/contestants/peers/",
        ],
    ),
];

/// The possible locations of a module that `file` declares: a file and a folder.
pub(crate) fn files_of(file: &Path, module: &str) -> [PathBuf; 2] {
    let name = file.file_stem().unwrap_or_default();
    let folder = file.parent().unwrap_or(Path::new(""));
    let folder = match name.to_str() {
        Some("mod" | "lib" | "main") => folder.to_path_buf(),
        _ => folder.join(name),
    };
    [folder.join(format!("{module}.rs")), folder.join(module)]
}

/// Whether an item is built only for tests, models or planted faults.
pub(crate) fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let words = attribute.meta.to_token_stream().to_string();
        let word = |word: &str| words.split(|c: char| !c.is_alphanumeric()).any(|it| it == word);
        (word("test") || word("planted") || word("doctest")) && !word("not")
    })
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// The number of lines that hold a token of these items.
pub(crate) fn lines(items: &[Item]) -> usize {
    let mut seen = BTreeSet::new();
    for item in items.iter().filter(|item| !for_tests(attributes(item))) {
        mark(item.to_token_stream(), &mut seen);
    }
    seen.len()
}

fn mark(tokens: TokenStream, seen: &mut BTreeSet<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if let Some(length) = doc(&tokens[at..]) {
            at += length;
            continue;
        }
        if let Some((right, length)) = planted(&tokens[at..]) {
            mark(right, seen);
            at += length;
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                if group.delimiter() != Delimiter::None {
                    seen.insert(group.span_open().start().line);
                    seen.insert(group.span_close().end().line);
                }
                mark(group.stream(), seen);
            }
            other => seen.extend(other.span().start().line..=other.span().end().line),
        }
        at += 1;
    }
}

/// The number of tokens of a doc comment at the start: `#[doc = "…"]` or `#![doc = "…"]`.
fn doc(tokens: &[TokenTree]) -> Option<usize> {
    let is = |token: Option<&TokenTree>, mark| matches!(token, Some(TokenTree::Punct(it)) if it.as_char() == mark);
    if !is(tokens.first(), '#') {
        return None;
    }
    let at = if is(tokens.get(1), '!') { 2 } else { 1 };
    let TokenTree::Group(group) = tokens.get(at)? else { return None };
    let TokenTree::Ident(word) = group.stream().into_iter().next()? else { return None };
    (word == "doc").then_some(at + 1)
}

/// `planted!(…)` at the start: its third argument, and the number of its tokens.
fn planted(tokens: &[TokenTree]) -> Option<(TokenStream, usize)> {
    let [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(group), ..] = tokens
    else {
        return None;
    };
    if name != "planted" || mark.as_char() != '!' {
        return None;
    }
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ',');
    // After the name and the wrong expression. Commas inside nested groups are not top-level tokens.
    let all: Vec<TokenTree> = group.stream().into_iter().collect();
    let commas: Vec<usize> = (0..all.len()).filter(|&at| is_comma(&all[at])).collect();
    let last = commas.iter().rev().find(|&&at| at + 1 < all.len())?;
    Some((all[last + 1..].iter().cloned().collect(), 3))
}

fn count_types(items: &[Item], size: &mut Size) {
    for item in items.iter().filter(|item| !for_tests(attributes(item))) {
        let public = match item {
            Item::Enum(it) => &it.vis,
            Item::Struct(it) => &it.vis,
            Item::Trait(it) => &it.vis,
            Item::Type(it) => &it.vis,
            Item::Union(it) => &it.vis,
            Item::Mod(it) => {
                if let Some((_, items)) = &it.content {
                    count_types(items, size);
                }
                continue;
            }
            _ => continue,
        };
        size.types += 1;
        size.public += usize::from(matches!(public, syn::Visibility::Public(_)));
    }
}
