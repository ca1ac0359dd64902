//! Planted faults: deliberate bugs, activated one at a time, that the test suite must detect.
//!
//! `planted!("room.fault", wrong, right)` evaluates to `right`. In a build with `--cfg planted`, it evaluates to
//! `wrong` if the environment variable `TOURBILLON_PLANTED` names that fault, so one build serves all faults. The lists
//! in `planted/engine/` describe what a user would notice of each fault; `cargo xtask planted` runs the suite with each
//! fault, and the suite must fail. Faults that show only in particular interleavings are covered by the models
//! (`planted/loom.txt`, `planted/shuttle.txt`).

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
