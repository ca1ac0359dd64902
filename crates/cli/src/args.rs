//! The command line.

mod remote;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tourbillon_cli::cron;
use tourbillon_cli::scenario::Drive;
use tourbillon_cli::serve;
use tourbillon_cli::trace::{Amount, Settings};
use tourbillon_durable::values::{Moment, ValueError};
use tourbillon_server::Allow;

pub(crate) use remote::Remote;

/// Durable timers over HTTP, and the timing wheels beneath them: watched, traced and replayed.
#[derive(Parser)]
#[command(name = "tourbillon", version, arg_required_else_help = true)]
#[command(after_help = START_HERE)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Verify a directory of durable timers: every page, every row, every counter
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Show when a cron expression runs next, and what happens where the zone's clock jumps
    #[command(after_help = CRON_HELP)]
    Cron(Cron),
    /// Serve a page on which the wheels turn, and print its address
    #[command(after_help = DEMO_HELP)]
    Demo(Demo),
    /// Print every timer of a directory of durable timers, one JSON object per line
    #[command(after_help = DUMP_HELP)]
    Dump(Dump),
    /// Load what `dump` printed into a directory that has no timers
    #[command(after_help = DUMP_HELP)]
    Load(Load),
    /// Run scenario files on the real wheels and print what happened, one JSON object per line
    #[command(after_help = REPLAY_HELP)]
    Replay(Replay),
    /// Serve durable timers over HTTP
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
    /// Trace one timer through the wheels: where it is stored and why, when it moves, when it fires
    #[command(after_help = TRACE_HELP)]
    Trace(Trace),
    #[command(flatten)]
    Remote(Remote),
    /// Print a script that completes the commands in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    Man {
        /// The directory; created if it does not exist
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

const START_HERE: &str = "\
Start here:
  tourbillon serve
  tourbillon schedule mails --key welcome --in 10s --payload '{\"to\":\"ann\"}'
  tourbillon top
  tourbillon demo
  tourbillon trace
  tourbillon trace --slots 60,60,24 5420
  tourbillon cron \"30 2 * * *\"
  tourbillon replay scenarios/examples/*.json";

const CHECK_HELP: &str = "\
A check changes nothing. A repair copies every timer that can be read into a new file, and leaves the damaged one
beside it.

Exit code: 0 if the store is sound, 1 if damage was found, repaired or not, 2 if it cannot be read at all.

Examples:
  tourbillon check tourbillon-data
  tourbillon check --repair tourbillon-data";

const DUMP_HELP: &str = "\
A dump has dead and remembered timers too, and the settings of queues. A timer that was delivering is due after loading.
Progress goes to standard error.

Examples:
  tourbillon dump tourbillon-data > timers.jsonl
  tourbillon load new-data timers.jsonl
  tourbillon dump tourbillon-data | tourbillon load new-data -";

const CRON_HELP: &str = "\
Quote the expression: the shell expands a star.

  minute hour day month weekday      30 2 * * *    0 9 * * MON-FRI    */15 * * * *    0 0 L * *
  with seconds before them           */10 * * * * *
  and with a year after those        0 0 12 24 12 * 2030
  @hourly, @daily, @weekly, @monthly, @yearly

Examples:
  tourbillon cron \"30 2 * * *\" --tz Europe/Berlin
  tourbillon cron \"*/30 * * * *\" --tz America/New_York -n 8 --from 2025-11-02T00:15";

const DEMO_HELP: &str = "\
Open the address in a browser. Ctrl-C stops the server; what is on the page stays there.

Examples:
  tourbillon demo                                    on this machine only
  tourbillon demo --port 8080                        on this port, or not at all
  tourbillon demo --listen 0.0.0.0                   for everyone who can reach this machine";

const REPLAY_HELP: &str = "\
Exit code: 0 if every expectation held, 1 if one did not, 2 if a file is no scenario or its run ended with an
error; of several files, the highest.

