//! Finds or installs the browser for the tests and screenshots of the live page.

use std::process::Command;

use crate::shell::{Outcome, capture, cargo, run};

const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Installs Chromium and these further Debian packages, if they are missing.
pub(crate) fn install(more: &[&str]) -> Outcome {
    let there =
        |name: &&&str| capture(Command::new(name).arg("--version")).is_ok_and(|(_, fine)| fine);
    let mut missing: Vec<&str> = more.iter().copied().filter(|name| !has_package(name)).collect();
    if NAMES.iter().find(there).is_none() {
        missing.extend(["chromium", "fonts-dejavu-core"]);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!(
        "the live page is tested in a browser: install {0} (on Debian, as root: apt-get install {0})",
        missing.join(" and ")
    );
    let root = capture(Command::new("id").arg("-u")).is_ok_and(|(text, _)| text.trim() == "0");
    let apt = capture(Command::new("apt-get").arg("--version")).is_ok_and(|(_, fine)| fine);
    if !root || !apt {
        return Err(by_hand);
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    run(apt().args(["-qq", "update"])).map_err(|wrong| format!("{wrong}; {by_hand}"))?;
    let mut install = apt();
    install.args(["-qq", "install", "--yes", "--no-install-recommends"]).args(&missing);
    run(&mut install).map_err(|wrong| format!("{wrong}; {by_hand}"))
}

fn has_package(name: &str) -> bool {
    let asked = capture(Command::new("dpkg-query").args(["-W", "-f=${Status}", name]));
    asked.is_ok_and(|(text, fine)| fine && text.ends_with("installed"))
}

/// Makes the screenshots of the README.
pub(crate) fn pictures() -> Outcome {
    install(&["fonts-noto-cjk"])?;
    run(&mut cargo(&["run", "-p", "browser", "--", "pictures"]))
}
