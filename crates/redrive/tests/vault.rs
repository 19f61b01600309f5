//! The vault on a folder and on a real S3 server: what goes in comes out, once, and nothing else is removed.

use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use redrive::Redrive;
use redrive::vault::{Capture, Vault, VaultError};
use redrive_core::payloads::{Payload, Response};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tempfile::TempDir;

/// An S3 server that checks signatures, on a thread of its own, and a vault in it.
struct S3 {
    folder: TempDir,
    address: SocketAddr,
}

impl S3 {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("evidence")).expect("a bucket");
        let files = s3s_fs::FileSystem::new(folder.path()).expect("a server");
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single("the-id", "the-secret"));
        let service = service.build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    let service = service.clone();
                    tokio::spawn(async move {
                        let builder = Builder::new(TokioExecutor::new());
                        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            });
        });
        Self { folder, address }
    }

    fn vault(&self, redrive: &Redrive, secret: &str) -> Vault {
        let options = [
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ACCESS_KEY_ID", "the-id".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", secret.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value));
        Vault::open_with("s3://evidence/payloads", redrive, options).expect("a vault")
    }

    /// Files in the bucket.
    fn files(&self) -> usize {
        count(&self.folder.path().join("evidence"))
    }
}

fn count(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

async fn save(vault: &Vault, bytes: &[u8], cap: u64) -> Result<Payload, VaultError> {
    let mut capture = Capture::begin(cap).expect("begun");
    bytes.chunks(10_000).for_each(|chunk| capture.write(chunk).expect("written"));
    vault.save(capture, Response { status: Some(200), ..Response::default() }, None).await
}

async fn load(vault: &Vault, payload: &Payload) -> Vec<u8> {
    let mut bytes = Vec::new();
    vault.copy(payload.hash, &mut bytes).await.expect("kept");
    bytes
}

/// What must hold of a vault, wherever it is.
async fn exercise(vault: &Vault) {
    let random: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(12 << 20).collect();
    for bytes in [&b"<html>small</html>"[..], &[], &random] {
        let payload = save(vault, bytes, u64::MAX).await.expect("kept");
        assert_eq!((payload.size_bytes, payload.truncated), (bytes.len() as u64, false));
        assert!(load(vault, &payload).await == bytes, "{} bytes come back as they were", bytes.len());
        vault.verify(payload.hash).await.expect("whole");
    }
    let cut = save(vault, &random, 1 << 20).await.expect("kept");
    assert_eq!((cut.size_bytes, cut.truncated, cut.total_bytes), (1 << 20, true, Some(12 << 20)));
    assert!(load(vault, &cut).await == random[..1 << 20]);
    let spared = vault.collect(Duration::from_secs(60)).await.expect("collected");
    assert_eq!((spared.unused, spared.strays), (0, 0), "what was wanted lately is spared");
}

fn redrive() -> Redrive {
    Redrive::open("memory:").expect("opened")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_payloads() {
    let folder = tempfile::tempdir().expect("a folder");
    let redrive = redrive();
    let vault = Vault::open(&folder.path().join("payloads").display().to_string(), &redrive).expect("a vault");
    exercise(&vault).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_keeps_payloads() {
    let (s3, redrive) = (S3::start(), redrive());
    let vault = s3.vault(&redrive, "the-secret");
    exercise(&vault).await;
    let before = s3.files();
    let first = save(&vault, b"the same", u64::MAX).await.expect("kept");
    let added = s3.files() - before;
    let second = save(&vault, b"the same", u64::MAX).await.expect("kept");
    assert_eq!(first.hash, second.hash);
    assert_eq!(s3.files(), before + added, "equal payloads are kept once");
    tokio::time::sleep(Duration::from_millis(20)).await;
    let collected = vault.collect(Duration::ZERO).await.expect("collected");
    assert_eq!(collected.unused, 5, "nothing refers to any of them");
    assert!(matches!(vault.verify(first.hash).await, Err(VaultError::Missing(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vault_that_refuses_says_so() {
    let (s3, redrive) = (S3::start(), redrive());
    let error = save(&s3.vault(&redrive, "wrong"), b"x", 10).await.expect_err("refused");
    assert!(error.to_string().contains("s3://evidence/payloads"), "{error}");
    assert!(Vault::open("s9://x/y", &redrive).is_err());
}
