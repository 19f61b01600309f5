//! A server that runs for one test, and a client that is no more than a socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::described::assert_described;
use crate::refusing::{Hold, Refusing};
use axum::body::Body;
use axum::http::Request;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use redrive::CancellationToken;
use redrive::Redrive;
use redrive::chance::SeededChance;
use redrive::clock::TestClock;
use redrive::config::{Setting, TokenFile};
use redrive::tokens::NewToken;
use redrive_core::actors::{Actor, Via};
use redrive_core::tokens::Role;
use redrive_server::{App, Options, Server, router};
use redrive_store::decorated::Decorated;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tokens in the token files of servers.
pub const LOCAL: &str = "rdl_of-the-tests";

/// Where `scripts/test` puts the tools that tests use.
pub fn tools() -> PathBuf {
    let binary = std::env::current_exe().expect("this test");
    binary.ancestors().nth(3).expect("the target folder").join("test-tools")
}

/// A server that runs.
pub struct Running {
    pub redrive: Redrive,
    app: App,
    pub address: SocketAddr,
    /// The cookie of a browser that came by the one-time link, as it is sent; nothing if the store had a token.
    pub cookie: Option<String>,
    stop: CancellationToken,
    ended: Option<JoinHandle<()>>,
    refusing: std::sync::Arc<Refusing>,
    folder: std::sync::Arc<TempDir>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The body as JSON, of a request that must have gone well.
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The code of a mistake, with its status.
    pub fn refused(&self) -> (u16, String) {
        let code = self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no mistake: {self:?}")).to_owned();
        (self.status, code)
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Running {
    /// A server over an empty store, with a configuration.
    pub async fn with(config: &str) -> Self {
        let folder = std::sync::Arc::new(TempDir::new().expect("a folder"));
        Self::over(folder, config).await
    }

    /// The folder of its configuration.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The same without a configuration.
    pub async fn start() -> Self {
        Self::with("").await
    }

    /// The same that is told something else besides its configuration.
    pub async fn with_options(options: Options) -> Self {
        Self::configured("", options).await
    }

    /// Starts a server with a configuration and options.
    pub async fn configured(config: &str, options: Options) -> Self {
        Self::over_with(std::sync::Arc::new(TempDir::new().expect("a folder")), config, options).await
    }

    async fn over(folder: std::sync::Arc<TempDir>, config: &str) -> Self {
        Self::over_with(folder, config, Options::listening(([127, 0, 0, 1], 0).into())).await
    }

    /// The same that goes by a clock of the test.
    pub async fn on_clock(clock: std::sync::Arc<TestClock>) -> Self {
        let options = Options::listening(([127, 0, 0, 1], 0).into());
        Self::over_on(std::sync::Arc::new(TempDir::new().expect("a folder")), "", options, Some(clock)).await
    }

    async fn over_with(folder: std::sync::Arc<TempDir>, config: &str, options: Options) -> Self {
        Self::over_on(folder, config, options, None).await
    }

    async fn over_on(
        folder: std::sync::Arc<TempDir>,
        config: &str,
        options: Options,
        clock: Option<std::sync::Arc<TestClock>>,
    ) -> Self {
        let file = folder.path().join("redrive.toml");
        std::fs::write(&file, config).expect("written");
        let store = format!("sqlite:{}", folder.path().join("redrive.db").display());
        let setting = Setting::load(Some(&file), Some(&store)).expect("a setting");
        let refusing = std::sync::Arc::new(Refusing::default());
        let opened = setting.redrive().await.expect("opened");
        let mut redrive = Redrive::over(Decorated::around(std::sync::Arc::clone(opened.store()), &refusing));
        if let Some(clock) = clock {
            redrive = redrive.with_surroundings(clock, std::sync::Arc::new(SeededChance::new(7)));
        }
        let is_plain = options.tls.is_none();
        let options = Options { token_file: Some(TokenFile::of_token(LOCAL)), ..options };
        let app = App::new(redrive.clone(), setting, options).expect("an app");
        let server = Server::bind(app.clone()).await.expect("bound");
        let address = server.address().expect("an address");
        let stop = CancellationToken::new();
        let ended = Some(tokio::spawn(server.run(stop.clone())));
        let mut running = Self { redrive, app: app.clone(), address, cookie: None, stop, ended, refusing, folder };
        if let (Some(link), true) = (app.one_time_link().await.expect("made"), is_plain) {
            let head = format!("GET {link} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
            let answer = running.send_raw(head.as_bytes()).await;
            let given = answer.header("set-cookie").and_then(|given| given.split(';').next()).expect("a cookie");
            running.cookie = Some(given.to_owned());
        }
        running
    }

    /// The line of a head by which a request is let in that has none of its own, while the store has no token.
    pub fn local(&self, head: &str) -> String {
        let asked = head.lines().next().unwrap_or_default();
        let is_page = !asked.contains("/api/") && !asked.contains(" /metrics");
        let has = |name: &str| head.to_ascii_lowercase().contains(&format!("\r\n{name}:"));
        match &self.cookie {
            _ if has("authorization") || has("cookie") => String::new(),
            Some(cookie) if is_page => format!("\r\ncookie: {cookie}"),
            None if is_page => String::new(),
            _ => format!("\r\nauthorization: Bearer {LOCAL}"),
        }
    }

    /// The path of a page that signs in whoever opens it first.
    pub async fn one_time_link(&self) -> String {
        self.app.one_time_link().await.expect("made").expect("the store has no token")
    }

    /// Stops the server: nobody listens any more.
    pub async fn stop(&mut self) {
        self.stop.cancel();
        if let Some(ended) = self.ended.take() {
            ended.await.expect("stopped");
        }
    }

    /// Stops the server and starts another one over the same store.
    pub async fn restart(self) -> Self {
        self.restart_with(Options::listening(([127, 0, 0, 1], 0).into())).await
    }

    /// The same that is told something else besides its configuration.
    pub async fn restart_with(mut self, options: Options) -> Self {
        self.stop().await;
        Self::over_with(std::sync::Arc::clone(&self.folder), "", options).await
    }

    /// Another server over the same store.
    pub async fn beside(&self) -> Self {
        Self::over(std::sync::Arc::clone(&self.folder), "").await
    }

    /// Starts with another configuration.
    pub async fn beside_with(&self, config: &str) -> Self {
        Self::over(std::sync::Arc::clone(&self.folder), config).await
    }

    /// Has the store refuse these verbs from now on, and no others.
    pub fn refuse(&self, verbs: &[&str]) {
        self.refusing.only(verbs);
    }

    /// Has calls of a verb of the store wait from now on.
    pub fn hold(&self, verb: &'static str) -> std::sync::Arc<Hold> {
        self.refusing.hold(verb)
    }

    /// Sends a request whose client leaves before its answer is kept.
    pub async fn leave(&self, mut request: Request<Body>) {
        if !request.headers().contains_key("cookie") {
            let local = format!("Bearer {LOCAL}").parse().expect("a value");
            request.headers_mut().entry("authorization").or_insert(local);
        }
        let hold = self.hold("keep_answer");
        let sending = tokio::spawn(TowerToHyperService::new(router(self.app.clone())).call(request));
        tokio::time::timeout(PATIENCE, hold.arrived()).await.expect("it is done");
        sending.abort();
        assert!(sending.await.is_err_and(|error| error.is_cancelled()), "nobody waits for the answer");
        hold.release();
    }

    /// Changes the configuration while the server runs.
    pub fn configure(&self, config: &str) {
        std::fs::write(self.folder.path().join("redrive.toml"), config).expect("written");
    }

    /// Makes a token.
    pub async fn token(&self, name: &str, role: Role, pipelines: &[&str]) -> String {
        let new = NewToken {
            name: name.parse().expect("a name"),
            role,
            pipelines: pipelines.iter().map(|text| text.parse().expect("a pattern")).collect(),
            payloads: true,
            expires_at: None,
        };
        self.redrive.create_token(&new, &Actor::new("ada", Via::Cli)).await.expect("made").secret
    }

    /// Recounts everything.
    pub async fn audit(&self) {
        let audit = self.redrive.store().audit().await.expect("audited");
        assert!(audit.problems.is_empty(), "{:?}", audit.problems);
    }

    /// A request as it is on the wire, from this machine, and the answer.
    pub async fn send(&self, head: &str, body: &[u8]) -> Answer {
        let head = format!("{head}{}", self.local(head));
        let mut request = format!("{head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len()).into_bytes();
        request.extend_from_slice(body);
        self.send_raw(&request).await
    }

    /// Bytes as they are, and the answer.
    pub async fn send_raw(&self, request: &[u8]) -> Answer {
        let sent = async {
            let mut stream = TcpStream::connect(self.address).await.expect("connected");
            // A server that refuses by the head alone may have hung up before all is sent.
            let _ = stream.write_all(request).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            read(&answer)
        };
        tokio::time::timeout(PATIENCE, sent).await.expect("answered in time")
    }

    /// A request with a token.
    pub async fn ask_as(&self, token: Option<&str>, request: &str, extra: &[&str], body: Option<Value>) -> Answer {
        let mut head = format!("{} HTTP/1.1\r\nhost: {}", at_api(request), self.address);
        if let Some(token) = token {
            head += &format!("\r\nauthorization: Bearer {token}");
        }
        if !request.starts_with("GET") {
            head += "\r\ncontent-type: application/json";
        }
        extra.iter().for_each(|line| head += &format!("\r\n{line}"));
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let answer = self.send(&head, body.as_bytes()).await;
        assert_described(request, &answer);
        answer
    }

    /// Reads something.
    pub async fn get(&self, path: &str) -> Answer {
        self.ask_as(None, &format!("GET {path}"), &[], None).await
    }

    /// Does something.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask_as(None, &format!("POST {path}"), &[], Some(body)).await
    }

    /// Enqueues jobs.
    pub async fn enqueue(&self, pipeline: &str, inputs: impl IntoIterator<Item = Value>) -> Vec<String> {
        let jobs: Vec<_> = inputs.into_iter().map(|input| json!({ "input": input })).collect();
        let answer = self.post("/jobs", json!({ "pipeline": pipeline, "jobs": jobs })).await.ok();
        let jobs = answer["jobs"].as_array().expect("jobs");
        jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Reports a letter, and says which it is.
    pub async fn report(&self, pipeline: &str, input: Value, message: &str) -> String {
        let letter = json!({ "pipeline": pipeline, "input": input, "message": message });
        let answer = self.post("/letters", letter).await.ok();
        assert_eq!(answer["letters"][0]["result"], "new", "{answer}");
        answer["letters"][0]["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until something holds of what is read at a path.
    pub async fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get(path).await.ok();
            if holds(&found) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "it never came to that: {found}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn at_api(request: &str) -> String {
    let (method, path) = request.split_once(' ').expect("a method and a path");
    match path.strip_prefix('~') {
        Some(outside) => format!("{method} {outside}"),
        None => format!("{method} /api/v1{path}"),
    }
}

fn read(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned()));
    Answer { status: status.expect("a status"), headers: headers.collect(), body: bytes[end + 4..].to_vec() }
}
