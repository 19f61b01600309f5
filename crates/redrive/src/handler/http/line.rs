//! The way out: a client per proxy, taken in turn, and each target's turn waited for.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redrive_core::failures::FailureReport;
use redrive_core::secrets::Secrets;
use reqwest::Client;

use super::fetch::{self, Answer};
use super::request::Filled;
use super::resolver::Resolver;
use super::turns::Turns;
use super::{Proxy, Transport, fault};
use crate::handler::{HandlerError, Job};

/// What a handler sends its requests on.
#[derive(Debug)]
pub(crate) struct Line {
    transport: Transport,
    clients: Clients,
    turns: Turns,
}

impl Line {
    pub(crate) fn new(transport: Transport) -> Result<Self, String> {
        let clients = Clients::new(&transport)?;
        let turns = Turns::new(transport.per_target_max, transport.per_second_max);
        Ok(Self { transport, clients, turns })
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.transport.secrets
    }

    /// Sends a request when it is the target's turn; gives the answer and the label of the proxy it went by.
    pub(crate) async fn ask(
        &self,
        request: Filled,
        target: &str,
        job: &Job,
    ) -> Result<(Answer, Option<String>), HandlerError> {
        let _turn: Option<Box<dyn Any + Send>> = match &job.parent {
            // Its worker knows who else asks the target.
            Some(parent) => Some(Box::new(parent.turn(target).await)),
            None => self.turn(target).await,
        };
        let (client, label) = self.clients.next();
        match fetch::fetch(client, request, &self.transport, job).await {
            Ok(answer) => {
                label.iter().for_each(|label| job.notes.proxy(label));
                Ok((answer, label.map(str::to_owned)))
            }
            Err(HandlerError::Failed(report)) => {
                Err(FailureReport { proxy: label.map(str::to_owned), ..*report }.into())
            }
            Err(other) => Err(other),
        }
    }

    /// Returns when a request to a target may go; it is over when what this gives back is dropped.
    pub(crate) async fn turn(&self, target: &str) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.turns.wait(target).await?))
    }

    /// Keeps an answer as evidence.
    pub(crate) async fn keep(&self, answer: &Answer, job: &Job) -> Result<(), HandlerError> {
        fetch::keep(answer, &self.transport.secrets, job).await
    }
}

/// A client for a direct connection, or one per proxy.
#[derive(Debug)]
struct Clients {
    clients: Vec<(Client, Option<String>)>,
    next: AtomicUsize,
}

impl Clients {
    fn new(transport: &Transport) -> Result<Self, String> {
        let direct = || Ok(vec![(client(transport, None)?, None)]);
        let by_proxy = |proxy: &Proxy| Ok((client(transport, Some(proxy))?, Some(proxy.label.clone())));
        let clients = match transport.proxies.as_slice() {
            [] => direct(),
            proxies => proxies.iter().map(by_proxy).collect::<Result<Vec<_>, String>>(),
        };
        Ok(Self { clients: clients?, next: AtomicUsize::new(0) })
    }

    /// The client whose turn it is, and its proxy's label.
    fn next(&self) -> (&Client, Option<&str>) {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len();
        let (client, label) = &self.clients[turn];
        (client, label.as_deref())
    }
}

fn client(transport: &Transport, proxy: Option<&Proxy>) -> Result<Client, String> {
    crate::tls::ensure_provider();
    let mut builder = Client::builder()
        .connect_timeout(transport.connect_timeout)
        .read_timeout(transport.read_timeout)
        // They are followed in `fetch`, which knows what may go where.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tls_certs_merge(transport.authorities.certificates())
        .cookie_store(transport.cookies)
        .user_agent(concat!("redrive/", env!("CARGO_PKG_VERSION")))
        // Proxies are what the configuration names, nothing else.
        .no_proxy();
    if !transport.egress.is_anywhere() {
        let own = proxy.and_then(|proxy| url::Url::parse(&proxy.url).ok()?.host_str().map(str::to_owned));
        builder = builder.dns_resolver(Arc::new(Resolver::new(transport.egress.clone(), own)));
    }
    if let Some(proxy) = proxy {
        let wrong = |_| format!("the address of proxy {:?} is not one", proxy.label);
        builder = builder.proxy(reqwest::Proxy::all(&proxy.url).map_err(wrong)?);
    }
    builder.build().map_err(|error| format!("the HTTP client cannot be set up: {}", fault::chain(&error)))
}
