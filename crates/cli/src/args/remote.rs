//! The commands against a running server.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand, ValueEnum};
use tourbillon_cli::remote::{self, Ask, Job, When};
use tourbillon_client::Conflict;
use tourbillon_durable::values::{Moment, Span};

#[derive(Subcommand)]
pub(crate) enum Remote {
    /// Schedule a timer on a server
    Schedule(Schedule),
    /// Show a timer
    Get(One),
    /// List timers, by their next attempt or by key
    List(List),
    /// Cancel timers, by key or by prefix
    Cancel(Cancel),
    /// Move a timer to another moment; revives a dead one
    Move(Move),
    /// Make a timer due now; a recurring timer gets an extra occurrence
    Run(One),
    /// Make dead timers due now
    Redrive(Redrive),
    /// Receive timers that are due
    Receive(Receive),
    /// Show the counts, rates and lateness of queues
    Stats(OfQueue),
    /// Print events of timers as they happen
    Events(OfQueue),
    /// Watch the queues of a server in the terminal
    Top(Top),
}

/// Which server, and how to print.
#[derive(Args)]
pub(crate) struct Server {
    /// The address of the server
    #[arg(long, value_name = "URL", env = "TOURBILLON_SERVER", help_heading = "Server")]
    #[arg(default_value = "http://127.0.0.1:7420")]
    server: String,
    /// A file with the token [default: the token in TOURBILLON_TOKEN, if it is set]
    // No flag takes the token itself: other users can read the command line.
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    token_file: Option<PathBuf>,
    /// Print JSON for scripts, one object per line
    #[arg(long, help_heading = "Server")]
    json: bool,
}

impl Server {
    fn ask(self, job: Job) -> Result<Ask, String> {
        let token = match &self.token_file {
            Some(path) => {
                Some(remote::read(path).map_err(|wrong| format!("--token-file: {wrong}"))?)
            }
            None => std::env::var("TOURBILLON_TOKEN").ok(),
        };
        let token = token.map(|token| token.trim().to_owned());
        Ok(Ask { server: self.server, token, json: self.json, job })
    }
}

#[derive(Args)]
pub(crate) struct One {
    /// The queue
    queue: String,
    /// The key of the timer
    key: String,
    #[command(flatten)]
    server: Server,
}

#[derive(Args)]
pub(crate) struct OfQueue {
    /// The queue [default: all]
    queue: Option<String>,
    #[command(flatten)]
    server: Server,
}

#[derive(Args)]
pub(crate) struct Top {
    /// How often to refresh, such as 500ms
    #[arg(long, default_value = "1s", value_parser = span)]
    every: Duration,
    #[command(flatten)]
    server: Server,
}

#[derive(Args)]
#[group(id = "when", required = true, multiple = false)]
pub(crate) struct Begin {
    /// Due after this delay, such as 90s or 1h30m
    #[arg(long = "in", value_name = "DURATION", value_parser = span, group = "when")]
    after: Option<Duration>,
    /// Due at this moment, such as 2030-01-01T12:00:00Z
    #[arg(long, value_name = "MOMENT", value_parser = moment, group = "when")]
    at: Option<SystemTime>,
}

#[derive(Args)]
pub(crate) struct Schedule {
    /// The queue; created if it does not exist
    queue: String,
    /// The key, unique in the queue [default: the server assigns one]
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    begin: Begin,
    /// Due once per period; the first time after one period
    #[arg(long, value_name = "DURATION", value_parser = span, group = "when")]
    every: Option<Duration>,
    /// Due according to a cron expression, in quotes
    #[arg(long, value_name = "EXPR", group = "when", allow_hyphen_values = true)]
    cron: Option<String>,
    /// The time zone of the cron expression [default: UTC]
    #[arg(long, requires = "cron")]
    zone: Option<String>,
    /// The payload, as JSON
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file", allow_hyphen_values = true)]
    payload: Option<String>,
    /// A file with the payload, as JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// The maximum number of occurrences of a recurring timer
    #[arg(long)]
    times: Option<u64>,
    /// The maximum number of attempts for each occurrence
    #[arg(long)]
    attempts: Option<u32>,
    /// What to do if the key is taken
    #[arg(long, value_enum, default_value_t = OnConflict::Refuse)]
    on_conflict: OnConflict,
    #[command(flatten)]
    server: Server,
}

#[derive(Clone, Copy, ValueEnum)]
enum OnConflict {
    /// Refuse the new timer
    Refuse,
    /// Keep the existing timer
    Keep,
    /// Replace the existing timer
    Replace,
}

