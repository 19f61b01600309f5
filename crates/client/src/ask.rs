//! One request to a server: sent again while the server is away, under the same key, so that it is done once.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryFutureExt;
use redrive::Error;
use redrive::chance::{Chance, SystemChance};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, Method, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;
use url::Url;

use crate::server::Server;

/// How long an answer may take, unless it is known to take longer.
const WITHIN: Duration = Duration::from_secs(60);

/// How long an answer may take that is about everything there is.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

/// A request that is being made.
pub(crate) struct Ask<'a> {
    server: &'a Server,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) body: Option<(&'static str, Bytes)>,
    /// The beginning of a file that is the body, so many bytes of it.
    file: Option<(PathBuf, u64)>,
    pub(crate) key: Option<String>,
    pub(crate) within: Option<Duration>,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(server: &'a Server, method: Method, names: &[&str]) -> Self {
        // What changes something has a key by which the server knows it again.
        let key = (method == Method::POST).then(|| format!("{:032x}", SystemChance.bits()));
        let url = server.address().of(names);
        Self { server, method, url, body: None, file: None, key, within: Some(WITHIN) }
    }

    /// The same with something after the question mark.
    pub(crate) fn query(mut self, fields: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut fields = fields.into_iter().peekable();
        if fields.peek().is_some() {
            self.url.query_pairs_mut().extend_pairs(fields);
        }
        self
    }

    /// The same with a JSON body.
    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let text = serde_json::to_vec(body).map_err(|error| Error::Internal(format!("no JSON: {error}")))?;
        self.body = Some(("application/json", text.into()));
        Ok(self)
    }

    /// The same with so many bytes of a file.
    pub(crate) fn file(mut self, path: &Path, bytes: u64) -> Self {
        self.file = Some((path.to_owned(), bytes));
        self
    }

    /// The same that may take so long, or as long as it takes while something comes.
    pub(crate) const fn within(mut self, within: Option<Duration>) -> Self {
        self.within = within;
        self
    }

    /// The answer, as what it is.
    pub(crate) async fn read<T: DeserializeOwned>(self) -> Result<T, Error> {
        self.server.fetch(&self).await
    }

    /// The answer, of which nothing is wanted but that there is one.
    pub(crate) async fn done(self) -> Result<(), Error> {
        self.read::<Value>().await.map(drop)
    }

    /// The answer, of which the body is read as it comes.
    pub(crate) async fn stream(self) -> Result<Response, Error> {
        self.server.reached(&self).await
    }

    /// Sends it, once.
    pub(crate) async fn send(&self, http: &reqwest::Client) -> Result<Response, reqwest::Error> {
        let mut request = http.request(self.method.clone(), self.url.clone());
        if let Some(token) = self.server.token() {
            request = request.header(reqwest::header::AUTHORIZATION, token);
        }
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        if let Some((path, bytes)) = &self.file {
            // Opened as it is read: one that cannot be ends the request, which says how long it is.
            let (path, bytes) = (path.clone(), *bytes);
            let opened = async move { Ok::<_, io::Error>(ReaderStream::new(File::open(path).await?.take(bytes))) };
            let pieces = Body::wrap_stream(opened.try_flatten_stream());
            request =
                request.header(CONTENT_TYPE, "application/octet-stream").header(CONTENT_LENGTH, bytes).body(pieces);
        } else if let Some((kind, body)) = &self.body {
            request = request.header(CONTENT_TYPE, *kind).body(body.clone());
        } else if self.method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/json").body("{}");
        }
        if let Some(within) = self.within {
            request = request.timeout(within);
        }
        request.send().await
    }
}
