//! `redrive serve`: the API, and what goes on besides.

use std::io;
use std::net::SocketAddr;

use anyhow::Result;
use redrive::CancellationToken;
use redrive::config::Overrides;
use redrive::config::{Setting, TokenFile};
use redrive::worker::Until;
use redrive_core::egress::Egress;
use redrive_server::{App, Options, Server, TlsFiles};
use tokio::signal::unix::{SignalKind, signal};
use url::Url;

use super::{signals, work};
use crate::args::ServeArgs;
use crate::exit::{Exit, usage};
use crate::output::print::say;
use crate::output::typed::place;

pub async fn run(setting: &Setting, args: ServeArgs) -> Result<Exit> {
    run_telling(setting, args, |_, _| Ok(())).await
}

/// Starts a browser script with the server's address, and the path of the page that signs in, if that is needed.
pub async fn run_telling(
    setting: &Setting,
    args: ServeArgs,
    told: impl FnOnce(SocketAddr, &str) -> io::Result<()>,
) -> Result<Exit> {
    let mut options = options(&args)?;
    if args.check {
        return check(&options).await;
    }
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let redrive = setting.redrive_to_work().await?;
    if !redrive.list_tokens().await?.is_empty() {
        TokenFile::remove(&setting.location);
    } else if args.listen.ip().is_loopback() && args.proxy.is_empty() && args.public_url.is_empty() {
        options.token_file = Some(TokenFile::open(&setting.location)?);
    }
    let token_file = options.token_file.clone();
    let worker = match args.work {
        true => Some(work::worker(setting, &redrive, work::Asked::new(Vec::new(), Overrides::default(), None)).await?),
        false => None,
    };
    let app = App::new(redrive, setting.clone(), options)?;
    let mut server = Server::bind(app.clone()).await?;
    let (address, link) = (server.address()?, app.one_time_link().await?);
    let (stop, hurry) = (CancellationToken::new(), worker.as_ref().map(|(worker, _)| worker.hurry()));
    signals::watch(stop.clone(), hurry.unwrap_or_default(), |line| say!("{line}"));
    reread_when_hung_up(app);
    let port = Port::taken(address.port(), token_file.as_ref());
    let working = worker.map(|(worker, names)| {
        say!("working on {}", names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "));
        (tokio::spawn(worker.run(Until::Stopped, stop.clone())), names)
    });
    if let Some((_, names)) = &working {
        server = server.beside_worker(names.iter().cloned());
    }
    say!("serving {} on {scheme}://{address}", setting.location);
    if let (Some(link), Some(file)) = (&link, &token_file) {
        say!("the store has no token yet: open {scheme}://{address}{link} (once, within 10 minutes)");
        say!("programs send what is in {}; redrive --server finds it by itself", file.path().display());
    }
    told(address, link.as_deref().unwrap_or_default())?;
    server.run(stop.clone()).await;
    drop(port);
    if let Some((working, _)) = working {
        working.await??;
    }
    Ok(Exit::Ok)
}

/// The port of a server, under which clients of this user find the token of its store for as long as this is kept.
struct Port(u16);

impl Port {
    fn taken(port: u16, file: Option<&TokenFile>) -> Self {
        match file.map(|file| file.serve_on(port)) {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(%error, "clients have to be told where the token file is"),
            // The server before it may have left one.
            None => TokenFile::leave(port),
        }
        Self(port)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        TokenFile::leave(self.0);
    }
}

fn options(args: &ServeArgs) -> Result<Options> {
    let host = |url: &Url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    };
    let public_hosts: Option<Vec<_>> = args.public_url.iter().map(host).collect();
    let secure = args.public_url.iter().filter(|url| url.scheme() == "https").filter_map(host);
    let prefix = |url: &Url| Some((host(url)?, url.path().trim_end_matches('/').to_owned()));
    let prefixes = args.public_url.iter().filter_map(prefix).filter(|(_, prefix)| !prefix.is_empty());
    let missing = || usage("--public-url names no host: expected one such as https://redrive.example");
    let proxies = (!args.proxy.is_empty()).then(|| Egress::only(&args.proxy)).transpose();
    let files = args.tls_certificate.clone().zip(args.tls_key.clone());
    Ok(Options {
        secure_hosts: secure.collect(),
        prefixes: prefixes.collect(),
        public_hosts: public_hosts.ok_or_else(missing)?,
        proxies: proxies.map_err(|error| usage(format!("--proxy: {error}")))?,
        tls: files.map(|(certificate, key)| TlsFiles { certificate, key }),
        place: place().to_owned(),
        pipelines_max: args.max_pipelines,
        ..Options::listening(args.listen)
    })
}

/// A server that is hung up goes on, and looks at its configuration now: it would have in a moment.
fn reread_when_hung_up(app: App) {
    if let Ok(mut hung_up) = signal(SignalKind::hangup()) {
        tokio::spawn(async move {
            while hung_up.recv().await.is_some() {
                app.reread();
            }
        });
    }
}

/// Asks a server that runs whether it is ready.
async fn check(options: &Options) -> Result<Exit> {
    redrive_server::check(options).await.map_err(anyhow::Error::msg)?;
    Ok(Exit::Ok)
}
