//! The process of the server, and its use of resources.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;
use super::text;
use crate::durable::place::Store;

pub(super) struct Server {
    process: Child,
    pub(super) address: String,
    /// The time from the start of the process until clients can connect.
    pub(super) ready: Duration,
    store: Option<Store>,
}

/// The resources that a process has used so far.
pub(super) struct Used {
    /// Context switches of all threads.
    pub(super) switches: u64,
    pub(super) cpu: Duration,
}

impl Server {
    pub(super) fn start(program: &Path, store: Store, arguments: &[&str]) -> Result<Self, String> {
        let begin = Instant::now();
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(store.path());
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(text)?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("it has no output")?;
        BufReader::new(output).read_line(&mut line).map_err(text)?;
        let address = line.trim().strip_prefix("tourbillon listening on http://");
        let address = address.ok_or("the server does not start")?.to_owned();
        Ok(Server { process, address, ready: begin.elapsed(), store: Some(store) })
    }

    pub(super) fn client(&self) -> Result<Client, String> {
        Client::open(&self.address)
    }

    /// Kills the server with kill -9. The store stays.
    pub(super) fn kill(mut self) -> Result<Store, String> {
        self.process.kill().and_then(|()| self.process.wait()).map_err(text)?;
        self.store.take().ok_or_else(|| "its store is gone".to_owned())
    }

    /// The memory of the process in MiB.
    pub(super) fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) / 1024.0
    }

    pub(super) fn used(&self) -> Result<Used, String> {
        let mut sum = Used { switches: 0, cpu: Duration::ZERO };
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id())).map_err(text)?;
        for thread in threads.flatten() {
            let file = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let status = file("status");
            let switches = status.lines().filter(|line| line.contains("voluntary_ctxt_switches"));
            let count = |line: &str| line.split_once(':')?.1.trim().parse::<u64>().ok();
            sum.switches += switches.filter_map(count).sum::<u64>();
            let schedstat = file("schedstat");
            let nanos = schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok());
            sum.cpu += Duration::from_nanos(nanos.unwrap_or(0));
        }
        Ok(sum)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
