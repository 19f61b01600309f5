//! A server on loopback whose every path does one wrong thing, for real, at the socket.
//!
//! It runs on a thread with a runtime of its own: a test may block, or stop tokio's clock, and the server goes on.
//! [`paths`] says what each path does, [`bodies`] what it sends, [`wire`] how HTTP is read and written, [`ports`] has
//! what fails before any HTTP is spoken.

#![allow(dead_code, reason = "each test binary needs a part of it")]

pub mod bodies;
mod paths;
pub mod ports;
mod tls;
mod wire;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::rustls::pki_types::CertificateDer;

#[allow(unused_imports, reason = "each test binary needs a part of it")]
pub use paths::RETRY_DATE;
#[allow(unused_imports, reason = "each test binary needs a part of it")]
pub use ports::{ClosedPort, FullPort};

use tls::Tls;
use wire::Request;

/// The running server. Dropping it closes all its connections.
pub struct Misbehaving {
    address: SocketAddr,
    tls: Option<Tls>,
    counts: Counts,
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// Requests so far: how many by path without the query, and each of them as JSON.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<Visits>>);

#[derive(Default)]
struct Visits {
    by_path: HashMap<String, u32>,
    requests: Vec<Value>,
}

impl Misbehaving {
    /// Starts the server.
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts the server behind TLS with a certificate for `localhost` that nobody has signed.
    pub fn start_tls_self_signed() -> Self {
        Self::start_with(Some(tls::self_signed()))
    }

    fn start_with(tls: Option<Tls>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        let address = listener.local_addr().expect("an address");
        let counts = Counts::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let accepting = accept(listener, tls.clone(), counts.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                tokio::select! { () = accepting => (), _ = stopped => () }
            });
        });
        Self { address, tls, counts, thread: Some((stop, thread)) }
    }

    /// The URL of a path. The TLS server is called `localhost`, as in its certificate.
    pub fn url(&self, path: &str) -> String {
        match self.tls {
            Some(_) => format!("https://localhost:{}{path}", self.address.port()),
            None => format!("http://{}{path}", self.address),
        }
    }

    /// The certificate of the TLS server, for a client that is to trust it.
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref().map(|tls| &tls.certificate)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests a path has had.
    pub fn count(&self, path: &str) -> u32 {
        self.counts.0.lock().expect("not poisoned").by_path.get(path).copied().unwrap_or_default()
    }

    /// All requests it has had, in the order they came: `method`, `target`, `headers` (names in lower case) and `body`.
    pub fn requests(&self) -> Vec<Value> {
        self.counts.0.lock().expect("not poisoned").requests.clone()
    }
}

impl Drop for Misbehaving {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            // A panic of the server has been printed; another here would abort the test without its own message.
            let _ = thread.join();
        }
    }
}

impl Counts {
    /// Records a request and says the how manyth of its path it is.
    fn visit(&self, request: &Request) -> u32 {
        let mut visits = self.0.lock().expect("not poisoned");
        visits.requests.push(request.as_json());
        let count = visits.by_path.entry(request.path().to_owned()).or_default();
        *count += 1;
        *count
    }
}

async fn accept(listener: std::net::TcpListener, tls: Option<Tls>, counts: Counts) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((socket, _)) = listener.accept().await {
        let (tls, counts) = (tls.clone(), counts.clone());
        // Errors are the client's: it has left, or does not trust us.
        tokio::spawn(async move {
            match tls {
                Some(tls) => paths::serve(tls.acceptor.accept(socket).await?, &counts).await,
                None => paths::serve(socket, &counts).await,
            }
        });
    }
}
