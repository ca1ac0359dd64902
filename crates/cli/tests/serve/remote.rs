//! The commands against a running server: what they print, and their exit codes. In real time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::served::{Scratch, Server};

/// Starts a server. Returns its address in the form that the commands take.
fn serve(name: &str, arguments: &[&str]) -> (Scratch, Server, String) {
    let data = Scratch::new(name);
    let server = Server::start(data.path(), arguments);
    let url = format!("http://{}", server.address);
    (data, server, url)
}

fn command(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tourbillon"));
    command.args(arguments).env("TOURBILLON_SERVER", url).env_remove("TOURBILLON_TOKEN");
    command
}

/// Runs a command. Returns its exit code, stdout and stderr.
fn run(url: &str, arguments: &[&str]) -> (i32, String, String) {
    ended(&mut command(url, arguments))
}

fn ended(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Runs a command that must succeed. Returns its output.
fn good(url: &str, arguments: &[&str]) -> String {
    let (code, out, err) = run(url, arguments);
    assert_eq!((code, &*err), (0, ""), "{arguments:?}");
    out
}

fn json(url: &str, arguments: &[&str]) -> Value {
    let out = good(url, &[arguments, &["--json"]].concat());
    assert_eq!(out.lines().count(), 1, "{arguments:?}: {out}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_timer_from_the_command_line() {
    let (_data, _server, url) = serve("remote-timer", &[]);
    let payload = r#"{"to": "ann"}"#;
    let schedule = ["schedule", "mails", "--key", "welcome", "--in", "1h", "--payload", payload];
    let out = good(&url, &schedule);
    for line in ["queue         mails", "key           welcome", "state         scheduled", payload]
    {
        assert!(out.contains(line), "{out}");
    }
    assert!(out.contains("in 59m") || out.contains("in 1h"), "{out}");
    let (code, _, err) = run(&url, &schedule);
    assert!(code == 1 && err.contains("welcome"), "{code}: {err}");
    let kept = json(&url, &[&schedule[..], &["--on-conflict", "keep"]].concat());
    let got = json(&url, &["get", "mails", "welcome"]);
    assert_eq!((&got["generation"], &got["payload"]["to"]), (&kept["generation"], &"ann".into()));
    let moved = json(&url, &["move", "mails", "welcome", "--at", "2100-01-01T00:00:00Z"]);
    assert_eq!(moved["due"], "2100-01-01T00:00:00.000Z");
    assert_eq!(json(&url, &["run", "mails", "welcome"])["state"], "due");
    let got = json(&url, &["receive", "mails", "--wait", "5s", "--ack"]);
    assert_eq!((&got["key"], &got["attempt"]), (&"welcome".into(), &1.into()));
    assert_eq!(json(&url, &["get", "mails", "welcome"])["state"], "done");
    assert_eq!(good(&url, &["receive", "mails", "--json"]), "");
    let every = ["schedule", "mails", "--every", "1h", "--times", "3", "--attempts", "2"];
    let every = json(&url, &every);
    assert_eq!((&every["every"], &every["times"]), (&"1h".into(), &3.into()));
    let cron = ["schedule", "mails", "--cron", "30 2 * * *", "--zone", "Europe/Berlin"];
    assert!(good(&url, &cron).contains("30 2 * * * in Europe/Berlin"));
}

#[test]
fn many_timers_from_the_command_line() {
    let (_data, server, url) = serve("remote-many", &[]);
    let one = |n| format!(r#"{{"key":"k{n:04}","in":"1h"}}"#);
    let all: Vec<String> = (0..2500).map(one).collect();
    let body = format!(r#"{{"timers":[{}]}}"#, all.join(","));
    assert_eq!(server.ask("POST", "/v1/queues/q/timers", &body).0, 201);
    // A page of a list has at most 1000 timers, so this takes several.
    assert_eq!(good(&url, &["list", "q", "-n", "2400", "--json"]).lines().count(), 2400);
    let table = good(&url, &["list", "q", "--prefix", "k00", "-n", "2"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("key    state      next attempt"), "{table}");
    assert!(lines.len() == 3 && lines[1].starts_with("k0000  scheduled"), "{table}");
    let (code, out, err) = run(&url, &["cancel", "q", "k0000", "k0001", "nobody"]);
    assert_eq!((code, &*out), (1, "2 cancelled\n0 delivering\n"));
    assert!(err.contains("there is no timer nobody"), "{err}");
    let told = json(&url, &["cancel", "q", "--prefix", "k"]);
    assert_eq!(told, serde_json::json!({ "cancelled": 2498, "delivering": 0 }));
    assert_eq!(good(&url, &["list", "q", "--state", "scheduled", "--json"]), "");
    let (code, _, err) = run(&url, &["list", "q", "--state", "tired"]);
    assert!(code == 1 && err.contains("state"), "{code}: {err}");
}

#[test]
fn the_dead_live_again_and_text_of_others_is_harmless() {
    let (_data, server, url) = serve("remote-dead", &[]);
    good(&url, &["schedule", "q", "--key", "bad", "--in", "0s", "--attempts", "1"]);
    let token = json(&url, &["receive", "q", "--wait", "5s"])["token"].clone();
    let error = "no \\u001b[2Jway \\u202eback";
    let body = format!(r#"{{"tokens":[{token}],"error":"{error}"}}"#);
    assert_eq!(server.ask("POST", "/v1/queues/q/nack", &body).1["nacked"], 1);
    let out = good(&url, &["list", "q", "--state", "dead"]);
    assert!(out.contains("no \u{fffd}[2Jway \u{fffd}back"), "{out:?}");
    let out = good(&url, &["stats"]);
    assert!(out.starts_with("queue  scheduled  due  delivering  dead"), "{out}");
    assert_eq!(json(&url, &["stats", "q"])["counts"]["dead"], 1);
    assert_eq!(good(&url, &["redrive", "q"]), "1 revived\n");
    assert_eq!(json(&url, &["stats", "q"])["counts"]["dead"], 0);
    let (code, _, err) = run(&url, &["stats", "nowhere"]);
    assert!(code == 1 && err.contains("nowhere"), "{code}: {err}");
}

#[test]
fn events_are_printed_as_they_happen() {
    let (_data, _server, url) = serve("remote-events", &[]);
    let mut events = command(&url, &["events", "q"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(events.stdout.take().unwrap()).lines();
    // Nothing signals when the stream has started, so timers are created until one shows up in it.
    let (seen, first) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || seen.send(lines.next()));
    let line = loop {
        good(&url, &["schedule", "q", "--in", "1h"]);
        if let Ok(line) = first.try_recv() {
            break line.unwrap().unwrap();
        }
    };
    assert!(line.contains("  scheduled  q  ~"), "{line}");
    events.kill().unwrap();
    events.wait().unwrap();
    reader.join().unwrap().unwrap();
}

#[test]
fn tokens_come_from_a_file_or_the_environment() {
    let folder = Scratch::new("remote-tokens");
    std::fs::create_dir_all(folder.path()).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tokens = file("tokens", "ann:secret:read\nbob:hidden:write\n");
    let (_data, _server, url) = serve("remote-access", &["--token-file", &tokens]);
    let (code, _, err) = run(&url, &["stats"]);
    assert!(code == 1 && err.contains("token"), "{code}: {err}");
    let ann = file("ann", "secret\n");
    good(&url, &["stats", "--token-file", &ann]);
    let (code, _, err) = run(&url, &["schedule", "q", "--in", "1s", "--token-file", &ann]);
    assert!(code == 1 && err.contains("read"), "{code}: {err}");
    let mut bob = command(&url, &["schedule", "q", "--in", "1s"]);
    assert_eq!(ended(bob.env("TOURBILLON_TOKEN", "hidden")).0, 0);
    let (code, _, err) = run(&url, &["stats", "--token-file", "/nowhere"]);
    assert!(code == 2 && err.contains("--token-file: /nowhere cannot be read"), "{code}: {err}");
}

#[test]
fn what_cannot_be_asked_is_said() {
    let (_data, _server, url) = serve("remote-wrong", &[]);
    let nobody = "http://127.0.0.1:1";
    for (server, arguments, code, said) in [
        (nobody, &["stats"][..], 1, "start one with `tourbillon serve`"),
        ("localhost:7420", &["stats"], 2, "give http://HOST:PORT"),
        (&url, &["schedule", "q"], 2, "<--in <DURATION>"),
        (&url, &["schedule", "q", "--in", "1s", "--at", "2100-01-01T00:00:00Z"], 2, "--at"),
        (&url, &["schedule", "q", "--in", "soon"], 2, "give a duration such as 250ms"),
        (&url, &["schedule", "q", "--at", "noon"], 2, "give a moment such as 2030-01-01T12:00:00Z"),
        (&url, &["schedule", "q", "--in", "1s", "--payload", "{"], 2, "JSON"),
        (&url, &["schedule", "a b", "--in", "1s"], 1, "queue"),
        (&url, &["get", "q", "nobody"], 1, "nobody"),
        (&url, &["move", "q", "k"], 2, "<--in <DURATION>"),
        (&url, &["cancel", "q"], 2, "<KEYS>"),
        (&url, &["top"], 1, "`top` needs a terminal"),
    ] {
        let (got, out, err) = run(server, arguments);
        assert_eq!((got, &*out), (code, ""), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
    }
}

#[test]
fn a_payload_comes_from_the_standard_input() {
    let (_data, _server, url) = serve("remote-stdin", &[]);
    let arguments = ["schedule", "q", "--in", "1h", "--json", "--payload-file", "-"];
    let mut child =
        command(&url, &arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let large = format!("[\"{}\"]", "x".repeat(200_000));
    child.stdin.take().unwrap().write_all(large.as_bytes()).unwrap();
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(out.contains(&large), "{}", out.len());
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let commands = [
        "cancel", "check", "cron", "demo", "dump", "events", "get", "list", "load", "move",
        "receive", "redrive", "replay", "run", "schedule", "serve", "stats", "top", "trace",
    ];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good("", &["completions", shell]);
        assert!(commands.iter().all(|name| script.contains(name)), "{shell}");
        assert!(script.contains("on-conflict"), "{shell}");
    }
    let folder = Scratch::new("remote-man");
    good("", &["man", folder.path().to_str().unwrap()]);
    for name in commands {
        let page = std::fs::read_to_string(folder.path().join(format!("tourbillon-{name}.1")));
        assert!(page.unwrap().contains(".SH NAME"), "{name}");
    }
    assert!(folder.path().join("tourbillon.1").exists());
    let (code, _, err) = run("", &["man", Path::new("/proc/nowhere").to_str().unwrap()]);
    assert!(code == 2 && err.contains("/proc/nowhere"), "{code}: {err}");
}
