//! The binary itself: exit codes, streams, several files, bad input of every kind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs the command. Returns its exit code, stdout and stderr.
fn tourbillon(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tourbillon")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it ended by itself"), text(output.stdout), text(output.stderr))
}

/// Writes a file with this content into the tests' folder.
fn file(name: &str, content: impl AsRef<[u8]>) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn scenario(name: &str, steps: &str) -> String {
    let wheel = r#"{"kind": "hierarchical", "slots": [20]}"#;
    file(name, format!(r#"{{"name": "{name}", "wheel": {wheel}, "steps": [{steps}]}}"#))
}

#[test]
fn one_file_that_passes() {
    let good = scenario("one-good.json", r#"{"schedule": "A", "delay": 1}, {"advance": 1}"#);
    let (code, out, err) = tourbillon(&["replay", &good]);
    assert_eq!((code, &*err), (0, ""));
    let expected = r#"{"at":0,"event":"scheduled","id":"A","due":1,"place":"L1[1]"}
{"at":1,"event":"fired","id":"A","due":1}
{"at":1,"event":"done","pending":0,"fired":1,"cancelled":0,"wakes":1,"cascades":0}
"#;
    assert_eq!(out, expected);
}

#[test]
fn an_expectation_that_fails_ends_the_run() {
    let steps = r#"{"schedule": "A", "delay": 1},
                   {"expect": {"wakes": 0, "pending": 2, "next_due": null}}, {"stop": true}"#;
    let (code, out, err) = tourbillon(&["replay", &scenario("one-failed.json", steps)]);
    assert_eq!((code, &*err), (1, ""));
    let last = r#"{"at":0,"event":"failed","step":1,"expected":{"pending":2},"got":{"pending":1}}"#;
    assert_eq!(out.lines().collect::<Vec<_>>()[1..], [last]);

    for (expect, got) in [
        (
            r#"{"place": {"A": "L1[1]", "B": "L1[2]"}}"#,
            r#""expected":{"place":{"B":"L1[2]"}},"got":{"place":{"B":null}}"#,
        ),
        (r#"{"fired": [["A", 2]]}"#, r#""expected":{"fired":[["A",2]]},"got":{"fired":[]}"#),
        (r#"{"next_due": null}"#, r#""expected":{"next_due":null},"got":{"next_due":1}"#),
        (r#"{"rounds": {"A": 0}}"#, r#""expected":{"rounds":{"A":0}},"got":{"rounds":{"A":null}}"#),
    ] {
        let steps = format!(r#"{{"schedule": "A", "delay": 1}}, {{"expect": {expect}}}"#);
        let (code, out, _) = tourbillon(&["replay", &scenario("one-of-failed.json", &steps)]);
        assert_eq!(code, 1);
        assert!(out.ends_with(&format!("\"step\":1,{got}}}\n")), "{out}");
    }
}

#[test]
fn an_error_while_running_comes_after_the_lines() {
    let steps = r#"{"schedule": "A", "delay": 1, "then": [{"cancel": "A"}, {"schedule": "B", "delay": 1}]},
                   {"schedule": "B", "delay": 5}, {"advance": 9}, {"stop": true}"#;
    let path = scenario("running.json", steps);
    let (code, out, err) = tourbillon(&["replay", &path]);
    assert_eq!((code, out.lines().count()), (2, 4));
    assert!(
        err.contains("running.json: steps[0].then[1]: \"B\" is scheduled while it is pending"),
        "{err}"
    );

    let twice =
        scenario("twice.json", r#"{"schedule": "A", "delay": 1}, {"schedule": "A", "delay": 1}"#);
    let (code, out, err) = tourbillon(&["replay", &twice]);
    assert_eq!((code, out.lines().count()), (2, 1));
    assert!(err.contains("twice.json: steps[1]: \"A\" is scheduled while it is pending"), "{err}");
}

#[test]
fn several_files() {
    let good = scenario("good.json", r#"{"stop": true}"#);
    let failed = scenario("failed.json", r#"{"expect": {"pending": 1}}"#);
    let broken = file("broken.json", "{");

    let (code, out, err) = tourbillon(&["replay", &good, &failed]);
    assert_eq!((code, &*err), (1, ""));
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], format!("{{\"file\":{good:?}}}"));
    assert_eq!(lines[3], format!("{{\"file\":{failed:?}}}"));
    assert_eq!(lines.len(), 5);

    let (code, out, err) = tourbillon(&["replay", &broken, &good]);
    assert_eq!((code, out.lines().count()), (2, 3), "nothing on stdout for the broken one");
    assert!(err.contains("broken.json: the text ends in the middle"), "{err}");

    let (code, out, _) = tourbillon(&["replay", "-q", &good, &failed, &broken, &good]);
    assert_eq!(code, 2);
    let failure =
        r#"{"at":0,"event":"failed","step":0,"expected":{"pending":1},"got":{"pending":0}}"#;
    let counts = r#"{"files":4,"passed":2,"failed":1,"errors":1}"#;
    assert_eq!(out, format!("{{\"file\":{failed:?}}}\n{failure}\n{counts}\n"));
}

#[test]
fn files_that_are_none() {
    let folder = env!("CARGO_TARGET_TMPDIR").to_owned();
    let missing = format!("{folder}/no-such-file.json");
    for (path, said) in [
        (missing, "cannot be read"),
        (folder, "cannot be read"),
        (file("empty.json", ""), "the file is empty"),
        (
            file("latin1.json", b"{\"name\": \"caf\xe9\"}"),
            "not UTF-8 text: the byte at offset 13 is not",
        ),
        (file("bom.json", "\u{feff}{}"), "byte order mark"),
        (file("deep.json", "[".repeat(100_000)), "nested too deep"),
    ] {
        let (code, out, err) = tourbillon(&["replay", &path]);
        assert_eq!((code, &*out), (2, ""), "{path}");
        assert!(err.contains(&path) && err.contains(said), "{path}: {err}");
    }
}

/// A scenario whose timer repeats forever.
fn endless(name: &str) -> String {
    scenario(
        name,
        r#"{"schedule": "A", "delay": 0, "every": 1}, {"advance": 18446744073709551615}"#,
    )
}

#[test]
fn a_run_that_would_go_on_for_ever_ends() {
    let endless = endless("endless.json");
    let (code, out, err) = tourbillon(&["replay", "-q", &endless]);
    assert_eq!((code, out.lines().count()), (2, 1), "{out}");
    let said = ["more than 10000000 timers have fired", "steps[1]"];
    assert!(said.iter().all(|part| err.contains(part)), "{err}");
}

/// A reader that closes the pipe early causes no error.
#[test]
fn a_closed_pipe() {
    let endless = endless("piped.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tourbillon"))
        .args(["replay", &endless])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("scheduled"));
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*err), (Some(0), ""));
}

#[test]
fn a_trace_of_the_clock_face() {
    let (code, out, err) = tourbillon(&["trace", "--slots", "60,60,24", "5420"]);
    assert_eq!((code, &*err), (0, ""));
    assert!(!out.contains('\u{1b}'), "plain text when it is no terminal");
    for part in [
        "L3[1] → L2[30] → L1[20] → fired",
        "clock 3600  L3[1] begins and cascades: now in L2[30], the\n  slot of 5400 … 5459",
        "clock 5420  fired",
        "tick    5420 wakes",
        "bucket     3 wakes",
        "due        1 wake",
    ] {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
    assert!(tourbillon(&["trace"]).1.contains("L3[1] → L2[30] → L1[20] → fired"));
    let (_, out, _) = tourbillon(&["trace", "1h30m20s", "--tick", "1s", "--drive", "due"]);
    assert!(out.contains("on the way, at 1h  L3[1]") && !out.contains("5420 wakes"), "{out}");
    let (_, out, _) = tourbillon(&["trace", "--hashed", "--slots", "8", "20"]);
    assert!(out.contains("[4] and 2 rounds → fired"), "{out}");
}

#[test]
fn traces_at_the_edges() {
    let max = "18446744073709551615";
    for args in [
        &["trace"][..],
        &["trace", "0"],
        &["trace", "--hashed", "--slots", "72", "--start", "71", "7200"],
        &["trace", "1048570", "--hashed", "--slots", "1048576", "--start", "500000"],
        &["trace", max, "--drive", "tick"],
        &["trace", max, "--start", max, "--slots", "2"],
        &["trace", max, "--tick", "10", "--start", "6"],
        &["trace", max, "--tick", max, "--slots", "1048576"],
        &["trace", max, "--hashed", "--slots", "1"],
        &["trace", "584y", "--tick", "1ns", "--slots", "256,64"],
    ] {
        let (code, out, err) = tourbillon(args);
        assert_eq!((code, &*err), (0, ""), "{args:?}");
        assert!(out.len() < 200_000, "{args:?}");
        let widest = out.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(60), "{args:?}: {widest:?} columns in\n{out}");
    }
}

/// The trace shows the hand where the clock is.
#[test]
fn a_trace_that_begins_later() {
    let (_, out, _) = tourbillon(&["trace", "--start", "2", "8"]);
    assert!(out.contains("clock 2  filed in L1[10], the slot of 10"), "{out}");
    assert!(out.contains("  L1  ▲ 2  ● 10 |··▲·······●···"), "{out}");
    assert!(out.contains("tick    8 wakes"), "{out}");
    // The example of the format: from clock 2, a delay of 399 reaches slot 0 of the next turn.
    let (_, out, _) = tourbillon(&["trace", "--slots", "20", "--start", "2", "399"]);
    assert!(out.contains("L2[0] → L1[1] → fired"), "{out}");
    let (_, out, _) = tourbillon(&["trace", "--hashed", "--slots", "8", "--start", "5", "20"]);
    assert!(out.contains("[1] and 2 rounds → fired"), "{out}");
    assert_eq!(out.matches("the hand meets the slot").count(), 2, "{out}");
}

#[test]
fn traces_that_make_no_sense() {
    for (args, said) in [
        (&["trace", "--slots", "0", "5"][..], "\"0\" is not a number of slots: give 2 to 1048576"),
        (&["trace", "--slots", "4000000000", "5"], "is not a number of slots: give 2 to 1048576"),
        (&["trace", "--slots", ",", "5"], "is not a number of slots: give 2 to 1048576"),
        (&["trace", "--slots", "60,x", "5"], "\"x\" is not a number of slots"),
        (&["trace", "--slots", "-5", "5"], "is not a number of slots: give 2 to 1048576"),
        (&["trace", "--slots", "60,1", "5"], "\"1\" is not a number of slots: give 2 to 1048576"),
        (&["trace", "--hashed", "--slots", "0", "5"], "\"0\" is not a number of slots: give 1 to"),
        (&["trace", "--hashed", "--slots", "60,60", "5"], "a hashed wheel has one ring"),
        (&["trace", "-5"], "give 0 or more"),
        (&["trace", "soon"], "DELAY"),
        (&["trace", "1.5"], "give a whole number (5420) or a duration"),
        (&["trace", "18446744073709551616"], "the most is 18446744073709551615"),
        (&["trace", "--tick", "0", "5"], "--tick: 0 is no length of time"),
        (&["trace", "--tick", "0s", "5s"], "--tick: 0 is no length of time"),
        (&["trace", "--tick", "1s", "5"], "DELAY: 5 has no unit, but the tick is 1s"),
        (&["trace", "--tick", "10", "5s"], "DELAY: 5s has a unit, but the tick 10 has none"),
        (&["trace", "--start", "-1", "5"], "give 0 or more"),
        (&["trace", "--drive", "fast", "5"], "possible values: tick, bucket, due"),
        (&["trace", "5", "6"], "unexpected argument '6'"),
        (&["replay"], "<FILE>"),
        (&["dance"], "unrecognized subcommand"),
        (&[], "Usage"),
    ] {
        let (code, out, err) = tourbillon(args);
        assert_eq!((code, &*out), (2, ""), "{args:?}");
        assert!(err.contains(said), "{args:?}: {err}");
    }
}

#[test]
fn help_and_version() {
    let (code, out, _) = tourbillon(&["--version"]);
    assert_eq!((code, out), (0, format!("tourbillon {}\n", env!("CARGO_PKG_VERSION"))));
    for args in [&["--help"][..], &["replay", "--help"], &["trace", "--help"]] {
        let (code, out, err) = tourbillon(args);
        assert_eq!((code, &*err), (0, ""));
        assert!(
            out.contains("Usage: tourbillon") && out.contains("tourbillon trace")
                || out.contains("Examples:")
        );
    }
}
