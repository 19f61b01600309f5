//! The way out: a client per proxy, taken in turn, and each target's turn waited for.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redrive_core::failures::FailureReport;
use redrive_core::jobs::Input;
use redrive_core::proxies::{History, ProxyPolicy};
use redrive_core::secrets::Secrets;
use reqwest::Client;

use super::fetch::{self, Answer};
use super::request::{Filled, Request};
use super::resolver::Resolver;
use super::strangers::Strangers;
use super::turns::Turns;
use super::{Proxy, Transport, fault, sent};
use crate::handler::{HandlerError, Job};

/// What a handler sends its requests on.
#[derive(Debug)]
pub(crate) struct Line {
    transport: Transport,
    clients: Clients,
    strangers: Strangers,
    turns: Turns,
}

impl Line {
    /// A line for these requests.
    pub(crate) fn new(mut transport: Transport, requests: &[&Request]) -> Result<Self, String> {
        sent::learn(&mut transport, requests);
        let clients = Clients::new(&transport, &BTreeSet::new())?;
        let strangers = Strangers::new(&transport, requests);
        let turns = Turns::new(transport.per_target_max, transport.per_second_max);
        Ok(Self { transport, clients, strangers, turns })
    }

    /// A request for an input of a job, if what it carries may go where it goes.
    pub(crate) fn fill(&self, request: &Request, input: &Input, job: &Job) -> Result<Filled, FailureReport> {
        let filled = request.fill(input)?;
        self.strangers.check(|| sent::carries(request, self.secrets()), &filled, job)?;
        Ok(filled)
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.transport.secrets
    }

    /// The proxies it goes through.
    pub(crate) fn proxies(&self) -> &ProxyPolicy {
        &self.clients.proxies
    }

    /// The way that an attempt of a job takes, with all its requests: through a proxy that the job has not failed through,
    /// while there is one.
    pub(crate) fn way(&self, job: &Job) -> Way {
        let history = History { tried: &job.tried, replay: job.replays };
        let turn = self.clients.turn.fetch_add(1, Ordering::Relaxed);
        Way(self.clients.proxies.next(history, turn).unwrap_or(0))
    }

    /// Sends a request when it is the target's turn; gives the answer and the label of the proxy it went by.
    pub(crate) async fn ask(
        &self,
        way: Way,
        request: Filled,
        target: &str,
        job: &Job,
    ) -> Result<(Answer, Option<String>), HandlerError> {
        let _turn: Option<Box<dyn Any + Send>> = match &job.parent {
            // Its worker knows who else asks the target.
            Some(parent) => Some(Box::new(parent.turn(target).await)),
            None => self.turn(target).await,
        };
        let (transport, clients) = self.strangers.way(job)?.unwrap_or((&self.transport, &self.clients));
        let (client, label) = clients.of(way);
        match fetch::fetch(client, request, (transport, self.exempt(job)), job).await {
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

    /// The hosts that a job reaches wherever they are, where it is not for the configuration to say which addresses those are.
    fn exempt(&self, job: &Job) -> Option<&BTreeSet<String>> {
        (job.from_network && self.transport.egress.is_anywhere()).then(|| self.strangers.written())
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
pub(super) struct Clients {
    clients: Vec<(Client, Option<String>)>,
    /// The same proxies in the same order.
    proxies: ProxyPolicy,
    turn: AtomicUsize,
}

/// Which client an attempt uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way(usize);

impl Clients {
    /// Clients that reach what the transport allows, and the exempt hosts wherever they are.
    pub(super) fn new(transport: &Transport, exempt: &BTreeSet<String>) -> Result<Self, String> {
        let direct = || Ok(vec![(client(transport, exempt, None)?, None)]);
        let by_proxy = |proxy: &Proxy| Ok((client(transport, exempt, Some(proxy))?, Some(proxy.label.clone())));
        let clients = match transport.proxies.as_slice() {
            [] => direct(),
            proxies => proxies.iter().map(by_proxy).collect::<Result<Vec<_>, String>>(),
        };
        let labels = transport.proxies.iter().map(|proxy| proxy.label.clone()).collect();
        let proxies = ProxyPolicy { labels, tried_max: transport.proxies_max };
        Ok(Self { clients: clients?, proxies, turn: AtomicUsize::new(0) })
    }

    /// The client of a way, and its proxy's label.
    fn of(&self, way: Way) -> (&Client, Option<&str>) {
        let (client, label) = &self.clients[way.0];
        (client, label.as_deref())
    }
}

fn client(transport: &Transport, exempt: &BTreeSet<String>, proxy: Option<&Proxy>) -> Result<Client, String> {
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
        let exempt = exempt.iter().cloned().chain(own).collect();
        builder = builder.dns_resolver(Arc::new(Resolver::new(transport.egress.clone(), exempt)));
    }
    if let Some(proxy) = proxy {
        let wrong = |_| format!("the address of proxy {:?} is not one", proxy.label);
        builder = builder.proxy(reqwest::Proxy::all(&proxy.url).map_err(wrong)?);
    }
    builder.build().map_err(|error| format!("the HTTP client cannot be set up: {}", fault::chain(&error)))
}
