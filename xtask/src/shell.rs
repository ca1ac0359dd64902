//! Running other programs.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The error is a message for people.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask has a parent folder").to_path_buf()
}

/// A cargo command, run at the root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

fn words(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    format!("{program} {}", arguments.join(" "))
}

/// Runs a command with its output visible.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let words = words(command);
    println!("── {words}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{words}` ended with {status}")),
        Err(error) => Err(format!("`{words}` could not be run: {error}")),
    }
}

/// The crates whose tests run.
///
/// `bench` has no tests, and would build its peers for nothing. xtask's own tests run separately.
pub(crate) const TESTED: &[&str] =
    &["--workspace", "--exclude", "bench", "--exclude", "xtask", "--all-features"];

/// A nextest command with the build of `cargo xtask test`: planted faults built in, none active.
pub(crate) fn nextest(verb: &str, what: &[&str]) -> Command {
    let mut command = cargo(&["nextest", verb]);
    with_faults(command.args(what));
    command
}

/// Makes cargo build the crates with their planted faults. A process activates one by its environment.
///
/// xtask serves as the compiler's wrapper and sets the flag only for the workspace's crates, so dependencies are not
/// rebuilt.
pub(crate) fn with_faults(command: &mut Command) -> &mut Command {
    command.env("RUSTC_WORKSPACE_WRAPPER", std::env::current_exe().unwrap_or_default())
}

/// Acts as the compiler's wrapper, which cargo calls as `xtask /path/to/rustc ARGUMENTS`.
pub(crate) fn as_wrapper(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut rustc = Command::new(words.next().unwrap_or_default());
    let done = rustc.args(words).args(["--cfg", "planted"]).status();
    let code = done.ok().and_then(|status| u8::try_from(status.code()?).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// One of the two output streams of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

/// Runs a command. `see` gets each line of `stream` and returns whether to pass it on.
pub(crate) fn run_seen(
    command: &mut Command,
    stream: Stream,
    mut see: impl FnMut(&str) -> bool,
) -> Outcome {
    let words = words(command);
    println!("── {words}");
    match stream {
        Stream::Output => command.stdout(Stdio::piped()),
        Stream::Error => command.stderr(Stdio::piped()),
    };
    let mut child =
        command.spawn().map_err(|error| format!("`{words}` could not be run: {error}"))?;
    let pipe: Box<dyn Read> = match stream {
        Stream::Output => Box::new(child.stdout.take().expect("it is piped")),
        Stream::Error => Box::new(child.stderr.take().expect("it is piped")),
    };
    for line in BufReader::new(pipe).lines() {
        let line = line.map_err(|error| format!("`{words}`: {error}"))?;
        if see(&line) {
            println!("{line}");
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{words}` ended with {status}")),
        Err(error) => Err(format!("`{words}`: {error}")),
    }
}

/// Runs a command. Returns its output, including standard error, and whether it succeeded.
pub(crate) fn capture(command: &mut Command) -> Outcome<(String, bool)> {
    let words = words(command);
    let output =
        command.output().map_err(|error| format!("`{words}` could not be run: {error}"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok((text, output.status.success()))
}

/// Runs a command with its standard error visible. Returns its standard output.
pub(crate) fn capture_output(command: &mut Command) -> Outcome<String> {
    let words = words(command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("`{words}` could not be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{words}` ended with {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command and passes each line of its output to `see`.
///
/// After `limit` this fails, and the command is killed with all processes that it started.
pub(crate) fn run_within(
    command: &mut Command,
    limit: Duration,
    mut see: impl FnMut(&str),
) -> Outcome {
    let words = words(command);
    println!("── {words}");
    let Some((text, fine)) = capture_within(command.stderr(Stdio::inherit()), limit)? else {
        return Err(format!("`{words}` hangs: it took longer than {} s", limit.as_secs()));
    };
    for line in text.lines() {
        see(line);
        println!("{line}");
    }
    if fine { Ok(()) } else { Err(format!("`{words}` failed")) }
}

/// Runs a command. Returns its standard output and whether it succeeded.
///
/// Returns `None` if it took longer than `limit` and was killed with all processes that it started.
pub(crate) fn capture_within(
    command: &mut Command,
    limit: Duration,
) -> Outcome<Option<(String, bool)>> {
    let words = words(command);
    let failed = |error: std::io::Error| format!("`{words}` could not be run: {error}");
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().map_err(failed)?;
    let mut output = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            let text = reader.join().unwrap_or_default();
            return Ok(Some((text, status.success())));
        }
        if began.elapsed() > limit {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status().map_err(failed)?;
            child.wait().map_err(failed)?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The files that git tracks.
pub(crate) fn tracked() -> Outcome<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let (text, fine) = capture(&mut git)?;
    if !fine {
        return Err(format!("git does not list the files: {text}"));
    }
    Ok(text.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect())
}
