//! Which expressions are accepted, which are refused, and with what message.

use std::time::{Duration, SystemTime};

use jiff::civil::date;
use tourbillon::{Cron, CronError};

use crate::runs;

#[test]
fn the_grammar() {
    for (expression, expected) in [
        ("5 4 * * *", &["2025-01-01T04:05:00+00:00", "2025-01-02T04:05:00+00:00"][..]),
        ("  5\t4   *  *  * ", &["2025-01-01T04:05:00+00:00"]),
        ("15 5 4 * * *", &["2025-01-01T04:05:15+00:00"]),
        ("0 0 0 1 1 * 2030", &["2030-01-01T00:00:00+00:00"]),
        (
            "*/25 0 * * *",
            &[
                "2025-01-01T00:25:00+00:00",
                "2025-01-01T00:50:00+00:00",
                "2025-01-02T00:00:00+00:00",
            ],
        ),
        ("10-50/20 0 * * *", &["2025-01-01T00:10:00+00:00", "2025-01-01T00:30:00+00:00"]),
        ("0 0 L * *", &["2025-01-31T00:00:00+00:00", "2025-02-28T00:00:00+00:00"]),
        ("0 0 15W 2 *", &["2025-02-14T00:00:00+00:00"]),
        ("0 0 LW * *", &["2025-01-31T00:00:00+00:00", "2025-02-28T00:00:00+00:00"]),
        ("0 0 * feb,Mar mon", &["2025-02-03T00:00:00+00:00"]),
        ("0 0 * * FRI-SUN", &["2025-01-03T00:00:00+00:00", "2025-01-04T00:00:00+00:00"]),
        ("0 0 * * 7", &["2025-01-05T00:00:00+00:00"]),
        ("0 0 * * 5#2", &["2025-01-10T00:00:00+00:00"]),
        ("0 0 * * FRIL", &["2025-01-31T00:00:00+00:00"]),
        // A list of last weekdays; the 13th or a Friday; and the 13th if it is a Friday.
        ("0 0 * * 7L,1L", &["2025-01-26T00:00:00+00:00", "2025-01-27T00:00:00+00:00"]),
        ("0 0 13 * FRI", &["2025-01-03T00:00:00+00:00", "2025-01-10T00:00:00+00:00"]),
        ("0 0 13 * +FRI", &["2025-06-13T00:00:00+00:00", "2026-02-13T00:00:00+00:00"]),
        ("0 0 29 2 *", &["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"]),
        ("0 0 29 2 +MON", &["2044-02-29T00:00:00+00:00"]),
        ("@yearly", &["2026-01-01T00:00:00+00:00"]),
        ("@Monthly", &["2025-02-01T00:00:00+00:00"]),
        ("@weekly", &["2025-01-05T00:00:00+00:00"]),
        ("@midnight", &["2025-01-02T00:00:00+00:00"]),
    ] {
        assert_eq!(
            runs(expression, "UTC", "2025-01-01T00:00:00", expected.len()),
            expected,
            "{expression}"
        );
    }
}

