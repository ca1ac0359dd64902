//! Resolves paths: the modules of a crate, and the module that a path in one of them refers to.
//!
//! A path is followed through `use` and re-exports to the module that defines the item. Code built only for tests,
//! models and planted faults is left out. Fields and methods have no path, so uses of a module through them are not
//! detected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, UseTree};

use crate::count::{attributes, files_of, for_tests};
use crate::shell::Outcome;

/// The path of a module: the names from the crate's root to it. The root's path is empty.
pub(super) type Name = Vec<String>;

/// The text of a file, or `None` if there is none.
pub(super) type Read<'a> = dyn Fn(&Path) -> Option<String> + 'a;

#[derive(Default)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    children: BTreeSet<String>,
    /// The items that it defines.
    items: BTreeSet<String>,
    /// Its `use` declarations: the local name, and the path.
    uses: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Every path of two or more names in its code, with its line.
    pub(super) paths: Vec<(Vec<String>, usize)>,
    /// The number of lines of its file that hold a token; 0 if it has no file of its own.
    pub(super) lines: usize,
}

#[derive(Default)]
pub(super) struct Modules {
    pub(super) all: BTreeMap<Name, Module>,
}

impl Modules {
    /// Reads the crate with that root file.
    pub(super) fn read(root: &Path, read: &Read<'_>) -> Outcome<Self> {
        let mut modules = Modules::default();
        modules.read_file(Vec::new(), root.to_path_buf(), read)?;
        Ok(modules)
    }

    fn read_file(&mut self, name: Name, file: PathBuf, read: &Read<'_>) -> Outcome {
        let text = read(&file).ok_or_else(|| format!("{} cannot be read", file.display()))?;
        let syntax =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        self.read_items(name.clone(), &file, &syntax.items, read)?;
        if let Some(module) = self.all.get_mut(&name) {
            module.lines = crate::count::lines(&syntax.items);
        }
        Ok(())
    }

    fn read_items(&mut self, name: Name, file: &Path, items: &[Item], read: &Read<'_>) -> Outcome {
        let mut module = Module { file: file.to_path_buf(), ..Module::default() };
        for item in items.iter().filter(|item| !left_out(attributes(item))) {
            module.add(item);
            let Item::Mod(child) = item else { continue };
            let child_name = [&name[..], &[child.ident.to_string()]].concat();
            match &child.content {
                Some((_, items)) => self.read_items(child_name, file, items, read)?,
                None => {
                    let [flat, folder] = files_of(file, &child.ident.to_string());
                    let file = if read(&flat).is_some() { flat } else { folder.join("mod.rs") };
                    self.read_file(child_name, file, read)?;
                }
            }
        }
        self.all.insert(name, module);
        Ok(())
    }

    /// The module that defines the item of a path seen from `from`; `None` if it is in another crate.
    pub(super) fn defines(&self, from: &Name, path: &[String]) -> Option<Name> {
        self.follow(from, path, 0)
    }

    fn follow(&self, from: &Name, path: &[String], depth: usize) -> Option<Name> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(Vec::new(), rest, depth),
            "self" => self.walk(from.clone(), rest, depth),
            "super" => self.walk(from[..from.len().checked_sub(1)?].to_vec(), rest, depth),
            _ => self.step(from, first, rest, depth),
        }
    }

    /// Resolves the rest of a path from a module.
    fn walk(&self, at: Name, path: &[String], depth: usize) -> Option<Name> {
        match path.split_first() {
            None => Some(at),
            Some((first, _)) if first == "super" => self.follow(&at, path, depth),
            Some((first, rest)) => self.step(&at, first, rest, depth).or(Some(at)),
        }
    }

    /// Resolves a name in a module: a submodule, an item, or a `use`.
    fn step(&self, at: &Name, first: &String, rest: &[String], depth: usize) -> Option<Name> {
        let module = self.all.get(at)?;
        // Two modules may re-export each other's names, in an endless loop.
        if depth > 16 {
            return None;
        }
        if module.children.contains(first) {
            return self.walk([&at[..], std::slice::from_ref(first)].concat(), rest, depth);
        }
        if module.items.contains(first) {
            return Some(at.clone());
        }
        if let Some(used) = module.uses.get(first).filter(|used| used.first() != Some(first)) {
            return self.follow(at, &[&used[..], rest].concat(), depth + 1);
        }
        module.globs.iter().find_map(|glob| {
            let target = self.follow(at, glob, depth + 1).filter(|target| target != at)?;
            self.step(&target, first, rest, depth + 1)
        })
    }
}

