//! Further checks of the server, for `test --long`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::shell::{Outcome, capture_output, cargo, root, run};

/// Runs more rounds of the kill -9 test of the server, which checks that every acknowledged change survives.
pub(crate) fn kill_rounds() -> Outcome {
    let mut test = cargo(&["test", "-p", "tourbillon-cli", "--test", "serve"]);
    test.args(["--", "nothing_that_was_answered", "--nocapture"]);
    run(test.env("TOURBILLON_ROUNDS", "300"))
}

/// Builds the command with the README's options, and runs the README's requests.
pub(crate) fn readme() -> Outcome {
    run(&mut cargo(&["build", "--release", "-p", "tourbillon-cli"]))?;
    let mut test = cargo(&["test", "--release", "-p", "tourbillon-cli", "--test", "serve"]);
    run(test.args(["--", "the_story_of_the_readme"]))
}

/// Builds the Dockerfile's static binary and runs it as server and as client.
///
/// The client runs in an empty root file system and resolves the server's host name.
pub(crate) fn static_binary() -> Outcome {
    let tuple = capture_output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let folder = root().join("target/static");
    let mut build = cargo(&["build", "--release", "--locked", "-p", "tourbillon-cli", "--target"]);
    build.arg(tuple.trim()).arg("--target-dir").arg(&folder);
    run(build.env("RUSTFLAGS", "-C target-feature=+crt-static"))?;
    let program = folder.join(tuple.trim()).join("release/tourbillon");
    let needed = capture_output(Command::new("readelf").arg("-ld").arg(&program))?;
    if ["INTERP", "(NEEDED)"].iter().any(|word| needed.contains(word)) {
        return Err(format!("{} needs shared libraries:\n{needed}", program.display()));
    }
    let server = Server::of(&program, &root().join("target/tmp/static"))?;
    // A host name instead of an address, because the binary must resolve it without NSS modules.
    let by_name = server.address.replace("127.0.0.1", "localhost");
    let empty = folder.join("empty");
    let fail = |error: std::io::Error| format!("{}: {error}", empty.display());
    std::fs::create_dir_all(empty.join("etc")).map_err(fail)?;
    std::fs::write(empty.join("etc/hosts"), "127.0.0.1 localhost\n").map_err(fail)?;
    std::fs::copy(&program, empty.join("tourbillon")).map_err(fail)?;
    let mut inside = Command::new("unshare");
    inside.args(["--map-root-user", "--root"]).arg(&empty).args(["/tourbillon", "stats"]);
    run(inside.args(["--server", &by_name]))
}

/// A server process, killed on drop.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Outcome<Self> {
        Server::of(
            &root().join("target/release/tourbillon"),
            &root().join("target/tmp/schemathesis"),
        )
    }

    fn of(program: &Path, data: &Path) -> Outcome<Self> {
        let _ = std::fs::remove_dir_all(data);
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut process = spawned.map_err(|error| format!("the server: {error}"))?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let address = line.trim().strip_prefix("tourbillon listening on ").map(str::to_owned);
        let address = address.ok_or("the server does not start")?;
        Ok(Server { process, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs schemathesis: sends valid and invalid requests and checks the answers against the OpenAPI document.
///
/// The check that every request which matches the schema is accepted is disabled, because the document states only in
/// words which fields exclude or require each other.
pub(crate) fn schemathesis() -> Outcome {
    let place = root().join("target/schemathesis");
    let tool = place.join("bin/schemathesis");
    if !tool.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        run(Command::new(place.join("bin/pip")).args(["-q", "install", "schemathesis>=4,<5"]))?;
    }
    let server = Server::start()?;
    let mut command = Command::new(tool);
    command.arg("run").arg(format!("{}/openapi.json", server.address));
    command.args(["--max-time", "180", "--phases", "examples,coverage,fuzzing,stateful"]);
    command.args(["--exclude-checks", "positive_data_acceptance", "--continue-on-failure"]);
    // Excluded, because it is an endless stream.
    command.args(["--exclude-path", "/v1/events", "--request-timeout", "5", "--no-color"]);
    run(command.current_dir(root().join("target")))
}
