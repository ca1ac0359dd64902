//! Cron expressions in their zones, and timers that follow them. All under virtual time.

#[path = "../common/mod.rs"]
mod common;

mod expressions;
mod stepped;
mod timers;
mod zones;

use jiff::Zoned;
use tourbillon::Cron;

/// Asserts the first runs after a moment, written as `2025-03-30T03:00:00+02:00`.
#[track_caller]
fn runs(expression: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let cron =
        Cron::parse(expression, zone).unwrap_or_else(|wrong| panic!("{expression}: {wrong}"));
    let from: Zoned = format!("{from}[{zone}]").parse().unwrap();
    let all = std::iter::successors(Some(from), |last| cron.next_after(last));
    let show = |run: Zoned| run.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    all.skip(1).take(count).map(show).collect()
}
