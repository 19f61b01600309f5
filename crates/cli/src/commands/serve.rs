//! `redrive serve`: the API, and what goes on besides.

use std::io;
use std::net::SocketAddr;

use anyhow::Result;
use redrive::CancellationToken;
use redrive::config::Overrides;
use redrive::config::Setting;
use redrive::worker::Until;
use redrive_core::egress::Egress;
use redrive_server::{App, Options, Server, TlsFiles};
use tokio::signal::unix::{SignalKind, signal};
use url::Url;

use super::{signals, work};
use crate::args::ServeArgs;
use crate::exit::{Exit, usage};
use crate::output::print::say;

pub async fn run(setting: &Setting, args: ServeArgs) -> Result<Exit> {
    run_telling(setting, args, |_| Ok(())).await
}

/// The same that is told where it listens.
pub async fn run_telling(
    setting: &Setting,
    args: ServeArgs,
    told: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> Result<Exit> {
    let options = options(&args)?;
    if args.check {
        return check(&options).await;
    }
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let redrive = setting.redrive_to_work().await?;
    let worker = match args.work {
        true => Some(work::worker(setting, &redrive, work::Asked::new(Vec::new(), Overrides::default(), None)).await?),
        false => None,
    };
    let app = App::new(redrive, setting.clone(), options)?;
    let mut server = Server::bind(app.clone()).await?;
    let address = server.address()?;
    let (stop, hurry) = (CancellationToken::new(), worker.as_ref().map(|(worker, _)| worker.hurry()));
    signals::watch(stop.clone(), hurry.unwrap_or_default(), |line| say!("{line}"));
    reread_when_hung_up(app);
    let working = worker.map(|(worker, names)| {
        say!("working on {}", names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "));
        (tokio::spawn(worker.run(Until::Stopped, stop.clone())), names)
    });
    if let Some((_, names)) = &working {
        server = server.beside_worker(names.iter().cloned());
    }
    say!("serving {} on {scheme}://{address}", setting.location);
    told(address)?;
    server.run(stop.clone()).await;
    if let Some((working, _)) = working {
        working.await??;
    }
    Ok(Exit::Ok)
}

fn options(args: &ServeArgs) -> Result<Options> {
    let host = |url: &Url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    };
    let public_hosts: Option<Vec<_>> = args.public_url.iter().map(host).collect();
    let secure = args.public_url.iter().filter(|url| url.scheme() == "https").filter_map(host);
    let missing = || usage("--public-url names no host: expected one such as https://redrive.example");
    let proxies = (!args.proxy.is_empty()).then(|| Egress::only(&args.proxy)).transpose();
    let files = args.tls_certificate.clone().zip(args.tls_key.clone());
    Ok(Options {
        secure_hosts: secure.collect(),
        public_hosts: public_hosts.ok_or_else(missing)?,
        proxies: proxies.map_err(|error| usage(format!("--proxy: {error}")))?,
        tls: files.map(|(certificate, key)| TlsFiles { certificate, key }),
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
