//! `redrive serve`: the API, and what goes on besides.

use anyhow::Result;
use redrive::CancellationToken;
use redrive::config::{Overrides, Setting};
use redrive::worker::Until;
use redrive_server::{App, Options, Server};
use tokio::signal::unix::{SignalKind, signal};

use super::{signals, work};
use crate::args::ServeArgs;
use crate::exit::{Exit, usage};
use crate::output::print::say;

pub async fn run(setting: &Setting, args: ServeArgs) -> Result<Exit> {
    let hosts: Vec<_> = args.public_url.iter().filter_map(|url| url.host_str().map(str::to_owned)).collect();
    if hosts.len() < args.public_url.len() {
        return Err(usage("--public-url names no host: expected one such as https://redrive.example"));
    }
    let redrive = setting.redrive_to_work().await?;
    let options = Options { listen: args.listen, public_hosts: hosts };
    let worker = match args.work {
        true => Some(work::worker(setting, &redrive, work::Asked::new(Vec::new(), Overrides::default(), None)).await?),
        false => None,
    };
    let mut server = Server::bind(App::new(redrive, setting.clone(), options)?).await?;
    let address = server.address()?;
    let (stop, hurry) = (CancellationToken::new(), worker.as_ref().map(|(worker, _)| worker.hurry()));
    signals::watch(stop.clone(), hurry.unwrap_or_default(), |line| say!("{line}"));
    stay_when_hung_up();
    let working = worker.map(|(worker, names)| {
        say!("working on {}", names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "));
        (tokio::spawn(worker.run(Until::Stopped, stop.clone())), names)
    });
    if let Some((_, names)) = &working {
        server = server.beside_worker(names.iter().cloned());
    }
    say!("serving {} on http://{address}", setting.location);
    server.run(stop.clone()).await;
    if let Some((working, _)) = working {
        working.await??;
    }
    Ok(Exit::Ok)
}

/// A server that is hung up goes on: that is how others are told to read their configuration, and a changed one is read anyway.
fn stay_when_hung_up() {
    if let Ok(mut hung_up) = signal(SignalKind::hangup()) {
        tokio::spawn(async move { while hung_up.recv().await.is_some() {} });
    }
}
