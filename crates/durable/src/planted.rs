//! Faults planted in this crate, chosen one at a time, to test the simulator.
//!
//! `planted!("fault", wrong, right)` is `right`. In a build with `--cfg planted` it is `wrong` if the environment
//! variable `TOURBILLON_PLANTED` names that fault. `planted/durable/` states the harm of each;
//! `cargo run -p sim -- planted` shows which promise each one breaks.

#[cfg(not(planted))]
macro_rules! planted {
    // A block, as in the other variant, so that temporaries are dropped at the same point.
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
        // This would not compile if the macro kept its second argument.
        assert_eq!(planted!("nothing", compile_error!("a normal build has a fault in it"), 1), 1);
    }
}
