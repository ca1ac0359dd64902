//! Faults planted in this crate, one at a time, to test the tests.
//!
//! `planted!("room.fault", wrong, right)` is `right`. Built with `--cfg planted`, it is `wrong` in a process whose
//! environment names that fault in `TOURBILLON_PLANTED`: one build can run each of them. `planted/` says for each what
//! a user would notice; `cargo xtask planted` shows which test catches it.
//!
//! If `TOURBILLON_REACHED` names a folder, each place records that it was reached, in a file of that folder named after
//! the test: a fault need only be run with the tests that reach it. The crates above use the same [`Place`].

#[cfg(not(planted))]
macro_rules! planted {
    // A block, as in the other macro: temporaries are dropped at the same place.
    ($name:literal, $wrong:expr, $right:expr) => {{ $right }};
}

#[cfg(planted)]
macro_rules! planted {
    ($name:literal, $wrong:expr, $right:expr) => {{
        static PLACE: $crate::PlantedPlace = $crate::PlantedPlace::new(concat!($name, "\n"));
        if PLACE.is_chosen() { $wrong } else { $right }
    }};
}

#[cfg(planted)]
pub use place::Place;

#[cfg(planted)]
mod place {
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
    use std::env;
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::path::PathBuf;
    use std::string::String;
    use std::sync::OnceLock;

    /// The place of a planted fault in the code.
    ///
    /// Only the first evaluation looks at the environment; the others read one byte. Those places are on the hot path,
    /// and some tests measure time.
    pub struct Place {
        /// The name of the fault, and a newline.
        line: &'static str,
        state: AtomicU8,
    }

    const UNREACHED: u8 = 0;
    const RIGHT: u8 = 1;
    const WRONG: u8 = 2;

    impl Place {
        /// The place of the fault that `line` names, which ends with a newline.
        pub const fn new(line: &'static str) -> Self {
            Place { line, state: AtomicU8::new(UNREACHED) }
        }

        /// Whether this process runs with the fault.
        #[inline]
        pub fn is_chosen(&self) -> bool {
            match self.state.load(Relaxed) {
                UNREACHED => self.reach(),
                state => state == WRONG,
            }
        }

        /// Allocates only in the first call of the process: some tests have an allocator that counts or refuses.
        #[cold]
        fn reach(&self) -> bool {
            static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
            static RECORD: OnceLock<Option<File>> = OnceLock::new();
            let chosen = CHOSEN.get_or_init(|| env::var("TOURBILLON_PLANTED").ok());
            let is_chosen = chosen.as_deref() == self.line.strip_suffix('\n');
            // Two threads that are here at once write the line twice, which does no harm.
            self.state.store(if is_chosen { WRONG } else { RIGHT }, Relaxed);
            if let Some(mut record) = RECORD.get_or_init(record).as_ref() {
                let written = record.write_all(self.line.as_bytes());
                written.expect("what was reached is recorded");
            }
            is_chosen
        }
    }

    /// The file in which this process records the faults that it reaches. The processes that a test starts share the
    /// test's file. A process without a free descriptor records nothing: some tests take all descriptors.
    fn record() -> Option<File> {
        let folder = env::var_os("TOURBILLON_REACHED").map(PathBuf::from)?;
        let [binary, test] =
            ["NEXTEST_BINARY_ID", "NEXTEST_TEST_NAME"].map(|name| env::var(name).ok());
        let name = std::format!("{} {}", binary?, test?).replace('/', "%");
        OpenOptions::new().append(true).create(true).open(folder.join(name)).ok()
    }
}

#[cfg(all(test, not(planted)))]
mod tests {
    #[test]
    fn a_normal_build_has_nothing_of_a_fault() {
        // This would not compile if the macro kept its second argument.
        assert_eq!(planted!("nothing", compile_error!("a normal build has a fault in it"), 7), 7);
    }
}
