//! Writes all mutants of a file into one text, as alternatives. A process may activate one of them.
//!
//! ```text
//! fn is_due(&self) -> bool {          fn is_due(&self) -> bool {
//!     self.due <= now         becomes     if mutant!("m1") { return true; }
//! }                                       (if mutant!("m2") { self.due > now } else { self.due <= now })
//!                                     }
//! ```
//!
//! An alternative is derived from the original text, so it contains no other mutant.

use std::cmp::Reverse;
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::list::{Genre, Mutant};
use crate::shell::Outcome;

/// A text with mutants, and their positions.
pub(super) struct Schema {
    pub(super) text: String,
    /// The alternatives, each with the number of its mutant.
    alternatives: Vec<(Range<usize>, usize)>,
    /// The expressions with alternatives, each with the numbers of its mutants.
    choices: Vec<(Range<usize>, Vec<usize>)>,
}

impl Schema {
    /// The numbers of its mutants.
    pub(super) fn mutants(&self) -> impl Iterator<Item = usize> {
        self.alternatives.iter().map(|(_, number)| *number)
    }

    /// The mutants whose alternative contains one of these ranges.
    pub(super) fn alternatives_at(&self, places: &[Range<usize>]) -> Vec<usize> {
        let is_in = |place: &Range<usize>, range: &Range<usize>| {
            range.start <= place.start && place.end <= range.end
        };
        let all = self.alternatives.iter();
        let all = all.filter(|(range, _)| places.iter().any(|place| is_in(place, range)));
        all.map(|(_, number)| *number).collect()
    }

    /// The mutants of the smallest choice that overlaps these ranges, or else of the last choice before them.
    pub(super) fn choice_around(&self, places: &[Range<usize>]) -> Vec<usize> {
        let overlaps = |range: &Range<usize>, place: &Range<usize>| {
            range.start < place.end && place.start < range.end
        };
        let all = self.choices.iter();
        let around = all.clone().filter(|(it, _)| places.iter().any(|place| overlaps(it, place)));
        let last = || {
            let before = all.filter(|(it, _)| places.iter().any(|place| it.end <= place.start));
            before.max_by_key(|(it, _)| it.end)
        };
        let found = around.min_by_key(|(it, _)| it.len()).or_else(last);
        found.map_or(Vec::new(), |(_, all)| all.clone())
    }
}

/// Writes the mutants of a file into its text. Leaves out those that cannot be an alternative.
pub(super) fn write(text: &str, mutants: &[&Mutant]) -> Outcome<Schema> {
    Ok(splice(text, find(text, mutants)?))
}

/// The text that each mutant of a file replaces, shortened.
pub(super) fn replaced(text: &str, mutants: &[&Mutant]) -> Outcome<Vec<String>> {
    let short = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = |place: Place<'_>| {
        let text_of = |range: Range<usize>| short(&text[range]);
        match place.choice {
            Some(Choice::Expression(all, _)) if place.mutant.genre == Genre::Operator => {
                let operator = text_of(place.at.clone());
                let left: Vec<char> = text_of(all.start..place.at.start).chars().collect();
                let left: String = left[left.len().saturating_sub(40)..].iter().collect();
                let right: String = text_of(place.at.end..all.end).chars().take(40).collect();
                format!("{left} {operator} {right}").trim().to_string()
            }
            Some(Choice::Arm(end)) => text_of(place.at.start..end),
            _ => text_of(place.at).chars().take(80).collect(),
        }
    };
    Ok(find(text, mutants)?.into_iter().map(words).collect())
}

/// The numbers of the mutants that lie in one of these parts of a file.
pub(super) fn inside(text: &str, mutants: &[&Mutant], parts: &[Range<usize>]) -> Vec<usize> {
    let lines = Lines::of(text);
    let is_inside = |mutant: &Mutant| {
        let at = lines.at(mutant.start);
        parts.iter().any(|part| part.contains(&at))
    };
    mutants.iter().filter(|mutant| is_inside(mutant)).map(|mutant| mutant.number).collect()
}

