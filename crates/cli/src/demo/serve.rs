//! Sockets and connections: how many, and for how long.
//!
//! A connection serves one request. It has [`PATIENCE`] to send its head and to receive the answer, so that a slow
//! client delays only itself. Beyond [`MOST_CONNECTIONS`], a new connection gets an error and is closed. A connection
//! that becomes a WebSocket no longer counts: sessions of the page have their own limit.

use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::{PORT, assets};

/// The maximum number of concurrent connections, apart from sessions.
pub const MOST_CONNECTIONS: usize = 128;
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Listens on `port` of `address`. Without a port, listens on [`PORT`], or on any other if that one is taken.
///
/// # Errors
/// If the address does not belong to this machine, or the port is taken or not allowed.
pub async fn listen(address: IpAddr, port: Option<u16>) -> io::Result<TcpListener> {
    let bind = |port| TcpListener::bind(SocketAddr::new(address, port));
    match (port, bind(port.unwrap_or(PORT)).await) {
        (None, Err(error)) if error.kind() == ErrorKind::AddrInUse => bind(0).await,
        (_, bound) => bound,
    }
}

/// Serves the page for as long as it is polled.
pub async fn serve(listener: TcpListener) {
    let service = TowerToHyperService::new(assets::router());
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // One connection failed, or too many files are open. The other connections continue.
            Err(_) => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            turn_away(stream);
            continue;
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .keep_alive(false)
            .max_buf_size(16 << 10)
            .serve_connection(TokioIo::new(stream), service.clone())
            .with_upgrades();
        tokio::spawn(async move {
            // An error ends only this connection, and is the client's concern.
            let _ = timeout(PATIENCE, connection).await;
            drop(place);
        });
    }
}

/// Sends the reason, as far as that is possible without blocking.
fn turn_away(stream: TcpStream) {
    const FULL: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 10\r\n\
        Content-Type: text/plain\r\nContent-Length: 31\r\n\r\ntoo many connections, try later";
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(FULL);
    }
}
