//! Commands against a running server: each makes a request and prints the answer as a table or as JSON.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | the jobs, and which call each makes |
//! | `print.rs` | tables and lines of JSON |
//! | `top.rs` | the queues, watched in a terminal |
//!
//! Keys and errors are printed without control characters: they cannot move the cursor.

mod print;
mod top;

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tourbillon_client::blocking::{Client, Queue};
use tourbillon_client::{Condition, Conflict, Error, Event, List, NewTimer, Receive, Retry};

use print::Printer;

/// A job and the server that does it.
#[derive(Debug)]
pub struct Ask {
    /// The address of the server.
    pub server: String,
    /// The token, if there is one.
    pub token: Option<String>,
    /// Print JSON.
    pub json: bool,
    /// What to do.
    pub job: Job,
}

/// What to do.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are the arguments of the commands")]
pub enum Job {
    Schedule { queue: String, timer: New, conflict: Conflict },
    Get { queue: String, key: String },
    List { queue: String, state: Option<String>, prefix: Option<String>, limit: u64, payload: bool },
    Cancel { queue: String, keys: Vec<String>, prefix: Option<String> },
    Move { queue: String, key: String, to: When },
    Run { queue: String, key: String },
    Redrive { queue: String, prefix: Option<String> },
    Receive { queue: String, max: u32, wait: Duration, lease: Duration, ack: bool },
    Stats { queue: Option<String> },
    Events { queue: Option<String> },
    Top { every: Duration },
}

/// A timer to schedule.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are the arguments of the command")]
pub struct New {
    pub key: Option<String>,
    pub when: When,
    pub payload: Option<String>,
    pub times: Option<u64>,
    pub attempts: Option<u32>,
}

/// When a timer is due.
#[derive(Debug)]
pub enum When {
    /// After a delay.
    In(Duration),
    /// At a moment.
    At(SystemTime),
    /// Once per period.
    Every(Duration),
    /// By a cron expression, in a zone.
    Cron(String, Option<String>),
}

