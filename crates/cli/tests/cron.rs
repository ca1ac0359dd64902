//! `tourbillon cron`: its exact output, and its errors for bad input.

use std::process::Command;

/// Runs the command in a system time zone. Returns its exit code, stdout and stderr.
fn cron_in(system: &str, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tourbillon"));
    let output = command.arg("cron").args(args).env("TZ", system).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it ended by itself"), text(output.stdout), text(output.stderr))
}

fn cron(args: &[&str]) -> (i32, String, String) {
    cron_in("UTC", args)
}

#[track_caller]
fn tells(args: &[&str], expected: &str) {
    let (code, out, err) = cron(args);
    assert_eq!((code, &*err), (0, ""));
    assert_eq!(out, expected, "it told:\n{out}");
}

#[test]
fn a_time_of_day_in_a_gap() {
    let args = ["30 2 * * *", "--tz", "Europe/Berlin", "-n", "3", "--from", "2025-03-28T12:00"];
    tells(
        &args,
        "\
30 2 * * * in Europe/Berlin, after Fri 2025-03-28 12:00 +01:00
It has fixed times of day: each runs once a day, also where the clock jumps

  Sat 2025-03-29 02:30 +01:00   2025-03-29 01:30Z   in 14h 30m
  Sun 2025-03-30 03:00 +02:00   2025-03-30 01:00Z   in 1d 14h    gap: for 02:30
  Mon 2025-03-31 02:30 +02:00   2025-03-31 00:30Z   in 2d 13h

Where the clock jumps
  Sun 2025-03-30, in 1d 14h   gap: 02:00 to 03:00 does not exist
                              02:30 runs when the gap ends, at 03:00
  Sun 2025-10-26, in 211d 14h   fold: 02:00 to 03:00 comes twice
                                02:30 runs the first time only
",
    );
}

#[test]
fn every_half_hour_in_a_fold() {
    let args = ["*/30 * * * *", "--tz=America/New_York", "-n6", "--from=2025-11-02T00:15"];
    tells(
        &args,
        "\
*/30 * * * * in America/New_York, after Sun 2025-11-02 00:15 -04:00
It repeats within the day: where the clock jumps it goes on by real time

  Sun 2025-11-02 00:30 -04:00   2025-11-02 04:30Z   in 15m
  Sun 2025-11-02 01:00 -04:00   2025-11-02 05:00Z   in 45m      fold: the first time
  Sun 2025-11-02 01:30 -04:00   2025-11-02 05:30Z   in 1h 15m   fold: the first time
  Sun 2025-11-02 01:00 -05:00   2025-11-02 06:00Z   in 1h 45m   fold: the second time
  Sun 2025-11-02 01:30 -05:00   2025-11-02 06:30Z   in 2h 15m   fold: the second time
  Sun 2025-11-02 02:00 -05:00   2025-11-02 07:00Z   in 2h 45m

Where the clock jumps
  Sun 2025-11-02, in 1h 45m   fold: 01:00 to 02:00 comes twice
                              it runs both times
  Sun 2026-03-08, in 126d 2h   gap: 02:00 to 03:00 does not exist
                               its times there are left out
",
    );
}

