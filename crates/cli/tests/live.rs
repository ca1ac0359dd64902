//! A live run that receives its steps one at a time prints the same lines as a replay of all of them; and so does one
//! whose clock advances from stop to stop, as the live page does.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tourbillon_cli::replay::{JsonLines, Live, run};
use tourbillon_cli::scenario::Scenario;

/// Every scenario that should pass: its name, its text without steps, and its steps without expectations.
fn scenarios() -> Vec<(String, String, Vec<Value>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut all = Vec::new();
    for folder in ["examples", "differs", "bugs", "rules"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            // This JSON reader cannot hold that one number. A smaller one is also in the past.
            let text =
                fs::read_to_string(&path).unwrap().replace("-18446744073709551615", "-1000000");
            let mut scenario: Value = serde_json::from_str(&text).unwrap();
            let steps = scenario["steps"].as_array().unwrap().clone();
            let steps = steps.into_iter().filter(|step| step.get("expect").is_none()).collect();
            scenario["steps"] = json!([]);
            all.push((path.display().to_string(), scenario.to_string(), steps));
        }
    }
    assert!(all.len() > 50, "{} scenarios", all.len());
    all
}

fn replayed(text: &str, steps: &[Value]) -> String {
    let mut whole: Value = serde_json::from_str(text).unwrap();
    whole["steps"] = json!(steps);
    let mut lines = JsonLines(Vec::new());
    run(&Scenario::parse(&whole.to_string()).unwrap(), &mut lines).unwrap();
    String::from_utf8(lines.0).unwrap()
}

fn live(text: &str) -> Live {
    Live::new(&Scenario::parse(text).unwrap()).unwrap()
}

#[test]
fn step_by_step_is_all_at_once() {
    for (name, text, steps) in scenarios() {
        let mut live = live(&text);
        let mut lines = String::new();
        for step in &steps {
            live.tell(&json!([step]).to_string()).unwrap();
            lines += &live.take_lines();
        }
        assert_eq!(lines + &live.done(), replayed(&text, &steps), "{name}");
    }
}

#[test]
fn stop_by_stop_is_all_at_once() {
    for (name, text, steps) in scenarios() {
        let mut live = live(&text);
        let mut lines = String::new();
        for step in &steps {
            if let Some(to) = step["advance"].as_u64() {
                while let Some(stop) = live.next_stop().filter(|stop| *stop < to) {
                    live.tell(&json!([{ "advance": stop }]).to_string()).unwrap();
                }
            }
            live.tell(&json!([step]).to_string()).unwrap();
            lines += &live.take_lines();
        }
        assert_eq!(lines + &live.done(), replayed(&text, &steps), "{name}");
    }
}

#[test]
fn what_is_seen_is_where_it_is() {
    let mut live = live(
        r#"{"name":"x","wheel":{"kind":"hierarchical","slots":[20]},"drive":"bucket","steps":[]}"#,
    );
    live.tell(
        r#"[{"schedule":"A","delay":450},{"schedule":"B","delay":3},{"schedule":"C","delay":9}]"#,
    )
    .unwrap();
    let see = |live: &mut Live| {
        let mut seen = live.look(|seen| match seen.place {
            Some(place) => format!("{} {place}", seen.name),
            None => format!("{} {}", seen.name, if seen.pending { "due" } else { "gone" }),
        });
        seen.sort();
        seen
    };
    assert_eq!(see(&mut live), ["A L3[1]", "B L1[3]", "C L1[9]"]);
    assert_eq!(see(&mut live), Vec::<String>::new(), "nothing has changed");
    live.tell(r#"[{"cancel":"C"},{"advance":400},{"schedule":"D","delay":0}]"#).unwrap();
    assert_eq!(see(&mut live), ["A L2[2]", "B gone", "C gone", "D due"]);
    assert_eq!(
        (live.next_stop(), live.empty_wakes()),
        (Some(400), 1),
        "D is due, and A was handed down"
    );
    live.tell(r#"[{"advance":450}]"#).unwrap();
    assert_eq!((live.next_stop(), live.empty_wakes(), live.totals().wakes), (None, 2, 5));
}
