//! A visitor at the live page, compared with `replay`. For tests: failures panic.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tourbillon_cli::replay::{JsonLines, Outcome, run};
use tourbillon_cli::scenario::Scenario;

use crate::{Chromium, Demo, Look, Page};

/// A visitor: a server, a browser and an open page.
pub struct Visit {
    /// The page.
    pub page: Page,
    /// The browser.
    pub chromium: Chromium,
    /// The server.
    pub demo: Demo,
    downloads: PathBuf,
}

impl Visit {
    /// Opens the page.
    pub fn new(look: Look) -> Visit {
        let demo = Demo::start();
        let chromium = Chromium::start();
        let mut page = chromium.page(look);
        let port =
            demo.url().rsplit(':').next().unwrap_or_default().trim_end_matches('/').to_owned();
        let downloads =
            std::env::temp_dir().join(format!("tourbillon-saved-{}-{port}", std::process::id()));
        page.call(
            "Browser.setDownloadBehavior",
            json!({"behavior": "allow", "downloadPath": downloads}),
        );
        page.goto(&demo.url());
        Visit { page, chromium, demo, downloads }
    }

    /// Creates a wheel by typing its slots.
    pub fn wheel(&mut self, slots: &str, drive: &str) {
        if self.page.eval("document.querySelector('#wheelBox').open") == false {
            self.page.click("#wheelBox summary");
        }
        self.page.fill("#slots", slots);
        self.page.click("#wheel button.main");
        let shown = json!(slots.replace(',', " / "));
        self.page
            .wait(&format!("document.querySelector('#wheelIs').textContent.endsWith({shown})"));
        self.drive(drive);
    }

    /// Switches the drive.
    pub fn drive(&mut self, drive: &str) {
        let button = format!("#drive input[value={drive}]");
        self.page.click(&format!("#drive label:has(input[value={drive}])"));
        self.page.wait(&format!("document.querySelector('{button}').checked"));
        self.settle();
    }

    /// Adds a timer by typing.
    pub fn add(&mut self, name: &str, delay: &str) {
        self.page.fill("#addName", name);
        self.page.fill("#addDelay", delay);
        self.page.click("#add button");
        self.settle();
    }

    /// Opens a lesson of the tour, counted from 1.
    pub fn lesson(&mut self, number: u64) {
        self.set("#lesson", "onchange", number - 1);
        self.page.wait(&format!(
            "document.querySelector('#progress').textContent.startsWith('{number} ')"
        ));
        self.settle();
    }

    /// Sets the speed by the position on the slider.
    pub fn speed(&mut self, place: u64) {
        self.set("#speed", "oninput", place);
    }

    /// Sets the value of a field by script, and calls its event handler.
    pub fn set(&mut self, selector: &str, event: &str, value: impl std::fmt::Display) {
        let value = json!(value.to_string());
        self.page.eval(&format!(
            "(() => {{ const e = document.querySelector('{selector}'); e.value = {value}; e.{event}(); }})()"
        ));
    }

    /// Clicks, and waits until the page has settled.
    pub fn click(&mut self, selector: &str) {
        self.page.click(selector);
        self.settle();
    }

    /// Waits until the page has no request pending and has drawn the result.
    pub fn settle(&mut self) {
        self.page.eval(
            "(async () => { const picture = () => new Promise(requestAnimationFrame);
               let last; do { last = document.querySelector('#done').textContent;
               for (let i = 0; i < 3; i++) { await picture(); await new Promise((done) => setTimeout(done, 8)); } }
               while (document.body.ariaBusy === 'true'
                 || last !== document.querySelector('#done').textContent); })()",
        );
    }

    /// The lines of the event log, and the last line.
    pub fn log(&mut self) -> Vec<String> {
        let lines = self.page.eval(
            "[...document.querySelectorAll('#lines li'), document.querySelector('#done')].map((e) => e.textContent)",
        );
        lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
    }

    /// The scenario file that the page saves.
    pub fn saved(&mut self) -> String {
        let file = self.downloads.join("scenario.json");
        let _ = std::fs::remove_file(&file);
        self.page.click("#save");
        let began = Instant::now();
        loop {
            match std::fs::read_to_string(&file) {
                Ok(text) if !text.is_empty() => return text,
                _ => assert!(began.elapsed() < Duration::from_secs(10), "nothing was saved"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Checks that the log equals what `replay` prints for the saved scenario, and that the replay passes.
    pub fn agrees_with_replay(&mut self) {
        let saved = self.saved();
        let (lines, outcome) = replay(&saved);
        same_lines(&self.log(), &lines, &saved);
        assert_eq!(outcome, Outcome::Passed, "{saved}");
    }

    /// Checks that the page reported no error and made no request to another host.
    pub fn is_fine(&mut self) {
        assert_eq!(self.page.complaints(), Vec::<String>::new());
        let home = self.demo.url();
        let host = home.trim_start_matches("http://");
        for request in self.page.requests() {
            let inside = ["http://", "ws://", "blob:http://"]
                .iter()
                .any(|way| request.starts_with(&format!("{way}{host}")));
            assert!(inside || request.starts_with("about:"), "the page asked for {request}");
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.downloads);
    }
}

/// Checks that two logs are equal. Panics at the first line that differs.
pub fn same_lines(page: &[String], replay: &[String], of: &str) {
    let differs = page.iter().zip(replay).position(|(page, replay)| page != replay);
    let at = differs.unwrap_or(page.len().min(replay.len()));
    let of: String = of.chars().take(2_000).collect();
    assert_eq!(page.get(at), replay.get(at), "line {at} of the page and of replay, for {of}");
}

/// What `replay` prints for a scenario.
pub fn replay(text: &str) -> (Vec<String>, Outcome) {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut lines = JsonLines(Vec::new());
    let outcome = run(&scenario, &mut lines).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let lines = String::from_utf8(lines.0).unwrap().lines().map(str::to_owned).collect();
    (lines, outcome)
}

/// The folder with the scenarios of the repository.
pub fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}
