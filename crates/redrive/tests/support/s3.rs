//! A real S3 server in this process.

use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use redrive::Redrive;
use redrive::vault::Vault;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tempfile::TempDir;

/// An S3 server that checks signatures, on a thread of its own, and a vault in it.
pub struct S3 {
    pub folder: TempDir,
    pub address: SocketAddr,
}

impl S3 {
    pub fn start() -> Self {
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

    #[allow(dead_code, reason = "not every binary opens it itself")]
    pub fn vault(&self, redrive: &Redrive, secret: &str) -> Vault {
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
    pub fn files(&self) -> usize {
        count(&self.folder.path().join("evidence"))
    }
}

pub fn count(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}