Examples:
  tourbillon replay scenarios/examples/01-one-wheel.json
  tourbillon replay -q scenarios/examples/*.json scenarios/bugs/*.json";

const SERVE_HELP: &str = "\
When it is ready it prints `tourbillon listening on http://ADDRESS`; its log goes to standard error. Each flag can
also be given as TOURBILLON_… in the environment.

Exit code: 0 if it was stopped, 1 if it failed, 2 if the command line or a setting is wrong.

Examples:
  tourbillon serve
  curl localhost:7420/v1/queues/mails/timers -H content-type:application/json -d '{\"in\":\"5s\",\"key\":\"a\"}'
  curl localhost:7420/v1/queues/mails/timers/a";

const TRACE_HELP: &str = "\
Examples:
  tourbillon trace                                   1h30m20s on a clock face
  tourbillon trace --slots 60,60,24 5420             the same in plain ticks
  tourbillon trace --slots 256 --tick 1ms 90s        a wheel of 256 slots per level
  tourbillon trace --slots 20 --start 2 399          a wheel that is not at the beginning
  tourbillon trace --tick 10 --slots 5 249           a tick of 10: rounded up, never early
  tourbillon trace --hashed --slots 8 20             a hashed wheel: slot and rounds
  tourbillon trace --drive due 5420                  one way of driving only";

#[derive(Args)]
pub(crate) struct Check {
    /// The directory of the store
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Copy what can be read into a new file, if anything is damaged
    #[arg(long)]
    pub(crate) repair: bool,
}

#[derive(Args)]
pub(crate) struct Dump {
    /// The directory of the store
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Args)]
pub(crate) struct Load {
    /// The directory of the store; created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The lines to load; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args)]
pub(crate) struct Cron {
    /// The cron expression, in quotes
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// The time zone, such as Europe/Berlin [default: the system's]
    #[arg(long, value_name = "ZONE", visible_alias = "zone")]
    tz: Option<String>,
    /// The number of runs to show
    #[arg(short = 'n', value_name = "RUNS", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Show runs after this time: 2025-03-30T01:00 in the zone, or with an offset or Z [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
}

impl Cron {
    pub(crate) fn settings(self) -> cron::Settings {
        let Cron { expression, tz, count, from } = self;
        cron::Settings { expression, zone: tz, from, count: count as usize }
    }
}

#[derive(Args)]
pub(crate) struct Demo {
    /// The port to listen on; 0 for any [default: 7420, or any other if that is taken]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
}

#[derive(Args)]
pub(crate) struct Replay {
    /// Scenario files
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print only what failed, and a last line with counts
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// The directory of the store; created if it does not exist
    #[arg(long, value_name = "DIR", env = "TOURBILLON_DATA", default_value = "./tourbillon-data")]
    data: PathBuf,
    /// The address to listen on; port 0 for any
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "TOURBILLON_LISTEN",
        default_value = "127.0.0.1:7420"
    )]
    listen: SocketAddr,
    /// A host name that requests may use, besides the address and localhost; may be repeated
    #[arg(long, value_name = "NAME", env = "TOURBILLON_HOST", value_delimiter = ',')]
    host: Vec<String>,
    /// A file of tokens, one per line: NAME:TOKEN:read|write|admin[:QUEUE or PREFIX.]; read again on SIGHUP
    #[arg(long, value_name = "FILE", env = "TOURBILLON_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// The maximum number of requests per second for each token
    #[arg(long, value_name = "N", env = "TOURBILLON_TOKEN_RATE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    token_rate: Option<u32>,
    /// A PEM file with the certificate chain; serves HTTPS
    #[arg(long, value_name = "FILE", env = "TOURBILLON_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// A PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE", env = "TOURBILLON_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A host or a network, besides public addresses, that webhooks may be sent to; may be repeated
    #[arg(
        long,
        value_name = "HOST or CIDR",
        env = "TOURBILLON_WEBHOOK_ALLOW",
        value_delimiter = ','
    )]
    webhook_allow: Vec<Allow>,
    /// A file of secrets that sign webhooks, one per line: whsec_BASE64[:QUEUE or PREFIX.]
    #[arg(long, value_name = "FILE", env = "TOURBILLON_WEBHOOK_SECRET_FILE")]
    webhook_secret_file: Option<PathBuf>,
    /// The maximum number of webhook connections to one host
    #[arg(long, value_name = "N", env = "TOURBILLON_WEBHOOK_CONNECTIONS", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    webhook_connections: u16,
    /// Allow an address that other machines can reach, without tokens
    #[arg(long, env = "TOURBILLON_INSECURE")]
    insecure: bool,
    /// The largest payload in bytes
    #[arg(long, value_name = "BYTES", env = "TOURBILLON_MAX_PAYLOAD", default_value_t = 256 << 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256 << 10))]
    max_payload: u32,
    /// The maximum number of timers that are not done or cancelled [default: no limit]
    #[arg(long, value_name = "COUNT", env = "TOURBILLON_MAX_TIMERS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    max_timers: Option<u64>,
    /// Log as JSON, one object per line
    #[arg(long, env = "TOURBILLON_LOG_JSON")]
    pub(crate) log_json: bool,
    /// For tests: let `POST /v1/test/clock` set the wall clock, which starts at MOMENT [default: now]
    #[arg(long, value_name = "MOMENT", env = "TOURBILLON_TEST_CLOCK", require_equals = true)]
    #[arg(num_args = 0..=1, default_missing_value = "now", value_parser = reading)]
    test_clock: Option<Reading>,
}

/// The first reading of a test clock; `None`: the system's.
#[derive(Clone, Copy)]
struct Reading(Option<Moment>);

fn reading(text: &str) -> Result<Reading, ValueError> {
    if text == "now" { Ok(Reading(None)) } else { text.parse().map(Some).map(Reading) }
}

impl Serve {
    pub(crate) fn settings(self) -> serve::Settings {
        serve::Settings {
            data: self.data,
            listen: self.listen,
            hosts: self.host,
            insecure: self.insecure,
            token_file: self.token_file,
            token_rate: self.token_rate,
            tls: self.tls_cert.zip(self.tls_key),
            webhook_allow: self.webhook_allow,
            webhook_secret_file: self.webhook_secret_file,
            webhook_connections: self.webhook_connections.into(),
            max_payload: self.max_payload as usize,
            max_timers: self.max_timers.unwrap_or(u64::MAX),
            test_clock: self.test_clock.map(|Reading(first)| first),
        }
    }
}

#[derive(Args)]
pub(crate) struct Trace {
    /// The timer's delay: a number (5420) or a duration (1h30m20s, 450ms) [default: 1h30m20s]
    #[arg(allow_negative_numbers = true)]
    delay: Option<Amount>,
    /// Slots per level, lowest first; the last number repeats for higher levels [default: 60,60,24; hashed: 60]
    #[arg(long, value_name = "N,N,…", allow_hyphen_values = true)]
    slots: Option<String>,
    /// What a slot of the lowest level covers: a number (10) or a duration (10ms) [default: 1, or 1s, 1ms… for a
    /// delay that is a duration]
    #[arg(long, allow_negative_numbers = true)]
    tick: Option<Amount>,
    /// The clock when the timer is scheduled, on a wheel that began at 0 [default: 0]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    start: Option<Amount>,
    /// Describe only this way of driving the wheel [default: compare all three]
    #[arg(long, value_enum)]
    drive: Option<DriveName>,
    /// A hashed wheel: one ring, and rounds
    #[arg(long)]
    hashed: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum DriveName {
    /// Stop at every tick
    Tick,
    /// Stop where an occupied slot begins
    Bucket,
    /// Stop only where a timer is due
    Due,
}

impl Trace {
    pub(crate) fn settings(self) -> Settings {
        let drive = self.drive.map(|drive| match drive {
            DriveName::Tick => Drive::Tick,
            DriveName::Bucket => Drive::Bucket,
            DriveName::Due => Drive::Due,
        });
        let Trace { delay, slots, tick, start, hashed, .. } = self;
        Settings { delay, slots, tick, start, drive, hashed }
    }
}
