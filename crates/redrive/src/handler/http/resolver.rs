//! Keeps connections to where a pipeline may go: names are looked up here, and only addresses that are allowed come out.
//!
//! The addresses that come out are the ones connected to, without another lookup in between, so a name that changes its
//! mind (DNS rebinding) gains nothing. Addresses within URLs are never looked up: they are checked before each request.
//! Through a proxy the names are the proxy's to look up, unless it is a SOCKS proxy that leaves that to us.

use std::collections::BTreeSet;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use redrive_core::egress::Egress;
use redrive_core::failures::{FailureReport, Reason};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::fault;

/// An address that may not be connected to.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{host} is at {address}, where this pipeline may not go: add the network to `allow` if it should")]
pub(super) struct NotAllowed {
    host: String,
    address: IpAddr,
}

impl NotAllowed {
    /// The one among an error's sources.
    pub(super) fn among<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        error.downcast_ref().or_else(|| Self::among(error.source()?))
    }

    pub(super) fn report(&self) -> FailureReport {
        fault::report(Reason::RejectedInput, "AddressNotAllowed", self.to_string(), "connect")
    }
}

/// Checks an address that stands in a URL as it is, unless its host is exempt.
pub(super) fn check(url: &Url, egress: &Egress, exempt: Option<&BTreeSet<String>>) -> Result<(), FailureReport> {
    if exempt.zip(url.host_str()).is_some_and(|(exempt, host)| exempt.contains(host.trim_matches(['[', ']']))) {
        return Ok(());
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::from(address),
        Some(Host::Ipv6(address)) => IpAddr::from(address),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    match egress.allows(address) {
        true => Ok(()),
        false => Err(NotAllowed { host: url.host_str().unwrap_or_default().to_owned(), address }.report()),
    }
}

/// Looks names up and lets only allowed addresses out.
pub(super) struct Resolver {
    egress: Egress,
    /// Names that the configuration chose: the proxy's own, for example.
    exempt: BTreeSet<String>,
    lookup: Arc<dyn Resolve>,
}

impl Resolver {
    pub(super) fn new(egress: Egress, exempt: BTreeSet<String>) -> Self {
        Self { egress, exempt, lookup: Arc::new(System) }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (egress, exempt) = (self.egress.clone(), self.exempt.contains(name.as_str()));
        let found = self.lookup.resolve(name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.collect();
            let (allowed, others): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|address| exempt || egress.allows(address.ip()));
            match (allowed.is_empty(), others.first()) {
                (true, Some(address)) => Err(NotAllowed { host, address: address.ip() }.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// The system's own lookup.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Gives another answer each time it is asked.
    struct Fickle(Mutex<VecDeque<Vec<&'static str>>>);

    impl Resolve for Fickle {
        fn resolve(&self, _: Name) -> Resolving {
            let next = self.0.lock().expect("unpoisoned").pop_front().expect("asked too often");
            let parse = |address: &str| SocketAddr::new(address.parse().expect("an address"), 0);
            let found: Vec<_> = next.into_iter().map(parse).collect();
            Box::pin(async move { Ok(Box::new(found.into_iter()) as Addrs) })
        }
    }

    fn resolver(allow: &[&str], answers: &[&[&'static str]]) -> Resolver {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        let lookup = Arc::new(Fickle(Mutex::new(answers)));
        Resolver { egress: Egress::only(allow).expect("valid"), exempt: ["proxy.example".into()].into(), lookup }
    }

    async fn resolved(resolver: &Resolver, name: &str) -> Result<Vec<String>, String> {
        let found = resolver.resolve(name.parse().expect("a name")).await;
        let found = found.map_err(|error| NotAllowed::among(&*error).expect("not allowed").to_string())?;
        Ok(found.map(|address| address.ip().to_string()).collect())
    }

    #[tokio::test]
    async fn a_name_that_changes_its_address_is_judged_by_each() {
        let answers: &[&[&str]] =
            &[&["8.8.8.8", "10.0.0.1"], &["127.0.0.1"], &["::1", "169.254.169.254"], &["10.0.0.1"]];
        let resolver = resolver(&["public"], answers);
        assert_eq!(resolved(&resolver, "shop.example").await.as_deref(), Ok(&["8.8.8.8".to_owned()][..]));
        for address in ["127.0.0.1", "::1"] {
            let error = resolved(&resolver, "shop.example").await.expect_err("not allowed");
            assert!(error.starts_with(&format!("shop.example is at {address}, ")), "{error}");
        }
        assert!(resolved(&resolver, "proxy.example").await.is_ok(), "the proxy is where the configuration says");
    }

    #[tokio::test]
    async fn what_is_connected_to_is_what_was_checked() {
        let allowed = TcpListener::bind("127.0.0.2:0").await.expect("a port");
        let port = allowed.local_addr().expect("an address").port();
        let other = TcpListener::bind(("127.0.0.1", port)).await.expect("the same port");
        // The first answer has both; each later one would lead astray, if it were asked for.
        let resolver = resolver(&["127.0.0.2/32"], &[&["127.0.0.1", "127.0.0.2"], &["127.0.0.1"]]);
        crate::tls::ensure_provider();
        let client = reqwest::Client::builder().no_proxy().dns_resolver(Arc::new(resolver)).build().expect("a client");
        let url = format!("http://shop.example:{port}/");
        let answer = async {
            let (mut socket, _) = allowed.accept().await.expect("accepted");
            let mut head = [0; 1024];
            assert!(socket.read(&mut head).await.expect("read") > 0);
            socket.write_all(b"HTTP/1.1 204 OK\r\nConnection: close\r\n\r\n").await.expect("written");
        };
        let (sent, ()) = tokio::join!(client.get(&url).send(), answer);
        assert_eq!(sent.expect("answered").status(), 204);
        let error = client.get(&url).send().await.expect_err("the name leads elsewhere now");
        assert!(NotAllowed::among(&error).is_some(), "{error:?}");
        let came = tokio::time::timeout(std::time::Duration::from_millis(50), other.accept()).await;
        assert!(came.is_err(), "nobody came to the address that is not allowed");
    }
}
