//! graphile-worker on a PostgreSQL that the bench starts: its functions called by pgbench, and its own worker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::text;

/// The folder of graphile-worker, which is installed by npm if requested.
pub(super) fn graphile(install: bool) -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join("tourbillon-bench-graphile-worker");
    let there = || folder.join("node_modules/.bin/graphile-worker").is_file();
    if !there() && install {
        fs::create_dir_all(&folder).map_err(text)?;
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "graphile-worker@0.16",
            "--prefix",
        ]);
        let _ = npm.arg(&folder).stdout(Stdio::null()).status();
    }
    match there() {
        true => Ok(folder),
        false => Err("graphile-worker is not installed (--install-peers)".to_owned()),
    }
}

/// A PostgreSQL that the bench has started, stopped on drop.
pub(super) struct Database {
    pub(super) url: String,
    port: u16,
    data: PathBuf,
    programs: PathBuf,
}

impl Database {
    pub(super) fn start(under: &Path, port: u16) -> Result<Self, String> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let programs = versions.map(|version| version.path().join("bin")).max();
        let programs = programs.ok_or("PostgreSQL is not installed: apt-get install postgresql")?;
        let data = under.join("postgres");
        fs::create_dir_all(&data).map_err(text)?;
        // PostgreSQL refuses to run as root.
        for folder in [under, &data] {
            let owned = Command::new("chown").arg("postgres").arg(folder).status().map_err(text)?;
            if !owned.success() {
                return Err("PostgreSQL needs root here, to run as its own user".to_owned());
            }
        }
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let database = Database { url, port, data, programs };
        let place = database.data.display().to_string();
        database.run("initdb", &["-A", "trust", "-D", &place])?;
        let options =
            format!("-p {port} -c listen_addresses=127.0.0.1 -c max_connections=200 -k {place}");
        let log = format!("{place}/log");
        database.run("pg_ctl", &["-w", "-D", &place, "-l", &log, "-o", &options, "start"])?;
        Ok(database)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(self.programs.join(program)).args(arguments);
        // `output` would wait for the server, which inherits the pipe and keeps it open.
        let output = match program {
            "pg_ctl" => {
                let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
                return match status.map_err(text)?.success() {
                    true => Ok(String::new()),
                    false => Err("PostgreSQL does not start".to_owned()),
                };
            }
            _ => command.output().map_err(text)?,
        };
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Transactions per second.
    pub(super) fn pgbench(
        &self,
        clients: usize,
        length: Duration,
        script: &str,
    ) -> Result<f64, String> {
        let file = self.data.join("script.sql");
        fs::write(&file, script).map_err(text)?;
        let (clients, seconds) = (clients.to_string(), length.as_secs().to_string());
        let (port, file) = (self.port.to_string(), file.display().to_string());
        let printed = self.run(
            "pgbench",
            &[
                "-n",
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "postgres",
                "-c",
                &clients,
                "-j",
                "2",
                "-T",
                &seconds,
                "-f",
                &file,
                "postgres",
            ],
        )?;
        let tps = printed.lines().find_map(|line| line.strip_prefix("tps = "));
        let tps = tps.and_then(|line| line.split(' ').next()?.parse().ok());
        tps.ok_or_else(|| format!("pgbench said {printed}"))
    }

    /// Jobs per second of graphile-worker's own worker.
    pub(super) fn work(&self, tool: &Path, count: usize) -> Result<f64, String> {
        fs::create_dir_all(tool.join("tasks")).map_err(text)?;
        fs::write(tool.join("tasks/nothing.js"), "module.exports = async () => {};")
            .map_err(text)?;
        let port = self.port.to_string();
        let add = format!(
            "select count(graphile_worker.add_job('nothing', json_build_object('p', repeat('x', 88)))) \
             from generate_series(1, {count})"
        );
        self.run(
            "psql",
            &["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-c", &add, "postgres"],
        )?;
        let begin = Instant::now();
        let mut worker = Command::new(tool.join("node_modules/.bin/graphile-worker"));
        worker.args(["--once", "-j", "64", "-m", "24", "-c", &self.url]).current_dir(tool);
        let status = worker.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(text)?;
        match status.success() {
            true => Ok(count as f64 / begin.elapsed().as_secs_f64()),
            false => Err("its worker failed".to_owned()),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let place = self.data.display().to_string();
        let _ = self.run("pg_ctl", &["-m", "immediate", "-D", &place, "stop"]);
    }
}