/// Why a job failed.
#[derive(Debug)]
pub enum Failure {
    /// The server refused it, or did not answer.
    Server(Error),
    /// The job cannot be done, for this reason.
    Said(String),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Server(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Reads a text file, or standard input for `-`.
///
/// # Errors
/// Why it cannot be read.
pub fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().read_to_string(&mut text),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(text)
}

/// Does a job and prints the answer.
///
/// # Errors
/// See [`Failure`].
pub fn run(ask: Ask, out: &mut impl Write) -> Result<(), Failure> {
    let mut builder = tourbillon_client::Client::builder(&ask.server);
    if let Some(token) = ask.token {
        builder = builder.token(token);
    }
    let client = Client::of(builder.build()?)?;
    let mut print = Printer { out, json: ask.json, now: client.now() };
    match ask.job {
        Job::Schedule { queue, timer, conflict } => {
            let timer = new_timer(timer)?;
            let made = client.queue(&queue).schedule_or(&timer, conflict)?;
            print.at(client.now()).timer(&made)?;
        }
        Job::Get { queue, key } => {
            let timer = client.queue(&queue).get(&key)?;
            print.at(client.now()).timer(&timer)?;
        }
        Job::List { queue, state, prefix, limit, payload } => {
            let limit_a_page = u32::try_from(limit.clamp(1, 1000)).unwrap_or(1000);
            let list =
                List { state, prefix, limit: Some(limit_a_page), payload, ..List::default() };
            list_all(&client, &queue, list, limit, &mut print)?;
        }
        Job::Cancel { queue, keys, prefix } => {
            cancel(&client.queue(&queue), &keys, prefix.as_deref(), &mut print)?;
        }
        Job::Move { queue, key, to } => {
            let queue = client.queue(&queue);
            let timer = match to {
                When::At(at) => queue.move_to(&key, at, Condition::Any)?,
                When::In(delay) => queue.move_after(&key, delay, Condition::Any)?,
                _ => return Err(Failure::Said("a timer is moved with --in or --at".into())),
            };
            print.at(client.now()).timer(&timer)?;
        }
        Job::Run { queue, key } => {
            let timer = client.queue(&queue).run(&key)?;
            print.at(client.now()).timer(&timer)?;
        }
        Job::Redrive { queue, prefix } => {
            let (queue, mut revived) = (client.queue(&queue), 0);
            loop {
                let some = queue.redrive(prefix.as_deref())?;
                revived += some.revived;
                if !some.more {
                    break;
                }
                progress(&format!("{revived} timers are due again"));
            }
            print.counts(&[("revived", revived)])?;
        }
        Job::Receive { queue, max, wait, lease, ack } => {
            let queue = client.queue(&queue);
            let receive = Receive::default().max(max).wait(wait).lease(lease);
            let deliveries = queue.receive(&receive)?;
            print.at(client.now()).deliveries(&deliveries)?;
            // A delivery is acknowledged only after it was printed.
            print.out.flush()?;
            let tokens: Vec<&str> = deliveries.iter().map(|one| &*one.token).collect();
            if ack && !tokens.is_empty() {
                queue.ack(&tokens)?;
            }
        }
        Job::Stats { queue: Some(queue) } => {
            let stats = client.queue(&queue).stats()?;
            print.at(client.now()).queues(&[stats])?;
        }
        Job::Stats { queue: None } => {
            let all = client.queues()?;
            print.at(client.now()).queues(&all.queues)?;
            if all.damaged {
                progress("some of the store cannot be read: the server's log says what");
            }
        }
        Job::Events { queue } => {
            for event in client.events(queue.as_deref())? {
                match event? {
                    Event::Lost(count) => progress(&format!("{count} events were lost")),
                    Event::Happened(happened) => print.event(&happened)?,
                    _ => {}
                }
                print.out.flush()?;
            }
            return Err(Failure::Said("the server ended the stream of events".into()));
        }
        Job::Top { every } => return top::run(&client, every.max(Duration::from_millis(100))),
    }
    Ok(())
}

fn new_timer(new: New) -> Result<NewTimer, Error> {
    let mut timer = match new.when {
        When::In(delay) => NewTimer::after(delay),
        When::At(at) => NewTimer::at(at),
        When::Every(period) => NewTimer::every(period),
        When::Cron(expression, None) => NewTimer::cron(expression),
        When::Cron(expression, Some(zone)) => NewTimer::cron(expression).zone(zone),
    };
    if let Some(key) = new.key {
        timer = timer.key(key);
    }
    if let Some(times) = new.times {
        timer = timer.times(times);
    }
    if new.attempts.is_some() {
        timer = timer.retry(Retry { attempts: new.attempts, ..Retry::default() });
    }
    match new.payload {
        Some(json) => timer.payload_json(json),
        None => Ok(timer),
    }
}

/// Lists up to `limit` timers, page by page.
fn list_all(
    client: &Client,
    queue: &str,
    mut list: List,
    limit: u64,
    print: &mut Printer<'_, impl Write>,
) -> Result<(), Failure> {
    let (queue, mut all) = (client.queue(queue), Vec::new());
    loop {
        let page = queue.list(&list)?;
        all.extend(page.timers);
        all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        list.cursor = page.next;
        if list.cursor.is_none() || all.len() as u64 >= limit {
            break;
        }
        progress(&format!("{} timers", all.len()));
    }
    let more = list.cursor.is_some();
    print.at(client.now()).timers(&all)?;
    if more && !print.json {
        progress(&format!("there may be more than {limit}: give --limit"));
    }
    Ok(())
}

fn cancel(
    queue: &Queue,
    keys: &[String],
    prefix: Option<&str>,
    print: &mut Printer<'_, impl Write>,
) -> Result<(), Failure> {
    let (mut cancelled, mut delivering, mut missing) = (0, 0, Vec::new());
    if let Some(prefix) = prefix {
        loop {
            let some = queue.cancel_prefix(prefix)?;
            (cancelled, delivering) = (cancelled + some.cancelled, delivering + some.delivering);
            if !some.more {
                break;
            }
            progress(&format!("{cancelled} timers are cancelled"));
        }
    }
    for some in keys.chunks(10_000) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        let told = queue.cancel_keys(&some)?;
        (cancelled, delivering) = (cancelled + told.cancelled, delivering + told.delivering);
        missing.extend(told.done.iter().map(|key| format!("{key} is done")));
        missing.extend(told.unknown.iter().map(|key| format!("there is no timer {key}")));
    }
    print.counts(&[("cancelled", cancelled), ("delivering", delivering)])?;
    match missing.len() {
        0 => Ok(()),
        _ => Err(Failure::Said(print::plain(&missing.join("; ")))),
    }
}

/// Prints the progress of long work, only on a terminal.
fn progress(text: &str) {
    if io::stderr().is_terminal() {
        let _ = writeln!(io::stderr(), "{text}");
    }
}
