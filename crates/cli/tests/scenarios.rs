//! Every scenario of the repository, and the exact output of a few.

use std::fs;
use std::path::{Path, PathBuf};

use tourbillon_cli::replay::{JsonLines, Outcome, run};
use tourbillon_cli::scenario::{self, Scenario};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    found.sort();
    found
}

fn play(scenario: &Scenario) -> (Outcome, String) {
    let mut lines = JsonLines(Vec::new());
    let outcome = run(scenario, &mut lines).unwrap();
    (outcome, String::from_utf8(lines.0).unwrap())
}

#[test]
fn every_scenario_passes() {
    let mut count = 0;
    for path in files(&root()) {
        if path.parent().unwrap().ends_with("malformed") {
            continue;
        }
        let scenario =
            scenario::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (outcome, lines) = play(&scenario);
        assert_eq!(
            outcome,
            Outcome::Passed,
            "{}: {}",
            path.display(),
            lines.lines().last().unwrap()
        );
        assert_eq!(play(&scenario).1, lines, "{}: the same lines in every run", path.display());
        count += 1;
    }
    assert!(count >= 60, "only {count} scenarios were found");
}

#[test]
fn malformed_scenarios_say_what_would_be_right() {
    let messages = [
        ("four-billion-slots", "wheel.slots[0]: must be an integer 1 to 1048576, not 4000000000"),
        ("given-twice", "steps[0].delay: given twice: leave one"),
        (
            "truncated",
            "steps[0]: the text ends in the middle of this, at line 5 column 26: is it cut off?",
        ),
        ("two-verbs", "steps[1]: has two verbs, cancel and stop: make it two steps"),
        (
            "unknown-field",
            "steps[1].dealy: unknown field \"dealy\": known here are schedule, cancel, reschedule, advance, stop, \
             expect, delay, at, every, then",
        ),
        ("zero-slots", "wheel.slots[1]: must be an integer 2 to 1048576, not 0"),
    ];
    let found = files(&root().join("malformed"));
    assert_eq!(found.len(), messages.len());
    for (path, (name, message)) in found.iter().zip(messages) {
        assert_eq!(path.file_stem().unwrap(), name);
        assert_eq!(scenario::read(path).unwrap_err().to_string(), message, "{name}");
    }
}

/// Checks the exact lines of a scenario.
#[track_caller]
fn prints(name: &str, lines: &[&str]) {
    let scenario = scenario::read(&root().join(name)).unwrap();
    assert_eq!(play(&scenario).1.lines().collect::<Vec<_>>(), lines, "{name}");
}

#[test]
fn the_lines_of_a_clock_face() {
    prints(
        "examples/09-clock-face.json",
        &[
            r#"{"at":0,"event":"scheduled","id":"A","due":5420,"place":"L3[1]"}"#,
            r#"{"at":3600,"event":"cascaded","id":"A","from":"L3[1]","to":"L2[30]"}"#,
            r#"{"at":5400,"event":"cascaded","id":"A","from":"L2[30]","to":"L1[20]"}"#,
            r#"{"at":5420,"event":"fired","id":"A","due":5420}"#,
            r#"{"at":5420,"event":"done","pending":0,"fired":1,"cancelled":0,"wakes":3,"cascades":2}"#,
        ],
    );
}

#[test]
fn the_lines_of_a_hashed_wheel() {
    prints(
        "rules/turns-of-a-hashed-wheel.json",
        &[
            r#"{"at":0,"event":"scheduled","id":"A","due":22,"place":"[6]","rounds":2}"#,
            r#"{"at":0,"event":"scheduled","id":"same","due":22,"place":"[6]","rounds":2}"#,
            r#"{"at":0,"event":"scheduled","id":"B","due":3,"place":"[3]","rounds":0}"#,
            r#"{"at":3,"event":"fired","id":"B","due":3}"#,
            r#"{"at":22,"event":"fired","id":"A","due":22}"#,
            r#"{"at":22,"event":"fired","id":"same","due":22}"#,
            r#"{"at":22,"event":"done","pending":0,"fired":3,"cancelled":0,"wakes":4,"cascades":0}"#,
        ],
    );
}

#[test]
fn the_lines_of_a_stop() {
    prints(
        "bugs/stop-tells-the-survivors.json",
        &[
            r#"{"at":0,"event":"scheduled","id":"c","due":50,"place":"L2[2]"}"#,
            r#"{"at":0,"event":"scheduled","id":"b","due":5,"place":"L1[5]"}"#,
            r#"{"at":0,"event":"scheduled","id":"a","due":5,"place":"L1[5]"}"#,
            r#"{"at":0,"event":"scheduled","id":"x","due":1,"place":"L1[1]"}"#,
            r#"{"at":1,"event":"fired","id":"x","due":1}"#,
            r#"{"at":1,"event":"stopped","unfired":["b","a","c"]}"#,
            r#"{"at":1,"event":"cancelled","id":"a","ok":false}"#,
            r#"{"at":1,"event":"rescheduled","id":"b","ok":false}"#,
            r#"{"at":1,"event":"rejected","id":"a","reason":"stopped"}"#,
            r#"{"at":100,"event":"stopped","unfired":[]}"#,
            r#"{"at":100,"event":"done","pending":0,"fired":1,"cancelled":0,"wakes":1,"cascades":0}"#,
        ],
    );
}

#[test]
fn the_lines_of_a_stop_inside_a_pass() {
    prints(
        "bugs/stop-inside-a-pass.json",
        &[
            r#"{"at":10,"event":"scheduled","id":"B","due":5}"#,
            r#"{"at":10,"event":"scheduled","id":"A","due":4}"#,
            r#"{"at":10,"event":"scheduled","id":"C","due":60,"place":"L2[3]"}"#,
            r#"{"at":10,"event":"fired","id":"A","due":4}"#,
            r#"{"at":10,"event":"stopped","unfired":["B","C"]}"#,
            r#"{"at":10,"event":"rejected","id":"D","reason":"stopped"}"#,
            r#"{"at":100,"event":"done","pending":0,"fired":1,"cancelled":0,"wakes":11,"cascades":0}"#,
        ],
    );
}

#[test]
fn the_lines_of_moves_and_limits() {
    let text = r#"{"name": "moves", "wheel": {"kind": "hashed", "slots": [8], "tick": 10}, "limit": 1, "steps": [
        {"schedule": "a \"b\"\n", "delay": 21}, {"schedule": "c", "delay": 1},
        {"reschedule": "a \"b\"\n", "delay": 95}, {"reschedule": "c", "at": 9}, {"reschedule": "a \"b\"\n", "at": 0},
        {"cancel": "a \"b\"\n"}, {"cancel": "c"}]}"#;
    let (_, lines) = play(&Scenario::parse(text).unwrap());
    let expected = [
        r#"{"at":0,"event":"scheduled","id":"a \"b\"\n","due":21,"place":"[3]","rounds":0}"#,
        r#"{"at":0,"event":"rejected","id":"c","reason":"limit"}"#,
        r#"{"at":0,"event":"rescheduled","id":"a \"b\"\n","ok":true,"due":95,"place":"[2]","rounds":1}"#,
        r#"{"at":0,"event":"rescheduled","id":"c","ok":false}"#,
        r#"{"at":0,"event":"rescheduled","id":"a \"b\"\n","ok":true,"due":0}"#,
        r#"{"at":0,"event":"cancelled","id":"a \"b\"\n","ok":true}"#,
        r#"{"at":0,"event":"cancelled","id":"c","ok":false}"#,
        r#"{"at":0,"event":"done","pending":0,"fired":0,"cancelled":1,"wakes":0,"cascades":0}"#,
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}
