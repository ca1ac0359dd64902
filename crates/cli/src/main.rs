//! The command `tourbillon`: owns the terminal and the exit code, and leaves the rest to the library.
//!
//! Exit codes: 0 success, 1 an expectation failed, 2 bad input or output that cannot be written. `serve` has its own: 0
//! stopped, 1 failed, 2 a wrong command line or setting.
#![forbid(unsafe_code)]

mod args;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tokio::sync::mpsc;
use tourbillon_cli::cron;
use tourbillon_cli::demo;
use tourbillon_cli::remote::{self, Failure};
use tourbillon_cli::replay::{self, Verdict};
use tourbillon_cli::serve::{self, ServeError};
use tourbillon_cli::store::{self, StoreProblem};
use tourbillon_cli::trace;
use tourbillon_client::Error;

fn main() -> ExitCode {
    let done = match args::Cli::parse().command {
        args::Command::Check(args) => check_store(&args),
        args::Command::Cron(args) => show(cron::preview(&args.settings())),
        args::Command::Demo(args) => demo_page(&args),
        args::Command::Dump(args) => dump_store(&args),
        args::Command::Load(args) => load_store(&args),
        args::Command::Replay(args) => replay_files(&args),
        args::Command::Serve(args) => serve_timers(args),
        args::Command::Trace(args) => show(trace::trace(&args.settings())),
        args::Command::Remote(remote) => ask_server(remote),
        args::Command::Completions { shell } => completions(shell),
        args::Command::Man { directory } => man(&directory),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // The reader has closed the pipe, as in `tourbillon replay FILE | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot write: {error}"));
            ExitCode::from(Verdict::Error.code())
        }
    }
}

/// Serves the page until a signal stops it.
fn demo_page(args: &args::Demo) -> io::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = match demo::listen(args.listen, args.port).await {
            Ok(listener) => listener,
            Err(error) => {
                let port = args.port.unwrap_or(demo::PORT);
                complain(&format!("cannot listen on {}, port {port}: {error}", args.listen));
                return Ok(Verdict::Error.code());
            }
        };
        // Registered before the address is printed, so that no signal is missed.
        let stop = stop_signal()?;
        let mut out = io::stdout().lock();
        writeln!(out, "http://{}/", listener.local_addr()?)?;
        out.flush()?;
        tokio::select! {
            () = demo::serve(listener) => {}
            () = stop => {}
        }
        Ok(Verdict::Passed.code())
    });
    // A session that is still running has no reader any more.
    runtime.shutdown_background();
    served
}

/// Serves durable timers until a signal stops it.
fn serve_timers(args: args::Serve) -> io::Result<u8> {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_target(false);
    if args.log_json {
        log.json().init();
    } else {
        log.with_ansi(false).init();
    }
    let settings = args.settings();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    let served = runtime.block_on(async {
        // Registered before the address is printed, so that no signal is missed.
        let stop = stop_signal()?;
        let ready = |scheme: &str, address| {
            let mut out = io::stdout().lock();
            writeln!(out, "tourbillon listening on {scheme}://{address}")?;
            out.flush()
        };
        io::Result::Ok(serve::run(settings, stop, reload_signal()?, ready).await)
    });
    runtime.shutdown_background();
    match served? {
        Ok(()) => Ok(0),
        Err(wrong) => {
            complain(&wrong.to_string());
            Ok(if matches!(wrong, ServeError::Settings(_)) { 2 } else { 1 })
        }
    }
}

/// Completes at SIGINT or SIGTERM (Ctrl-C on other systems).
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Yields an item for each SIGHUP.
#[cfg(unix)]
fn reload_signal() -> io::Result<mpsc::Receiver<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())?;
    let (send, receive) = mpsc::channel(1);
    tokio::spawn(
        async move { while hangup.recv().await.is_some() && send.send(()).await.is_ok() {} },
    );
    Ok(receive)
}

/// Never yields: other systems have no such signal.
#[cfg(not(unix))]
fn reload_signal() -> io::Result<mpsc::Receiver<()>> {
    Ok(mpsc::channel(1).1)
}