impl Module {
    fn add(&mut self, item: &Item) {
        match item {
            Item::Mod(it) => {
                self.children.insert(it.ident.to_string());
                return;
            }
            Item::Use(it) => {
                let line = it.use_token.span.start().line;
                return self.add_use(&mut Vec::new(), &it.tree, line);
            }
            Item::Const(it) => self.define(&it.ident),
            Item::Enum(it) => self.define(&it.ident),
            Item::Fn(it) => self.define(&it.sig.ident),
            Item::Static(it) => self.define(&it.ident),
            Item::Struct(it) => self.define(&it.ident),
            Item::Trait(it) => self.define(&it.ident),
            Item::Type(it) => self.define(&it.ident),
            Item::Union(it) => self.define(&it.ident),
            Item::Macro(it) => it.ident.iter().for_each(|name| self.define(name)),
            Item::Impl(it) => {
                let mut head = it.clone();
                head.items.retain(|item| !left_out(attributes_of(item)));
                return self.add_paths(head.to_token_stream());
            }
            _ => {}
        }
        self.add_paths(item.to_token_stream());
    }

    fn define(&mut self, name: &syn::Ident) {
        self.items.insert(name.to_string());
    }

    fn add_use(&mut self, before: &mut Vec<String>, tree: &UseTree, line: usize) {
        let whole = |before: &[String], last: &syn::Ident| match last.to_string() {
            last if last == "self" => before.to_vec(),
            last => [before, &[last]].concat(),
        };
        match tree {
            UseTree::Path(it) => {
                before.push(it.ident.to_string());
                self.add_use(before, &it.tree, line);
                before.pop();
            }
            UseTree::Name(it) => {
                let path = whole(before, &it.ident);
                self.paths.push((path.clone(), line));
                self.uses.insert(path.last().cloned().unwrap_or_default(), path);
            }
            UseTree::Rename(it) => {
                let path = whole(before, &it.ident);
                self.paths.push((path.clone(), line));
                self.uses.insert(it.rename.to_string(), path);
            }
            UseTree::Glob(_) => {
                self.paths.push((before.clone(), line));
                self.globs.push(before.clone());
            }
            UseTree::Group(it) => {
                it.items.iter().for_each(|tree| self.add_use(before, tree, line));
            }
        }
    }

    /// Adds every `a::b…` among the tokens, also inside macros. A single name is local or imported by a `use`.
    fn add_paths(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.add_paths(group.stream());
                    at += 1;
                }
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    let begins = !(at >= 2 && is_separator(&tokens[at - 2..at]));
                    at += 1;
                    while let [_, _, TokenTree::Ident(next), ..] = &tokens[at..] {
                        if !is_separator(&tokens[at..at + 2]) {
                            break;
                        }
                        path.push(next.to_string());
                        at += 3;
                    }
                    if begins && path.len() > 1 {
                        self.paths.push((path, first.span().start().line));
                    }
                }
                _ => at += 1,
            }
        }
    }
}

/// `::`
fn is_separator(two: &[TokenTree]) -> bool {
    two.iter().all(|token| matches!(token, TokenTree::Punct(it) if it.as_char() == ':'))
}

fn attributes_of(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(it) => &it.attrs,
        ImplItem::Fn(it) => &it.attrs,
        ImplItem::Type(it) => &it.attrs,
        ImplItem::Macro(it) => &it.attrs,
        _ => &[],
    }
}

/// Whether it is built only for tests, models or planted faults.
fn left_out(attributes: &[Attribute]) -> bool {
    let is_cfg = |attribute: &&Attribute| attribute.path().is_ident("cfg");
    for_tests(attributes)
        || attributes.iter().filter(is_cfg).any(|attribute| {
            let words = attribute.meta.to_token_stream().to_string();
            ["loom", "shuttle", "test"].iter().any(|word| words.contains(word))
                && !words.replace(' ', "").contains("cfg(not(")
        })
}
