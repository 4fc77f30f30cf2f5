//! TLS (proto.md, "TLS support"): certificates from a folder whose files have the names that other servers and clients of the
//! protocol use as well (nbdkit-tls(1)).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::error::ServerError;

/// Authorities whose client certificates are accepted.
const AUTHORITIES: &str = "ca-cert.pem";
/// The server's own certificate, with those between it and the authority.
const CERTIFICATE: &str = "server-cert.pem";
/// Its private key.
const KEY: &str = "server-key.pem";

/// Whether clients use TLS.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TlsMode {
    /// There is none.
    #[default]
    Off,
    /// Clients may ask for it.
    On,
    /// Clients that do not ask for it get nowhere.
    Require,
}

/// How TLS is offered, and to whom.
#[derive(Clone, Default, Debug)]
pub struct TlsOptions {
    /// Off unless told.
    pub mode: TlsMode,
    /// The folder of `server-cert.pem` and `server-key.pem`, and of `ca-cert.pem` where clients are verified. Not looked at
    /// while TLS is off.
    pub certificates: PathBuf,
    /// Whether clients must show a certificate that `ca-cert.pem` vouches for. Not unless told.
    pub verify_clients: bool,
}

impl TlsOptions {
    /// Reads the certificates; none where TLS is off.
    pub(super) fn load(&self) -> Result<Option<Arc<ServerConfig>>, ServerError> {
        if self.mode == TlsMode::Off {
            return Ok(None);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let wrong = |file: &str, reason: String| ServerError::Tls { path: self.certificates.join(file), reason };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("", error.to_string()))?;
        let builder = if self.verify_clients {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&self.certificates.join(AUTHORITIES))? {
                roots.add(certificate).map_err(|error| wrong(AUTHORITIES, error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(AUTHORITIES, error.to_string()))?)
        } else {
            builder.with_no_client_auth()
        };
        let chain = certificates(&self.certificates.join(CERTIFICATE))?;
        let path = self.certificates.join(KEY);
        let key = PrivateKeyDer::from_pem_file(&path)
            .map_err(|error| ServerError::Tls { path, reason: error.to_string() })?;
        let config = builder.with_single_cert(chain, key).map_err(|error| wrong(CERTIFICATE, error.to_string()))?;
        Ok(Some(Arc::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let wrong = |reason: String| ServerError::Tls { path: path.into(), reason };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(wrong("the file holds no certificate".into())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(wrong(error.to_string())),
    }
}
