//! TLS: a certificate and its key, from PEM files.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate and its key, for [`Api::serve`](crate::Api::serve).
#[derive(Clone)]
pub struct Tls(pub(crate) Arc<ServerConfig>);

impl Tls {
    /// Reads PEM files: a certificate chain, and the key of the certificate.
    ///
    /// # Errors
    /// A file cannot be read or is not PEM, or the key does not match the certificate.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, String> {
        let wrong = |path: &Path, wrong: &dyn fmt::Display| format!("{}: {wrong}", path.display());
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain: Vec<CertificateDer<'static>> =
            chain.map_err(|error| wrong(certificate, &error))?;
        if chain.is_empty() {
            return Err(wrong(certificate, &"there is no certificate in it"));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
        let mut config = config.map_err(|error| wrong(key, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(Arc::new(config)))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