fn find<'a>(text: &str, mutants: &[&'a Mutant]) -> Outcome<Vec<Place<'a>>> {
    let syntax = syn::parse_file(text).map_err(|error| error.to_string())?;
    let lines = Lines::of(text);
    let of = |&mutant: &&'a Mutant| {
        let at = lines.range(mutant);
        let body = (mutant.genre == Genre::Function).then_some(Choice::Body(at.start));
        Place { mutant, at, choice: body }
    };
    let mut places: Vec<Place<'_>> = mutants.iter().map(of).collect();
    Finder { text, places: &mut places }.visit_file(&syntax);
    Ok(places)
}

/// The position of a mutant.
struct Place<'a> {
    mutant: &'a Mutant,
    /// The range that it replaces.
    at: Range<usize>,
    choice: Option<Choice>,
}

/// How it is written as an alternative.
#[derive(Clone, PartialEq, Eq)]
enum Choice {
    /// A `return` before the first statement, at this offset.
    Body(usize),
    /// An alternative for this expression.
    Expression(Range<usize>, String),
    /// A guard after the pattern of an arm without one, at this offset.
    Arm(usize),
    /// A condition in front of this guard of an arm.
    Guard(Range<usize>),
}

/// Finds the expression around each operator, guard and field, and the end of each arm's pattern.
struct Finder<'a, 'b> {
    text: &'a str,
    places: &'a mut [Place<'b>],
}

