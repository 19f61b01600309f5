//! A way to a PostgreSQL server on which commits get lost: some before the server has them, some after it did what they say.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

/// The socket of a server in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// What became of the commits that came this way.
#[derive(Default)]
pub struct Commits {
    seen: AtomicU64,
    /// Those that never reached the server.
    pub lost: AtomicU64,
    /// Those that took place and were not answered.
    pub unanswered: AtomicU64,
}

/// The way, as long as it is kept.
pub struct Cutting {
    folder: TempDir,
    pub commits: Arc<Commits>,
}

impl Cutting {
    /// A way to the server in a folder.
    pub fn to(server: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a socket");
        let commits = Arc::<Commits>::default();
        let (server, counted) = (server.join(SOCKET), Arc::clone(&commits));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server.clone(), Arc::clone(&counted)));
            }
        });
        Self { folder, commits }
    }

    /// Where it begins.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

async fn carry(client: UnixStream, server: PathBuf, commits: Arc<Commits>) {
    let Ok(server) = UnixStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mute = Arc::<AtomicBool>::default();
    let answers = tokio::spawn(carry_answers(from_server, to_client, Arc::clone(&mute)));
    carry_questions(from_client, to_server, (commits, mute)).await;
    // Both ends see the connection end.
    answers.abort();
}

/// Carries answers until one is not to be heard.
async fn carry_answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mute: Arc<AtomicBool>) {
    let mut bytes = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        if mute.load(Ordering::SeqCst) || to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

/// Carries messages, of which the first has no letter, until a commit is to be cut off.
async fn carry_questions(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (commits, mute): (Arc<Commits>, Arc<AtomicBool>),
) {
    let mut is_first = true;
    loop {
        let mut head = vec![0; if is_first { 4 } else { 5 }];
        if from.read_exact(&mut head).await.is_err() {
            return;
        }
        let length: [u8; 4] = head[head.len() - 4..].try_into().expect("four bytes");
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        if from.read_exact(&mut body).await.is_err() {
            return;
        }
        let is_commit = !is_first && head[0] == b'Q' && body == b"COMMIT\0";
        is_first = false;
        let turn = if is_commit { commits.seen.fetch_add(1, Ordering::SeqCst) % 5 } else { 0 };
        if turn == 1 {
            commits.lost.fetch_add(1, Ordering::SeqCst);
            return;
        }
        mute.store(turn == 3, Ordering::SeqCst);
        if to.write_all(&head).await.is_err() || to.write_all(&body).await.is_err() {
            return;
        }
        if turn == 3 {
            commits.unanswered.fetch_add(1, Ordering::SeqCst);
            return;
        }
    }
}
