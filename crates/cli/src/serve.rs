//! `tourbillon serve`: durable timers over HTTP.
//!
//! The server listens only after the store is open, so every client that connects is answered. The data directory is
//! locked for as long as the server runs.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, oneshot};
use tourbillon::VirtualClock;
use tourbillon::tasks::sleep;
use tourbillon_durable::values::Moment;
use tourbillon_durable::{Durable, Limits, OpenError};
use tourbillon_server::{Allow, Api, Connections, Hosts, Secrets, Tls, Tokens, Webhooks};

use crate::{demo, files};

/// The arguments of the command.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory of the store; created if it does not exist.
    pub data: PathBuf,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Further host names that requests may use.
    pub hosts: Vec<String>,
    /// Allows an address other than loopback without tokens.
    pub insecure: bool,
    /// A file of tokens, one per line.
    pub token_file: Option<PathBuf>,
    /// The maximum number of requests per second for each token.
    pub token_rate: Option<u32>,
    /// The PEM files of a certificate and its key, for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The hosts and networks that webhooks may be sent to, besides public addresses.
    pub webhook_allow: Vec<Allow>,
    /// A file of secrets that sign webhooks, one per line.
    pub webhook_secret_file: Option<PathBuf>,
    /// The maximum number of webhook connections to one host.
    pub webhook_connections: usize,
    /// The largest payload in bytes.
    pub max_payload: usize,
    /// The maximum number of timers that are not done or cancelled.
    pub max_timers: u64,
    /// `Some` makes the wall clock settable: it starts at the given moment, or at the system's time.
    pub test_clock: Option<Option<Moment>>,
}

/// In `./tourbillon-data`, on any port of loopback, with the defaults of the server.
impl Default for Settings {
    fn default() -> Self {
        let webhooks = Webhooks::default();
        Settings {
            data: "tourbillon-data".into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            hosts: Vec::new(),
            insecure: false,
            token_file: None,
            token_rate: None,
            tls: None,
            webhook_allow: webhooks.allow,
            webhook_secret_file: None,
            webhook_connections: webhooks.per_host,
            max_payload: tourbillon_server::Settings::default().max_payload,
            max_timers: u64::MAX,
            test_clock: None,
        }
    }
}

/// Why a server did not start, or stopped.
#[derive(Debug)]
pub enum ServeError {
    /// The settings are invalid or contradict each other.
    Settings(String),
    /// The store cannot be opened.
    Store(OpenError),
    /// The server cannot listen on the address.
    Listen(SocketAddr, io::Error),
    /// Another error of the operating system.
    System(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Settings(wrong) => f.write_str(wrong),
            ServeError::Store(error) => error.fmt(f),
            ServeError::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            ServeError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServeError {}

/// Checks for settings that contradict each other, which the command line's parser cannot.
///
/// # Errors
/// The first contradiction.
pub fn check(settings: &Settings) -> Result<(), ServeError> {
    let address = settings.listen;
    let open = !address.ip().is_loopback();
    if open && settings.test_clock.is_some() {
        let why = format!("--test-clock is for tests: it cannot be used with --listen {address}");
        return Err(ServeError::Settings(why));
    }
    if open && !settings.insecure && settings.token_file.is_none() {
        let why = format!(
            "any machine that reaches {address} could use the server: listen on 127.0.0.1, give a --token-file, \
             or --insecure if that is meant"
        );
        return Err(ServeError::Settings(why));
    }
    Ok(())
}

/// Reads a file of tokens.
fn tokens(path: &Path) -> Result<Tokens, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let read = text.and_then(|text| Tokens::parse(&text));
    read.map_err(|wrong| format!("--token-file {}: {wrong}", path.display()))
}

/// Reads a file of secrets.
fn secrets(path: &Path) -> Result<Secrets, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let read = text.and_then(|text| Secrets::parse(&text));
    read.map_err(|wrong| format!("--webhook-secret-file {}: {wrong}", path.display()))
}

