//! The pictures of the guide: SVG files that are computed here and committed with the crate that shows them.
//!
//! `cargo xtask pictures` writes them and `cargo xtask tidy` compares them, so a picture never differs from the code
//! that draws it. rustdoc includes the files inline, because docs.rs serves no other files of a package, and because
//! inline text takes the colour of the theme.

mod cascade;
mod repeating;
mod svg;

use std::fs;

use crate::shell::{Outcome, root};

/// Inside the package, so that docs.rs shows them too.
const FOLDER: &str = "crates/tourbillon/docs/pictures";

/// A file and what draws it.
type Drawing = (&'static str, fn() -> String);

const DRAWINGS: [Drawing; 2] = [("cascade.svg", cascade::draw), ("repeating.svg", repeating::draw)];

/// Writes every picture.
pub(crate) fn write() -> Outcome {
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
    for (name, draw) in DRAWINGS {
        fs::write(folder.join(name), draw())
            .map_err(|error| format!("{FOLDER}/{name}: {error}"))?;
        println!("{FOLDER}/{name}");
    }
    Ok(())
}

/// Reports each picture that differs from the one drawn here.
pub(crate) fn check(found: &mut Vec<String>) {
    let wrong = DRAWINGS.into_iter().filter(|(name, draw)| {
        let there = fs::read_to_string(root().join(FOLDER).join(name)).unwrap_or_default();
        there.replace("\r\n", "\n") != draw()
    });
    found.extend(wrong.map(|(name, _)| {
        format!("{FOLDER}/{name}: not what is drawn now: `cargo xtask pictures guide` writes it")
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_pictures_are_those_drawn() {
        let mut found = Vec::new();
        check(&mut found);
        assert_eq!(found, Vec::<String>::new());
    }

    /// In Markdown, inline HTML begins with a line that has one tag, and ends at a blank line.
    #[test]
    fn markdown_passes_them_on() {
        for (name, draw) in DRAWINGS {
            let text = draw();
            let first = text.lines().next().unwrap_or_default();
            assert!(
                first.starts_with("<svg ") && first.find('>') == Some(first.len() - 1),
                "{name}"
            );
            assert!(text.ends_with("</svg>\n"), "{name}");
            assert!(text.lines().all(|line| !line.trim().is_empty()), "{name}: a blank line");
        }
    }
}
