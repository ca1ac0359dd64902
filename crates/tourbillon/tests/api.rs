//! The public API, listed in `api.txt`: a change of it must be visible, and intended.
//!
//! If it is intended, write the listing anew with
//! `UPDATE_API=1 cargo test -p tourbillon --test api`
//! and commit it with the change.
//!
//! The listing is read from the source, which rustfmt keeps in one shape: a line at the left margin begins an item, a
//! line indented by four begins a part of it. Public is what `lib.rs` exports, and what its public modules export, with
//! public methods, fields, variants, derives and implemented traits.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_public_api_is_the_one_in_the_listing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let now = listing(&root.join("src"));
    let file = root.join("tests/api.txt");
    if std::env::var_os("UPDATE_API").is_some() {
        fs::write(&file, &now).unwrap();
    }
    let then = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    let (new, old): (BTreeSet<_>, BTreeSet<_>) = (now.lines().collect(), then.lines().collect());
    let differs = new.difference(&old).map(|line| format!("+ {line}\n"));
    let differs: String =
        differs.chain(old.difference(&new).map(|line| format!("- {line}\n"))).collect();
    assert!(
        now == then,
        "the public API is not the one in tests/api.txt:\n{differs}\
         If that is meant: UPDATE_API=1 cargo test -p tourbillon --test api"
    );
}