#[test]
fn what_is_wrong_and_where() {
    for (expression, said, span) in [
        ("60 * * * *", "minute is \"60\": it must be 0 to 59", Some(0..2)),
        ("* 24 * * *", "hour is \"24\": it must be 0 to 23", Some(2..4)),
        ("0 60 * * * *", "minute is \"60\": it must be 0 to 59", Some(2..4)),
        ("-1 * * * * *", "second is \"-1\": it must be 0 to 59", Some(0..2)),
        ("* * 0 * *", "day is \"0\": it must be 1 to 31, L for the last, ", Some(4..5)),
        ("* *  32  * *", "day is \"32\": it must be 1 to 31, L for the last, ", Some(5..7)),
        ("* * * 13 *", "month is \"13\": it must be 1 to 12, or JAN to DEC", Some(6..8)),
        // croner would accept it as January.
        ("* * * MON *", "month is \"MON\": it must be 1 to 12, or JAN to DEC", Some(6..9)),
        ("* * * * 8", "weekday is \"8\": it must be 0 to 7 or SUN to SAT, ", Some(8..9)),
        ("* * * * JAN", "weekday is \"JAN\": it must be 0 to 7 or SUN to SAT, ", Some(8..11)),
        ("* * * * * * 5001", "year is \"5001\": it must be 1 to 4999", Some(12..16)),
        ("5-1 * * * *", "minute is \"5-1\": it must be 0 to 59", Some(0..3)),
        ("*/0 * * * *", "minute is \"*/0\": it must be 0 to 59", Some(0..3)),
        // croner would accept it as a minute that never comes.
        (", * * * *", "minute is \",\": it must be 0 to 59", Some(0..1)),
        ("1,,2 * * * *", "minute is \"1,,2\": it must be 0 to 59", Some(0..4)),
        ("x * * * *", "minute is \"x\": it must be 0 to 59", Some(0..1)),
        ("é * * * *", "minute is \"é\": it must be 0 to 59", Some(0..2)),
        ("5l * * * *", "minute is \"5l\": it must be 0 to 59", Some(0..2)),
        (
            "@often",
            "name is \"@often\": it must be @hourly, @daily, @weekly, @monthly or @yearly",
            Some(0..6),
        ),
        ("", "0 fields: give 5 (minute hour day month weekday), ", None),
        ("*", "1 field: give 5 (minute hour day month weekday), ", None),
        ("* * * * * * * *", "8 fields: give 5 (minute hour day month weekday), ", None),
        ("0 0 31 2 *", "no date matches, ever: change the day, the month or the year", None),
        ("0 0 30 FEB *", "no date matches, ever: change the day, the month or the year", None),
        ("0 0 31 4,6,9,11 *", "no date matches, ever: change the day, the month or the year", None),
    ] {
        let wrong = Cron::parse(expression, "UTC").expect_err(expression);
        assert!(wrong.to_string().starts_with(said), "{expression}: {wrong}");
        assert_eq!(wrong.span(), span, "{expression}");
    }
    for refused in ["0 0 * * L", "0 0 * * L,1", "0 0 15 * L", "0 0 * * 6-7#L", "0 0 0 1 1 * 5000"] {
        assert!(
            Cron::parse(refused, "UTC").is_err_and(|wrong| wrong.span().is_some()),
            "{refused}"
        );
    }
    let wrong = Cron::parse("* * * * *", "Europe/Atlantis").unwrap_err();
    assert!(matches!(&wrong, CronError::Zone { name, .. } if name == "Europe/Atlantis"), "{wrong}");
}

/// Any text is accepted or refused, and an accepted expression can be queried.
#[test]
fn any_text_is_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(5);
    let words: Vec<&str> = "* 0 7 59 60 5-9 9-5 */5 /5 0/5 */0 */99999 1,2 , L W LW 15W 31W 99W 0W 5#2 5#0 5#6 # 5L #L \
        L#1 ? + +1 @ @daily MON SUN-MON JAN - -- 1- -1 65535 65536 1-65535 99999999999 é ß \u{0} *,* *-* 1/2/3 29 2 \
        2025 5000 MONTUE LL WL 1L,2L 5#2,1#L"
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect();
    let mut read = 0;
    for _ in 0..10_000 {
        let count = [3, 5, 5, 6, 6, 7, 7, 8][random.usize(0..8)];
        // Mostly stars, or hardly any expression would be accepted.
        let mut field = |_| match random.u32(0..4) {
            0 => words[random.usize(0..words.len())],
            _ => "*",
        };
        let expression = (0..count).map(&mut field).collect::<Vec<_>>().join(" ");
        if let Ok(cron) = Cron::parse(&expression, "Europe/Berlin") {
            read += 1;
            let next = cron.next_after(SystemTime::UNIX_EPOCH);
            let early = next.is_some_and(|next| next.timestamp() <= jiff::Timestamp::UNIX_EPOCH);
            assert!(!early, "{expression}");
        }
    }
    assert!(read > 1000, "{read}");
}

