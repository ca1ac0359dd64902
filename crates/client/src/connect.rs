//! Connections to the server, with TLS or without.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    #[cfg(feature = "tls")]
    tls: std::sync::Arc<rustls::ClientConfig>,
}

impl Connector {
    #[cfg(feature = "tls")]
    pub(crate) fn new() -> Result<Self, String> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let ring = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let tls = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Connector { tls: tls.into() })
    }

    #[cfg(not(feature = "tls"))]
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Connector {})
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<Stream>> {
        let https = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or_else(|| io::Error::other("there is no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Both> =
            if https { self.wrap(host, stream).await? } else { Box::new(stream) };
        Ok(TokioIo::new(Stream(stream)))
    }

    #[cfg(feature = "tls")]
    async fn wrap(self, host: String, stream: TcpStream) -> io::Result<Box<dyn Both>> {
        let name = rustls::pki_types::ServerName::try_from(host).map_err(io::Error::other)?;
        let tls = tokio_rustls::TlsConnector::from(self.tls);
        Ok(Box::new(tls.connect(name, stream).await?))
    }

    #[cfg(not(feature = "tls"))]
    async fn wrap(self, _: String, _: TcpStream) -> io::Result<Box<dyn Both>> {
        Err(io::Error::other("https needs the feature `tls` of tourbillon-client"))
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

/// A stream that can be read and written.
trait Both: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

/// A connection.
pub(crate) struct Stream(Box<dyn Both>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