impl Finder<'_, '_> {
    fn choose(
        &mut self,
        genre: Genre,
        at: Span,
        choice: impl Fn(&str, &Range<usize>, &str) -> Choice,
    ) {
        let at = at.byte_range();
        for place in self.places.iter_mut() {
            if place.mutant.genre == genre && place.at == at {
                place.choice = Some(choice(self.text, &at, &place.mutant.replacement));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_, '_> {
    fn visit_expr_binary(&mut self, it: &'ast syn::ExprBinary) {
        // A `let` is only valid directly in a chain of conditions, not in an alternative.
        if !has_let(&it.left) && !has_let(&it.right) {
            let all = it.span().byte_range();
            self.choose(Genre::Operator, it.op.span(), |text, at, replacement| {
                let before = &text[all.start..at.start];
                let text = format!("{before}{replacement}{}", &text[at.end..all.end]);
                Choice::Expression(all.clone(), text)
            });
        }
        visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'ast syn::ExprUnary) {
        let all = it.span().byte_range();
        self.choose(Genre::Operator, it.op.span(), |text, at, replacement| {
            Choice::Expression(all.clone(), format!("{replacement}{}", &text[at.end..all.end]))
        });
        visit::visit_expr_unary(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'ast syn::ExprStruct) {
        let all = it.span().byte_range();
        for field in &it.fields {
            self.choose(Genre::Field, field.span(), |text, at, _| {
                let after = text[at.end..all.end].trim_start();
                let after = after.strip_prefix(',').unwrap_or(after);
                Choice::Expression(all.clone(), format!("{}{after}", &text[all.start..at.start]))
            });
        }
        visit::visit_expr_struct(self, it);
    }

    fn visit_arm(&mut self, it: &'ast syn::Arm) {
        if let Some((_, guard)) = &it.guard {
            let all = guard.span().byte_range();
            self.choose(Genre::Guard, guard.span(), |_, _, replacement| {
                Choice::Expression(all.clone(), replacement.to_string())
            });
        }
        let arm = it.span().byte_range();
        let bare = it.comma.map_or(arm.end, |comma| comma.span().byte_range().start);
        let guard = it.guard.as_ref().map(|(_, guard)| guard.span().byte_range());
        let after_pattern = it.pat.span().byte_range().end;
        for place in self.places.iter_mut().filter(|place| place.mutant.genre == Genre::Arm) {
            // The range of an arm may include its comma.
            if place.at.start == arm.start && (place.at.end == arm.end || place.at.end == bare) {
                place.choice = Some(match &guard {
                    Some(guard) => Choice::Guard(guard.clone()),
                    None => Choice::Arm(after_pattern),
                });
            }
        }
        visit::visit_arm(self, it);
    }
}

/// Whether a condition contains a `let`.
fn has_let(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(it) => has_let(&it.left) || has_let(&it.right),
        _ => false,
    }
}

/// Text to insert before and after a range.
struct Wrap {
    at: Range<usize>,
    /// Pieces of text, each with the mutant that it belongs to.
    before: Vec<(String, Option<usize>)>,
    after: &'static str,
    mutants: Vec<usize>,
}

fn splice(text: &str, places: Vec<Place<'_>>) -> Schema {
    let mut wraps: Vec<Wrap> = Vec::new();
    for Place { mutant, choice, .. } in places {
        let (number, name) = (mutant.number, mutant.place());
        let (at, before, after) = match choice {
            None => continue,
            Some(Choice::Body(at)) => {
                let chosen = (format!("if mutant!(\"{name}\") {{ return "), None);
                let value = (mutant.replacement.clone(), Some(number));
                (at..at, vec![chosen, value, ("; }\n".to_string(), None)], "")
            }
            Some(Choice::Expression(at, text)) => {
                // The mutants of one expression share one chain of alternatives.
                let same = wraps.iter_mut().find(|wrap| wrap.at == at && wrap.after == "})");
                let chosen = format!("if mutant!(\"{name}\") {{ ");
                let chosen = vec![(chosen, None), (text, Some(number)), (" } else ".into(), None)];
                if let Some(same) = same {
                    let last = same.before.len() - 1;
                    same.before.splice(last..last, chosen);
                    same.mutants.push(number);
                    continue;
                }
                let mut before = vec![("(".to_string(), None)];
                before.extend(chosen);
                before.push(("{ ".to_string(), None));
                (at, before, "})")
            }
            Some(Choice::Arm(at)) => {
                let guard = format!(" if !mutant!(\"{name}\")");
                (at..at, vec![(guard, Some(number))], "")
            }
            Some(Choice::Guard(at)) => {
                let guard = format!("!mutant!(\"{name}\") && (");
                (at, vec![(guard, Some(number))], ")")
            }
        };
        wraps.push(Wrap { at, before, after, mutants: vec![number] });
    }
    join(text, wraps)
}

fn join(text: &str, wraps: Vec<Wrap>) -> Schema {
    // Order at one offset: first the ends, inner before outer; then the starts, outer before inner.
    let mut events: Vec<(usize, bool, Reverse<usize>, isize, usize)> = Vec::new();
    for (index, wrap) in wraps.iter().enumerate() {
        let (start, end) = (wrap.at.start, wrap.at.end);
        // Insertions without an end come before other starts.
        let outer = if wrap.at.is_empty() { usize::MAX } else { end };
        events.push((start, true, Reverse(outer), index as isize, index));
        if !wrap.at.is_empty() {
            events.push((end, false, Reverse(start), -(index as isize), index));
        }
    }
    events.sort();
    let mut schema = Schema { text: String::new(), alternatives: Vec::new(), choices: Vec::new() };
    let mut starts = vec![0; wraps.len()];
    let mut copied = 0;
    for (at, begins, .., index) in events {
        schema.text.push_str(&text[copied..at]);
        copied = at;
        let wrap = &wraps[index];
        if begins {
            starts[index] = schema.text.len();
            for (part, mutant) in &wrap.before {
                let start = schema.text.len();
                schema.text.push_str(part);
                schema.alternatives.extend(mutant.map(|mutant| (start..schema.text.len(), mutant)));
            }
        } else {
            schema.text.push_str(wrap.after);
        }
        if !begins || wrap.at.is_empty() {
            schema.choices.push((starts[index]..schema.text.len(), wrap.mutants.clone()));
        }
    }
    schema.text.push_str(&text[copied..]);
    schema
}

/// The offsets at which lines start.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    fn range(&self, mutant: &Mutant) -> Range<usize> {
        self.at(mutant.start)..self.at(mutant.end)
    }

    /// The offset of a line and column, both from 1; columns count characters.
    fn at(&self, (line, column): (usize, usize)) -> usize {
        let start = self.starts.get(line - 1).copied().unwrap_or(self.text.len());
        let mut columns = self.text[start..].char_indices();
        columns.nth(column - 1).map_or(self.text.len(), |(at, _)| start + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(number: usize, genre: Genre, text: &str, what: &str, replacement: &str) -> Mutant {
        let at = text.find(what).unwrap();
        let place = |at: usize| {
            let before = &text[..at];
            (before.matches('\n').count() + 1, at - before.rfind('\n').map_or(0, |it| it + 1) + 1)
        };
        Mutant {
            number,
            genre,
            file: "f".into(),
            function: "g".into(),
            replacement: replacement.into(),
            replaced: what.into(),
            start: place(at),
            end: place(at + what.len()),
        }
    }

    fn written(text: &str, mutants: &[Mutant]) -> String {
        let schema = write(text, &mutants.iter().collect::<Vec<_>>()).unwrap();
        for mutant in mutants {
            let own = schema.alternatives.iter().find(|(_, number)| *number == mutant.number);
            let (range, number) = own.expect("every mutant has an alternative");
            assert_eq!(schema.alternatives_at(std::slice::from_ref(range)), [*number]);
        }
        schema.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn operators_are_chosen_and_nest() {
        let text = "fn g() -> bool {\n    !a && b < c\n}\n";
        let all = [
            mutant(1, Genre::Function, text, "!a && b < c", "true"),
            mutant(2, Genre::Operator, text, "&&", "||"),
            mutant(3, Genre::Operator, text, "<", "=="),
            mutant(4, Genre::Operator, text, "<", ">"),
            mutant(5, Genre::Operator, text, "!", ""),
        ];
        let expected = "fn g() -> bool { if mutant!(\"m1\") { return true; } \
            (if mutant!(\"m2\") { !a || b < c } else { (if mutant!(\"m5\") { a } else { !a}) && \
            (if mutant!(\"m3\") { b == c } else if mutant!(\"m4\") { b > c } else { b < c})}) }";
        assert_eq!(written(text, &all), expected);
        syn::parse_file(&written(text, &all)).unwrap();
    }

    #[test]
    fn arms_guards_and_fields_are_chosen() {
        let text = "fn g() { match x { A => 1, B if y => 2, _ => f(S { p: 1, ..q }) } }";
        let all = [
            mutant(1, Genre::Arm, text, "A => 1,", ""),
            mutant(2, Genre::Guard, text, "y", "true"),
            mutant(3, Genre::Arm, text, "B if y => 2", ""),
            mutant(4, Genre::Field, text, "p: 1", ""),
        ];
        let expected = "fn g() { match x { A if !mutant!(\"m1\") => 1, \
            B if !mutant!(\"m3\") && ((if mutant!(\"m2\") { true } else { y})) => 2, \
            _ => f((if mutant!(\"m4\") { S { ..q } } else { S { p: 1, ..q }})) } }";
        let order = [&all[0], &all[2], &all[1], &all[3]];
        let schema = write(text, &order).unwrap();
        assert_eq!(schema.text.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn a_let_in_a_chain_is_left_alone() {
        let text = "fn g() { if let A = x && y {} }";
        let all = [mutant(1, Genre::Operator, text, "&&", "||")];
        assert_eq!(write(text, &[&all[0]]).unwrap().text, text);
    }
}
