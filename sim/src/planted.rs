//! Faults that the simulator must catch, and which promise reveals each.
//!
//! The shard's faults are planted in `tourbillon-durable`; those of the runtime and the disk are planted in the
//! [`world`](crate::world). In a build with `--cfg planted`, the variable `TOURBILLON_PLANTED` selects one by its name.

#[cfg(not(planted))]
macro_rules! planted {
    ($name:literal, $wrong:expr, $right:expr) => {{ $right }};
}

#[cfg(planted)]
macro_rules! planted {
    ($name:literal, $wrong:expr, $right:expr) => {{
        static PLACE: tourbillon_wheel::PlantedPlace =
            tourbillon_wheel::PlantedPlace::new(concat!($name, "\n"));
        if PLACE.is_chosen() { $wrong } else { $right }
    }};
}

/// The faults and their harms, one per line: `name | harm`.
pub const LIST: &str = include_str!("../../planted/durable/shard.txt");

/// The name and the harm of each fault.
pub fn faults() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIST.lines().filter_map(|line| line.split_once(" | "))
}