#[derive(Args)]
pub(crate) struct List {
    /// The queue
    queue: String,
    /// Only timers in this state: scheduled, due, delivering, dead, done, cancelled
    #[arg(long)]
    state: Option<String>,
    /// Only keys with this prefix; sorts by key
    #[arg(long)]
    prefix: Option<String>,
    /// The maximum number of timers
    #[arg(short = 'n', long, default_value_t = 100)]
    limit: u64,
    /// Include payloads
    #[arg(long, requires = "json")]
    payload: bool,
    #[command(flatten)]
    server: Server,
}

#[derive(Args)]
pub(crate) struct Cancel {
    /// The queue
    queue: String,
    /// The keys
    #[arg(required_unless_present = "prefix", conflicts_with = "prefix")]
    keys: Vec<String>,
    /// Cancel every timer whose key has this prefix
    #[arg(long)]
    prefix: Option<String>,
    #[command(flatten)]
    server: Server,
}

#[derive(Args)]
pub(crate) struct Move {
    /// The queue
    queue: String,
    /// The key of the timer
    key: String,
    #[command(flatten)]
    begin: Begin,
    #[command(flatten)]
    server: Server,
}

#[derive(Args)]
pub(crate) struct Redrive {
    /// The queue
    queue: String,
    /// Only keys with this prefix
    #[arg(long)]
    prefix: Option<String>,
    #[command(flatten)]
    server: Server,
}

#[derive(Args)]
pub(crate) struct Receive {
    /// The queue
    queue: String,
    /// The maximum number of timers
    #[arg(short = 'n', long, default_value_t = 1)]
    max: u32,
    /// How long to wait for the first one, at most 60s
    #[arg(long, default_value = "0s", value_parser = span)]
    wait: Duration,
    /// How long no other worker receives them
    #[arg(long, default_value = "30s", value_parser = span)]
    lease: Duration,
    /// Acknowledge them after they are printed
    #[arg(long)]
    ack: bool,
    #[command(flatten)]
    server: Server,
}

fn span(text: &str) -> Result<Duration, String> {
    let wrong = |error| format!("{error}: give a duration such as 250ms, 90s, 1h30m or 2d");
    text.parse::<Span>().map(|span| Duration::from_millis(span.millis())).map_err(wrong)
}

fn moment(text: &str) -> Result<SystemTime, String> {
    let wrong = |error| format!("{error}: give a moment such as 2030-01-01T12:00:00Z");
    text.parse::<Moment>().map(SystemTime::from).map_err(wrong)
}

impl Begin {
    fn when(&self) -> Option<When> {
        self.after.map(When::In).or(self.at.map(When::At))
    }
}

impl Remote {
    pub(crate) fn ask(self) -> Result<Ask, String> {
        match self {
            Remote::Schedule(it) => it.ask(),
            Remote::Get(One { queue, key, server }) => server.ask(Job::Get { queue, key }),
            Remote::Run(One { queue, key, server }) => server.ask(Job::Run { queue, key }),
            Remote::List(List { queue, state, prefix, limit, payload, server }) => {
                server.ask(Job::List { queue, state, prefix, limit, payload })
            }
            Remote::Cancel(Cancel { queue, keys, prefix, server }) => {
                server.ask(Job::Cancel { queue, keys, prefix })
            }
            Remote::Move(Move { queue, key, begin, server }) => {
                let to = begin.when().ok_or("give --in or --at")?;
                server.ask(Job::Move { queue, key, to })
            }
            Remote::Redrive(Redrive { queue, prefix, server }) => {
                server.ask(Job::Redrive { queue, prefix })
            }
            Remote::Receive(Receive { queue, max, wait, lease, ack, server }) => {
                server.ask(Job::Receive { queue, max, wait, lease, ack })
            }
            Remote::Stats(OfQueue { queue, server }) => server.ask(Job::Stats { queue }),
            Remote::Events(OfQueue { queue, server }) => server.ask(Job::Events { queue }),
            Remote::Top(Top { every, server }) => server.ask(Job::Top { every }),
        }
    }
}

impl Schedule {
    fn ask(self) -> Result<Ask, String> {
        let payload = match (self.payload, self.payload_file) {
            (Some(text), _) => Some(text),
            (None, Some(path)) => Some(remote::read(&path)?),
            (None, None) => None,
        };
        let conflict = match self.on_conflict {
            OnConflict::Refuse => Conflict::Refuse,
            OnConflict::Keep => Conflict::Keep,
            OnConflict::Replace => Conflict::Replace,
        };
        let cron = self.cron.map(|expression| When::Cron(expression, self.zone));
        let when = self.begin.when().or(self.every.map(When::Every)).or(cron);
        let timer = remote::New {
            key: self.key,
            when: when.ok_or("give --in, --at, --every or --cron")?,
            payload,
            times: self.times,
            attempts: self.attempts,
        };
        self.server.ask(Job::Schedule { queue: self.queue, timer, conflict })
    }
}
