//! What jobs may not that came over the network, or whose inputs were changed: whoever wrote them need not know what is configured
//! here, nor reach what this machine reaches.
//!
//! One that came over the network reaches the public internet, and the hosts that the configuration writes out, unless the
//! configuration says where its pipeline may go. Secrets of the configuration go with such a job, and with an edited one, only to
//! hosts that the configuration names.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use redrive_core::egress::Egress;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::secrets::SecretHosts;

use super::line::Clients;
use super::request::{Filled, Request};
use super::{Transport, fault, sent};
use crate::handler::{HandlerError, Job};

/// What is known of jobs that others wrote.
#[derive(Debug)]
pub(super) struct Strangers {
    /// How their requests are sent, if not as all are.
    transport: Option<Transport>,
    /// Made when the first of them comes: most pipelines have none.
    clients: OnceLock<Result<Clients, String>>,
    /// Hosts that the requests write out, whatever the job.
    written: BTreeSet<String>,
    /// Hosts to which secrets may go.
    secret_hosts: SecretHosts,
}

impl Strangers {
    pub(super) fn new(transport: &Transport, requests: &[&Request]) -> Self {
        let written: BTreeSet<_> = requests.iter().filter_map(|request| sent::fixed_host(request)).collect();
        let mut secret_hosts = transport.secret_hosts.clone();
        // One that cannot be named so cannot be reached either.
        written.iter().for_each(|host| drop(secret_hosts.add(host)));
        let guarded = || Transport { egress: Egress::public(), ..transport.clone() };
        let transport = transport.egress.is_anywhere().then(guarded);
        Self { transport, clients: OnceLock::new(), written, secret_hosts }
    }

    /// How the requests of a job are sent, if not as all are.
    pub(super) fn way(&self, job: &Job) -> Result<Option<(&Transport, &Clients)>, HandlerError> {
        let Some(transport) = self.transport.as_ref().filter(|_| job.from_network) else { return Ok(None) };
        match self.clients.get_or_init(|| Clients::new(transport, &self.written)) {
            Ok(clients) => Ok(Some((transport, clients))),
            Err(why) => Err(HandlerError::Unavailable(why.clone())),
        }
    }

    /// The hosts that are reached wherever they are.
    pub(super) fn written(&self) -> &BTreeSet<String> {
        &self.written
    }

    /// Refuses a request that would carry a secret to a host that nobody named.
    pub(super) fn check(
        &self,
        carries: impl FnOnce() -> bool,
        request: &Filled,
        job: &Job,
    ) -> Result<(), FailureReport> {
        let host = request.host();
        if !(job.from_network || job.edited) || self.secret_hosts.contains(&host) || !carries() {
            return Ok(());
        }
        let how = if job.from_network { "came over the network" } else { "was edited" };
        let message = format!(
            "the task {how}, and its request would carry a configured secret to {host}: add that to `http.secret_hosts` if it should"
        );
        Err(fault::report(Reason::RejectedInput, "SecretHost", message, "request"))
    }
}
