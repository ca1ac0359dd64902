//! Expressions where real zones change their clocks: gaps, folds, half an hour, two hours, a whole day.
//!
//! The moments were written down by hand and compared with another implementation of the time zone database.

use crate::runs;

/// A zone; then, for an expression and a moment, the runs that follow.
type Zone = (&'static str, &'static [(&'static str, &'static str, &'static [&'static str])]);

const TABLE: &[Zone] = &[
    (
        "UTC",
        &[(
            "30 2 * * *",
            "2025-03-29T12:00:00+00:00",
            &["2025-03-30T02:30:00+00:00", "2025-03-31T02:30:00+00:00"],
        )],
    ),
    // Gap on 9 March 2025, 02:00 to 03:00; fold on 2 November, 01:00 to 02:00.
    (
        "America/New_York",
        &[
            (
                "30 2 * * *",
                "2025-03-08T12:00:00-05:00",
                &["2025-03-09T03:00:00-04:00", "2025-03-10T02:30:00-04:00"],
            ),
            (
                "30 1 * * *",
                "2025-11-01T12:00:00-04:00",
                &["2025-11-02T01:30:00-04:00", "2025-11-03T01:30:00-05:00"],
            ),
            // Between the two occurrences of 01:30: the first has passed.
            ("30 1 * * *", "2025-11-02T01:45:00-04:00", &["2025-11-03T01:30:00-05:00"]),
            ("30 1 * * *", "2025-11-02T01:15:00-05:00", &["2025-11-03T01:30:00-05:00"]),
            // A list of hours is a list of fixed times.
            (
                "30 2,14 * * *",
                "2025-03-08T15:00:00-05:00",
                &["2025-03-09T03:00:00-04:00", "2025-03-09T14:30:00-04:00"],
            ),
            (
                "30 1,13 * * *",
                "2025-11-01T14:00:00-04:00",
                &["2025-11-02T01:30:00-04:00", "2025-11-02T13:30:00-05:00"],
            ),
            (
                "30 * * * *",
                "2025-11-02T00:45:00-04:00",
                &[
                    "2025-11-02T01:30:00-04:00",
                    "2025-11-02T01:30:00-05:00",
                    "2025-11-02T02:30:00-05:00",
                ],
            ),
            (
                "*/30 * * * *",
                "2025-03-09T01:15:00-05:00",
                &[
                    "2025-03-09T01:30:00-05:00",
                    "2025-03-09T03:00:00-04:00",
                    "2025-03-09T03:30:00-04:00",
                ],
            ),
            (
                "*/20 30 1 * * *",
                "2025-11-02T01:30:20-04:00",
                &[
                    "2025-11-02T01:30:40-04:00",
                    "2025-11-02T01:30:00-05:00",
                    "2025-11-02T01:30:20-05:00",
                    "2025-11-02T01:30:40-05:00",
                    "2025-11-03T01:30:00-05:00",
                ],
            ),
        ],
    ),
    // Gap on 30 March 2025, 01:00 to 02:00; fold on 26 October, 01:00 to 02:00.
    (
        "Europe/London",
        &[
            (
                "15 1 * * SUN",
                "2025-03-24T00:00:00+00:00",
                &["2025-03-30T02:00:00+01:00", "2025-04-06T01:15:00+01:00"],
            ),
            (
                "0 1 * * *",
                "2025-10-25T12:00:00+01:00",
                &["2025-10-26T01:00:00+01:00", "2025-10-27T01:00:00+00:00"],
            ),
        ],
    ),
    // The same moments; but by law winter is the exception, with an hour less.
    (
        "Europe/Dublin",
        &[
            (
                "30 1 * * *",
                "2025-03-29T12:00:00+00:00",
                &["2025-03-30T02:00:00+01:00", "2025-03-31T01:30:00+01:00"],
            ),
            (
                "30 1 * * *",
                "2025-10-25T12:00:00+01:00",
                &["2025-10-26T01:30:00+01:00", "2025-10-27T01:30:00+00:00"],
            ),
        ],
    ),
    // Gap on 30 March 2025, 02:00 to 03:00; fold on 26 October, 02:00 to 03:00.
    (
        "Europe/Berlin",
        &[
            // Both fall into the gap, and become one run.
            (
                "0,30 2 * * *",
                "2025-03-29T12:00:00+01:00",
                &[
                    "2025-03-30T03:00:00+02:00",
                    "2025-03-31T02:00:00+02:00",
                    "2025-03-31T02:30:00+02:00",
                ],
            ),
            // One moment that the gap moves to 03:00, and one at 03:00 anyway, become one run.
            (
                "0 2,3 * * *",
                "2025-03-29T12:00:00+01:00",
                &["2025-03-30T03:00:00+02:00", "2025-03-31T02:00:00+02:00"],
            ),
            // At the edges: the last second before the gap, and the first after it.
            ("59 59 1 * * *", "2025-03-29T12:00:00+01:00", &["2025-03-30T01:59:59+01:00"]),
            (
                "0 3 * * *",
                "2025-03-29T12:00:00+01:00",
                &["2025-03-30T03:00:00+02:00", "2025-03-31T03:00:00+02:00"],
            ),
            // An hour that does not exist has no runs within it.
            ("*/20 2 * * *", "2025-03-30T00:00:00+01:00", &["2025-03-31T02:00:00+02:00"]),
            ("0-59/20 2 * * *", "2025-03-30T00:00:00+01:00", &["2025-03-31T02:00:00+02:00"]),
            (
                "*/20 2 * * *",
                "2025-10-26T01:50:00+02:00",
                &[
                    "2025-10-26T02:00:00+02:00",
                    "2025-10-26T02:20:00+02:00",
                    "2025-10-26T02:40:00+02:00",
                    "2025-10-26T02:00:00+01:00",
                    "2025-10-26T02:20:00+01:00",
                    "2025-10-26T02:40:00+01:00",
                    "2025-10-27T02:00:00+01:00",
                ],
            ),
            // A list of all hours is the same as a star.
            (
                "0 0-23 * * *",
                "2025-10-26T01:30:00+02:00",
                &[
                    "2025-10-26T02:00:00+02:00",
                    "2025-10-26T02:00:00+01:00",
                    "2025-10-26T03:00:00+01:00",
                ],
            ),
            (
                "@hourly",
                "2025-03-30T00:30:00+01:00",
                &["2025-03-30T01:00:00+01:00", "2025-03-30T03:00:00+02:00"],
            ),
        ],
    ),
    // Half an hour: gap on 5 October 2025, 02:00 to 02:30; fold on 6 April, 01:30 to 02:00.
    (
        "Australia/Lord_Howe",
        &[
            (
                "15 2 * * *",
                "2025-10-04T12:00:00+10:30",
                &["2025-10-05T02:30:00+11:00", "2025-10-06T02:15:00+11:00"],
            ),
            (
                "45 1 * * *",
                "2025-04-05T12:00:00+11:00",
                &["2025-04-06T01:45:00+11:00", "2025-04-07T01:45:00+10:30"],
            ),
            (
                "*/15 * * * *",
                "2025-04-06T01:40:00+11:00",
                &[
                    "2025-04-06T01:45:00+11:00",
                    "2025-04-06T01:30:00+10:30",
                    "2025-04-06T01:45:00+10:30",
                    "2025-04-06T02:00:00+10:30",
                ],
            ),
        ],
    ),
    // Gap on 5 October 2025, 02:00 to 03:00; fold on 6 April, 02:00 to 03:00.
    (
        "Australia/Sydney",
        &[
            (
                "0 2 * * *",
                "2025-10-04T12:00:00+10:00",
                &["2025-10-05T03:00:00+11:00", "2025-10-06T02:00:00+11:00"],
            ),
            (
                "*/30 2 * * *",
                "2025-04-06T01:50:00+11:00",
                &[
                    "2025-04-06T02:00:00+11:00",
                    "2025-04-06T02:30:00+11:00",
                    "2025-04-06T02:00:00+10:00",
                    "2025-04-06T02:30:00+10:00",
                ],
            ),
        ],
    ),
    // Samoa went to the other side of the date line: there was no 30 December 2011.
    (
        "Pacific/Apia",
        &[
            (
                "30 2 * * *",
                "2011-12-29T00:00:00-10:00",
                &[
                    "2011-12-29T02:30:00-10:00",
                    "2011-12-31T02:30:00+14:00",
                    "2012-01-01T02:30:00+14:00",
                ],
            ),
            (
                "0 * * * *",
                "2011-12-29T22:30:00-10:00",
                &[
                    "2011-12-29T23:00:00-10:00",
                    "2011-12-31T00:00:00+14:00",
                    "2011-12-31T01:00:00+14:00",
                ],
            ),
            ("0 12 30 * *", "2011-12-01T00:00:00-10:00", &["2012-01-30T12:00:00+14:00"]),
            ("0 9 * * FRI", "2011-12-24T00:00:00-10:00", &["2012-01-06T09:00:00+14:00"]),
        ],
    ),
    // 5 h 45 min ahead; 15 minutes less until 1985.
    (
        "Asia/Kathmandu",
        &[
            (
                "0 9 * * *",
                "2025-06-01T00:00:00+05:45",
                &["2025-06-01T09:00:00+05:45", "2025-06-02T09:00:00+05:45"],
            ),
            (
                "5 0 1 1 *",
                "1985-12-31T12:00:00+05:30",
                &["1986-01-01T00:15:00+05:45", "1987-01-01T00:05:00+05:45"],
            ),
        ],
    ),
    // Winter time in Ramadan: fold on 23 February 2025, 02:00 to 03:00; gap on 6 April, 02:00 to 03:00.
    (
        "Africa/Casablanca",
        &[
            (
                "30 2 * * *",
                "2025-02-22T12:00:00+01:00",
                &["2025-02-23T02:30:00+01:00", "2025-02-24T02:30:00+00:00"],
            ),
            (
                "30 2 * * *",
                "2025-04-05T12:00:00+00:00",
                &["2025-04-06T03:00:00+01:00", "2025-04-07T02:30:00+01:00"],
            ),
        ],
    ),
    // At midnight: gap on 4 November 2018, 00:00 to 01:00; fold on 17 February, 23:00 to 24:00.
    (
        "America/Sao_Paulo",
        &[
            (
                "@daily",
                "2018-11-03T12:00:00-03:00",
                &["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"],
            ),
            (
                "30 23 * * SAT",
                "2018-02-17T12:00:00-02:00",
                &["2018-02-17T23:30:00-02:00", "2018-02-24T23:30:00-03:00"],
            ),
            (
                "30 * * * *",
                "2018-02-17T22:45:00-02:00",
                &[
                    "2018-02-17T23:30:00-02:00",
                    "2018-02-17T23:30:00-03:00",
                    "2018-02-18T00:30:00-03:00",
                ],
            ),
        ],
    ),
    // The last summer time: gap on 22 March 2022, 00:00 to 01:00; fold on 21 September, 23:00 to 24:00.
    (
        "Asia/Tehran",
        &[
            (
                "15 0 * * *",
                "2022-03-21T12:00:00+03:30",
                &["2022-03-22T01:00:00+04:30", "2022-03-23T00:15:00+04:30"],
            ),
            (
                "0 23 * * *",
                "2022-09-21T12:00:00+04:30",
                &["2022-09-21T23:00:00+04:30", "2022-09-22T23:00:00+03:30"],
            ),
        ],
    ),
    // Two hours: gap on 30 March 2025, 01:00 to 03:00; fold on 26 October, 01:00 to 03:00.
    (
        "Antarctica/Troll",
        &[
            (
                "30 1,2 * * *",
                "2025-03-29T12:00:00+00:00",
                &[
                    "2025-03-30T03:00:00+02:00",
                    "2025-03-31T01:30:00+02:00",
                    "2025-03-31T02:30:00+02:00",
                ],
            ),
            (
                "0 2 * * *",
                "2025-10-25T12:00:00+02:00",
                &["2025-10-26T02:00:00+02:00", "2025-10-27T02:00:00+00:00"],
            ),
            (
                "0 * * * *",
                "2025-10-26T00:30:00+02:00",
                &[
                    "2025-10-26T01:00:00+02:00",
                    "2025-10-26T02:00:00+02:00",
                    "2025-10-26T01:00:00+00:00",
                    "2025-10-26T02:00:00+00:00",
                    "2025-10-26T03:00:00+00:00",
                ],
            ),
        ],
    ),
    // A gap over midnight: on 30 March 1919, a Sunday, 23:30 to 00:30.
    (
        "America/Toronto",
        &[
            (
                "45 23 * * SUN",
                "1919-03-30T12:00:00-05:00",
                &["1919-03-31T00:30:00-04:00", "1919-04-06T23:45:00-04:00"],
            ),
            (
                "15 0 * * MON",
                "1919-03-30T12:00:00-05:00",
                &["1919-03-31T00:30:00-04:00", "1919-04-07T00:15:00-04:00"],
            ),
        ],
    ),
];

