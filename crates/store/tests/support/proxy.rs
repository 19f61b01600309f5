//! A way to a PostgreSQL server over TCP on which connections come to grief: cut at some byte or commit, silent from there on, or late.
//!
//! What becomes of connections is told by a list of fates, one after another; nothing happens to those that come later.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The socket of a server in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// How the end of a transaction is asked for.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// What becomes of a connection: something, to what goes one way, from some point on.
#[derive(Clone, Copy, Debug)]
pub struct Fate {
    pub what: What,
    pub toward: Toward,
    pub from: From,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Both ends see it end.
    Cut,
    /// What goes that way vanishes, and neither end sees anything.
    Swallow,
    /// The server sees it end, the client sees nothing.
    HalfOpen,
    /// What goes that way comes so much later.
    Delay(Duration),
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    Server,
    Client,
}

/// From when on.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// Once so many bytes went that way.
    Byte(usize),
    /// With this commit, or with its answer.
    Commit(usize),
}

/// The way, as long as it is kept.
pub struct Proxy {
    port: u16,
    listening: AbortHandle,
    met: Arc<AtomicUsize>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Proxy {
    /// A way to the server in a folder.
    pub async fn to(server: &Path, fates: Vec<Fate>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (server, met) = (server.join(SOCKET), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&met);
        let listening = tokio::spawn(async move {
            let mut fates = fates.into_iter();
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server.clone(), fates.next(), Arc::clone(&counted)));
            }
        });
        Self { port, listening: listening.abort_handle(), met }
    }

    /// How the server is reached on this way.
    pub fn address(&self) -> String {
        format!("host=127.0.0.1 port={} user=redrive dbname=postgres", self.port)
    }

    /// How many connections met their fate.
    pub fn met(&self) -> usize {
        self.met.load(Ordering::SeqCst)
    }
}

/// What both ways of a connection know.
struct Both {
    fate: Option<Fate>,
    met: Arc<AtomicUsize>,
    /// The commit whose answer is meant was sent.
    is_committed: AtomicBool,
    cut: Notify,
}

async fn carry(client: TcpStream, server: PathBuf, fate: Option<Fate>, met: Arc<AtomicUsize>) {
    let Ok(server) = UnixStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let both = Both { fate, met, is_committed: AtomicBool::new(false), cut: Notify::new() };
    let there = pin!(pass(from_client, to_server, Toward::Server, &both));
    let back = pin!(pass(from_server, to_client, Toward::Client, &both));
    tokio::select! {
        _ = async { tokio::join!(there, back) } => {}
        () = both.cut.notified() => {}
    }
}

/// Carries bytes one way until its end, or until fate has it.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, toward: Toward, both: &Both) {
    let (mut bytes, mut passed, mut commits) = (vec![0; 65_536], 0, 0);
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let chunk = &bytes[..length];
        let well = goes_well(chunk, toward, both, (passed, &mut commits));
        passed += length;
        if to.write_all(&chunk[..well.unwrap_or(length)]).await.is_err() {
            break;
        }
        let (Some(well), Some(fate)) = (well, both.fate) else { continue };
        both.met.fetch_add(1, Ordering::SeqCst);
        match fate.what {
            What::Cut => {
                both.cut.notify_one();
                return std::future::pending().await;
            }
            What::Swallow => {
                drop(tokio::io::copy(&mut from, &mut tokio::io::sink()).await);
                // That somebody closed it is not heard either.
                return std::future::pending().await;
            }
            What::HalfOpen => {
                drop(to.shutdown().await);
                return std::future::pending().await;
            }
            What::Delay(by) => {
                tokio::time::sleep(by).await;
                drop(to.write_all(&chunk[well..]).await);
                drop(tokio::io::copy(&mut from, &mut to).await);
                break;
            }
        }
    }
    let is_half_open = both.fate.is_some_and(|fate| fate.what == What::HalfOpen);
    if is_half_open && toward == Toward::Client {
        return std::future::pending().await;
    }
    let _ = to.shutdown().await;
}

/// How many bytes of a chunk go well, if not all do.
fn goes_well(chunk: &[u8], toward: Toward, both: &Both, (passed, commits): (usize, &mut usize)) -> Option<usize> {
    let fate = both.fate?;
    match fate.from {
        From::Byte(byte) => (toward == fate.toward && passed + chunk.len() > byte).then(|| byte - passed),
        From::Commit(wanted) if toward == Toward::Server => {
            let place = chunk.windows(COMMIT.len()).position(|window| window == COMMIT)?;
            *commits += 1;
            let is_wanted = *commits == wanted;
            if is_wanted && fate.toward == Toward::Client {
                both.is_committed.store(true, Ordering::SeqCst);
            }
            (is_wanted && fate.toward == Toward::Server).then_some(place)
        }
        From::Commit(_) => both.is_committed.load(Ordering::SeqCst).then_some(0),
    }
}
