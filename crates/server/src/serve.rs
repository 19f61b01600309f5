//! The socket, and what goes on besides answering: letters of replays are sent, leases that ran out are taken back, chores are done,
//! alerts judged and told.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use redrive::config::{Followed, Setting};
use redrive::worker::Until;
use redrive::worker::reload::Source;
use redrive::{CancellationToken, Redrive};
use redrive_core::ids::PipelineName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::app::{App, Options, Patience};
use crate::guard::{Peer, is_through_proxy};
use crate::impatient::Impatient;
use crate::places::{Place, Places};
use crate::router;
use crate::tls::Tls;

/// The most headers of a request.
const HEADERS_MAX: usize = 64;

/// The most that is kept of a request that is still arriving, in bytes; its head has to fit.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// The most connections at once.
const CONNECTIONS_MAX: usize = 2_048;

/// How long requests that are under way may take to end.
const DRAIN_WITHIN: Duration = Duration::from_secs(20);

/// How long tries that run here may take to keep what was tried, once they are to stop.
const TRIES_END_WITHIN: Duration = Duration::from_secs(3);

/// How often it is looked whether a certificate was renewed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long to wait after a connection could not be accepted, because there are too many files open for example.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a server cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It is to be reached from elsewhere, and everybody who reaches it could do everything.
    #[error(
        "{0} can be reached from other machines, and the store has no token: make one first, or listen on 127.0.0.1"
    )]
    OpenToAll(SocketAddr),
    /// It is to be reached through a proxy, and everybody who reaches that would look as if they were on this machine.
    #[error("--proxy and --public-url need a token in the store: make one first, with `redrive token create`")]
    ProxyToAll,
    /// It is to be reached from elsewhere, and tokens would go over the network as they are.
    #[error(
        "{0} can be reached from other machines, and what they send could be read on the way: name a certificate and its key, or \
         the proxy that has them"
    )]
    InTheClear(SocketAddr),
    /// Its certificate or key cannot be used.
    #[error("{0}")]
    Tls(String),
    /// It cannot listen there.
    #[error("cannot listen on {listen}")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] redrive::Error),
}

/// A server that listens.
pub struct Server {
    app: App,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    /// Pipelines that a worker of this process works on, and looks after.
    worked_on: BTreeSet<PipelineName>,
}

impl Server {
    /// Begins to listen where the options say. Another address than one of this machine alone needs a token in the store, and TLS or a
    /// proxy that has it.
    pub async fn bind(app: App) -> Result<Self, ServeError> {
        let Options { listen, proxies, tls, public_hosts, .. } = app.options().clone();
        let (is_reached, is_public) = (!listen.ip().is_loopback(), proxies.is_some() || !public_hosts.is_empty());
        if (is_reached || is_public) && app.redrive().list_tokens().await?.is_empty() {
            return Err(if is_reached { ServeError::OpenToAll(listen) } else { ServeError::ProxyToAll });
        }
        if is_reached && tls.is_none() && proxies.is_none() {
            return Err(ServeError::InTheClear(listen));
        }
        let tls = tls.map(Tls::read).transpose().map_err(ServeError::Tls)?.map(Arc::new);
        let listener = TcpListener::bind(listen).await.map_err(|source| ServeError::Listen { listen, source })?;
        Ok(Self { app, listener, tls, worked_on: BTreeSet::new() })
    }

    /// The same beside a worker of this process that works on these pipelines.
    pub fn beside_worker(self, worked_on: impl IntoIterator<Item = PipelineName>) -> Self {
        Self { worked_on: worked_on.into_iter().collect(), ..self }
    }

    /// Where it listens: the port is the one that the system chose if none was named.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is cancelled; then takes nothing more, and lets what is under way end.
    pub async fn run(self, stop: CancellationToken) {
        let Self { app, listener, tls, worked_on } = self;
        let upkeep = tokio::spawn(look_after(app.clone(), worked_on, stop.clone()));
        if let Some(tls) = tls.clone() {
            tokio::spawn(follow(tls, stop.clone()));
        }
        let service = TowerToHyperService::new(router(app.clone()));
        let most = places(files_max());
        let (under_way, places) = (GracefulShutdown::new(), Places::new(most));
        // Those that are told to end may take a moment for it.
        let open = Arc::new(Semaphore::new(most + most.div_ceil(8)));
        loop {
            let accepted = async {
                let one = Arc::clone(&open).acquire_owned().await.ok()?;
                Some((one, listener.accept().await))
            };
            let (one, stream, peer) = tokio::select! {
                () = stop.cancelled() => break,
                accepted = accepted => match accepted {
                    Some((one, Ok((stream, peer)))) => (one, stream, Peer(peer.ip().to_canonical())),
                    Some((_, Err(error))) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                    None => break,
                },
            };
            let place = places.enter((!is_through_proxy(app.options(), peer)).then_some(peer.0));
            let service = WithPeer { service: service.clone(), peer, place: place.clone() };
            let (tls, under_way, patience) = (tls.clone(), under_way.watcher(), app.options().patience);
            tokio::spawn(async move {
                tokio::select! {
                    () = place.ended() => tracing::debug!("a connection was ended: there are too many"),
                    () = serve_one(stream, tls, service, (under_way, patience)) => {}
                }
                drop(one);
            });
        }
        drop(listener);
        app.stopping().cancel();
        if tokio::time::timeout(DRAIN_WITHIN, under_way.shutdown()).await.is_err() {
            tracing::warn!("some requests took too long and were cut off");
        }
        // Requests whose clients have disconnected may still run.
        if tokio::time::timeout(DRAIN_WITHIN, app.all_done()).await.is_err() {
            tracing::warn!("some requests of disconnected clients took too long and were cut off");
        }
        if tokio::time::timeout(TRIES_END_WITHIN, app.trying().all_ended()).await.is_err() {
            tracing::warn!("some tries took too long to stop and were cut off");
        }
        if let Err(panic) = upkeep.await {
            tracing::warn!(%panic, "looking after pipelines ended");
        }
    }
}

