//! Faults that must be caught: by the simulator, and by which promise.
//!
//! Those of the shard are planted in `tourbillon-durable`; those of the runtime and the disk are planted in the
//! [`world`](crate::world). Each is chosen by its name in `TOURBILLON_PLANTED`, in a build with `--cfg planted`.

/// The faults and their harms, a line each: `name | harm`.
pub const LIST: &str = include_str!("../../planted/durable.txt");

/// Whether this process runs with that fault.
pub fn planted(name: &str) -> bool {
    cfg!(planted) && std::env::var("TOURBILLON_PLANTED").is_ok_and(|chosen| chosen == name)
}

/// The name and the harm of each fault.
pub fn faults() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIST.lines().filter_map(|line| line.split_once(" | "))
}
