//! Checks which rooms (module folders) of a crate use which: `rooms.txt` must match the source.
//!
//! Each part of the table names a file. A room is a child module of that file, with everything in it. The table lists
//! the rooms from the top down, each with the rooms that it uses: its arrows. An arrow that points up is marked `!`: it
//! closes a cycle and should be removed. The table is exact. An arrow missing from it is an error, and so is a listed
//! arrow that does not exist, so a removed dependency cannot return unnoticed.
//!
//! The other crates need no table: their rooms must not use each other in a cycle.

mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::shell::{Outcome, root};
use modules::{Modules, Name, Read};

const TABLE: &str = "xtask/rooms.txt";
/// The document with a copy of the table's first part.
const COPY: &str = "DESIGN.md";
/// A room with more lines of code should be split.
const LARGEST: usize = 2500;

/// The crates without a part in the table.
const OTHERS: [&str; 7] = [
    "crates/wheel/src/lib.rs",
    "crates/durable/src/lib.rs",
    "crates/server/src/lib.rs",
    "crates/cli/src/lib.rs",
    "sim/src/lib.rs",
    "browser/src/lib.rs",
    "xtask/src/main.rs",
];

/// One part of the table.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    /// The root file of the crate, and the module whose children are the rooms.
    file: String,
    module: Name,
    /// From the top down: each room, and the rooms that it uses.
    rooms: Vec<(String, BTreeSet<String>)>,
}

/// From one room to another, with the position of the first such path.
type Arrows = BTreeMap<(String, String), String>;

/// Reports violations. Returns a summary line for each part.
pub(crate) fn check(found: &mut Vec<String>) -> Outcome<Vec<String>> {
    let text =
        fs::read_to_string(root().join(TABLE)).map_err(|error| format!("{TABLE}: {error}"))?;
    let copy = fs::read_to_string(root().join(COPY)).map_err(|error| format!("{COPY}: {error}"))?;
    if !is_copy(&text, &copy) {
        found.push(format!("{COPY}: its block of rooms is not the first part of {TABLE}"));
    }
    let read = |file: &Path| fs::read_to_string(root().join(file)).ok();
    let parts = parse(&text)?;
    let mut lines: Vec<String> =
        parts.iter().map(|part| part.check(&read, found)).collect::<Outcome<_>>()?;
    for file in OTHERS {
        let part = Part { file: file.into(), module: Name::new(), rooms: Vec::new() };
        lines.push(part.check_cycles(&read, found)?);
    }
    Ok(lines)
}

/// The arrows on a cycle: a way leads from their target back to their source.
fn on_cycles(arrows: &Arrows) -> Arrows {
    let leads_back = |(from, to): &(String, String)| {
        let mut reached = BTreeSet::from([to]);
        let mut ways = vec![to];
        while let Some(room) = ways.pop() {
            let next = arrows.keys().filter(|(used_by, _)| used_by == room).map(|(_, used)| used);
            ways.extend(next.filter(|used| reached.insert(used)));
        }
        reached.contains(from)
    };
    let on_cycle = arrows.iter().filter(|(arrow, _)| leads_back(arrow));
    on_cycle.map(|(arrow, line)| (arrow.clone(), line.clone())).collect()
}

/// Whether the room table in a document equals the table's first part.
fn is_copy(table: &str, document: &str) -> bool {
    let part = table.split("]\n").nth(1).and_then(|part| part.split("\n\n").next());
    let block = document.split("```rooms\n").nth(1).and_then(|block| block.split("```").next());
    part.is_some() && part.map(str::trim_end) == block.map(str::trim_end)
}

/// Parses the table: `[file module]` begins a part, `room: room !room` is a line of it.
fn parse(text: &str) -> Outcome<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (file, module) = head.split_once(' ').unwrap_or((head, ""));
            let module = module.split("::").filter(|it| !it.is_empty()).map(str::to_owned);
            parts.push(Part { file: file.into(), module: module.collect(), rooms: Vec::new() });
            continue;
        }
        let wrong = || format!("{TABLE}: {line:?} is neither a part nor a room");
        let (room, uses) = line.split_once(':').ok_or_else(wrong)?;
        let uses = uses.split_whitespace().map(str::to_owned).collect();
        parts.last_mut().ok_or_else(wrong)?.rooms.push((room.into(), uses));
    }
    Ok(parts)
}

