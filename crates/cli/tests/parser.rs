//! Invalid scenarios: each error names its place and what would be right.

use tourbillon_cli::scenario::{Scenario, Step, When};

/// A scenario with these steps.
fn with_steps(steps: &str) -> String {
    format!(
        r#"{{"name": "x", "wheel": {{"kind": "hierarchical", "slots": [20]}}, "steps": [{steps}]}}"#
    )
}

#[track_caller]
fn wrong(text: &str, message: &str) {
    let error = Scenario::parse(text).expect_err(text).to_string();
    assert!(error.starts_with(message), "{text}\n  said: {error}\n  not:  {message}");
}

#[track_caller]
fn wrong_step(step: &str, message: &str) {
    wrong(&with_steps(step), message);
}

#[test]
fn the_file() {
    wrong("", "the file is empty: a scenario is a JSON object with");
    wrong(" \n", "the file is empty");
    wrong("\u{feff}{}", "begins with a byte order mark");
    wrong("[]", "must be an object with `name`, `wheel` and `steps`, not an array");
    wrong("{", "the text ends in the middle of this");
    wrong("{} {}", "not JSON: trailing characters at line 1 column 4");
    wrong("{'name': 1}", "not JSON: key must be a string at line 1 column 2");
    wrong("{}", "name: is missing");
    wrong(r#"{"name": 5}"#, "name: must be a string, not 5");
    wrong(r#"{"name": "x"}"#, "wheel: is missing");
    wrong(r#"{"name": "x", "name": "y"}"#, "name: given twice");
    wrong(
        r#"{"name": "x", "speed": 1}"#,
        "speed: unknown field \"speed\": known here are name, about",
    );
    wrong(r#"{"name": "x", "wheel": {"kind": "hashed", "slots": [1]}}"#, "steps: is missing");
}

#[test]
fn the_wheel() {
    let wheel = |wheel: &str| format!(r#"{{"name": "x", "steps": [], "wheel": {wheel}}}"#);
    wrong(&wheel("5"), "wheel: must be an object with `kind` and `slots`, not 5");
    wrong(&wheel("{}"), "wheel.kind: is missing");
    wrong(
        &wheel(r#"{"kind": "round"}"#),
        "wheel.kind: must be \"hierarchical\" or \"hashed\", not the string \"round\"",
    );
    wrong(&wheel(r#"{"kind": "hashed"}"#), "wheel.slots: is missing");
    wrong(
        &wheel(r#"{"kind": "hashed", "slots": 8}"#),
        "wheel.slots: must be an array of numbers of slots",
    );
    wrong(
        &wheel(r#"{"kind": "hashed", "slots": []}"#),
        "wheel.slots: a hashed wheel has one ring: give one number, not 0",
    );
    wrong(
        &wheel(r#"{"kind": "hashed", "slots": [8, 8]}"#),
        "wheel.slots: a hashed wheel has one ring: give one number, not 2",
    );
    wrong(
        &wheel(r#"{"kind": "hashed", "slots": [0]}"#),
        "wheel.slots[0]: must be an integer 1 to 1048576, not 0",
    );
    wrong(
        &wheel(r#"{"kind": "hierarchical", "slots": []}"#),
        "wheel.slots: is empty: give one number a level",
    );
    wrong(
        &wheel(r#"{"kind": "hierarchical", "slots": [1]}"#),
        "wheel.slots[0]: must be an integer 2 to 1048576, not 1",
    );
    wrong(
        &wheel(r#"{"kind": "hierarchical", "slots": [2, 1048577]}"#),
        "wheel.slots[1]: must be an integer 2 to 1048576",
    );
    wrong(
        &wheel(r#"{"kind": "hierarchical", "slots": [20], "tick": 0}"#),
        "wheel.tick: must be an integer 1 to",
    );
    wrong(
        &wheel(r#"{"kind": "hierarchical", "slots": [20], "tick": 1.0}"#),
        "wheel.tick: must be an integer 1 to",
    );
    wrong(
        &wheel(r#"{"kind": "hierarchical", "slots": [20], "start": -1}"#),
        "wheel.start: must be an integer 0 to",
    );
    wrong(
        &wheel(r#"{"kind": "hierarchical", "slots": [20], "start": 18446744073709551616}"#),
        "wheel.start: must be",
    );
}

#[test]
fn the_settings() {
    let with = |more: &str| {
        format!(
            r#"{{"name": "x", "steps": [], "wheel": {{"kind": "hashed", "slots": [1]}}, {more}}}"#
        )
    };
    wrong(
        &with(r#""drive": "fast""#),
        "drive: must be \"tick\" or \"bucket\" or \"due\", not the string \"fast\"",
    );
    wrong(&with(r#""drive": null"#), "drive: must be \"tick\" or \"bucket\" or \"due\", not null");
    wrong(&with(r#""limit": 0"#), "limit: must be an integer 1 to 18446744073709551615, not 0");
    wrong(&with(r#""budget": 0"#), "budget: must be an integer 1 to 18446744073709551615, not 0");
    wrong(
        &with(r#""budget": "2""#),
        "budget: must be an integer 1 to 18446744073709551615, not the string \"2\"",
    );
    wrong(&with(r#""about": 1"#), "about: must be a string, not 1");
}

#[test]
fn the_steps() {
    wrong_step("5", "steps[0]: must be an object with one verb, not 5");
    wrong_step("{}", "steps[0]: has no verb: give one of schedule, cancel");
    wrong_step(r#"{"delay": 5}"#, "steps[0]: has no verb");
    wrong_step(
        r#"{"stop": true}, {"cancel": "A", "advance": 1}"#,
        "steps[1]: has two verbs, cancel and advance",
    );
    wrong_step(r#"{"schedule": 1, "delay": 1}"#, "steps[0].schedule: must be a string, not 1");
    wrong_step(
        r#"{"schedule": "A"}"#,
        "steps[0]: has no due time: give `delay` (from now) or `at`",
    );
    wrong_step(r#"{"schedule": "A", "delay": 1, "at": 1}"#, "steps[0]: has both `delay` and `at`");
    wrong_step(
        r#"{"schedule": "A", "delay": 1.5}"#,
        "steps[0].delay: must be an integer -18446744073709551615 to",
    );
    wrong_step(r#"{"schedule": "A", "delay": 1e3}"#, "steps[0].delay: must be an integer");
    wrong_step(r#"{"schedule": "A", "delay": "1"}"#, "steps[0].delay: must be an integer");
    wrong_step(r#"{"schedule": "A", "delay": [[1]]}"#, "steps[0].delay: must be an integer");
    wrong_step(r#"{"schedule": "A", "delay": null}"#, "steps[0].delay: must be an integer");
    wrong_step(
        r#"{"schedule": "A", "delay": 18446744073709551616}"#,
        "steps[0].delay: must be an integer",
    );
    wrong_step(
        r#"{"schedule": "A", "delay": -18446744073709551616}"#,
        "steps[0].delay: must be an integer",
    );
    wrong_step(
        r#"{"schedule": "A", "at": -1}"#,
        "steps[0].at: must be an integer 0 to 18446744073709551615, not -1",
    );
    wrong_step(
        r#"{"schedule": "A", "at": 1, "every": 0}"#,
        "steps[0].every: must be an integer 1 to",
    );
    wrong_step(
        r#"{"schedule": "A", "at": 1, "then": {}}"#,
        "steps[0].then: must be an array of steps, not an object",
    );
    wrong_step(
        r#"{"reschedule": "A", "at": 1, "every": 1}"#,
        "steps[0].every: does not belong to reschedule",
    );
    wrong_step(r#"{"reschedule": "A"}"#, "steps[0]: has no due time");
    wrong_step(r#"{"cancel": "A", "delay": 1}"#, "steps[0].delay: does not belong to cancel");
    wrong_step(
        r#"{"advance": -1}"#,
        "steps[0].advance: must be an integer 0 to 18446744073709551615, not -1",
    );
    wrong_step(r#"{"stop": false}"#, "steps[0].stop: must be true, not false");
}

#[test]
fn callbacks() {
    let inside =
        |step: &str| with_steps(&format!(r#"{{"schedule": "A", "delay": 1, "then": [{step}]}}"#));
    wrong(
        &inside(r#"{"advance": 5}"#),
        "steps[0].then[0].advance: not allowed inside `then`: only schedule, cancel",
    );
    wrong(&inside(r#"{"expect": {}}"#), "steps[0].then[0].expect: not allowed inside `then`");
    wrong(&inside(r#"{"stop": true}, {"schedule": "B"}"#), "steps[0].then[1]: has no due time");
}

#[test]
fn expectations() {
    let expect = |expect: &str| with_steps(&format!(r#"{{"expect": {expect}}}"#));
    wrong(&expect("[]"), "steps[0].expect: must be an object of what must hold, not an array");
    wrong(&expect(r#"{"pendign": 1}"#), "steps[0].expect.pendign: unknown field");
    wrong(&expect(r#"{"pending": -1}"#), "steps[0].expect.pending: must be an integer 0 to");
    wrong(&expect(r#"{"pending": null}"#), "steps[0].expect.pending: must be an integer 0 to");
    wrong(&expect(r#"{"next_due": "1"}"#), "steps[0].expect.next_due: must be an integer 0 to");
    wrong(&expect(r#"{"place": "L1[2]"}"#), "steps[0].expect.place: must be an object of places");
    wrong(&expect(r#"{"place": {"A": 5}}"#), "steps[0].expect.place.A: must be a string, not 5");
    wrong(
        &expect(r#"{"place": {"A b": "L1"}}"#),
        "steps[0].expect.place[\"A b\"]: must be a place such as \"L2[1]\"",
    );
    wrong(
        &expect(r#"{"place": {"A": "L1[1]", "A": "L1[2]"}}"#),
        "steps[0].expect.place.A: given twice",
    );
    wrong(
        &expect(r#"{"rounds": {"A": "1"}}"#),
        "steps[0].expect.rounds.A: must be an integer 0 to",
    );
    wrong(&expect(r#"{"fired": {"A": 1}}"#), "steps[0].expect.fired: must be an array of pairs");
    wrong(
        &expect(r#"{"fired": ["A"]}"#),
        "steps[0].expect.fired[0]: must be a pair such as [\"A\", 24]",
    );
    wrong(
        &expect(r#"{"fired": [["A"]]}"#),
        "steps[0].expect.fired[0]: must be a pair such as [\"A\", 24], not 1 values",
    );
    wrong(&expect(r#"{"fired": [["A", 1, 2]]}"#), "steps[0].expect.fired[0]: must be a pair");
    wrong(
        &expect(r#"{"fired": [[1, "A"]]}"#),
        "steps[0].expect.fired[0][0]: must be a string, not 1",
    );
    wrong(&expect(r#"{"wakes": 1.0}"#), "steps[0].expect.wakes: must be an integer 0 to");
}

/// A step with `then` nested `depth` times.
fn nested(depth: usize) -> String {
    let open = r#"{"schedule": "A", "delay": 1, "then": ["#.repeat(depth);
    with_steps(&format!(r#"{open}{{"cancel": "A"}}{}"#, "]}".repeat(depth)))
}

#[test]
fn fifty_deep_and_no_deeper() {
    assert!(Scenario::parse(&nested(50)).is_ok());
    for depth in [51, 52, 55, 60, 64, 100, 10_000, 1_000_000] {
        let error = Scenario::parse(&nested(depth)).unwrap_err();
        assert_eq!(
            error.message.split(" at line").next(),
            Some("nested too deep: `then` may be nested at most 50 deep")
        );
        assert!(error.place.starts_with("steps[0].then[0].then[0]"), "{depth}: {error}");
        assert!(error.to_string().len() < 300, "{depth}: {error}");
    }
    for hostile in ["[", "{\"a\":", "{\"delay\":", "{\"schedule\": \"A\", \"delay\": ["] {
        assert!(Scenario::parse(&hostile.repeat(1_000_000)).is_err());
    }
}

#[test]
fn the_widest_numbers() {
    let text = with_steps(
        r#"{"schedule": "A", "delay": -18446744073709551615}, {"schedule": "B", "delay": 18446744073709551615},
           {"schedule": "C", "at": 18446744073709551615}, {"schedule": "D", "delay": -9223372036854775810}"#,
    );
    let scenario = Scenario::parse(&text).unwrap();
    let due = |clock: u64| {
        let due = |step: &Step| match step {
            Step::Schedule(schedule) => schedule.when.from(clock),
            other => panic!("{other:?}"),
        };
        scenario.steps.iter().map(due).collect::<Vec<_>>()
    };
    assert_eq!(due(5), [0, u64::MAX, u64::MAX, 0], "clamped, never wrapped");
    assert_eq!(due(u64::MAX), [0, u64::MAX, u64::MAX, 9_223_372_036_854_775_805]);
    assert_eq!(When::Delay(-3).from(10), 7);
}

#[test]
fn defaults() {
    let scenario = Scenario::parse(&with_steps("")).unwrap();
    assert_eq!((scenario.wheel.tick.get(), scenario.wheel.start), (1, 0));
    assert_eq!(scenario.drive, tourbillon_cli::scenario::Drive::Due);
    assert!(scenario.limit.is_none() && scenario.budget.is_none() && scenario.about.is_none());
}
