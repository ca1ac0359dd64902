//! Cargo's caches of packaged crates.

use std::path::PathBuf;

use crate::shell::root;

/// Removes packages with these names from cargo's caches.
///
/// Cargo keeps an unpacked copy of each version. Without this, it would build the next packages against old copies.
pub(crate) fn forget(published: &[&str]) {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))) else { return };
    let folders = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let registries =
        ["src", "cache"].into_iter().flat_map(|part| folders(home.join("registry").join(part)));
    // Builds of packages from a registry always count as fresh.
    let built = root().join("target/debug/.fingerprint");
    for folder in registries.map(|registry| registry.path()).chain([built]) {
        for package in folders(folder) {
            let name = package.file_name().to_string_lossy().into_owned();
            if published.iter().any(|published| is_version_of(&name, published)) {
                // Errors are ignored: at worst, a stale package makes the build fail, which this should prevent.
                let _ = std::fs::remove_dir_all(package.path());
                let _ = std::fs::remove_file(package.path());
            }
        }
    }
}

/// Whether a folder's name is the package's, a hyphen, then a version or a hash.
fn is_version_of(name: &str, package: &str) -> bool {
    let rest = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_hexdigit()))
}