#[test]
fn the_ends_of_the_calendar() {
    let cron = Cron::parse("0 0 1 1 *", "Europe/Berlin").unwrap();
    let far = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    assert_eq!(cron.next_after(far(u64::MAX / 4)), None);
    assert_eq!(cron.next_after(far(4000 * 365 * 86_400)), None, "the year 5967");
    let first =
        cron.next_after(SystemTime::UNIX_EPOCH - Duration::from_secs(u64::MAX / 4)).unwrap();
    assert_eq!((first.year(), first.month(), first.day()), (1, 1, 1));
    let once = Cron::parse("0 0 0 1 1 * 2030", "UTC").unwrap();
    let run = once.next_after(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(once.next_after(&run), None);
    // Every minute of a year in the far future: some thousand changes of the clock lie in between.
    let late = Cron::parse("0 * * * * * 4990", "Europe/Berlin").unwrap();
    assert_eq!(late.next_after(SystemTime::UNIX_EPOCH).unwrap().year(), 4990);
}

#[test]
fn what_it_says_of_itself() {
    let cron = Cron::parse(" 0 9 * * MON ", "europe/berlin").unwrap();
    assert_eq!(cron.to_string(), "0 9 * * MON");
    assert_eq!(format!("{cron:?}"), "Cron(\"0 9 * * MON\", Europe/Berlin)");
    assert_eq!(cron.zone().iana_name(), Some("Europe/Berlin"));
    assert!(!cron.repeats_within_the_day());
    for repeats in [
        "*/15 9 * * *",
        "0 * * * *",
        "* 0 9 * * *",
        "0 */2 * * *",
        "0 0-23 * * *",
        // Equivalent to a star.
        "0-59/15 9 * * *",
        "00-59/15 9 * * *",
        "0-59/15,7 9 * * *",
        "0 0-23/2 * * *",
        "0-59/30 0 9 * * *",
    ] {
        assert!(Cron::parse(repeats, "UTC").unwrap().repeats_within_the_day(), "{repeats}");
    }
    for fixed in [
        "0,15,30 9 * * *",
        "0-58/15 9 * * *",
        "0 0-22 * * *",
        "0 1-23/2 * * *",
        "0 0 1-31 * *",
        "@daily",
        "30 0 9 * * *",
    ] {
        assert!(!Cron::parse(fixed, "UTC").unwrap().repeats_within_the_day(), "{fixed}");
    }
}

/// The calendar begins with the year 1, and its first moment follows any earlier one.
#[test]
fn the_first_date_of_all() {
    let minutes = Cron::parse("* * * * *", "UTC").unwrap();
    let begin = date(1, 1, 1).at(0, 0, 0, 0);
    let before = [date(-9999, 1, 1), date(-5, 6, 7), date(0, 12, 31)];
    for day in before {
        assert_eq!(minutes.next_civil(day.at(23, 59, 0, 0)), Some(begin), "after {day}");
    }
    assert_eq!(minutes.next_civil(begin), Some(date(1, 1, 1).at(0, 1, 0, 0)));
}

/// A star may be written as a full list, in the second, the minute and the hour. In the year, a star is accepted too.
#[test]
fn a_star_that_is_written_one_by_one() {
    let list = |end: u8| (0..end).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let repeats = |text: &str| Cron::parse(text, "UTC").unwrap().repeats_within_the_day();
    for (values, rest) in
        [(60, ["", " 5 5 * * *"]), (60, ["5 ", " 5 * * *"]), (24, ["5 5 ", " * * *"])]
    {
        let all = list(values);
        let [before, after] = rest;
        assert!(repeats(&format!("{before}{all}{after}")), "{all}");
        let but_one = list(values - 1);
        assert!(!repeats(&format!("{before}{but_one}{after}")), "{but_one}");
    }
    assert!(Cron::parse("0 0 0 1 1 * *", "UTC").is_ok());
}