#[test]
fn the_table() {
    let mut rows = 0;
    for (zone, expressions) in TABLE {
        for (expression, from, expected) in *expressions {
            assert_eq!(
                runs(expression, zone, from, expected.len()),
                *expected,
                "{expression} in {zone}"
            );
            rows += 1;
        }
    }
    println!("{rows} expressions in {} zones", TABLE.len());
}

/// Fixed times run once a day through thirty years, and repeating ones follow real time through six, in every zone of
/// the table.
#[test]
fn once_a_day_and_every_hour() {
    for (zone, _) in TABLE {
        let daily = tourbillon::Cron::parse("30 2 * * *", zone).unwrap();
        let hourly = tourbillon::Cron::parse("0 0 * * * *", zone).unwrap();
        let begin: jiff::Zoned = format!("2000-01-01T00:00:00[{zone}]").parse().unwrap();
        let (mut last, mut days) = (begin.clone(), 0);
        while last.year() < 2030 {
            let next = daily.next_after(&last).unwrap();
            let skipped = *zone == "Pacific/Apia" && next.date() == jiff::civil::date(2011, 12, 31);
            let date = if days == 0 { begin.date() } else { last.date().tomorrow().unwrap() };
            let date = if skipped { date.tomorrow().unwrap() } else { date };
            assert_eq!(next.date(), date, "{zone}: once a day");
            (last, days) = (next, days + 1);
        }
        let begin: jiff::Zoned = format!("2008-01-01T00:00:00[{zone}]").parse().unwrap();
        let mut last = hourly.next_after(&begin).unwrap();
        while last.year() < 2014 {
            let next = hourly.next_after(&last).unwrap();
            assert_eq!((next.minute(), next.second()), (0, 0), "{zone}");
            let passed = last.duration_until(&next).as_mins();
            // The clock may be half an hour, or 45 minutes, off the hour before and after a change.
            let whole = matches!(*zone, "Australia/Lord_Howe" | "Asia/Kathmandu");
            assert!(
                passed == 60 || whole && (30..=90).contains(&passed),
                "{zone}: {passed} min to {next}"
            );
            last = next;
        }
    }
}

