//! TLS by files.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use redrive_core::tokens::Role;
use redrive_server::{App, Options, ServeError, Server, TlsFiles};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::running::Running;

fn pem(kind: &str, bytes: &[u8]) -> String {
    let text = BASE64.encode(bytes);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

/// Writes a certificate for this machine, and its key.
fn make(folder: &Path) -> (TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let files = TlsFiles { certificate: folder.join("chain.pem"), key: folder.join("key.pem") };
    std::fs::write(&files.key, pem("PRIVATE KEY", &made.signing_key.serialize_der())).expect("written");
    std::fs::write(&files.certificate, pem("CERTIFICATE", made.cert.der())).expect("written");
    (files, made.cert.der().clone())
}

/// Asks whether a server is there, as somebody who trusts one certificate.
async fn ask(server: &Running, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("added");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(server.address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let folder = TempDir::new().expect("a folder");
    let (files, first) = make(folder.path());
    let options = Options { tls: Some(files), ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let server = Running::with_options(options).await;
    assert!(ask(&server, &first).await.expect("answered").starts_with("HTTP/1.1 200"));
    let (_, second) = make(folder.path());
    let begun = Instant::now();
    while ask(&server, &second).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the former one is shown");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(ask(&server, &first).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_machines_need_a_token_and_then_tls_or_a_proxy() {
    let server = Running::start().await;
    let everywhere = Options::listening(([0, 0, 0, 0], 0).into());
    let bind = async |options: Options| {
        let setting = redrive::config::Setting::load(None, Some("memory:")).expect("a setting");
        Server::bind(App::new(server.redrive.clone(), setting, options).expect("an app")).await.map(drop)
    };
    assert!(matches!(bind(everywhere.clone()).await, Err(ServeError::OpenToAll(_))));
    let here = Options::listening(([127, 0, 0, 1], 0).into());
    let through = Options { proxies: redrive_core::egress::Egress::only(&["127.0.0.1"]).ok(), ..here.clone() };
    assert!(matches!(bind(through).await, Err(ServeError::ProxyToAll)));
    let named = Options { public_hosts: vec!["redrive.example".to_owned()], ..here };
    assert!(matches!(bind(named).await, Err(ServeError::ProxyToAll)));
    server.token("ops", Role::Admin, &[]).await;
    assert!(matches!(bind(everywhere.clone()).await, Err(ServeError::InTheClear(_))));
    let proxies = redrive_core::egress::Egress::only(&["10.0.0.2"]).ok();
    assert!(bind(Options { proxies, ..everywhere.clone() }).await.is_ok());
    let folder = TempDir::new().expect("a folder");
    let (files, _) = make(folder.path());
    assert!(bind(Options { tls: Some(files.clone()), ..everywhere.clone() }).await.is_ok());
    std::fs::write(&files.key, "nothing").expect("written");
    let Err(ServeError::Tls(why)) = bind(Options { tls: Some(files), ..everywhere }).await else { panic!("refused") };
    assert!(why.contains("key.pem has no private key"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_believes_the_certificate_that_the_server_is_to_show_and_no_other() {
    let (folder, elsewhere) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let (files, _) = make(folder.path());
    let (others, _) = make(elsewhere.path());
    let options = |tls: Option<TlsFiles>, listen| Options { tls, ..Options::listening(listen) };
    let server = Running::with_options(options(Some(files.clone()), ([127, 0, 0, 1], 0).into())).await;
    let check = async |tls: Option<TlsFiles>| redrive_server::check(&options(tls, server.address)).await;
    assert_eq!(check(Some(files)).await, Ok(()));
    let refused = check(Some(others)).await.expect_err("another certificate");
    assert!(refused.contains("does not answer"), "{refused}");
    assert!(check(None).await.is_err(), "it speaks TLS only");
}
