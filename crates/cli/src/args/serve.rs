//! What can be typed about serving.

use std::net::SocketAddr;

use clap::Args;
use url::Url;

pub const SERVE_EXAMPLES: &str = "\
Examples:
  redrive serve                                       on this machine only
  redrive serve --work                                and work on the pipelines of redrive.toml
  redrive token create ops --role admin ; redrive serve --listen 0.0.0.0:7171

While the store has never had a token, whoever reaches the server may do everything: it listens on this machine only then. Make a
token before you put a proxy in front of it, and on machines with other users.";

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; another address than one of this machine alone needs a token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7171")]
    pub listen: SocketAddr,
    /// Also work on the pipelines of redrive.toml
    #[arg(long)]
    pub work: bool,
    /// Another address by which the server is reached, through a proxy for example; may be given more than once
    #[arg(long, value_name = "URL")]
    pub public_url: Vec<Url>,
}
