//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::contestant::Kind;
use crate::count::Counted;
use crate::durable;
use crate::entrant::Entrant;
use crate::measure::Op;
use crate::purgatory;
use crate::serve;
use crate::task;
use crate::timer::Row;

/// Tourbillon beside its peers.
#[derive(Parser)]
#[command(name = "bench", arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// The wheels: all contestants, all operations, one table for each
    Wheel(Wheel),
    /// The engine beside other timer services, in real time
    Timer(Timer),
    /// The engine's tasks beside other timers for async code, in real time
    Task(Task),
    /// One run of one contestant of `task`, told in JSON
    #[command(hide = true)]
    TaskTurn(Turn<task::Row>),
    /// What people build on timers: the delay queue, and timers that repeat
    People(People),
    /// Durable timers on a real disk, beside redb used directly and SQLite
    Durable(Durable),
    /// A process with a store of its own, for `durable`
    #[command(hide = true)]
    DurableChild(durable::Child),
    /// `tourbillon serve` over HTTP on loopback, beside beanstalkd, Redis and PostgreSQL
    Serve(Serve),
    /// One run of one contestant of `timer`, told in JSON
    #[command(hide = true)]
    Turn(Turn<Row>),
    /// Operations that wait under keys, beside a plain map of lists with tokio's sleeps
    Purgatory(Purgatory),
    /// One run of one contestant of `purgatory`, told in JSON
    #[command(hide = true)]
    PurgatoryTurn(Turn<purgatory::Row>),
    /// Instructions an operation of the wheel and of the engine, counted by valgrind's callgrind
    Instructions {
        /// Rows, by a part of their name
        #[arg(long, value_delimiter = ',', value_name = "ROW")]
        rows: Vec<String>,
        /// Operations of the shorter of the two runs
        #[arg(long, default_value_t = 100_000)]
        iterations: usize,
    },
    /// Do one operation of the wheel or of the engine so many times, to be run under a profiler
    Count {
        operation: Counted,
        /// How many times
        #[arg(long, default_value_t = 100_000)]
        iterations: usize,
        /// Prepare for so many, so that runs of different lengths prepare alike
        #[arg(long, default_value_t = 200_000)]
        prepared: usize,
    },
}

/// What every run with contestants can be told.
#[derive(Args)]
pub struct Common {
    /// Write everything to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Contestants, by a part of their name
    #[arg(long, value_delimiter = ',', value_name = "CONTESTANT")]
    pub only: Vec<String>,
}

#[derive(Args)]
pub struct Wheel {
    #[command(flatten)]
    pub common: Common,
    /// Under two minutes: up to 1 M timers, the baselines to 10 k, fewer rounds
    #[arg(long)]
    pub quick: bool,
    /// Populations, such as 10k,1M
    #[arg(long, value_delimiter = ',', value_parser = population)]
    pub populations: Vec<usize>,
    /// Rounds; the medians are over these [default: 5, above 1 M 3; with --quick 3, from 1 M 2]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Operations
    #[arg(long, value_delimiter = ',')]
    pub ops: Vec<Op>,
    /// Also one wheel with a hundred million timers (needs 8 GiB)
    #[arg(long)]
    pub huge: bool,
}

impl Wheel {
    pub fn populations(&self) -> Vec<usize> {
        let mut populations = match (self.populations.is_empty(), self.quick) {
            (false, _) => self.populations.clone(),
            (true, true) => vec![10_000, 100_000, 1_000_000],
            (true, false) => vec![10_000, 100_000, 1_000_000, 10_000_000],
        };
        populations.sort_unstable();
        populations.dedup();
        populations
    }

    pub fn rounds(&self, population: usize) -> usize {
        let default = match (self.quick, population) {
            (true, 1_000_000..) => 2,
            (true, _) | (false, 1_000_001..) => 3,
            (false, _) => 5,
        };
        self.rounds.map_or(default, usize::from)
    }

    /// Whether a contestant is asked to carry so many.
    pub fn admits(&self, entrant: &dyn Entrant, population: usize) -> bool {
        let slow = self.quick && entrant.kind() == Kind::Baseline && population > 10_000;
        population <= entrant.most().0 && !slow
    }

    pub fn asks_for(&self, op: Op) -> bool {
        self.ops.is_empty() || self.ops.contains(&op)
    }
}

#[derive(Args)]
pub struct Timer {
    #[command(flatten)]
    pub common: Common,
    /// About a minute and a half: fewer rounds, and shorter ones
    #[arg(long)]
    pub quick: bool,
    /// Rounds; the medians are over these [default: 3, where timers fire 2; with --quick 2 and 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Workloads, by name or by number from 1
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<Row>,
}

#[derive(Args)]
pub struct People {
    /// Write everything to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// About a minute: fewer rounds, and shorter ones
    #[arg(long)]
    pub quick: bool,
    /// Rounds; the medians are over these [default: 7; with --quick 3]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
}

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

/// One run of one contestant.
#[derive(Args)]
pub struct Turn<R: ValueEnum + Clone + Send + Sync + 'static> {
    pub contestant: String,
    pub row: R,
    #[arg(long)]
    pub quick: bool,
}

#[derive(Args)]
pub struct Task {
    #[command(flatten)]
    pub common: Common,
    /// About two minutes: fewer rounds, and shorter ones
    #[arg(long)]
    pub quick: bool,
    /// Rounds; the medians are over these [default: 3, where tasks fire 2; with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Workloads
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<task::Row>,
}

#[derive(Args)]
pub struct Purgatory {
    /// Write everything to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Half a minute: one round, and fewer operations
    #[arg(long)]
    pub quick: bool,
    /// Rounds; the medians are over these [default: 3; with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Workloads, by name or by number from 1
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<purgatory::Row>,
}

/// The rows that were asked for, in their order, or all.
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
