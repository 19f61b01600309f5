//! Asking a server whether it is ready, as who watches over it does: from the same machine, where there may be no other program for that.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::app::Options;

/// How long a server may take to answer.
const WITHIN: Duration = Duration::from_secs(5);

/// The most that is read of an answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Asks the server that listens as these options say whether it is ready; says why not.
pub async fn check(options: &Options) -> Result<(), String> {
    let address = reached_at(options.listen);
    match tokio::time::timeout(WITHIN, ask(address, options)).await {
        Ok(Ok(answer)) => judge(&answer).map_err(|why| format!("the server at {address} is not ready: {why}")),
        Ok(Err(error)) => Err(format!("the server at {address} does not answer: {error}")),
        Err(_) => Err(format!("the server at {address} does not answer within {} seconds", WITHIN.as_secs())),
    }
}

/// Where a server that listens everywhere is reached on this machine.
fn reached_at(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}

async fn ask(address: SocketAddr, options: &Options) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let Some(files) = &options.tls else { return converse(stream, address).await };
    let own = CertificateDer::from_pem_file(&files.certificate).map_err(io::Error::other)?;
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OnlyThis { own: own.into_owned(), provider }))
        .with_no_client_auth();
    let name = ServerName::IpAddress(address.ip().into());
    converse(TlsConnector::from(Arc::new(config)).connect(name, stream).await?, address).await
}

async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, address: SocketAddr) -> io::Result<String> {
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Who hangs up without saying so has answered all the same.
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await;
    read.map(drop).or_else(|error| if answer.is_empty() { Err(error) } else { Ok(()) })?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn judge(answer: &str) -> Result<(), String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    match head.split(' ').nth(1) {
        Some("200") => Ok(()),
        Some(status) => Err(format!("{status} {}", body.trim())),
        None => Err("it is no answer".to_owned()),
    }
}

/// Trusts one certificate: the one that the server is to show.
#[derive(Debug)]
struct OnlyThis {
    own: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OnlyThis {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match *shown == self.own {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::General("it shows another certificate than the one in the file".to_owned())),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_asked_here() {
        let at = |text: &str| reached_at(text.parse().expect("an address")).to_string();
        assert_eq!((at("0.0.0.0:7171"), at("[::]:80")), ("127.0.0.1:7171".to_owned(), "[::1]:80".to_owned()));
        assert_eq!(at("10.0.0.5:7171"), "10.0.0.5:7171");
        assert!(judge("HTTP/1.1 200 OK\r\n\r\n{}").is_ok());
        assert!(
            judge("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":\"stopping\"}")
                .is_err_and(|why| why.contains("stopping"))
        );
        assert!(judge("").is_err());
    }
}
