//! What can be typed about serving.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use url::Url;

pub const SERVE_EXAMPLES: &str = "\
Examples:
  redrive serve                                       on this machine only
  redrive serve --work                                and work on the pipelines of redrive.toml
  redrive serve --check                               whether the one that runs is ready, for a health check
  redrive token create ops --role admin
  redrive serve --listen 0.0.0.0:7171 --tls-certificate chain.pem --tls-key key.pem
  redrive serve --listen 0.0.0.0:7171 --proxy 10.0.0.2 --public-url https://redrive.example

While the store has no token, only its token file lets anybody in: redrive.db-token beside the store, readable by you alone. The
server prints a link that signs a browser in, once; the redrive command finds the file by itself; other programs send what is in
it as Authorization: Bearer TOKEN. Another address than one of this machine, --proxy and --public-url need a token.";

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; another address than one of this machine alone needs a token, and TLS or a proxy
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7171")]
    pub listen: SocketAddr,
    /// Only ask the server that runs, with the same --listen and --tls-certificate, whether it is ready
    #[arg(long, conflicts_with = "work")]
    pub check: bool,
    /// Also work on the pipelines of redrive.toml
    #[arg(long)]
    pub work: bool,
    /// Another address by which the server is reached, through a proxy for example, with its path if it is below one; may be given more
    /// than once
    #[arg(long, value_name = "URL")]
    pub public_url: Vec<Url>,
    /// A PEM file with the certificate of the server, and those that lead to an authority; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// A PEM file with the key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// A proxy that speaks TLS for the server: its address, or a network such as 10.1.0.0/16; other machines are refused then; may be
    /// given more than once
    #[arg(long, value_name = "ADDRESS", conflicts_with = "tls_certificate")]
    pub proxy: Vec<String>,
    /// Pipelines above which no more come into being over the network; those of redrive.toml are not counted
    #[arg(long, value_name = "N", default_value_t = redrive_server::app::PIPELINES_MAX)]
    pub max_pipelines: usize,
}
