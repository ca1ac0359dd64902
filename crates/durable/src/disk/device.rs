//! A file of the store, and its directory: every write and sync goes through here.
//!
//! In this crate's tests a [`Recorder`] records each step, and `crash.rs` simulates crashes from the record.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

#[cfg(test)]
use super::crash::Recorder;

/// Makes the names in a directory durable.
pub(super) fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()?;
    #[cfg(test)]
    super::crash::named(directory);
    Ok(())
}

#[derive(Debug)]
pub(super) struct Device {
    file: FileBackend,
    #[cfg(test)]
    recorder: Option<Recorder>,
}

impl Device {
    /// Opens a file, creating it if it does not exist.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Device {
            file,
            #[cfg(test)]
            recorder: Recorder::of(path),
        })
    }

    pub(super) fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    pub(super) fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read(offset, out)
    }

    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        #[cfg(test)]
        self.recorder.iter().for_each(|recorder| recorder.write(offset, bytes));
        self.file.write(offset, bytes)
    }

    pub(super) fn set_len(&self, length: u64) -> io::Result<()> {
        #[cfg(test)]
        self.recorder.iter().for_each(|recorder| recorder.set_len(length));
        self.file.set_len(length)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        let begun = self.recorder.as_ref().map_or(0, Recorder::now);
        self.file.sync_data()?;
        #[cfg(test)]
        self.recorder.iter().for_each(|recorder| recorder.sync(begun));
        Ok(())
    }

    pub(super) fn try_lock(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    pub(super) fn unlock(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    pub(super) fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}
