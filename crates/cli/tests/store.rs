//! `check`, `dump` and `load` on the command line.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Runs the command. Returns its exit code, stdout and stderr.
fn tourbillon(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tourbillon")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it ended by itself"), text(output.stdout), text(output.stderr))
}

/// A path in the tests' folder where nothing exists.
fn fresh(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path.to_str().unwrap().to_owned()
}

fn file(name: &str, lines: &[&str]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// One line of each kind, in the form of the HTTP interface, due far in the future.
fn lines() -> [&'static str; 5] {
    let lines: Vec<&str> = include_str!("store.jsonl").lines().collect();
    lines.try_into().expect("five lines")
}

#[test]
fn a_dump_is_what_was_loaded() {
    let directory = fresh("store-round");
    let (code, out, err) = tourbillon(&["load", &directory, &file("round.jsonl", &lines())]);
    assert_eq!((code, &*out, &*err), (0, "", "5 timers\n"));
    let (code, out, err) = tourbillon(&["dump", &directory]);
    assert_eq!((code, &*err), (0, "5 timers\n"));
    let (mut dumped, other): (Vec<&str>, Vec<&str>) =
        out.lines().partition(|line| line.contains(r#""generation""#));
    assert!(
        other[0].starts_with(r#"{"store":""#) && other[1].contains(r#""settings":{"#),
        "{other:?}"
    );
    let mut loaded = lines();
    dumped.sort_unstable();
    loaded.sort_unstable();
    assert_eq!(dumped, loaded);
    let (code, out, err) = tourbillon(&["check", &directory]);
    assert_eq!((code, &*err), (0, "5 timers\n"));
    assert_eq!(out, format!("{directory}: 5 timers, sound\n"));
}

#[test]
fn what_was_out_is_due_after_a_load() {
    let directory = fresh("store-out");
    let line = lines()[3].replace(r#""state":"dead""#, r#""state":"delivering""#);
    tourbillon(&["load", &directory, &file("out.jsonl", &[&line])]);
    let (_, out, _) = tourbillon(&["dump", &directory]);
    assert!(out.contains(r#""state":"due""#) && out.contains(r#""attempt":10"#), "{out}");
}

/// A timer during an extra run keeps the moment that the run has postponed.
#[test]
fn what_a_run_has_pushed_back_comes_back() {
    let directory = fresh("store-behind");
    let behind = r#""behind":"2031-01-01T00:00:00.000Z","payload":"#;
    let line = lines()[0].replacen(r#""payload":"#, behind, 1);
    assert!(line.contains("behind"), "{line}");
    tourbillon(&["load", &directory, &file("behind.jsonl", &[&line])]);
    let (_, out, _) = tourbillon(&["dump", &directory]);
    assert!(out.contains(&line), "{out}");
}

#[test]
fn settings_come_back_and_the_store_has_a_new_name() {
    let (from, to) = (fresh("store-from"), fresh("store-to"));
    let set = r#"{"queue":"quiet","settings":{"paused":true,"rate":7,"remember":"5m"}}"#;
    let store = r#"{"store":"0123456789abcdef"}"#;
    tourbillon(&["load", &from, &file("from.jsonl", &[store, set, lines()[0]])]);
    let (_, first, _) = tourbillon(&["dump", &from]);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("first.jsonl");
    fs::write(&path, &first).unwrap();
    assert_eq!(tourbillon(&["load", &to, path.to_str().unwrap()]).0, 0);
    let (_, second, _) = tourbillon(&["dump", &to]);
    let rest = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rest(&first), rest(&second));
    assert!(second.contains(r#""queue":"quiet","settings":{"paused":true,"#), "{second}");
    assert_ne!(first.lines().next(), second.lines().next(), "a new name");
    assert!(!first.contains("0123456789abcdef"));
}

#[test]
fn a_bad_line_loads_nothing_and_is_named() {
    for (old, new, wrong) in [
        (r#""queue":"orders""#, r#""queue":"a b""#, "queue is \"a b\": it must be 1 to 64 of"),
        (r#""state":"scheduled""#, r#""state":"early""#, "state is \"early\": it must be one of"),
        (r#""due":"9000"#, r#""due":"90"#, "due: moment is"),
        (r#""attempt":0"#, r#""attempt":-1"#, "attempt is -1: invalid value"),
        (r#""webhook":null"#, r#""webhook":{"uri":"x"}"#, "url is missing"),
        (r#""times":null"#, r#""tides":null"#, "tides is no field of a timer"),
        (r#""generation":4711"#, r#""generation":23"#, "generation 23 is there twice"),
        (r#""jitter":0.1"#, r#""jitter":2"#, "retry.jitter is \"2\": it must be 0 to 1"),
        ("{\"queue\"", "\"queue\"", "no JSON object"),
    ] {
        let directory = fresh("store-bad");
        let bad = lines()[0].replacen(old, new, 1);
        let path = file("bad.jsonl", &[lines()[1], "", &bad]);
        let (code, out, err) = tourbillon(&["load", &directory, &path]);
        assert_eq!((code, &*out), (2, ""), "{err}");
        assert!(err.starts_with(&format!("tourbillon: {path}:3: {wrong}")), "{err}");
        let (code, _, err) = tourbillon(&["load", &directory, &file("good.jsonl", &lines())]);
        assert_eq!(code, 0, "nothing of it is left: {err}");
    }
}

#[test]
fn a_store_with_timers_is_not_loaded_into() {
    let directory = fresh("store-twice");
    let path = file("twice.jsonl", &lines());
    assert_eq!(tourbillon(&["load", &directory, &path]).0, 0);
    let (code, _, err) = tourbillon(&["load", &directory, &path]);
    assert_eq!(code, 2);
    assert!(err.ends_with("has timers already: load into a directory that has none\n"), "{err}");
    let (_, out, _) = tourbillon(&["dump", &directory]);
    assert_eq!(out.lines().filter(|line| line.contains(r#""generation""#)).count(), 5);
}

#[test]
fn damage_is_named_and_repaired_only_when_told_to() {
    let directory = fresh("store-damaged");
    tourbillon(&["load", &directory, &file("damaged.jsonl", &lines())]);
    let path = PathBuf::from(&directory).join("timers.redb");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(8).position(|window| window == b"{\"id\":17").expect("the payload");
    bytes[at] ^= 4;
    fs::write(&path, &bytes).unwrap();
    let (code, out, err) = tourbillon(&["check", &directory]);
    assert_eq!((code, &*err), (1, "4 timers\n"));
    assert!(out.contains(", generation 4711: the checksum of the value is "), "{out}");
    assert!(out.ends_with("set the damaged file aside, add --repair\n"), "{out}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let (code, out, err) = tourbillon(&["dump", &directory]);
    let timers = out.lines().filter(|line| line.contains(r#""generation""#)).count();
    assert_eq!((code, timers), (1, 4));
    assert!(err.contains("tourbillon: not dumped: "), "{err}");
    let missing = out.lines().filter(|line| line.starts_with(r#"{"unreadable":"#)).count();
    assert_eq!(missing, 1, "the dump says so itself: {out}");
    let dumped: Vec<&str> = out.lines().collect();
    let (code, _, err) =
        tourbillon(&["load", &fresh("store-lacks"), &file("lacks.jsonl", &dumped)]);
    assert!(code == 0 && err.contains(": the dump lacks ") && err.ends_with("4 timers\n"), "{err}");
    let (code, out, _) = tourbillon(&["check", "--repair", &directory]);
    assert_eq!(code, 1);
    assert!(out.contains(": repaired, with 4 timers\nthe damaged file is "), "{out}");
    assert_eq!(tourbillon(&["check", &directory]).0, 0);
}

#[test]
fn what_is_no_store_is_said() {
    for command in ["check", "dump"] {
        let (code, out, err) = tourbillon(&[command, &fresh("store-none")]);
        assert_eq!((code, &*out), (2, ""));
        assert!(
            err.ends_with("store-none holds no store: there is no timers.redb in it\n"),
            "{err}"
        );
    }
    let (code, _, err) = tourbillon(&["load", &fresh("store-none"), "/nowhere"]);
    assert_eq!(code, 2);
    assert!(err.starts_with("tourbillon: /nowhere cannot be read: "), "{err}");
}