/// The last runs are in the second half of a fold.
#[test]
fn nothing_follows_a_fold() {
    let all = runs("0 */15 2 26 10 * 2025", "Europe/Berlin", "2025-10-26T00:00:00+02:00", 9);
    assert_eq!(all.len(), 8, "{all:?}");
    assert_eq!(all[7], "2025-10-26T02:45:00+01:00");
}

/// Around every change of the clock in forty years: expressions that follow real time run at exactly the moments at
/// which the clock shows a matching time, found by checking each minute.
#[test]
fn by_real_time_is_what_the_clock_shows() {
    for (zone, _) in TABLE {
        let cron = tourbillon::Cron::parse("*/7 * * * *", zone).unwrap();
        let hours = |hours| jiff::SignedDuration::from_hours(hours);
        let begin: jiff::Timestamp = "1985-06-01T00:00:00Z".parse().unwrap();
        for change in cron
            .zone()
            .following(begin)
            .take_while(|change| change.timestamp() < begin + hours(350_640))
        {
            let (from, until) = (change.timestamp() - hours(27), change.timestamp() + hours(27));
            let minutes =
                (1..54 * 60).map(|minutes| from + jiff::SignedDuration::from_mins(minutes));
            let shown = minutes.filter(|&at| cron.zone().to_datetime(at).minute() % 7 == 0);
            let runs = std::iter::successors(cron.next_after(from), |last| cron.next_after(last));
            let runs = runs.map(|run| run.timestamp()).take_while(|&at| at < until);
            assert!(shown.eq(runs), "{zone}: around {}", change.timestamp());
        }
    }
}

/// The last second that a gap skips does not bring back the second before the gap.
#[test]
fn the_last_second_of_a_gap() {
    let all = runs("59 59 * * * *", "Europe/Berlin", "2025-03-30T00:30:00+01:00", 3);
    let expected = ["00:59:59+01:00", "01:59:59+01:00", "03:59:59+02:00"];
    assert_eq!(all, expected.map(|time| format!("2025-03-30T{time}")));
}
