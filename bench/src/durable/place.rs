//! The directory of the stores, removed at the end of the run or at Ctrl-C, and the system's figures about it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::results::Summary;

const PREFIX: &str = "tourbillon-bench-";

/// The directory of a run, removed on drop or by the handler of Ctrl-C.
pub(crate) struct Place(PathBuf);

impl Place {
    /// Creates the directory, and removes the directories of killed runs.
    pub(crate) fn new(under: Option<&Path>) -> Result<Self, String> {
        let under = under.map_or_else(std::env::temp_dir, Path::to_path_buf);
        for entry in fs::read_dir(&under).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let ended = process.and_then(|process| process.parse::<u32>().ok());
            if ended.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = under.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| failed(&path, &error))?;
        let gone = path.clone();
        // The children read from a pipe of this process, so they end with it.
        let set = ctrlc::set_handler(move || {
            let _ = fs::remove_dir_all(&gone);
            std::process::exit(130);
        });
        set.map_err(|error| error.to_string())?;
        Ok(Place(path))
    }

    /// The directory of the next store.
    pub(crate) fn next(&self) -> Result<Store, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.0.join(format!("store-{number}"));
        fs::create_dir_all(&path).map_err(|error| failed(&path, &error))?;
        Ok(Store(path))
    }

    /// The median time of an `fdatasync` of one page, in microseconds.
    pub(crate) fn fdatasync(&self) -> Result<f64, String> {
        let path = self.0.join("fdatasync");
        let failed = |error: std::io::Error| failed(&path, &error);
        let mut file = File::create(&path).map_err(failed)?;
        let mut samples = Vec::new();
        for _ in 0..200 {
            let begin = Instant::now();
            file.write_all(&[1; 4096]).and_then(|()| file.sync_data()).map_err(failed)?;
            samples.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        fs::remove_file(&path).map_err(failed)?;
        Ok(Summary::of(&samples).median)
    }

    /// Bytes written to the device since it was started; `None` if the system does not report them.
    pub(crate) fn written(&self) -> Option<u64> {
        let device = fs::metadata(&self.0).ok()?.dev();
        let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
        let stat = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
        // The seventh field: sectors of 512 bytes.
        Some(stat.split_whitespace().nth(6)?.parse::<u64>().ok()? * 512)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The directory of one store, removed with it.
pub(crate) struct Store(PathBuf);

impl Store {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Its size on the disk.
    pub(crate) fn bytes(&self) -> f64 {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        // A file may be removed between the listing and the lookup.
        let blocks = entries.filter_map(|entry| Some(entry.metadata().ok()?.blocks()));
        (blocks.sum::<u64>() * 512) as f64
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The memory of this process in MiB: now, and at most since [`forget_peak`].
pub(crate) fn memory() -> (f64, f64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    (field("VmRSS").unwrap_or(f64::NAN) / 1024.0, field("VmHWM").unwrap_or(f64::NAN) / 1024.0)
}

/// Resets the peak of the memory.
pub(crate) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
