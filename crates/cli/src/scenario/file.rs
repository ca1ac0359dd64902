//! Reading a scenario's file: with clear errors and bounded memory, whatever the file contains.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::{Scenario, ScenarioError};

/// The maximum size of a file, in bytes.
pub const MOST_BYTES: u64 = 64 << 20;

/// Reads the scenario in a file.
///
/// # Errors
/// If the file cannot be read, is larger than [`MOST_BYTES`], is not UTF-8, or is not a valid scenario. The error's
/// place is empty unless it is inside the file.
pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
    Scenario::parse(&text(path)?)
}

fn text(path: &Path) -> Result<String, ScenarioError> {
    let whole = |message: String| ScenarioError { place: String::new(), message };
    let unreadable = |error: io::Error| whole(format!("cannot be read: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // Reading one byte more than allowed detects a larger file, whatever length the file system reports.
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(whole(format!("larger than {} MiB: split the scenario", MOST_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        whole(format!(
            "not UTF-8 text: the byte at offset {at} is not; a scenario is JSON in UTF-8"
        ))
    })
}
