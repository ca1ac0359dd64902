//! What the engine promises, under virtual time where possible. Tests that need real time say so.

#[path = "../common/mod.rs"]
mod common;

mod beside;
mod clocks;
mod closures;
mod deadlines;
mod driven;
mod executors;
mod handles;
mod known_bugs;
mod limit;
mod many_shards;
mod outage;
mod outcomes;
mod panics;
mod reentry;
mod refused;
mod regressions;
mod settings;
mod shards;
mod sleeping_clock;
mod spawn_hooks;
mod stop_within;
mod stopping;
mod swapped;
mod typed;
mod virtual_time;
mod walk;
