//! A socket whose end can be waited for while nobody reads it.
//!
//! hyper notices that a client has gone only if it has read everything that the client sent. With one byte more than
//! the request it reads nothing until the request is answered, and a poll would take deliveries for nobody.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tourbillon::tasks::sleep;

pub(crate) struct Socket {
    from: Arc<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

/// Waits until the client of a connection has gone.
#[derive(Clone)]
pub(crate) struct Gone(Arc<OwnedReadHalf>);

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> (Self, Gone) {
        let (from, to) = stream.into_split();
        let from = Arc::new(from);
        (Socket { from: from.clone(), to }, Gone(from))
    }
}

impl Gone {
    /// Completes when the client has closed the connection, or its sending half.
    pub(crate) async fn wait(&self) {
        while self.0.ready(Interest::READABLE).await.is_ok_and(|ready| !ready.is_read_closed()) {
            // The client has sent more bytes. Without reading them, only a later look shows whether its end follows.
            sleep(Duration::from_secs(1)).await;
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        // Reads until nothing is left: only then does the system report what comes next, for example the end.
        loop {
            match self.from.try_read(buffer.initialize_unfilled()) {
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(bytes) => buffer.advance(bytes),
                Err(error) if error.kind() != ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                Err(_) if buffer.filled().len() > before => return Poll::Ready(Ok(())),
                Err(_) => ready!((*self.from).as_ref().poll_read_ready(context))?,
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.to).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.to).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.to.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_shutdown(context)
    }
}
