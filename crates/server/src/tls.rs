//! TLS by files: a chain of certificates and its key, read again when they were renewed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Where a certificate and its key are.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// A PEM file with the server's certificate, and those that lead from it to an authority.
    pub certificate: PathBuf,
    /// A PEM file with its key.
    pub key: PathBuf,
}

/// What a server shows who connects.
pub struct Tls {
    files: TlsFiles,
    read: RwLock<Read>,
}

/// What was read, and of which age it was.
struct Read {
    config: Arc<ServerConfig>,
    changed: [Option<SystemTime>; 2],
}

impl Tls {
    /// Reads the files; says what is wrong with them.
    pub fn read(files: TlsFiles) -> Result<Self, String> {
        let read = RwLock::new(read(&files)?);
        Ok(Self { files, read })
    }

    /// What connections are accepted with.
    pub fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.read.read().unwrap_or_else(PoisonError::into_inner).config).into()
    }

    /// Reads the files again if they changed; says whether they did. If they are broken, the former ones stay.
    pub fn follow(&self) -> Result<bool, String> {
        let known = self.read.read().unwrap_or_else(PoisonError::into_inner).changed;
        if changed(&self.files) == known {
            return Ok(false);
        }
        let next = read(&self.files)?;
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(true)
    }
}

fn changed(TlsFiles { certificate, key }: &TlsFiles) -> [Option<SystemTime>; 2] {
    [certificate, key].map(|path| std::fs::metadata(path).and_then(|found| found.modified()).ok())
}

fn read(files: &TlsFiles) -> Result<Read, String> {
    // Before they are read: what changes meanwhile is read again.
    let changed = changed(files);
    let (certificate, key) = (files.certificate.display(), files.key.display());
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes(&files.certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{certificate} is no PEM file: {error}"))?;
    if chain.is_empty() {
        return Err(format!("{certificate} has no certificate in it: expected -----BEGIN CERTIFICATE-----"));
    }
    let private = PrivateKeyDer::from_pem_slice(&bytes(&files.key)?)
        .map_err(|_| format!("{key} has no private key in it: expected a PEM file with -----BEGIN PRIVATE KEY-----"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| format!("{key} is not the key of {certificate}, or cannot be used: {error}"))?;
    Ok(Read { config: Arc::new(config), changed })
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}
