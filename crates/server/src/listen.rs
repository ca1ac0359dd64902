//! Sockets and connections: their number, and their time limits.
//!
//! The head of a request must arrive in a limited time, so that a slow client cannot hold a connection for long. If
//! only a part of it has arrived by then, the connection is answered 408. A connection that reads nothing of its answer
//! for long, or reads it too slowly, is closed. At the connection limit the next connection is answered 429 and closed;
//! with TLS it is only closed, because a handshake would cost as much as a connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tourbillon::tasks::{sleep, timeout};
use tourbillon_durable::Durable;
use tourbillon_durable::values::Moment;
use tourbillon_hyper::HyperTimer;

use crate::gate::{NOW, Secure};
use crate::patient::Patient;
use crate::problem::{Code, Problem};
use crate::socket::{Gone, Socket};
use crate::tls::Tls;

/// Limits of connections.
#[derive(Clone, Debug)]
pub struct Connections {
    /// Maximum number of connections at once.
    pub most: usize,
    /// How long the head of a request may take to arrive.
    pub head_time: Duration,
    /// How long a client may read nothing of an answer before its connection is closed.
    pub answer_time: Duration,
    /// The minimum rate at which a client must read a long answer, in bytes per second. Its connection is closed after
    /// `answer_time` plus the time that the bytes written so far take at this rate.
    pub answer_rate: u64,
    /// The largest head of a request in bytes, at least 8192.
    pub head_size: usize,
    /// The certificate for HTTPS; `None` for plain HTTP.
    pub tls: Option<Tls>,
}

/// 16 384 connections, 10 s for a head, 30 s for an answer and 128 KiB per second of it, heads of 16 KiB, no TLS.
impl Default for Connections {
    fn default() -> Self {
        let (head_time, answer_time) = (Duration::from_secs(10), Duration::from_secs(30));
        let (answer_rate, head_size) = (128 << 10, 16 << 10);
        Connections { most: 16_384, head_time, answer_time, answer_rate, head_size, tls: None }
    }
}

/// How long connections have to end after the server is asked to stop.
const PATIENCE: Duration = Duration::from_secs(4);

/// Serves a router until `stop` completes. Then accepts no more connections, and gives requests in progress 4 s to end.
/// Remaining connections are dropped before this returns.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Connections,
    clock: Durable,
    stop: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(limits.most));
    let stopping = watch::Sender::new(false);
    let mut connections = JoinSet::new();
    let accepting = async {
        loop {
            let accepted = listener.accept().await;
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, _)) => match Arc::clone(&room).try_acquire_owned() {
                    Ok(place) => {
                        let (router, limits) = (router.clone(), limits.clone());
                        let (stopping, clock) = (stopping.subscribe(), clock.clone());
                        connections.spawn(async move {
                            serve_stream(stream, router, limits, clock, stopping).await;
                            drop(place);
                        });
                    }
                    Err(_) if limits.tls.is_some() => drop(stream),
                    Err(_) => {
                        let detail =
                            "the server has its most connections: close some, or try later";
                        let problem = Problem::new(Code::TooMany, detail);
                        connections.spawn(turn_away(stream, problem, clock.now()));
                    }
                },
                // Either one connection failed, or too many files are open. Other connections continue.
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
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(PATIENCE, ended).await;
    connections.shutdown().await;
}

async fn serve_stream(
    stream: TcpStream,
    router: Router,
    limits: Connections,
    clock: Durable,
    stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let (stream, gone) = Socket::new(stream);
    let service =
        Marked { router: TowerToHyperService::new(router), gone, secure: limits.tls.is_some() };
    match &limits.tls {
        None => connection(stream, service, &limits, clock, stopping).await,
        Some(tls) => {
            let accepting = TlsAcceptor::from(tls.0.clone()).accept(stream);
            if let Ok(Ok(stream)) = timeout(limits.head_time, accepting).await {
                connection(stream, service, &limits, clock, stopping).await;
            }
        }
    }
}

/// Marks every request of a connection with whether it came over TLS, and with how to wait until its client has gone.
struct Marked {
    router: TowerToHyperService<Router>,
    gone: Gone,
    secure: bool,
}

impl Service<Request<Incoming>> for Marked {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.gone.clone());
        if self.secure {
            request.extensions_mut().insert(Secure);
        }
        self.router.call(request)
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    service: Marked,
    limits: &Connections,
    clock: Durable,
    mut stopping: watch::Receiver<bool>,
) {
    let stream = Patient::new(stream, limits.answer_time, limits.answer_rate);
    let mut connection = http1::Builder::new()
        .timer(HyperTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_size.max(8192))
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
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
        // A connection that sent nothing before the time-out gets no answer.
        if let Some(parts) = connection.into_parts().filter(|parts| !parts.read_buf.is_empty()) {
            let detail = "the head of the request did not arrive in time: send it faster";
            let stream = parts.io.into_inner().into_inner();
            turn_away(stream, Problem::new(Code::Timeout, detail), clock.now()).await;
        }
    }
}

/// Sends the reason and closes. Does not wait for a client that reads nothing.
async fn turn_away<S: AsyncWrite + Unpin>(mut stream: S, problem: Problem, now: Moment) {
    let ((status, _, title), body) = (problem.code.parts(), problem.body());
    let head = format!(
        "HTTP/1.1 {status} {title}\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\n\
         {NOW}: {now}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let said = async {
        let _ = stream.write_all((head + &body).as_bytes()).await;
        let _ = stream.shutdown().await;
    };
    let _ = timeout(Duration::from_secs(1), said).await;
}