/// A scanner that finds nothing would never fail.
#[test]
fn the_listing_sees_each_kind_of_item() {
    let all = listing(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for expected in [
        "pub use tourbillon_wheel as wheel;",
        "pub struct Timer",
        "Timer: pub fn stop(&self) -> Vec<Unfired>",
        "KeyedTimer: pub fn is_pending<Q>(&self, key: &Q) -> bool where K: Borrow<Q>, Q: Eq + Hash + ?Sized",
        "pub enum State",
        "State::HandedBack",
        "Counts: pub armed: u64",
        "pub trait Clock: Send + Sync + 'static",
        "Clock: fn now(&self) -> Instant",
        "impl Drop for Job",
        "> Executor for E",
        "ScheduleError::Thread(T, io::Error)",
    ] {
        assert!(
            all.lines().any(|line| line.ends_with(expected)),
            "{expected} is missing in\n{all}"
        );
    }
    assert!(!all.contains("pub(crate)") && !all.contains("fn core(&self)"), "{all}");
}

fn listing(src: &Path) -> String {
    let root = fs::read_to_string(src.join("lib.rs")).unwrap();
    let mut exports: Vec<_> = statements(&root, "pub use ");
    for module in statements(&root, "pub mod ") {
        let name = module.trim_start_matches("pub mod ").trim_end_matches(';');
        let folder = fs::read_to_string(src.join(name).join("mod.rs"));
        let file = folder.or_else(|_| fs::read_to_string(src.join(format!("{name}.rs")))).unwrap();
        let inside = statements(&file, "pub use ").into_iter();
        exports.extend(inside.map(|line| format!("{name}: {line}")));
    }
    let names = exports.iter().flat_map(|line| exported(line)).collect();
    let mut all: Vec<String> = exports;
    for file in sources(src) {
        items(&fs::read_to_string(file).unwrap(), &names, &mut all);
    }
    all.sort();
    let mut text = String::from("# The public API. How to write it anew stands in api.rs.\n");
    all.iter().for_each(|line| writeln!(text, "{line}").unwrap());
    text
}

/// The names that a `pub use` exports.
fn exported(line: &str) -> Vec<String> {
    let list = line.trim_end_matches(';').rsplit("::").next().unwrap_or_default();
    let list = list.trim_matches(['{', '}']);
    list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// The source files, in a stable order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Statements at the left margin with this beginning, each joined into one line.
fn statements(text: &str, begin: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let at = (0..lines.len()).filter(|&at| lines[at].starts_with(begin));
    at.map(|at| header(&lines[at..], 0).0).collect()
}

/// The head of an item, up to the `{` of its body, its `;`, or the `,` of a part; and the number of its lines.
fn header(lines: &[&str], indent: usize) -> (String, usize) {
    let mut text = String::new();
    for (count, line) in lines.iter().enumerate() {
        let line = line.trim();
        if !text.is_empty() && !text.ends_with('(') && !line.starts_with(')') {
            text.push(' ');
        }
        text.push_str(line);
        let ends = line.ends_with(['{', ';', '}']) || (indent > 0 && line.ends_with(','));
        let open = text.matches('(').count() > text.matches(')').count();
        let uses = text.starts_with("pub use") && !text.ends_with(';');
        let bounds = text.contains(" where") && !line.ends_with(['{', ';']);
        if ends && !open && !uses && !bounds {
            return (tidy(&text), count + 1);
        }
    }
    (tidy(&text), lines.len())
}

fn tidy(text: &str) -> String {
    let text = text.replace(",)", ")").replace(", )", ")").replace("{ ", "{").replace(", }", "}");
    if text.starts_with("pub use") {
        return text;
    }
    let text = text.split(" {").next().unwrap_or_default();
    text.trim_end_matches([';', ',', '{']).trim().to_owned()
}

/// Adds the public items of a file.
fn items(text: &str, names: &BTreeSet<String>, all: &mut Vec<String>) {
    let lines: Vec<_> = text.lines().collect();
    let mut attributes = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if line == "#[cfg(test)]" {
            return;
        }
        if line.starts_with("#[derive")
            || line.starts_with("#[non_exhaustive")
            || line.starts_with("#[must_use")
        {
            attributes.push(
                line.split(" = ").next().unwrap_or_default().trim_end_matches(']').to_owned() + "]",
            );
            at += 1;
            continue;
        }
        let item = [
            "pub struct ",
            "pub enum ",
            "pub trait ",
            "pub const ",
            "pub type ",
            "pub fn ",
            "impl",
        ];
        if !item.iter().any(|begin| line.starts_with(begin)) {
            if !line.starts_with("#[") && !line.starts_with("//") {
                attributes.clear();
            }
            at += 1;
            continue;
        }
        let (head, taken) = header(&lines[at..], 0);
        let name = name_of(&head);
        let body = &lines[at + taken..];
        let end = if lines[at + taken - 1].ends_with('{') {
            body.iter().position(|line| *line == "}").unwrap_or(body.len())
        } else {
            0
        };
        if names.contains(&name) || implements(&head, names) {
            if !head.starts_with("impl") || head.contains(" for ") {
                attributes.push(hide_private(&head));
                all.push(attributes.join(" "));
            }
            parts(&head, &name, &body[..end], all);
        }
        attributes.clear();
        at += taken + end;
    }
}

/// Whether it implements a trait of this crate, for any type.
fn implements(head: &str, names: &BTreeSet<String>) -> bool {
    let Some((left, _)) = head.strip_prefix("impl").and_then(|rest| rest.rsplit_once(" for "))
    else {
        return false;
    };
    left.rsplit(' ').next().is_some_and(|name| names.contains(name))
}

/// Hides the fields of a tuple struct if they are private.
fn hide_private(head: &str) -> String {
    match head.split_once('(') {
        Some((name, fields)) if name.starts_with("pub struct") && !fields.contains("pub ") => {
            format!("{name}(..)")
        }
        _ => head.to_owned(),
    }
}

/// The type that an item is, or is an implementation for.
fn name_of(head: &str) -> String {
    // Its bounds may end with a `>` as well.
    let head = head.split(" where").next().unwrap_or_default();
    let subject = match head.strip_prefix("impl") {
        Some(rest) => match rest.rsplit_once(" for ") {
            Some((_, subject)) => subject,
            // The parameters of the implementation come first.
            None => rest.rsplit_once("> ").map_or(rest, |(_, subject)| subject),
        },
        None => head.splitn(3, ' ').nth(2).unwrap_or_default(),
    };
    let subject = subject.trim();
    subject.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
}

/// The public parts of an item: methods, fields, variants.
fn parts(head: &str, name: &str, body: &[&str], all: &mut Vec<String>) {
    let all_public = head.starts_with("pub enum") || head.starts_with("pub trait");
    if head.starts_with("impl") && head.contains(" for ") {
        return;
    }
    let separator = if head.starts_with("pub enum") { "::" } else { ": " };
    let mut at = 0;
    while at < body.len() {
        let line = body[at];
        let part = line.strip_prefix("    ").unwrap_or_default();
        let is_code = part.starts_with(|c: char| c.is_alphabetic());
        if !is_code || !(all_public || part.starts_with("pub ")) {
            at += 1;
            continue;
        }
        let (part, taken) = header(&body[at..], 4);
        all.push(format!("{name}{separator}{part}"));
        at += taken;
    }
}