/// Serves until `stop` completes.
///
/// Each item of `reload` makes the server read the tokens again. `ready` is called with the scheme and the address once
/// clients can connect.
///
/// # Errors
/// If the settings contradict each other, a file of the settings is invalid, the store cannot be opened, or the server
/// cannot listen on the address.
pub async fn run(
    settings: Settings,
    stop: impl Future<Output = ()>,
    mut reload: mpsc::Receiver<()>,
    ready: impl FnOnce(&str, SocketAddr) -> io::Result<()>,
) -> Result<(), ServeError> {
    check(&settings)?;
    let file = settings.token_file;
    let first = file.as_deref().map(tokens).transpose().map_err(ServeError::Settings)?;
    let tls = settings.tls.map(|(certificate, key)| Tls::from_files(&certificate, &key));
    let tls = tls.transpose().map_err(ServeError::Settings)?;
    let secrets = settings.webhook_secret_file.as_deref().map(secrets).transpose();
    let mut webhooks = Webhooks {
        allow: settings.webhook_allow,
        secrets: secrets.map_err(ServeError::Settings)?.unwrap_or_default(),
        per_host: settings.webhook_connections,
        ..Webhooks::default()
    };
    let mut connections = Connections { tls, ..Connections::default() };
    files::share(files::raise(), &mut connections, &mut webhooks);
    let scheme = if connections.tls.is_some() { "https" } else { "http" };
    let clock = settings.test_clock.map(test_clock);
    let limits = Limits { timers: settings.max_timers, ..Limits::default() };
    let mut builder = Durable::builder().limits(limits);
    if let Some(clock) = &clock {
        builder = builder.clock(clock);
    }
    tracing::info!(data = %settings.data.display(), "opening the store");
    let durable = builder.open(&settings.data).map_err(ServeError::Store)?;
    let listener =
        listen(settings.listen).map_err(|error| ServeError::Listen(settings.listen, error))?;
    let address = listener.local_addr().map_err(ServeError::System)?;
    let mut hosts = settings.hosts;
    hosts.push(address.ip().to_string());
    let api = Api::new(
        durable.clone(),
        tourbillon_server::Settings {
            hosts: Hosts::Only(hosts),
            max_payload: settings.max_payload,
            tokens: first,
            token_rate: settings.token_rate,
            webhooks: Arc::new(webhooks),
            test_clock: clock,
            ..tourbillon_server::Settings::default()
        },
    );
    ready(scheme, address).map_err(ServeError::System)?;
    let (stops, stopped) = oneshot::channel();
    let stop = async {
        stop.await;
        tracing::info!("stopping");
        let _ = stops.send(());
    };
    let router =
        api.router().nest_service("/tour/", api.guard(demo::page(|live| api.guard_socket(live))));
    tokio::spawn(api.log_notices());
    let posting = tokio::spawn(api.post_webhooks());
    let reloading = async {
        while let (Some(()), Some(file)) = (reload.recv().await, &file) {
            match tokens(file) {
                Ok(tokens) => {
                    tracing::info!(?tokens, "the tokens were read again");
                    api.set_tokens(tokens);
                }
                Err(wrong) => tracing::error!("{wrong}: the tokens are what they were"),
            }
        }
        pending::<()>().await;
    };
    let serving = async {
        tokio::select! {
            () = api.serve(listener, router, connections, stop) => {}
            () = reloading => {}
        }
        // Webhook posts in progress had the same time to finish as the connections.
        let _ = posting.await;
        // Acknowledged changes are already durable. Operations in progress are completed.
        close(durable).await.map_err(ServeError::System)
    };
    in_time(stopped, PATIENCE, serving).await.unwrap_or_else(|| {
        tracing::warn!(
            "operations in progress have not ended in time: they are abandoned, as by a crash"
        );
        Ok(())
    })
}

/// Runs a future. `None` if it is not complete within `patience` of the message on `stopped`.
async fn in_time<T>(
    stopped: oneshot::Receiver<()>,
    patience: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let late = async {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
        sleep(patience).await;
    };
    tokio::select! {
        done = future => Some(done),
        () = late => None,
    }
}

/// How long the server may take to end. After that the process may exit in the middle of anything: the store survives
/// it, and what was acknowledged is durable.
const PATIENCE: Duration = Duration::from_millis(4700);

/// Closes the store, on a thread of its own: those of the runtime may all wait for lookups of names.
async fn close(durable: Durable) -> io::Result<()> {
    let (done, closed) = oneshot::channel();
    thread::Builder::new().name("tourbillon-close".into()).spawn(move || {
        durable.close();
        let _ = done.send(());
    })?;
    closed.await.map_err(io::Error::other)
}

/// The length of the accept queue, up to the system's limit. A long one spares a burst of clients a retry after 1 s.
const BACKLOG: u32 = 16_384;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Creates a clock that can be set and keeps running: a virtual clock that a thread advances in real time.
fn test_clock(first: Option<Moment>) -> VirtualClock {
    let clock = VirtualClock::new();
    // Fails only inside a callback.
    let _ = clock.set_wall(first.map_or_else(SystemTime::now, SystemTime::from));
    let moved = clock.clone();
    let mut last = Instant::now();
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(1));
            let now = Instant::now();
            let _ = moved.advance(now - last);
            last = now;
        }
    });
    clock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_abandoned_only_after_the_signal() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let moment = Duration::from_millis(20);
        runtime.block_on(async {
            let (stops, stopped) = oneshot::channel();
            assert_eq!(in_time(stopped, Duration::ZERO, sleep(moment)).await, Some(()));
            drop(stops);
            let (stops, stopped) = oneshot::channel();
            stops.send(()).unwrap();
            assert_eq!(in_time(stopped, moment, pending::<()>()).await, None);
            let (stops, stopped) = oneshot::channel();
            drop(stops);
            assert_eq!(in_time(stopped, Duration::ZERO, sleep(moment)).await, Some(()));
        });
    }
}
