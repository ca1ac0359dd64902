//! A stream whose peer must read: a write without progress within the limit fails, and the connection ends.
//!
//! Once a write has waited for the peer, the peer must also read at a minimum rate, until everything is written.
//! Otherwise a peer that reads a few bytes now and then would hold the memory of a long answer for hours.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tourbillon::tasks::{Sleep, sleep};

pub(crate) struct Patient<S> {
    stream: S,
    limit: Duration,
    /// The minimum rate, in bytes per second.
    rate: u64,
    /// The deadline of the current wait for the peer, if it waits.
    ends: Option<Pin<Box<Sleep>>>,
    /// Since the first wait, if all that was to be written has not been written since.
    burst: Option<Burst>,
}

/// When the peer was first waited for, and the bytes written since.
struct Burst {
    began: Instant,
    written: u64,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, limit: Duration, rate: u64) -> Self {
        Patient { stream, limit, rate: rate.max(1), ends: None, burst: None }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    /// The outcome of a write, or a time-out if the write has waited too long.
    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.ends = None;
            return written;
        }
        let now = Instant::now();
        let burst = self.burst.get_or_insert(Burst { began: now, written: 0 });
        let earned = Duration::from_secs_f64(burst.written as f64 / self.rate as f64);
        let left = (self.limit + earned).saturating_sub(now - burst.began);
        let ends = self.ends.get_or_insert_with(|| Box::pin(sleep(left.min(self.limit))));
        ends.as_mut().poll(context).map(|_| Err(ErrorKind::TimedOut.into()))
    }

    /// As [`judge`](Patient::judge), for written bytes.
    fn count(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let (Poll::Ready(Ok(bytes)), Some(burst)) = (&written, &mut self.burst) {
            burst.written += *bytes as u64;
        }
        self.judge(written, context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.count(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            self.burst = None;
        }
        self.judge(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(ended, context)
    }
}