/// How many files this process may have open at once, if there is a limit.
fn files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// How many connections there may be at once: whoever opens them and sends nothing leaves the store, the vault and handlers the files
/// that they need.
fn places(files_max: Option<u64>) -> usize {
    let half = files_max.and_then(|files| usize::try_from(files / 2).ok()).unwrap_or(CONNECTIONS_MAX);
    CONNECTIONS_MAX.min(half).max(1)
}

/// What answers the requests of one connection.
struct WithPeer {
    service: TowerToHyperService<axum::Router>,
    peer: Peer,
    place: Place,
}

impl Service<Request<Incoming>> for WithPeer {
    type Response = <TowerToHyperService<axum::Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<axum::Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<axum::Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(self.place.clone());
        self.service.call(request)
    }
}

async fn serve_one(stream: TcpStream, tls: Option<Arc<Tls>>, service: WithPeer, watched: (Watcher, Patience)) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection waits for more to send");
    }
    let Some(tls) = tls else { return converse(stream, service, watched).await };
    match tokio::time::timeout(watched.1.head, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, service, watched).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection was not made"),
        Err(_) => tracing::debug!("a connection was not made in time"),
    }
}

async fn converse<S>(stream: S, service: WithPeer, (under_way, patience): (Watcher, Patience))
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER_BYTES_MAX);
    let stream = TokioIo::new(Impatient::new(stream, patience.taken));
    if let Err(error) = under_way.watch(http.serve_connection(stream, service)).await {
        tracing::debug!(%error, "a connection ended");
    }
}

/// Reads a certificate again when it was renewed.
async fn follow(tls: Arc<Tls>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        wait(&stop, LOOK_EVERY).await;
        match tls.follow() {
            Ok(true) => tracing::info!("the certificate was renewed, and is shown from now on"),
            Ok(false) => {}
            Err(why) => tracing::warn!(why, "the certificate changed, but cannot be used: the former one stays"),
        }
    }
}

/// Looks after pipelines whose jobs are worked on elsewhere. Those that come into being meanwhile are looked after, too.
async fn look_after(app: App, worked_on: BTreeSet<PipelineName>, stop: CancellationToken) {
    let following = app.clone();
    let take_up = move |changed: &Setting| following.follow(changed).map(|()| Vec::new());
    let mut followed = Followed::new(&app.setting(), take_up);
    let every = app.redrive().look_anyway_every();
    while !stop.is_cancelled() {
        let names = match names(app.redrive(), &worked_on).await {
            Ok(names) => names,
            Err(error) => {
                tracing::warn!(%error, "the pipelines there are could not be read");
                wait(&stop, every).await;
                continue;
            }
        };
        let enough = stop.child_token();
        let worker = app.redrive().worker(app.pipelines(&names)).only_upkeep();
        let working = tokio::spawn(worker.run(Until::Stopped, enough.clone()));
        while !stop.is_cancelled() && !working.is_finished() {
            let asked = tokio::select! {
                () = wait(&stop, every) => false,
                () = app.asked_to_reread() => true,
            };
            // A store that cannot be read for a moment has no other pipelines by that.
            if is_reread(&mut followed, asked) || is_another(app.redrive(), &worked_on, &names).await {
                break;
            }
        }
        enough.cancel();
        match working.await {
            Ok(Err(error)) => tracing::warn!(%error, "pipelines are not looked after for now"),
            Err(panic) => tracing::warn!(%panic, "pipelines are not looked after for now"),
            Ok(Ok(())) => {}
        }
    }
}

/// Looks whether the configuration changed; says whether it was taken up. A file that is being written is left for a moment, unless
/// somebody says that it is whole.
fn is_reread(followed: &mut Option<Followed>, asked: bool) -> bool {
    let mut look = || followed.as_mut().and_then(|followed| followed.changed());
    let changed = look().or_else(|| asked.then(&mut look).flatten());
    match changed {
        None if asked => {
            tracing::info!("the configuration was read again, and is as it was");
            false
        }
        None => false,
        Some(Ok(_)) => {
            tracing::info!("the configuration changed, and is taken up");
            true
        }
        Some(Err(why)) => {
            tracing::warn!(why, "the configuration changed, but cannot be taken up: the former one stays");
            false
        }
    }
}

/// Whether there are other pipelines than those that are known.
async fn is_another(redrive: &Redrive, worked_on: &BTreeSet<PipelineName>, known: &BTreeSet<PipelineName>) -> bool {
    names(redrive, worked_on).await.is_ok_and(|now| now != *known)
}

async fn names(redrive: &Redrive, without: &BTreeSet<PipelineName>) -> Result<BTreeSet<PipelineName>, redrive::Error> {
    // What is known of those that were forgotten is kept for its time, too.
    let all = redrive.store().all_pipelines().await?;
    Ok(all.into_iter().filter(|name| !without.contains(name)).collect())
}

async fn wait(stop: &CancellationToken, most: Duration) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(most) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_store() {
        assert_eq!((places(None), places(Some(1_000_000)), places(Some(1_024))), (2_048, 2_048, 512));
        assert_eq!((places(Some(0)), places(Some(u64::MAX))), (1, 2_048));
    }
}
