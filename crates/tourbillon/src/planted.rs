//! Planted faults: deliberate bugs, activated one at a time, that the test suite must detect.
//!
//! `planted!("room.fault", wrong, right)` is `right`. Built with `--cfg planted`, it is `wrong` in a process whose
//! environment variable `TOURBILLON_PLANTED` names that fault; one build serves all faults. `planted/engine/` lists
//! what a user would notice of each fault; `cargo xtask planted` runs the suite against each, and the suite must fail.
//! Faults that show only in particular interleavings are left to the models (`planted/loom.txt`,
//! `planted/shuttle.txt`).

#[cfg(not(planted))]
macro_rules! planted {
    // A block, as in the other definition, so that temporaries are dropped at the same point.
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

#[cfg(all(test, not(planted)))]
mod tests {
    #[test]
    fn a_normal_build_has_nothing_of_a_fault() {
        // This would not compile if the macro expanded its second argument.
        assert_eq!(planted!("nothing", compile_error!("a normal build has a fault in it"), 7), 7);
    }
}