impl Part {
    fn check(&self, read: &Read<'_>, found: &mut Vec<String>) -> Outcome<String> {
        let modules = Modules::read(Path::new(&self.file), read)?;
        let arrows = self.arrows(&modules);
        let place = |room: &str| self.rooms.iter().position(|(name, _)| name == room);
        let mut gone: BTreeSet<(String, String)> = BTreeSet::new();
        let mut upward = 0;
        for (room, uses) in &self.rooms {
            gone.extend(uses.iter().map(|used| (room.clone(), used.clone())));
        }
        for ((from, to), line) in &arrows {
            let (Some(above), Some(below)) = (place(from), place(to)) else { continue };
            let up = above > below;
            upward += usize::from(up);
            let marked = if up { format!("!{to}") } else { to.clone() };
            if !gone.remove(&(from.clone(), marked.clone())) {
                let how = if up { "upward, which closes a cycle" } else { "which is not there" };
                found.push(format!("{line}: {from} uses {to}; {TABLE}: {from}: {marked}, {how}"));
            }
        }
        for (from, to) in gone {
            let what = to.trim_start_matches('!');
            let gone = if arrows.contains_key(&(from.clone(), what.into())) {
                "the arrow points down"
            } else {
                "no path goes there"
            };
            found.push(format!("{TABLE}: {from}: {to}: {gone}, so the table must not say so"));
        }
        let sizes = self.sizes(&modules);
        for (room, lines) in &sizes {
            if place(room).is_none() {
                found.push(format!("{TABLE}: {}: the room {room} is missing", self.title()));
            }
            if *lines > LARGEST {
                found.push(format!("{}: {room} has {lines} lines of code", self.title()));
            }
        }
        for (room, _) in self.rooms.iter().filter(|(room, _)| !sizes.contains_key(room)) {
            found.push(format!("{TABLE}: {}: there is no room {room}", self.title()));
        }
        let (rooms, arrows) = (sizes.len(), arrows.len());
        Ok(format!("{}: {rooms} rooms, {arrows} arrows, {upward} upward", self.title()))
    }

    /// Reports the arrows that are on a cycle.
    fn check_cycles(&self, read: &Read<'_>, found: &mut Vec<String>) -> Outcome<String> {
        let modules = Modules::read(Path::new(&self.file), read)?;
        let arrows = self.arrows(&modules);
        for ((from, to), line) in on_cycles(&arrows) {
            found.push(format!("{line}: {from} uses {to}, which is on a cycle"));
        }
        let (rooms, arrows) = (self.sizes(&modules).len(), arrows.len());
        Ok(format!("{}: {rooms} rooms, {arrows} arrows, no cycle allowed", self.title()))
    }

    fn title(&self) -> String {
        let krate = self.file.trim_end_matches("/src/lib.rs").trim_end_matches("/src/main.rs");
        [&[krate.to_owned()], &self.module[..]].concat().join("::")
    }

    /// The room of a module.
    ///
    /// The items directly in the part's module form the room `mod`, except in the root of a crate, which only declares
    /// modules.
    fn room(&self, module: &Name) -> Option<String> {
        let inside = module.strip_prefix(&self.module[..])?;
        match inside.first() {
            Some(room) => Some(room.clone()),
            None if self.module.is_empty() => None,
            None => Some("mod".into()),
        }
    }

    fn arrows(&self, modules: &Modules) -> Arrows {
        let mut arrows = Arrows::new();
        for (name, module) in &modules.all {
            let Some(from) = self.room(name) else { continue };
            for (path, line) in &module.paths {
                let to = modules.defines(name, path).and_then(|defines| self.room(&defines));
                let Some(to) = to.filter(|to| *to != from) else { continue };
                let line = || format!("{}:{line}", module.file.display());
                arrows.entry((from.clone(), to)).or_insert_with(line);
            }
        }
        arrows
    }

