//! Sockets and connections: how many, and for how long.
//!
//! A connection has a limited time to send the head of a request, so that a slow client only wastes its own; one that
//! has begun a request by then is answered 408. At the most connections the next one is answered 429 and closed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tourbillon::tasks::{HyperTimer, sleep, timeout};

use crate::problem::{Code, Problem};
use crate::tls::Tls;

/// Limits of connections.
#[derive(Clone, Debug)]
pub struct Connections {
    /// The most at once.
    pub most: usize,
    /// How long the head of a request may take.
    pub head_time: Duration,
    /// The largest head of a request in bytes, at least 8192.
    pub head_size: usize,
    /// HTTPS, with this certificate.
    pub tls: Option<Tls>,
}

/// 16 384 at once, 10 s, 64 KiB, no TLS.
impl Default for Connections {
    fn default() -> Self {
        let head_time = Duration::from_secs(10);
        Connections { most: 16_384, head_time, head_size: 64 << 10, tls: None }
    }
}

/// How long connections have to end after the server is told to stop.
const PATIENCE: Duration = Duration::from_secs(4);

/// Serves a router until `stop` ends; then takes no more connections, and gives requests under way 4 s.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Connections,
    stop: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(limits.most));
    let stopping = watch::Sender::new(false);
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => match Arc::clone(&room).try_acquire_owned() {
                    Ok(place) => {
                        let (router, limits) = (router.clone(), limits.clone());
                        let stopping = stopping.subscribe();
                        tokio::spawn(async move {
                            accepted(stream, router, limits, stopping).await;
                            drop(place);
                        });
                    }
                    Err(_) => {
                        let detail =
                            "the server has its most connections: close some, or try later";
                        tokio::spawn(turn_away(stream, Problem::new(Code::TooMany, detail)));
                    }
                },
                // Of one connection, or too many open files: neither is the end of the others.
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stop => {}
    }
    drop(listener);
    stopping.send_replace(true);
    let most = u32::try_from(limits.most).unwrap_or(u32::MAX);
    let _ = timeout(PATIENCE, room.acquire_many(most)).await;
}

async fn accepted(
    stream: TcpStream,
    router: Router,
    limits: Connections,
    stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    match &limits.tls {
        None => connection(stream, router, &limits, stopping).await,
        Some(tls) => {
            let accepting = TlsAcceptor::from(tls.0.clone()).accept(stream);
            if let Ok(Ok(stream)) = timeout(limits.head_time, accepting).await {
                connection(stream, router, &limits, stopping).await;
            }
        }
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    router: Router,
    limits: &Connections,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connection = http1::Builder::new()
        .timer(HyperTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_size.max(8192))
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let stopped = async {
        let _ = stopping.wait_for(|stopping| *stopping).await;
    };
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = stopped => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    if ended.is_err_and(|error| error.is_timeout()) {
        let parts = connection.into_parts();
        // One that was idle has asked for nothing.
        if !parts.read_buf.is_empty() {
            let detail = "the head of the request did not arrive in time: send it faster";
            turn_away(parts.io.into_inner(), Problem::new(Code::Timeout, detail)).await;
        }
    }
}

/// Says why, and closes; a client that does not take it is not waited for.
async fn turn_away<S: AsyncWrite + Unpin>(mut stream: S, problem: Problem) {
    let ((status, _, title), body) = (problem.code.parts(), problem.body());
    let head = format!(
        "HTTP/1.1 {status} {title}\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let said = async {
        let _ = stream.write_all((head + &body).as_bytes()).await;
        let _ = stream.shutdown().await;
    };
    let _ = timeout(Duration::from_secs(1), said).await;
}
