//! The site that `redrive demo` scrapes: a small shop with its mishaps and a submit-then-poll API, on loopback.
//!
//! It ships in the binary, so that the demo needs neither network nor configuration. What it answers depends only on the
//! path and on how often that was asked for: two runs of the demo see the same site. It must never listen beyond loopback.
//!
//! `catalogue` says what each product does, `solver` what each sitekey does, `routes` what each path answers,
//! `wire` how that is written; `goods` invents the products, `pages` dresses them.

mod catalogue;
mod goods;
mod pages;
mod routes;
mod solver;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use catalogue::{HUGE_PATH, PRODUCTS, catalogue};
pub use solver::{API_KEY, puzzles};

use solver::Solver;

/// The running site. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// What all connections see.
#[derive(Debug, Default)]
struct Shared {
    /// Requests so far, by path without the query.
    counts: Mutex<BTreeMap<String, u32>>,
    solver: Mutex<Solver>,
}

impl Site {
    /// Starts the site on a free loopback port. Must be called within a tokio runtime.
    pub fn start() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many requests a path has had, whatever came of them.
    pub fn count(&self, path: &str) -> u32 {
        self.shared.counts().get(path).copied().unwrap_or_default()
    }

    /// Switches the site off: when this returns its port refuses connections.
    pub async fn stop(mut self) {
        self.accepting.abort();
        // An error only says that it was aborted.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn counts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request and says the how manyth of its path it is.
    fn visit(&self, path: &str) -> u32 {
        let mut counts = self.counts();
        let count = counts.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }
}

/// The set ends with this task, and with it all connections.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection that failed while it was accepted is its client's concern.
                if let Ok((socket, _)) = accepted {
                    connections.spawn(serve(socket, Arc::clone(&shared)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One request per connection: that keeps a page that breaks off from hurting the next.
async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    if let Ok(request) = wire::read_request(&mut socket).await {
        let visit = shared.visit(&request.path);
        let answer = routes::answer(&request, visit, &shared);
        // The client may be gone, as is its right.
        let _ = wire::send(&mut socket, answer).await;
    }
}