    /// The number of lines of code in each room.
    fn sizes(&self, modules: &Modules) -> BTreeMap<String, usize> {
        let mut sizes = BTreeMap::new();
        for (name, module) in &modules.all {
            if let Some(room) = self.room(name) {
                *sizes.entry(room).or_default() += module.lines;
            }
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors for a small crate whose file `engine.rs` has the text `engine`.
    fn complaints(table: &str, engine: &'static str) -> Vec<String> {
        let read = move |file: &Path| {
            let text = match file.to_str()? {
                "lib.rs" => {
                    "mod timer; mod tasks; mod engine; mod key; pub use timer::Timer; \
                     #[cfg(test)] mod tests;"
                }
                "timer/mod.rs" => "mod handle; pub use handle::Timer; use crate::engine::Key;",
                "timer/handle.rs" => "pub struct Timer;",
                "tasks.rs" => "fn f() { matches!(1, super::Timer::MOST) }",
                "engine.rs" => engine,
                "key.rs" => "pub struct Key;",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let mut found = Vec::new();
        for part in parse(table).unwrap() {
            part.check(&read, &mut found).unwrap();
        }
        found
    }

    const TABLE: &str = "[lib.rs]\ntasks: timer\ntimer: key\nengine: key\nkey:\n";
    const ENGINE: &str = "pub use crate::key::Key;";

    #[test]
    fn a_path_leads_to_the_room_that_defines_the_item() {
        assert_eq!(complaints(TABLE, ENGINE), [""; 0]);
    }

    #[test]
    fn an_upward_arrow_is_caught() {
        for up in [
            "pub use crate::key::Key; use crate::timer::Timer;",
            "pub use crate::key::Key;\nfn f() -> crate::Timer {}",
            "pub use crate::key::Key; impl X { fn f() { planted!(\"x\", 1, crate::Timer::new()) } }",
            "pub use crate::key::Key; use crate as this; fn f() { this::timer::handle::g() }",
            "pub use crate::key::Key; use crate::*; fn f() { Timer::new() }",
        ] {
            let found = complaints(TABLE, up);
            assert_eq!(found.len(), 1, "{up}: {found:?}");
            assert!(found[0].contains("engine uses timer") && found[0].contains("upward"));
        }
        let found = complaints(TABLE, "pub use crate::key::Key;\n\nuse crate::timer::Timer;");
        assert!(found[0].starts_with("engine.rs:3: "), "{found:?}");
    }

    #[test]
    fn tests_and_models_may_use_what_they_like() {
        for free in [
            "pub use crate::key::Key; #[cfg(test)] mod tests { use crate::timer::Timer; }",
            "pub use crate::key::Key; #[cfg(all(loom, test))] use crate::timer::Timer;",
            "pub use crate::key::Key; impl X { #[cfg(all(any(loom, shuttle), test))] fn f() { \
             crate::Timer::new() } }",
        ] {
            assert_eq!(complaints(TABLE, free), [""; 0], "{free}");
        }
    }

    #[test]
    fn an_arrow_that_is_gone_must_leave_the_table() {
        let found = complaints(&TABLE.replace("timer: key", "timer: key engine"), ENGINE);
        assert!(found.len() == 1 && found[0].contains("timer: engine: no path"), "{found:?}");
        let upward = "pub use crate::key::Key; use crate::timer::Timer;";
        let marked = TABLE.replace("engine: key", "engine: key !timer");
        assert_eq!(complaints(&marked, upward), [""; 0]);
        let found = complaints(&marked, ENGINE);
        assert!(found.len() == 1 && found[0].contains("engine: !timer"), "{found:?}");
    }

    #[test]
    fn a_cycle_is_found_with_nothing_beside_it() {
        let arrows = |all: &[(&str, &str)]| -> Arrows {
            all.iter().map(|(from, to)| (((*from).into(), (*to).into()), String::new())).collect()
        };
        assert!(on_cycles(&arrows(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
        let cycle = [("b", "c"), ("c", "b")];
        let beside = [("a", "b"), ("c", "d"), ("d", "e"), ("e", "d")];
        let found = on_cycles(&arrows(&[&cycle[..], &beside].concat()));
        assert_eq!(found, arrows(&[("b", "c"), ("c", "b"), ("d", "e"), ("e", "d")]));
    }

    #[test]
    fn a_copy_that_differs_is_noticed() {
        let table = "# head\n\n[lib.rs]\na: b\nb:\n\n[lib.rs b]\nc:\n";
        assert!(is_copy(table, "Text.\n```rooms\na: b\nb:\n```\nMore.\n"));
        for wrong in ["Text.\n", "```rooms\na:\nb:\n```\n", "```rooms\na: b\nb:\n\nc:\n```\n"] {
            assert!(!is_copy(table, wrong), "{wrong}");
        }
    }

    #[test]
    fn the_table_has_every_room_and_no_other() {
        let found = complaints(&TABLE.replace("engine: key\n", ""), "");
        assert!(found.iter().any(|it| it.contains("engine is missing")), "{found:?}");
        let found = complaints(&format!("{TABLE}attic:\n"), ENGINE);
        assert!(found.iter().any(|it| it.contains("no room attic")), "{found:?}");
    }
}
