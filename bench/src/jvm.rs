//! Peers on the JVM: the JDK's ScheduledThreadPoolExecutor, Netty's HashedWheelTimer, Kafka's SystemTimer.
//!
//! `bench/java` holds one program for all of them, compiled by `javac` once per run. A missing jar or JDK is a line in
//! the report. The JDK and Netty come from Debian (`--install-peers`), Kafka's jars from the command line.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::League;
use crate::league::{Column, Contestant, Kind, Readings, Turn};

const SOURCES: [(&str, &str); 3] = [
    ("Timers.java", include_str!("../java/Timers.java")),
    ("Netty.java", include_str!("../java/Netty.java")),
    ("Kafka.java", include_str!("../java/Kafka.java")),
];
/// The path of Debian's Netty, and of the library that it needs.
const NETTY: [&str; 2] = ["/usr/share/java/netty-common.jar", "/usr/share/java/jctools-core.jar"];
const DEBIAN: [&str; 2] = ["default-jdk-headless", "libnetty-java"];
/// The heap: enough for a million timers, and of fixed size, so that it does not grow during a measurement.
const HEAP: [&str; 2] = ["-Xms2g", "-Xmx2g"];

const JDK_NAME: &str = "JDK ScheduledThreadPool";
const NETTY_NAME: &str = "Netty HashedWheelTimer";
const KAFKA_NAME: &str = "Kafka SystemTimer";

pub fn contestants() -> Vec<Contestant> {
    vec![
        of(JDK_NAME, "a thread a core, removeOnCancelPolicy; heap 2 GiB", |_| no_jdk()),
        of(NETTY_NAME, "tick 1 ms, 512 slots, its own thread; heap 2 GiB", |_| {
            no_jdk().or_else(|| missing_jar(&NETTY))
        }),
        of(KAFKA_NAME, "tick 1 ms, 20 slots, one executor; heap 2 GiB", |asked| {
            let unnamed = "give its jars: --kafka-jar kafka-server-common.jar:kafka-clients.jar:…";
            let jars: Vec<&str> = asked.kafka_jar.iter().flat_map(|jars| jars.split(':')).collect();
            let absent = || jars.is_empty().then(|| unnamed.to_owned());
            no_jdk().or_else(absent).or_else(|| missing_jar(&jars))
        }),
    ]
}

fn of(
    name: &'static str,
    settings: &'static str,
    missing: fn(&League) -> Option<String>,
) -> Contestant {
    Contestant { name, kind: Kind::Peer, settings, run, absent, missing }
}

fn absent(row: &str, _: &Column) -> Option<&'static str> {
    match row {
        "trace" | "pair" | "fire" | "idle" | "lateness" => None,
        "reschedule" => Some("has no verb that moves a timer"),
        _ => Some(""),
    }
}

fn no_jdk() -> Option<String> {
    let runs = Command::new("javac").arg("-version").output().is_ok_and(|it| it.status.success());
    (!runs).then(|| "there is no javac; --install-peers installs it on Debian".to_owned())
}

fn missing_jar(jars: &[&str]) -> Option<String> {
    let missing = jars.iter().find(|jar| !Path::new(jar).exists())?;
    Some(format!("there is no {missing}; --install-peers installs Netty on Debian"))
}

/// Installs the peers that Debian has, if requested.
///
/// # Errors
///
/// `apt-get` fails.
pub fn prepare(install: bool) -> Result<(), String> {
    if !install || no_jdk().is_none() && missing_jar(&NETTY).is_none() {
        return Ok(());
    }
    let mut command = Command::new("apt-get");
    let status =
        command.args(["install", "--yes", "--no-install-recommends"]).args(DEBIAN).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("apt-get install {} ended with {status}", DEBIAN.join(" "))),
        Err(error) => Err(format!("apt-get could not be run: {error}")),
    }
}

fn run(turn: &Turn) -> Result<Readings, String> {
    let (service, jars) = match turn.contestant.as_str() {
        JDK_NAME => ("Jdk", Vec::new()),
        NETTY_NAME => ("Netty", NETTY.map(str::to_owned).to_vec()),
        _ => ("Kafka", turn.jars.clone()),
    };
    let classes = compiled(service, &jars)?;
    let path = [vec![classes.display().to_string()], jars].concat().join(":");
    let mut java = Command::new("java");
    java.args(HEAP).args(["-cp", &path, "Timers", service, &turn.row]);
    java.args([turn.column.timers.to_string(), turn.column.threads.to_string()]);
    let output = java.arg(turn.quick.to_string()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(text.lines().next().unwrap_or("java failed").to_owned());
    }
    const FIGURES: [&str; 12] = [
        "pair",
        "fire-cpu",
        "idle-switches",
        "idle-cpu",
        "late-p50",
        "late-p99",
        "late-max",
        "early-fired",
        "early",
        "late",
        "lost",
        "ghosts",
    ];
    let text = String::from_utf8_lossy(&output.stdout);
    let readings = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let figure = FIGURES.into_iter().find(|figure| *figure == name)?;
        Some((figure, value.parse().ok()?))
    });
    Ok(readings.collect())
}

/// Compiles the program with one service, unless it was compiled before. Returns the folder of its classes.
fn compiled(service: &str, jars: &[String]) -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = program.with_file_name("bench-java").join(service);
    let classes = folder.join("classes");
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&classes).map_err(wrong)?;
    let mut stale = !classes.join(format!("{service}.class")).exists();
    let mut sources = Vec::new();
    for (name, text) in SOURCES {
        if name == "Timers.java" || name == format!("{service}.java") {
            let source = folder.join(name);
            if std::fs::read_to_string(&source).ok().as_deref() != Some(text) {
                std::fs::write(&source, text).map_err(wrong)?;
                stale = true;
            }
            sources.push(source);
        }
    }
    if stale {
        let mut javac = Command::new("javac");
        javac.arg("-d").arg(&classes).args(sources);
        if !jars.is_empty() {
            javac.args(["-cp", &jars.join(":")]);
        }
        let output = javac.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("javac: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(classes)
}
