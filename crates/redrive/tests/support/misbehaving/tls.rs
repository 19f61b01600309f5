//! TLS with a certificate that no client has a reason to trust.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What the server needs for TLS.
#[derive(Clone)]
pub struct Tls {
    pub acceptor: TlsAcceptor,
    pub certificate: CertificateDer<'static>,
}

/// A fresh certificate for `localhost` and 127.0.0.1, signed by itself.
pub fn self_signed() -> Tls {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    // The provider is named, because which one is the process's default is for the code under test to decide.
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a certificate with its key");
    Tls { acceptor: TlsAcceptor::from(Arc::new(config)), certificate: made.cert.der().clone() }
}
