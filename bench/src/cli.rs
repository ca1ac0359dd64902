//! The command line.

use std::path::PathBuf;

#[cfg(feature = "durable")]
use clap::ValueEnum;
use clap::{Args, Parser, Subcommand};

use crate::count::{Counted, Instructions};
#[cfg(feature = "durable")]
use crate::durable;
#[cfg(feature = "durable")]
use crate::serve;

/// Tourbillon beside its peers: without a command, the whole report.
#[derive(Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub league: League,
}

#[derive(Subcommand)]
pub enum Command {
    /// The wheels, in virtual time
    Wheel(League),
    /// The engine beside other timer services, in real time
    Timer(League),
    /// The engine's tasks beside other timers for async code, in real time
    Task(League),
    /// The delay queue, and timers that repeat
    Queue(League),
    /// Operations that wait under keys, beside a plain map of lists with tokio's sleeps
    Purgatory(League),
    /// Durable timers on a real disk, beside redb used directly and SQLite
    #[cfg(feature = "durable")]
    Durable(Durable),
    /// `tourbillon serve` over HTTP on loopback, beside beanstalkd, Redis and PostgreSQL
    #[cfg(feature = "durable")]
    Serve(Serve),
    /// Instructions an operation of the wheel and of the engine, counted by valgrind's callgrind
    Instructions(Instructions),
    /// Draws the plots, and writes the Markdown, of a file that `--json` wrote
    Plot {
        file: PathBuf,
        /// Where the plots are written
        #[arg(long, value_name = "DIR", default_value = "plots")]
        plots: PathBuf,
        /// The page whose tables are replaced
        #[arg(long, value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Repeat one operation of the wheel or of the engine, to be run under a profiler
    Count {
        operation: Counted,
        /// How many times
        #[arg(long, default_value_t = 100_000)]
        iterations: usize,
        /// Prepare for this number of iterations, so that runs of different lengths prepare alike
        #[arg(long, default_value_t = 200_000)]
        prepared: usize,
    },
    /// A process with a store of its own, for `durable`
    #[cfg(feature = "durable")]
    #[command(hide = true)]
    DurableChild(durable::Child),
    /// One run of one contestant, in JSON
    #[command(hide = true)]
    Turn { turn: String },
}

/// What the league can be asked for.
#[derive(Args, Clone)]
pub struct League {
    /// Three minutes: fewer rounds, smaller populations
    #[arg(long)]
    pub quick: bool,
    /// Families, by a part of their name
    #[arg(long, value_delimiter = ',', value_name = "FAMILY")]
    pub families: Vec<String>,
    /// Workloads; `--list` names them
    #[arg(long, alias = "workloads", value_delimiter = ',', value_name = "ROW")]
    pub rows: Vec<String>,
    /// Peers, by a part of their name; ours always take part
    #[arg(long, alias = "only", value_delimiter = ',', value_name = "PEER")]
    pub peers: Vec<String>,
    /// Populations, such as 10k,1M, of the workloads that have several
    #[arg(long, value_delimiter = ',', value_parser = population)]
    pub populations: Vec<usize>,
    /// Threads, such as 1,2,4, of the workloads that have several
    #[arg(long, value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Rounds, where there is more than one; the medians are over these
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Write every sample to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the plots into this folder
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Write `bench/results.json`, `pictures/bench/` and the tables of `BENCHMARKS.md`, from the root of the repository
    #[arg(long)]
    pub publish: bool,
    /// Name the workloads and contestants, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Install the JDK and Netty by apt-get, where they are missing
    #[arg(long)]
    pub install_peers: bool,
    /// Jars with Kafka's `SystemTimer` and all that it needs, separated by colons
    #[arg(long, value_name = "JARS")]
    pub kafka_jar: Option<String>,
}

impl League {
    /// Jars that were given.
    pub fn jars(&self) -> Vec<String> {
        self.kafka_jar.iter().cloned().collect()
    }
}

#[cfg(feature = "durable")]
#[derive(Args)]
pub struct Durable {
    /// Write everything to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Under a minute: one round, and a hundredth of the timers
    #[arg(long)]
    pub quick: bool,
    /// Rounds of what is compared with others; the medians are over these [default: 3; with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Timers of a store that is compared with others, such as 100k [default: 1M; with --quick 100k]
    #[arg(long, value_parser = population)]
    pub timers: Option<usize>,
    /// How long the row `hour` takes [default: 10; with --quick 0.1]
    #[arg(long, value_name = "MINUTES")]
    pub minutes: Option<f64>,
    /// Rows
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<durable::Row>,
    /// Where the stores are made and removed [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

#[cfg(feature = "durable")]
#[derive(Args)]
pub struct Serve {
    /// Write everything to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// About two minutes: shorter rows, and a hundredth of the pending timers
    #[arg(long)]
    pub quick: bool,
    /// Rows
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<serve::Row>,
    /// Where the stores are made and removed [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// The server [default: `tourbillon` beside this program]
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
    /// Install peers that are not there, by apt-get and npm
    #[arg(long)]
    pub install_peers: bool,
}

/// The requested rows, in the requested order; all rows if none are requested.
#[cfg(feature = "durable")]
pub fn asked<R: ValueEnum + Copy + PartialEq>(rows: &[R]) -> Vec<R> {
    let asked = |row: &&R| rows.is_empty() || rows.contains(row);
    R::value_variants().iter().filter(asked).copied().collect()
}

/// `10k`, `1M`, `250000`.
fn population(text: &str) -> Result<usize, String> {
    let help = || format!("`{text}` is no population: write 10k, 1M or 250000, from 2 to 100M");
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => text.strip_suffix(['M', 'm']).map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let count =
        digits.parse::<usize>().ok().and_then(|count| count.checked_mul(unit)).ok_or_else(help)?;
    if (2..=100_000_000).contains(&count) { Ok(count) } else { Err(help()) }
}

/// A population the way people write it.
pub fn written(population: usize) -> String {
    match population {
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{} M", n / 1_000_000),
        n if n >= 1000 && n % 1000 == 0 => format!("{} k", n / 1000),
        n => n.to_string(),
    }
}
