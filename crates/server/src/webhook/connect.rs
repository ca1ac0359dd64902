//! Resolving, checking and connecting: connects to exactly the address that was checked.
//!
//! Proxy settings in the environment are ignored.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::address::{Allow, literal, may_connect};

/// Makes connections to webhooks' hosts.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) allow: Arc<[Allow]>,
    pub(super) tls: Arc<rustls::ClientConfig>,
}

impl Connector {
    async fn connect(self, uri: Uri) -> io::Result<TokioIo<Stream>> {
        let https = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or_else(|| io::Error::other("there is no host"))?;
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        let stream = self.open(host, plain, port).await?;
        stream.set_nodelay(true)?;
        if !https {
            return Ok(TokioIo::new(Stream::Plain(stream)));
        }
        let name = ServerName::try_from(plain.to_owned()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(self.tls).connect(name, stream).await?;
        Ok(TokioIo::new(Stream::Tls(Box::new(stream))))
    }

    /// Connects to the first allowed address that answers.
    async fn open(&self, host: &str, plain: &str, port: u16) -> io::Result<TcpStream> {
        let addresses: Vec<_> = match literal(host) {
            Some(address) => vec![(address, port).into()],
            None => lookup_host((plain, port)).await?.collect(),
        };
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
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection, with TLS or without.
pub(super) enum Stream {
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
        match $stream.get_mut() {
            Stream::Plain($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
            Stream::Tls($inner) => {
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
