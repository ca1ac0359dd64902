//! The conformance kit, and what only a store on disk can do.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::conformance;

/// A directory that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "tourbillon-disk-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        // The kit asks nothing of the disk, and would wait for it.
        let memory = PathBuf::from("/dev/shm");
        Scratch(if memory.is_dir() { memory } else { std::env::temp_dir() }.join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_store_on_disk_conforms() {
    let mut directories = Vec::new();
    let fresh = || {
        directories.push(Scratch::new());
        DiskStore::new(&directories.last().expect("it was just made").0)
    };
    conformance::run(fresh, |store| {
        let directory = store.directory().to_path_buf();
        drop(store);
        DiskStore::new(directory)
    });
}
