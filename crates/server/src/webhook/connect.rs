//! Resolving, checking and connecting: connects to exactly the address that was checked.
//!
//! A connection holds a place of its host and one of the server until it is closed, and a lookup holds its places until
//! the system answers it, though nobody waits for it any more. If no place becomes free in time, or the process may
//! open no more files, that is no fault of the receiver: the error is [`Short`].
//!
//! Proxy settings in the environment are ignored.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tourbillon::tasks::timeout;
use tower_service::Service;

use super::Webhooks;
use super::address::{Allow, literal, may_connect};
use super::hosts::{Host, Hosts};

/// How long a connection may take, whoever waits for it. The client finishes a connection in the background if another
/// one becomes idle first.
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum number of lookups at once. They take a thread each, of the 512 that also read dumps.
const LOOKUPS: usize = 64;

tokio::task_local! {
    /// How long a connection that the post makes may wait for its places.
    pub(super) static PATIENCE_FOR_PLACES: Duration;
}

/// The server was short of places or files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short;

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server has no place for another connection or lookup")
    }
}

impl Error for Short {}

/// Whether an error means that the server itself was short of something.
pub(super) fn is_short(error: &(dyn Error + 'static)) -> bool {
    // EMFILE and ENFILE, on every system that has them.
    let files = |error: &io::Error| cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24));
    let mut next = Some(error);
    while let Some(error) = next {
        let short = |error: &io::Error| {
            files(error) || error.get_ref().is_some_and(|inner| inner.is::<Short>())
        };
        if error.downcast_ref::<io::Error>().is_some_and(short) {
            return true;
        }
        next = error.source();
    }
    false
}

type Resolve = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks names up.
#[derive(Clone)]
pub(super) struct Lookups {
    resolve: Arc<Resolve>,
    places: Arc<Semaphore>,
}

/// Asks the system.
impl Default for Lookups {
    fn default() -> Self {
        Lookups::by(|name, port| Ok((name, port).to_socket_addrs()?.collect()))
    }
}

impl Lookups {
    pub(super) fn by(
        resolve: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Lookups { resolve: Arc::new(resolve), places: Arc::new(Semaphore::new(LOOKUPS)) }
    }

    async fn find(
        &self,
        host: Arc<Host>,
        name: String,
        port: u16,
        until: Instant,
    ) -> io::Result<Vec<SocketAddr>> {
        let places = [place(&host.lookups, until).await?, place(&self.places, until).await?];
        let resolve = self.resolve.clone();
        let found = spawn_blocking(move || {
            let found = resolve(&name, port);
            // The host is kept until here, so that its places are not forgotten.
            drop((places, host));
            found
        });
        found.await.map_err(io::Error::other)?.map_err(|error| {
            // The system may name another reason if it can open no file for the lookup.
            match std::fs::File::open("/dev/null") {
                Err(files) if is_short(&files) => files,
                _ => error,
            }
        })
    }
}

/// Waits for a place until that moment.
async fn place(places: &Arc<Semaphore>, until: Instant) -> io::Result<OwnedSemaphorePermit> {
    let left = until.saturating_duration_since(Instant::now());
    match timeout(left, places.clone().acquire_owned()).await {
        Ok(Ok(place)) => Ok(place),
        _ => Err(io::Error::other(Short)),
    }
}

/// Makes connections to webhooks' hosts.
#[derive(Clone)]
pub(super) struct Connector {
    allow: Arc<[Allow]>,
    tls: Arc<rustls::ClientConfig>,
    hosts: Arc<Hosts>,
    lookups: Lookups,
    /// Held by the sockets to all hosts.
    sockets: Arc<Semaphore>,
    pub(super) longest: Duration,
}

impl Connector {
    pub(super) fn new(
        settings: &Webhooks,
        hosts: Arc<Hosts>,
        lookups: Lookups,
        tls: Arc<rustls::ClientConfig>,
    ) -> Self {
        // As many as there are posts can be busy; as many again can be idle, of other hosts, until they are closed.
        let most = settings.most.clamp(1, Semaphore::MAX_PERMITS / 2) * 2;
        let (allow, sockets) = (settings.allow.clone().into(), Arc::new(Semaphore::new(most)));
        Connector { allow, tls, hosts, lookups, sockets, longest: LONGEST }
    }

    async fn connect(self, uri: Uri, patience: Duration) -> io::Result<TokioIo<Stream>> {
        let until = Instant::now() + patience;
        let https = uri.scheme_str() == Some("https");
        let name = uri.host().ok_or_else(|| io::Error::other("there is no host"))?;
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let plain = name.trim_start_matches('[').trim_end_matches(']');
        let host = self.hosts.of_uri(&uri);
        let addresses = match literal(name) {
            Some(address) => vec![(address, port).into()],
            None => self.lookups.find(host.clone(), plain.to_owned(), port, until).await?,
        };
        let of_host = place(&host.sockets, until).await?;
        let of_all = place(&self.sockets, until).await?;
        let places = Places { _places: [of_host, of_all], _host: host };
        let stream = self.open(name, addresses).await?;
        stream.set_nodelay(true)?;
        let socket = if https {
            let name = ServerName::try_from(plain.to_owned()).map_err(io::Error::other)?;
            let stream = TlsConnector::from(self.tls).connect(name, stream).await?;
            Socket::Tls(Box::new(stream))
        } else {
            Socket::Plain(stream)
        };
        Ok(TokioIo::new(Stream { socket, _places: places }))
    }

    /// Connects to the first allowed address that answers.
    async fn open(&self, host: &str, addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
        let mut failed = io::Error::other("its address is not public");
        for address in addresses {
            if !may_connect(host, address.ip(), &self.allow) {
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let longest = self.longest;
        let patience = PATIENCE_FOR_PLACES.try_with(|patience| *patience).unwrap_or(longest);
        let connecting = self.clone().connect(uri, patience);
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it took too long to connect");
            timeout(longest, connecting).await.map_err(late)?
        })
    }
}

/// The places of a socket, freed when it is closed.
struct Places {
    _places: [OwnedSemaphorePermit; 2],
    /// Kept, so that the host's places are not forgotten.
    _host: Arc<Host>,
}

/// A connection, with TLS or without.
pub(super) struct Stream {
    // Closed before its places are free.
    socket: Socket,
    _places: Places,
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Calls a method on the inner connection.
macro_rules! within {
    ($stream:expr, $inner:ident => $call:expr) => {
        match &mut $stream.get_mut().socket {
            Socket::Plain($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
            Socket::Tls($inner) => {
                let $inner = Pin::new(&mut **$inner);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        within!(self, inner => inner.poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        within!(self, inner => inner.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        within!(self, inner => inner.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        within!(self, inner => inner.poll_shutdown(context))
    }
}