#[test]
fn a_day_that_was_left_out() {
    let args = ["30 2 * * *", "--zone", "Pacific/Apia", "-n", "2", "--from", "2011-12-29"];
    let (code, out, _) = cron(&args);
    assert_eq!(code, 0);
    for part in [
        "  Thu 2011-12-29 02:30 -10:00   2011-12-29 12:30Z   in 2h 30m\n",
        "  Sat 2011-12-31 02:30 +14:00   2011-12-30 12:30Z   in 1d 2h\n",
        "gap: 2011-12-30 00:00 to 2011-12-31 00:00 does not exist\n",
        "a day that is left out has no runs\n",
    ] {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
}

/// The skipped midnight has no run; the next midnight is at the same moment and has its own run.
#[test]
fn a_midnight_that_was_left_out() {
    let args = ["0 0 * * *", "--tz", "Pacific/Apia", "-n", "2", "--from", "2011-12-28T12:00"];
    let (code, out, _) = cron(&args);
    assert_eq!(code, 0);
    for part in [
        "  Thu 2011-12-29 00:00 -10:00   2011-12-29 10:00Z   in 12h\n",
        "  Sat 2011-12-31 00:00 +14:00   2011-12-30 10:00Z   in 1d 12h\n",
        "a day that is left out has no runs\n",
    ] {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
    // A step expression continues in real time across the gap.
    let args = ["0 */6 * * *", "--tz", "Pacific/Apia", "-n", "1", "--from", "2011-12-29T23:00"];
    let (_, out, _) = cron(&args);
    assert!(out.contains("Sat 2011-12-31 00:00 +14:00   2011-12-30 10:00Z   in 1h\n"), "{out}");
    assert!(out.contains("its times there are left out\n"), "{out}");
}

/// Every run moved by a gap says so, even if not every gap is printed.
#[test]
fn every_jump_counts_and_not_all_are_told() {
    let args = ["30 2 * * *", "--tz", "Europe/Berlin", "-n", "4000", "--from", "2025-01-01"];
    let (code, out, _) = cron(&args);
    assert_eq!(code, 0);
    // 4000 days end in December 2035: eleven gaps and eleven folds.
    let count = |part: &str| out.matches(part).count();
    assert_eq!((count("gap: for 02:30"), count("fold: the first time")), (11, 11));
    assert_eq!((count("gap: 02:00 to 03:00"), count("fold: 02:00 to 03:00")), (4, 4));
    assert!(out.ends_with("  and 14 more until Sun 2035-10-28\n"), "{out}");
}

#[test]
fn where_no_jump_matters() {
    let args = ["*/10 0 0 * * *", "--tz", "UTC", "-n", "1", "--from", "2025-01-01T00:00:09Z"];
    tells(
        &args,
        "\
*/10 0 0 * * * in UTC, after Wed 2025-01-01 00:00:09 +00:00
It repeats within the day: where the clock jumps it goes on by real time

  Wed 2025-01-01 00:00:10 +00:00   2025-01-01 00:00:10Z   in 1s

Where the clock jumps
  the clock of this zone does not jump any more
",
    );
    let (_, out, _) = cron(&["0 12 * * *", "--tz", "Europe/Berlin"]);
    assert!(out.contains("none of its next 100 jumps is at a time of this expression"), "{out}");
    let once = ["0 0 0 1 1 * 2020", "--tz", "UTC", "--from", "2025-01-01"];
    let (code, out, _) = cron(&once);
    assert_eq!((code, out.contains("no run after that: look at its year")), (0, true), "{out}");
}

/// Without `--tz` the zone is the system's. Also: a time with an offset, and many runs.
#[test]
fn what_is_left_out() {
    let (code, out, _) = cron_in("Asia/Tokyo", &["0 9 * * *", "--from", "2025-01-01T00:00+01:00"]);
    assert_eq!(code, 0);
    assert!(
        out.starts_with("0 9 * * * in Asia/Tokyo, after Wed 2025-01-01 08:00 +09:00\n"),
        "{out}"
    );
    assert_eq!(out.lines().filter(|line| line.contains(" 09:00 +09:00 ")).count(), 5);
    let (_, out, _) = cron(&["@hourly", "--tz", "Europe/Berlin", "-n", "10000"]);
    assert!(out.lines().count() > 10_000 && out.lines().all(|line| line.len() <= 90));
    assert!(!out.contains('\u{1b}'), "plain text when it is no terminal");
}

#[test]
fn what_is_wrong_and_where() {
    for (args, said) in [
        (
            &["0 25 * * *"][..],
            "tourbillon: hour is \"25\": it must be 0 to 23\n  0 25 * * *\n    ^^\n",
        ),
        (&["0\t0 * *  MONDAY"], "\n  0 0 * *  MONDAY\n           ^^^^^^\n"),
        (&["é 0 * * *"], "minute is \"é\": it must be 0 to 59\n  é 0 * * *\n  ^\n"),
        (&["-1 * * * *"], "minute is \"-1\": it must be 0 to 59"),
        (&["* * *"], "3 fields: give 5 (minute hour day month weekday)"),
        (&["@fortnightly"], "it must be @hourly, @daily, @weekly, @monthly or @yearly"),
        (&["0 0 31 2 *"], "no date matches, ever"),
        (
            &["0 0 * * *", "--tz", "berlin"],
            "--tz: there is no time zone \"berlin\": did you mean Europe/Berlin?",
        ),
        (&["0 0 * * *", "--tz", "new york"], "did you mean America/New_York?"),
        (&["0 0 * * *", "--tz", "Atlantis"], "give one as Europe/Berlin, or UTC"),
        (&["0 0 * * *", "--tz", ""], "give one as Europe/Berlin, or UTC"),
        (&["0 0 * * *", "--from", "soon"], "--from: \"soon\" is no time: give 2025-03-30T01:00"),
        (&["0 0 * * *", "--from", "2025-02-30"], "--from: \"2025-02-30\" is no time"),
        (&["0 0 * * *", "-n", "0"], "0 is not in 1..=10000"),
        (&["0", "0", "*"], "unexpected argument"),
        (&[], "<EXPR>"),
    ] {
        let (code, out, err) = cron(args);
        assert_eq!((code, &*out), (2, ""), "{args:?}");
        assert!(err.contains(said), "{args:?}: {err}");
    }
}
