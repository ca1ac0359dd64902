//! Wraps lines for a narrow terminal.

/// The maximum number of columns in a line.
pub(super) const COLUMNS: usize = 60;

/// Breaks long lines between words, and indents the continuation. Colour codes take no columns.
pub(super) fn wrap(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        wrap_line(line, &mut out);
    }
    out.into_bytes()
}

fn wrap_line(line: &str, out: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let wide = columns(word.trim_end());
        if column > indent && column + wide > COLUMNS {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(indent + 2));
            column = indent + 2;
        }
        out.push_str(word);
        column += columns(word.trim_end_matches('\n'));
    }
}

/// The number of columns that a text takes. A colour code goes from ESC to `m`.
pub(super) fn columns(text: &str) -> usize {
    let mut code = false;
    let shown = |c: &char| {
        let hidden = code || *c == '\u{1b}';
        code = hidden && *c != 'm';
        !hidden
    };
    text.chars().filter(shown).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let line = format!("  {}\u{1b}[1mend\u{1b}[0m\nnext\n", "word ".repeat(13));
        let wrapped = String::from_utf8(wrap(line.as_bytes())).unwrap();
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines.len(), 3, "{wrapped}");
        assert!(lines.iter().all(|line| columns(line) <= COLUMNS), "{wrapped}");
        assert_eq!((lines[1], lines[2]), ("    word word \u{1b}[1mend\u{1b}[0m", "next"));
    }
}
