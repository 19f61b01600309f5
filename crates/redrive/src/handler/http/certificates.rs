//! Certificates: authorities of one's own, trusted beside the system's, and what was wrong with a server's certificate in
//! plain words.

use std::error::Error;
use std::io;
use std::path::Path;

use redrive_core::time::Timestamp;
use reqwest::Certificate;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, RootCertStore};

/// Authorities that are trusted beside the system's.
#[derive(Clone, Debug, Default)]
pub struct Authorities(Vec<Certificate>);

impl Authorities {
    /// Reads a PEM file with one certificate or more.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| format!("the authorities {shown} cannot be read: {error}"))?;
        Self::parse(&shown, &bytes)
    }

    /// Reads the content of a PEM file, which messages call by its name.
    pub fn parse(name: &str, pem: &[u8]) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        let mut certificates = Vec::new();
        for (at, found) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let broken = |error: String| format!("certificate {} of the authorities {name} is broken: {error}", at + 1);
            let found = found.map_err(|error| broken(error.to_string()))?;
            let certificate = Certificate::from_der(&found).map_err(|error| broken(error.to_string()))?;
            store.add(found).map_err(|error| broken(error.to_string()))?;
            certificates.push(certificate);
        }
        match certificates.is_empty() {
            true => Err(format!(
                "the authorities {name} have no certificate in them: expected a PEM file with -----BEGIN CERTIFICATE-----"
            )),
            false => Ok(Self(certificates)),
        }
    }

    /// The certificates.
    pub fn certificates(&self) -> impl Iterator<Item = Certificate> + '_ {
        self.0.iter().cloned()
    }
}

/// What was wrong with the encrypted connection, if that is what an error is about: in plain words, with the way out.
pub fn complaint(error: &(dyn Error + 'static)) -> Option<String> {
    Some(match tls_error(error)? {
        rustls::Error::InvalidCertificate(wrong) => format!("the server's certificate {}", about(wrong)),
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS on this port: check the scheme and the port".into()
        }
        rustls::Error::AlertReceived(alert) => format!("the server refused the TLS handshake ({alert:?})"),
        _ => return None,
    })
}

/// The error of the TLS library among an error's sources.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    // An I/O error gives the source of what it wraps, and would skip that itself.
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => tls_error(wrapped),
        None => tls_error(error.source()?),
    }
}

fn about(wrong: &CertificateError) -> String {
    let date = |time: &UnixTime| {
        let millis = i64::try_from(time.as_secs()).unwrap_or(i64::MAX).saturating_mul(1_000);
        Timestamp::from_millis(millis).to_string().chars().take("2038-01-19".len()).collect::<String>()
    };
    match wrong {
        CertificateError::Expired => "has expired: it must be renewed, or this machine's clock set right".into(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("expired on {}: it must be renewed, or this machine's clock set right", date(not_after))
        }
        CertificateError::NotValidYet => "is not valid yet: check this machine's clock".into(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("is not valid before {}: check this machine's clock", date(not_before))
        }
        CertificateError::UnknownIssuer => {
            "is signed by itself, or by an authority that is not trusted here: name its PEM file with `ca`".into()
        }
        CertificateError::NotValidForName => "is for another name than the one that was asked for".into(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names = presented.iter().map(|name| plain_name(name)).collect::<Vec<_>>().join(", ");
            format!("is for {names}, not for {}", expected.to_str())
        }
        CertificateError::Revoked => "was revoked".into(),
        other if other.to_string().contains("CaUsedAsEndEntity") => {
            "is that of an authority (a self-signed one, made without CA:FALSE): use one that the authority signed, and \
             name the authority with `ca`"
                .into()
        }
        other => format!("is not valid: {other}"),
    }
}

/// `DnsName("a.example")` as people write it.
fn plain_name(name: &str) -> &str {
    name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')')).trim_matches('"')
}
