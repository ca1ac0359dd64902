//! Parses an expression field by field, so that an error can name the invalid one.
//!
//! croner does the final parsing. It accepts two invalid forms, which are rejected here first: a weekday's name as a
//! month, and an empty list item, which never matches.

use std::ops::Range;

use croner::parser::CronParser;

use super::error::CronError;

/// A parsed expression.
pub(super) struct Read {
    pub(super) pattern: croner::Cron,
    pub(super) repeats_within_the_day: bool,
}

struct Field {
    name: &'static str,
    must: &'static str,
    /// Names that stand for numbers, and letters with a special meaning.
    words: &'static [&'static str],
}

const FIELDS: [Field; 7] = [
    Field { name: "second", must: "0 to 59", words: &[] },
    Field { name: "minute", must: "0 to 59", words: &[] },
    Field { name: "hour", must: "0 to 23", words: &[] },
    Field {
        name: "day",
        must: "1 to 31, L for the last, or 15W for the weekday nearest to the 15th",
        words: &["L", "W", "LW"],
    },
    Field { name: "month", must: "1 to 12, or JAN to DEC", words: &MONTHS },
    Field {
        name: "weekday",
        must: "0 to 7 or SUN to SAT, 5#2 for the second Friday, or 5L for the last",
        words: &WEEKDAYS,
    },
    Field { name: "year", must: "1 to 4999", words: &[] },
];

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 15] = [
    "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUNL", "MONL", "TUEL", "WEDL", "THUL",
    "FRIL", "SATL", "L",
];

const NAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

pub(super) fn read(expression: &str) -> Result<Read, CronError> {
    let parts = split(expression);
    if let [(span, name)] = &*parts {
        if name.starts_with('@') {
            return named(name, span.clone());
        }
    }
    let first = match parts.len() {
        5 => 1,
        6 | 7 => 0,
        count => return Err(CronError::Fields { count }),
    };
    let mut repeats_within_the_day = false;
    for ((span, text), place) in parts.iter().zip(first..) {
        let field = &FIELDS[place];
        let wrong = || CronError::Field {
            field: field.name,
            text: (*text).to_owned(),
            span: span.clone(),
            must: field.must,
        };
        let values = values(field, place, text).ok_or_else(wrong)?;
        let star = is_star(place, text, &values);
        repeats_within_the_day |=
            planted!("wall.star-of-an-hour-overlooked", star && place < 2, star);
    }
    let texts: Vec<String> =
        parts.iter().zip(first..).map(|((_, text), place)| normal(place, text)).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let pattern = parse(&texts).ok_or(CronError::Fields { count: parts.len() })?;
    Ok(Read { pattern, repeats_within_the_day })
}

fn named(name: &str, span: Range<usize>) -> Result<Read, CronError> {
    match NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some((_, expression)) => read(expression),
        None => Err(CronError::Field {
            field: "name",
            text: name.to_owned(),
            span,
            must: "@hourly, @daily, @weekly, @monthly or @yearly",
        }),
    }
}

/// The fields and their byte ranges.
fn split(expression: &str) -> Vec<(Range<usize>, &str)> {
    let place = |part: &str| {
        let begin = part.as_ptr() as usize - expression.as_ptr() as usize;
        begin..begin + part.len()
    };
    planted!(
        "sixth.span-counts-one-blank-between-fields",
        {
            let mut next = 0;
            let mut field = |part: &str| {
                let begin = next;
                next += part.len() + 1;
                begin..begin + part.len()
            };
            expression.split_whitespace().map(|part| (field(part), part)).collect()
        },
        expression.split_whitespace().map(|part| (place(part), part)).collect()
    )
}

/// A field in the form that croner understands: croner does not accept `7L` for the last Sunday.
fn normal(place: usize, text: &str) -> String {
    let upper = text.to_ascii_uppercase();
    let item = |item: &str| {
        if planted!("wall.last-seven-misread", false, item.ends_with('L')) {
            item.replace('7', "0")
        } else {
            item.into()
        }
    };
    match place {
        5 => upper.split(',').map(item).collect::<Vec<String>>().join(","),
        _ => upper,
    }
}

/// Whether a field for the second, minute or hour counts as `*`. By cron's manual a star means "first-last". So `0-59`
/// and a list of all values are the same as `*`, and `0-59/15` is the same as `*/15`.
fn is_star(place: usize, text: &str, values: &[u16]) -> bool {
    let Some(&last) = [59, 59, 23].get(place) else { return false };
    let range = text.split(['/', ',']).next().and_then(|range| range.split_once('-'));
    let is = |number: &str, value| number.parse() == Ok::<u16, _>(value);
    let whole = range.is_some_and(|(from, to)| is(from, 0) && is(to, last));
    planted!("fifth.step-of-a-star-is-no-star", text == "*", text.starts_with('*'))
        || planted!("wall.whole-range-is-no-star", false, whole)
        || values.len()
            == planted!(
                "third.all-hours-but-one-are-a-star",
                usize::from(last),
                usize::from(last) + 1
            )
}

/// The values of a field; `None` if it is invalid.
fn values(field: &Field, place: usize, text: &str) -> Option<Vec<u16>> {
    let upper = normal(place, text);
    // croner reads a plus before the weekday as "and".
    let list = if place == 5 { upper.strip_prefix('+').unwrap_or(&upper) } else { &upper };
    let is_word = |word: &str| word.is_empty() || field.words.contains(&word);
    let is_known = |item: &str| item.split(|c: char| !c.is_alphabetic()).all(is_word);
    if !list
        .split(',')
        .all(|item| planted!("wall.empty-item-taken", true, !item.is_empty()) && is_known(item))
    {
        return None;
    }
    // `L` without a weekday, or after a range of weekdays, has no meaning.
    let no_last = |item: &str| item.starts_with('L') || item.ends_with('L') && item.contains('-');
    if place == 5 && list.split(',').any(no_last) {
        return None;
    }
    let mut alone = ["*"; 7];
    alone[place] = &upper;
    let pattern = parse(&alone)?.pattern;
    let component = match place {
        0 => &pattern.seconds,
        1 => &pattern.minutes,
        2 => &pattern.hours,
        3 => &pattern.days,
        4 => &pattern.months,
        5 => &pattern.days_of_week,
        _ => &pattern.years,
    };
    let values = component.values();
    // croner's calendar ends with the first day of the year 5000.
    let too_far = place == 6 && !upper.starts_with('*') && values.contains(&5000);
    (!too_far).then_some(values)
}

fn parse(fields: &[&str]) -> Option<croner::Cron> {
    CronParser::new().parse(&fields.join(" ")).ok()
}
