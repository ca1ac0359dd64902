//! The command `sim`: runs seeds, shows a failing one, and tries the planted faults.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use sim::planted::faults;
use sim::run::{Failure, STEPS, run, shrink, trace};
use sim::world::Tally;

const USAGE: &str = "usage:
  sim durable [--seeds N] [--crashes C] [--minutes M] [--seed S] [--steps K] [--trace]
      runs seeds from S on, K steps each: N of them, or until they have met C crashes, or for M minutes
  sim planted
      shows each planted fault caught; needs RUSTFLAGS=\"--cfg planted\"";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words = arguments.iter().map(String::as_str);
    let command = words.next();
    let options = match Options::read(words) {
        Ok(options) => options,
        Err(wrong) => return refuse(&wrong),
    };
    // A panic is reported as a broken promise, so the default hook would report it twice.
    std::panic::set_hook(Box::new(|_| {}));
    match command {
        Some("durable") => durable(&options),
        Some("planted") => planted(),
        Some(other) => refuse(&format!("there is no command {other:?}")),
        None => refuse("a command is missing"),
    }
}

fn refuse(wrong: &str) -> ExitCode {
    eprintln!("sim: {wrong}\n{USAGE}");
    ExitCode::from(2)
}

#[derive(Default)]
struct Options {
    seed: Option<u64>,
    seeds: Option<u64>,
    crashes: Option<u64>,
    minutes: Option<u64>,
    steps: Option<u64>,
    trace: bool,
}

impl Options {
    fn read<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            let value = match word {
                "--seed" => &mut options.seed,
                "--seeds" => &mut options.seeds,
                "--crashes" => &mut options.crashes,
                "--minutes" => &mut options.minutes,
                "--steps" => &mut options.steps,
                "--trace" => {
                    options.trace = true;
                    continue;
                }
                _ => return Err(format!("there is no option {word:?}")),
            };
            let number = words.next().unwrap_or_default();
            *value = Some(number.parse().map_err(|_| format!("{word} {number:?} is no number"))?);
        }
        Ok(options)
    }
}

fn durable(options: &Options) -> ExitCode {
    let (first, steps) = (options.seed.unwrap_or(0), options.steps.unwrap_or(STEPS));
    let seeds = match options {
        Options { seeds: Some(seeds), .. } => *seeds,
        Options { crashes: None, minutes: None, seed, .. } => {
            // A seed that is given runs alone.
            if seed.is_some() { 1 } else { 1000 }
        }
        _ => u64::MAX - first,
    };
    if options.trace {
        trace(first, steps);
    }
    let began = Instant::now();
    let done = Mutex::new((first, Tally::default(), Vec::<Failure>::new()));
    let next_seed = || {
        let mut done = done.lock().expect("nothing panics while it is held");
        let (seed, sum, failures) = &mut *done;
        let over = *seed >= first + seeds
            || failures.len() >= 5
            || options.crashes.is_some_and(|crashes| sum.crashes >= crashes)
            || options.minutes.is_some_and(|minutes| began.elapsed().as_secs() >= minutes * 60);
        *seed += u64::from(!over);
        (!over).then_some(*seed - 1)
    };
    let work = || {
        while let Some(seed) = next_seed() {
            let (tally, failure) = run(seed, steps);
            let mut done = done.lock().expect("nothing panics while it is held");
            done.1.add(&tally);
            done.2.extend(failure);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (end, sum, mut failures) = done.into_inner().expect("nothing panics while it is held");
    failures.sort_by_key(|failure| failure.seed);
    let seeds = end - first;
    let days = sum.simulated as f64 / 86_400_000.0;
    println!(
        "{seeds} seeds from {first}: {days:.0} days, {} turns, {} crashes, {} failures of the disk, {} settings of the \
         clock, {} timers, {} deliveries in {:.1} s",
        sum.turns,
        sum.crashes,
        sum.failures,
        sum.jumps,
        sum.timers,
        sum.deliveries,
        began.elapsed().as_secs_f64()
    );
    let ways: Vec<String> = sum.ways.iter().map(|(way, count)| format!("{count} {way}")).collect();
    println!("ways: {}", ways.join(", "));
    println!("broken promises: {}", failures.len());
    for failure in &failures {
        let short = shrink(failure.clone());
        println!("  seed {} after {} steps: {}", failure.seed, failure.steps, failure.broken);
        println!("    shortest: --seed {} --steps {}: {}", short.seed, short.steps, short.broken);
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tries each fault in its own process.
fn planted() -> ExitCode {
    if !cfg!(planted) {
        eprintln!("build it with RUSTFLAGS=\"--cfg planted\"");
        return ExitCode::from(2);
    }
    if std::env::var_os("TOURBILLON_PLANTED").is_some() {
        return try_fault();
    }
    let program = std::env::current_exe().expect("a program knows its own path");
    let mut missed = 0;
    for (name, harm) in faults() {
        let output = Command::new(&program).arg("planted").env("TOURBILLON_PLANTED", name).output();
        let text = output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        let text = text.trim();
        println!("{name:<36} {}", if text.is_empty() { "NOT CAUGHT" } else { text });
        println!("{:<36} harm: {harm}", "");
        missed += u32::from(text.is_empty());
    }
    println!("{} faults, {missed} not caught", faults().count());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds with a fault. Prints the promises it breaks, and the first seed of each.
fn try_fault() -> ExitCode {
    let (began, mut caught) = (Instant::now(), BTreeMap::new());
    for seed in 0..3000 {
        if let Some(failure) = run(seed, STEPS).1 {
            let first = caught.entry(failure.broken.promise).or_insert((seed, 0));
            first.1 += 1;
        }
        // After the first failing seed a few more run, because the first broken promise may not be the one that the
        // fault targets.
        if !caught.is_empty() && (seed > 300 || began.elapsed() > Duration::from_secs(10)) {
            break;
        }
    }
    let caught = caught
        .iter()
        .map(|(promise, (seed, count))| format!("{promise} ({count}×, first seed {seed})"));
    println!("{}", caught.collect::<Vec<_>>().join("; "));
    ExitCode::SUCCESS
}