/// Completes at SIGINT or SIGTERM (Ctrl-C on other systems).
#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    })
}

fn replay_files(args: &args::Replay) -> io::Result<u8> {
    // A replay may print millions of lines: a large buffer avoids one write and one lock for each.
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let verdict = replay::files(&args.files, args.quiet, &mut out, &mut io::stderr().lock())?;
    Ok(verdict.code())
}

fn check_store(args: &args::Check) -> io::Result<u8> {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    ended(store::check(&args.directory, args.repair, &mut out, &mut err))
}

fn dump_store(args: &args::Dump) -> io::Result<u8> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    ended(store::dump(&args.directory, &mut out, &mut io::stderr()))
}

fn load_store(args: &args::Load) -> io::Result<u8> {
    let (name, err) = (args.file.to_string_lossy(), &mut io::stderr());
    let loaded = if name == "-" {
        store::load(&args.directory, "standard input", io::stdin().lock(), err)
    } else {
        match File::open(&args.file) {
            Ok(file) => store::load(&args.directory, &name, BufReader::new(file), err),
            Err(error) => Err(StoreProblem::Said(format!("{name} cannot be read: {error}"))),
        }
    };
    ended(loaded.map(|_| Verdict::Passed))
}

/// Runs a command against a server. Exit code 1: it refused or did not answer; 2: an argument is wrong.
fn ask_server(args: args::Remote) -> io::Result<u8> {
    let ask = match args.ask() {
        Ok(ask) => ask,
        Err(wrong) => {
            complain(&wrong);
            return Ok(2);
        }
    };
    let (server, mut out) = (ask.server.clone(), BufWriter::new(io::stdout().lock()));
    let done = remote::run(ask, &mut out);
    out.flush()?;
    match done {
        Ok(()) => Ok(0),
        Err(Failure::Output(error)) => Err(error),
        Err(Failure::Said(wrong)) => {
            complain(&wrong);
            Ok(1)
        }
        Err(Failure::Server(Error::Argument(wrong))) => {
            complain(&wrong);
            Ok(2)
        }
        Err(Failure::Server(Error::Unreachable(why))) => {
            let help = "start one with `tourbillon serve`, or give its address with --server";
            complain(&format!("no server at {server}: {why}; {help}"));
            Ok(1)
        }
        Err(Failure::Server(error)) => {
            complain(&error.to_string());
            Ok(1)
        }
    }
}

fn completions(shell: clap_complete::Shell) -> io::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::Cli::command(), "tourbillon", &mut script);
    io::stdout().write_all(&script)?;
    Ok(0)
}

/// Writes a man page for the command, and one for each subcommand.
fn man(directory: &std::path::Path) -> io::Result<u8> {
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(args::Cli::command(), directory));
    match written {
        Ok(_) => Ok(0),
        Err(error) => {
            complain(&format!("{}: {error}", directory.display()));
            Ok(2)
        }
    }
}

/// The exit code of a command on a store.
fn ended(outcome: Result<Verdict, StoreProblem>) -> io::Result<u8> {
    match outcome {
        Ok(verdict) => Ok(verdict.code()),
        Err(StoreProblem::Output(error)) => Err(error),
        Err(StoreProblem::Said(message)) => {
            complain(&message);
            Ok(Verdict::Error.code())
        }
    }
}

/// Prints a text or an error.
fn show(told: Result<Vec<u8>, String>) -> io::Result<u8> {
    match told {
        Ok(text) => {
            // Colours on a terminal, unless NO_COLOR is set; plain text elsewhere.
            let mut out = anstream::AutoStream::auto(io::stdout().lock());
            out.write_all(&text)?;
            out.flush()?;
            Ok(Verdict::Passed.code())
        }
        Err(message) => {
            complain(&message);
            Ok(Verdict::Error.code())
        }
    }
}

fn complain(message: &str) {
    // If standard error cannot be written either, only the exit code remains.
    let _ = writeln!(io::stderr(), "tourbillon: {message}");
}
