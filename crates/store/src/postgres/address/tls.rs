//! How a connection is encrypted and the server known, as libpq means it.
//!
//! A root certificate that is there is checked in every mode; that the name fits only with `verify-full`. Without one, `require` and
//! less encrypt towards whoever answers.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::values::Values;

/// When a connection is encrypted, and what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

const MODES: [(&str, Mode); 6] = [
    ("disable", Mode::Disable),
    ("allow", Mode::Allow),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
];

/// What an address says about encryption.
pub(super) struct Wanted {
    mode: Mode,
    roots: Roots,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    pub(super) negotiation: SslNegotiation,
}

enum Roots {
    OfSystem,
    In(PathBuf),
    /// Those of the user, if there are any.
    OfUser,
}

/// How connections are encrypted.
#[derive(Clone)]
pub(in crate::postgres) struct Tls {
    mode: Mode,
    pub(in crate::postgres) connector: MakeRustlsConnect,
}

impl Wanted {
    pub(super) fn of(values: &Values<'_>) -> Result<Self, String> {
        let said = values.choice("sslmode", &MODES)?;
        let path = |name: &str| values.0.get(name).map(PathBuf::from);
        let roots = match values.0.get("sslrootcert") {
            Some("system") => Roots::OfSystem,
            Some(path) => Roots::In(path.into()),
            None => Roots::OfUser,
        };
        let mode = match (&roots, said) {
            (Roots::OfSystem, None) => Mode::VerifyFull,
            (Roots::OfSystem, Some(weak)) if weak < Mode::VerifyFull => {
                return Err(
                    "sslrootcert=system is for sslmode=verify-full: anybody can have a certificate that it trusts"
                        .into(),
                );
            }
            (_, said) => said.unwrap_or(Mode::Prefer),
        };
        let kinds = [("postgres", SslNegotiation::Postgres), ("direct", SslNegotiation::Direct)];
        let negotiation = values.choice("sslnegotiation", &kinds)?.unwrap_or(SslNegotiation::Postgres);
        if negotiation == SslNegotiation::Direct && mode < Mode::Require {
            return Err("sslnegotiation=direct needs sslmode=require, verify-ca or verify-full".to_owned());
        }
        Ok(Self { mode, roots, certificate: path("sslcert"), key: path("sslkey"), negotiation })
    }

    /// Reads the files. `home` is where the user has certificates of their own, in `.postgresql`.
    pub(super) fn read(&self, home: Option<&Path>) -> Result<Tls, String> {
        let own = |name: &str| home.map(|home| home.join(".postgresql").join(name)).filter(|path| path.exists());
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let config = config.map_err(|error| format!("TLS cannot be used: {error}"))?;
        if self.mode == Mode::Disable {
            let nobody = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
            return Ok(Tls { mode: self.mode, connector: MakeRustlsConnect::new(nobody) });
        }
        let trusted = self.trusted(own("root.crt"))?;
        let check = Arc::new(Check { trusted, name: self.mode == Mode::VerifyFull, provider });
        let config = config.dangerous().with_custom_certificate_verifier(check);
        let certificate = self.certificate.clone().or_else(|| own("postgresql.crt"));
        let mut config = match certificate {
            Some(path) => {
                let key = self.key.clone().or_else(|| own("postgresql.key"));
                let key = key.ok_or_else(|| format!("the certificate {} needs its key: sslkey", path.display()))?;
                let (chain, key) = (certificates(&path)?, private_key(&key)?);
                let wrong = |error| format!("the certificate {} cannot be used: {error}", path.display());
                config.with_client_auth_cert(chain, key).map_err(wrong)?
            }
            None => config.with_no_client_auth(),
        };
        if self.negotiation == SslNegotiation::Direct {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Tls { mode: self.mode, connector: MakeRustlsConnect::new(config) })
    }

    fn trusted(&self, of_user: Option<PathBuf>) -> Result<Option<Trusted>, String> {
        let path =
            match &self.roots {
                Roots::OfSystem => {
                    let found = rustls_native_certs::load_native_certs();
                    return Ok(Some(Trusted::of(found.certs, "the system's")?));
                }
                Roots::In(path) if self.mode < Mode::VerifyCa && !path.exists() => return Ok(None),
                Roots::In(path) => path.clone(),
                Roots::OfUser => match of_user {
                    Some(path) => path,
                    None if self.mode < Mode::VerifyCa => return Ok(None),
                    None => return Err(
                        "the authority of the server's certificate must be named to check it: sslrootcert=FILE, or \
                                    sslrootcert=system for one that this system trusts"
                            .to_owned(),
                    ),
                },
            };
        Ok(Some(Trusted::of(certificates(&path)?, &path.display().to_string())?))
    }
}

impl Tls {
    /// How a server is spoken to: first so, and if that is refused, so.
    pub(in crate::postgres) fn tries(&self, is_local: bool) -> &'static [SslMode] {
        match self.mode {
            _ if is_local => &[SslMode::Disable],
            Mode::Disable => &[SslMode::Disable],
            Mode::Allow => &[SslMode::Disable, SslMode::Require],
            Mode::Prefer => &[SslMode::Prefer, SslMode::Disable],
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => &[SslMode::Require],
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes =
        fs::read(path).map_err(|error| format!("the certificate {} cannot be read: {error}", path.display()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("the certificate {} is broken: {error}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("{} has no certificate: expected -----BEGIN CERTIFICATE-----", path.display())),
        false => Ok(found),
    }
}

/// A key that only its owner may read; one that belongs to root may be read by a group as well.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let unreadable = |error| format!("the key {shown} cannot be read: {error}");
    let found = fs::metadata(path).map_err(unreadable)?;
    let forbidden = if found.uid() == 0 { 0o037 } else { 0o077 };
    if found.mode() & forbidden != 0 {
        return Err(format!("others may read the key {shown}: its mode must be 0600 (or 0640 if it belongs to root)"));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    if String::from_utf8_lossy(&bytes).contains("ENCRYPTED") {
        return Err(format!("the key {shown} is encrypted: use one without a passphrase"));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| format!("the key {shown} is broken: {error}"))
}

/// Certificates that are trusted.
#[derive(Debug)]
struct Trusted {
    roots: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn of(certificates: Vec<CertificateDer<'static>>, place: &str) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        let (taken, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        match taken {
            0 => Err(format!("{place} has no certificate that can be trusted")),
            _ => Ok(Self { roots, certificates }),
        }
    }
}

/// What is checked of a server's certificate.
struct Check {
    trusted: Option<Trusted>,
    /// Whether it must be for the name that was asked for.
    name: bool,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Check {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let signed =
            verify_server_cert_signed_by_trust_anchor(&certificate, &trusted.roots, intermediates, now, algorithms);
        match signed {
            // A certificate that signed itself is trusted if it is the very one that is named: servers are often set up so. Its time
            // was looked at before that it is an authority's.
            Err(error)
                if error.to_string().contains("CaUsedAsEndEntity") && trusted.certificates.contains(end_entity) => {}
            signed => signed?,
        }
        if self.name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
