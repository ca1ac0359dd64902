//! Faults planted in this crate, one at a time, to test the tests.
//!
//! `planted!("room.fault", wrong, right)` evaluates to `right`. In a build with `--cfg planted`, it evaluates to
//! `wrong` if the environment variable `TOURBILLON_PLANTED` names that fault, so one build can run every fault. The
//! lists in `planted/` describe what a user would notice of each fault; `cargo xtask planted` shows which test catches
//! it.
//!
//! If `TOURBILLON_REACHED` names a folder, each place that is reached is recorded in a file of that folder, named after
//! the test. A fault then needs to be run only with the tests that reach it. The crates that depend on this one use the
//! same [`Place`].

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
    /// Only the first evaluation reads the environment; later ones read one byte, because places are on the hot path
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

        /// Whether the fault is active in this process.
        #[inline]
        pub fn is_chosen(&self) -> bool {
            match self.state.load(Relaxed) {
                UNREACHED => self.reach(),
                state => state == WRONG,
            }
        }

        /// Allocates only in the first call of the process, because some tests use an allocator that counts or fails.
        #[cold]
        fn reach(&self) -> bool {
            static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
            static RECORD: OnceLock<Option<File>> = OnceLock::new();
            let chosen = CHOSEN.get_or_init(|| env::var("TOURBILLON_PLANTED").ok());
            let is_chosen = chosen.as_deref() == self.line.strip_suffix('\n');
            // Two threads may do this at once and write the line twice, which does no harm.
            self.state.store(if is_chosen { WRONG } else { RIGHT }, Relaxed);
            if let Some(mut record) = RECORD.get_or_init(record).as_ref() {
                let written = record.write_all(self.line.as_bytes());
                written.expect("what was reached is recorded");
            }
            is_chosen
        }
    }

    /// The file in which this process records the faults that it reaches. The child processes of a test share the
    /// test's file. A process without a free file descriptor records nothing: some tests use up all descriptors.
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
        // This would not compile if the macro expanded its second argument.
        assert_eq!(planted!("nothing", compile_error!("a normal build has a fault in it"), 7), 7);
    }
}
