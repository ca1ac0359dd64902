//! The browser's process.

use std::fs;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::page::{Look, Page};

/// A running browser, killed on drop.
pub struct Chromium {
    child: Child,
    profile: PathBuf,
    port: u16,
}

/// Arguments: headless, isolated from other instances, and able to run as root.
const ARGUMENTS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
];

impl Chromium {
    /// Starts a browser.
    ///
    /// # Panics
    /// No browser is installed, or it does not start.
    pub fn start() -> Chromium {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tourbillon-chromium-{}-{number}", std::process::id());
        let profile = std::env::temp_dir().join(name);
        fs::create_dir_all(&profile).expect("a folder for the profile");
        let child = Command::new(find())
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("chromium starts");
        let mut chromium = Chromium { child, profile, port: 0 };
        chromium.port = chromium.wait_for_port();
        chromium
    }

    fn wait_for_port(&mut self) -> u16 {
        let file = self.profile.join("DevToolsActivePort");
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(30) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if let Some(port) = text.lines().next().and_then(|line| line.parse().ok()) {
                return port;
            }
            assert!(
                self.child.try_wait().is_ok_and(|ended| ended.is_none()),
                "chromium ended at once"
            );
            sleep(Duration::from_millis(20));
        }
        panic!("chromium did not say where it listens within 30 s");
    }

    /// The processor time used so far by all of its processes.
    pub fn time(&self) -> Duration {
        // Fields of `/proc/PID/stat` after the name: the 3rd is the process group, the 12th and 13th are the time in
        // 1/100 s.
        let hundredths = |path: PathBuf| -> Option<u64> {
            let text = fs::read_to_string(path.join("stat")).ok()?;
            let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
            let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
            (number(2)? == u64::from(self.child.id())).then_some(number(11)? + number(12)?)
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let sum = processes.filter_map(|process| hundredths(process.path())).sum::<u64>();
        Duration::from_millis(10 * sum)
    }

    /// Opens a tab.
    ///
    /// # Panics
    /// The browser does not answer.
    pub fn page(&self, look: Look) -> Page {
        let address = format!("127.0.0.1:{}", self.port);
        let connect = || TcpStream::connect(&address).expect("chromium listens");
        Page::open(&connect, &address, look)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Kills the process group, because a browser is many processes.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
        let began = Instant::now();
        while fs::remove_dir_all(&self.profile).is_err() && began.elapsed() < Duration::from_secs(3)
        {
            sleep(Duration::from_millis(50));
        }
    }
}

fn find() -> PathBuf {
    const NAMES: &[&str] =
        &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let found = NAMES.iter().find_map(|name| {
        folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file())
    });
    found.expect(
        "Chromium is needed for the tests of the page: install it (apt-get install chromium)",
    )
}
