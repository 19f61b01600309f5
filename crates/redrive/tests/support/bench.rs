//! An engine in a folder of its own that runs one job with a handler, and what became of the job.

use std::sync::Arc;
use std::time::Duration;

use redrive::handler::Handler;
use redrive::handler::http::request::{Body, Request, Template};
use redrive::handler::http::{Http, HttpConfig, Transport};
use redrive::vault::{Keep, Vault};
use redrive::{Pipeline, Policy, Redrive};
use redrive_core::dead::DeadLetter;
use redrive_core::jobs::{NewJob, Origin};
use redrive_core::payloads::Payload;
use redrive_core::policy::Bounds;
use redrive_core::retry::RetryPolicy;
use redrive_core::secrets::Secrets;
use redrive_store::Options;
use redrive_store::contract::{DeadFilter, ListDead};
use redrive_store::sqlite::SqliteStore;
use serde_json::Value;
use tempfile::TempDir;

/// Fetches `{url}` with a secret header, with as much time as a busy machine needs.
pub fn config() -> HttpConfig {
    let mut secrets = Secrets::default();
    secrets.add_value("pl4nted-s3cret");
    HttpConfig {
        transport: Transport {
            connect_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(60),
            body_bytes_max: 4 << 20,
            redirects_max: 5,
            cookies: true,
            proxies: Vec::new(),
            proxies_max: 3,
            egress: Default::default(),
            authorities: Default::default(),
            per_target_max: None,
            per_second_max: None,
            secrets,
            secret_hosts: Default::default(),
        },
        request: Request {
            method: reqwest::Method::GET,
            url: Template::parse("{url}").expect("a template"),
            query: Default::default(),
            headers: [("Authorization".to_owned(), Template::parse("Bearer pl4nted-s3cret").expect("a template"))]
                .into(),
            body: Body::None,
        },
        challenges: vec!["(?i)checking your browser".parse().expect("a pattern")],
        extractor: None,
        validator: None,
    }
}

/// Redrive with a vault, in a folder of its own.
pub struct Bench {
    pub redrive: Redrive,
    pub vault: Vault,
    pub folder: TempDir,
    /// How long an attempt may take.
    pub deadline: Duration,
    /// How many attempts its jobs have.
    pub attempts: u32,
    /// Where its jobs come from.
    pub origin: Option<Origin>,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let redrive = Redrive::over(Arc::new(
            SqliteStore::open(&folder.path().join("redrive.db"), Options::create()).expect("opened"),
        ));
        let vault = Vault::open(&folder.path().join("payloads").display().to_string(), &redrive).expect("opened");
        Self { redrive, vault, folder, deadline: Duration::from_secs(120), attempts: 1, origin: None }
    }

    /// One whose attempts may take so long.
    pub fn within(deadline: Duration) -> Self {
        Self { deadline, ..Self::new() }
    }

    /// One whose jobs come over the network.
    pub fn from_network() -> Self {
        Self { origin: Some(Origin::over_network("api")), ..Self::new() }
    }

    /// Runs one job, and gives its dead letter, if it died.
    pub async fn run(&self, config: HttpConfig, input: Value) -> Option<DeadLetter> {
        self.run_handler(Http::new(config).expect("a handler"), input).await
    }

    /// The same with any handler.
    pub async fn run_handler(&self, handler: impl Handler + 'static, input: Value) -> Option<DeadLetter> {
        let retry = RetryPolicy { base: Duration::from_millis(1), ..RetryPolicy::default() };
        let policy = Policy { deadline: self.deadline, retry, ..Policy::default() };
        let pipeline = Pipeline::new("p", handler).expect("a pipeline");
        let pipeline = pipeline.with_policy(policy).attempts(self.attempts).vault(self.vault.clone());
        let pipeline = pipeline.keep_payloads(Keep::Failed, 8 << 20);
        let job = NewJob {
            origin: self.origin.clone(),
            ..self.redrive.new_job(input.as_object().expect("an object").clone())
        };
        self.redrive.enqueue_jobs(pipeline.name(), Bounds::default(), vec![job]).await.expect("accepted");
        self.redrive.drain(pipeline).await.expect("drained");
        let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 1) };
        self.redrive.store().list_dead(params).await.expect("listed").items.pop()
    }

    pub async fn bytes(&self, payload: &Payload) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.vault.copy(payload.hash, &mut bytes).await.expect("kept");
        bytes
    }
}

/// What was kept of the last attempt.
pub fn payload(letter: &DeadLetter) -> Option<Payload> {
    letter.failures.as_ref()?.last()?.payload.clone()
}

/// Looks for the planted secret in every file.
pub fn assert_no_secret(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_no_secret(&path);
        } else {
            let bytes = std::fs::read(&path).expect("read");
            let found = bytes.windows(14).any(|window| window == b"pl4nted-s3cret");
            assert!(!found, "{} has the secret", path.display());
        }
    }
}

/// A sink that keeps the results.
#[derive(Clone, Default)]
pub struct Caught(pub std::sync::Arc<std::sync::Mutex<Vec<Value>>>);

#[async_trait::async_trait]
impl redrive::sink::Sink for Caught {
    async fn write(&self, results: &[redrive::sink::JobResult]) -> Result<(), redrive::Error> {
        self.0.lock().expect("unpoisoned").extend(results.iter().map(|result| result.result.clone()));
        Ok(())
    }
}
