//! nginx: TLS with certificates good and bad, HTTP/2, connections that are kept, compression.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::authority::{Authority, self_signed};
use super::{Process, noted, start};

/// The servers of its configuration: without TLS, and with one certificate each.
const CERTIFICATES: [&str; 6] = ["good", "expired", "other-name", "stranger", "self-signed", "self-signed-authority"];

/// A running nginx. Every path answers with JSON: `protocol`, `connection` (its number), `padding`.
pub struct Nginx {
    _process: Process,
    folder: TempDir,
    ports: [u16; CERTIFICATES.len() + 1],
    /// The PEM file of the authority that signed the certificates `good`, `expired` and `other-name`.
    pub ca: PathBuf,
}

impl Nginx {
    /// Starts it.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let authority = Authority::new(path, "authority");
        authority.sign(path, "good", "localhost", 2100);
        authority.sign(path, "expired", "localhost", 2020);
        authority.sign(path, "other-name", "other.example", 2100);
        Authority::new(path, "unknown").sign(path, "stranger", "localhost", 2100);
        self_signed(path, "self-signed", false);
        self_signed(path, "self-signed-authority", true);
        let (process, ports) = start(path, |ports| {
            fs::write(path.join("nginx.conf"), configuration(path.to_str().expect("a text"), &ports)).expect("written");
            let mut command = Command::new("nginx");
            command.arg("-p").arg(path).arg("-c").arg(path.join("nginx.conf"));
            command.args(["-e", "errors.log"]);
            command
        });
        Self { _process: process, ports, ca: authority.pem, folder }
    }

    /// The address without TLS.
    pub fn plain(&self) -> String {
        format!("http://127.0.0.1:{}/", self.ports[0])
    }

    /// The address of the server with a certificate.
    pub fn tls(&self, certificate: &str) -> String {
        let at = CERTIFICATES.iter().position(|name| *name == certificate).expect("a certificate");
        format!("https://localhost:{}/", self.ports[at + 1])
    }

    /// A certificate's PEM file.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.pem"))
    }

    /// What it noted about each request: protocol, connection, content encoding. A text that is not all is waited with.
    pub fn log(&self, is_all: impl Fn(&str) -> bool) -> String {
        noted(&self.folder.path().join("access.log"), is_all)
    }
}

/// A running nginx that passes on what is below a path, without the path, as the docs have it.
pub struct PathProxy {
    _process: Process,
    _folder: TempDir,
    pub port: u16,
}

impl PathProxy {
    /// Starts one before a server.
    pub fn start(path: &str, server: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().to_str().expect("a text").to_owned();
        let (process, [port]) = start(folder.path(), |[port]| {
            let configuration = format!(
                "daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/errors.log;\nevents {{ }}\nhttp {{\n\
                 access_log off; client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;\n\
                 uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;\n\
                 server {{ listen 127.0.0.1:{port}; location {path}/ {{\n\
                 proxy_pass http://{server}/; proxy_http_version 1.1; proxy_set_header Host $http_host;\n\
                 proxy_set_header X-Forwarded-For $remote_addr; }} }} }}\n"
            );
            fs::write(folder.path().join("nginx.conf"), configuration).expect("written");
            let mut command = Command::new("nginx");
            command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf"));
            command.args(["-e", "errors.log"]);
            command
        });
        Self { _process: process, _folder: folder, port }
    }
}

fn configuration(folder: &str, ports: &[u16]) -> String {
    let with_tls = CERTIFICATES.iter().zip(&ports[1..]).map(|(name, port)| {
        format!(
            "server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {folder}/{name}.pem; \
             ssl_certificate_key {folder}/{name}.key; {ANSWER} }}\n"
        )
    });
    let servers: String = with_tls.collect();
    format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/errors.log;\n\
         events {{ }}\n\
         http {{\n\
         log_format seen '$server_protocol $connection $sent_http_content_encoding';\n\
         access_log {folder}/access.log seen;\n\
         client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;\n\
         uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\n\
         default_type application/json; gzip on; gzip_types application/json; gzip_min_length 1;\n\
         server {{ listen 127.0.0.1:{}; {ANSWER} }}\n{servers}}}\n",
        ports[0]
    )
}

const ANSWER: &str = r#"location / { return 200 '{"protocol":"$server_protocol","connection":$connection,"padding":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}'; }"#;
