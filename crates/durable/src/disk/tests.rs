//! The conformance kit, and tests that only apply to a store on disk.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::conformance;

/// A directory that is removed after the test.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "tourbillon-disk-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        // In memory if possible: the kit does not depend on the disk, and would only wait for its syncs.
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

/// In tests a store is compacted all the time, so the kit above covers compaction. This test shows that it happens.
#[test]
fn a_copy_takes_the_place_of_the_file() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let mut store = DiskStore::new(&scratch.0);
    let epoch = store.open().unwrap().epoch;
    let inode = || std::fs::metadata(scratch.0.join(FILE)).unwrap().ino();
    // Held open, so that the inode of the first file is not reused.
    let _first = std::fs::File::open(scratch.0.join(FILE)).unwrap();
    let before = inode();
    let mut snapshot = store.snapshot().unwrap();
    for _ in 0..9 {
        store.commit(epoch, &[]).unwrap();
    }
    assert_ne!(inode(), before);
    assert!(snapshot.next().is_none(), "of a file that was replaced");
    drop(store);
    assert!(!compact::path(&scratch.0).exists());
}
