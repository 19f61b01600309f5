//! Asking a server. One that is away is waited for as a store would be: a command gives up after half a minute, a worker never. What
//! answers and is no server of Redrive, or one of a version that does not understand this one, is said to be that.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use redrive::api::{List, Operation, wire};
use redrive::events::Events;
use redrive::reach::{Away, Reach, Working};
use redrive::tls::complaint;
use redrive::{Error, ErrorKind, StoreError};
use redrive_core::time::Timestamp;
use redrive_core::tokens::{PipelinePattern, Role};
use redrive_core::versions::Version;
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::access::{Access, AccessError};
use crate::address::ServerAddress;
use crate::ask::{Ask, LONG};
use crate::owner::NotOwn;
use crate::told::{Mistake, Told};

/// The header in which a server says which version it is.
pub const VERSION_HEADER: &str = "redrive-version";

/// The longest answer that is read whole, in bytes, unpacked.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The same, where it says what was wrong.
const MISTAKE_BYTES_MAX: usize = 1024 * 1024;

/// Who one is at a server.
#[derive(Clone, Debug, Deserialize)]
pub struct WhoAmI {
    /// The name of the token.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The pipelines that it is for; none means all.
    pub pipelines: Vec<PipelinePattern>,
    /// When it is no longer good, if ever.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Which version of redrive the server is.
    pub version: String,
}

/// A server. Cheap to clone.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    access: Access,
    /// What the server is called in messages.
    place: String,
    events: Events,
    reach: Arc<Reach>,
    own: Version,
}

impl Server {
    /// A server that is asked from now on. Nothing is sent yet.
    pub fn new(access: Access) -> Result<Self, AccessError> {
        let own = env!("CARGO_PKG_VERSION").parse().map_err(|error| AccessError::NoClient(format!("{error}")))?;
        let (events, place) = (Events::default(), access.address.to_string());
        let reach = Arc::new(Reach::new(events.clone()));
        Ok(Self(Arc::new(Inner { http: access.client()?, access, place, events, reach, own })))
    }

    /// Where it is.
    pub fn address(&self) -> &ServerAddress {
        &self.0.access.address
    }

    /// What happens, for who listens.
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    /// What is waited for, if the server has not answered for some time.
    pub fn away(&self) -> Option<Away> {
        self.0.reach.away()
    }

    /// Has every request wait for as long as it takes while that is kept, as a worker does.
    pub fn keep_waiting(&self) -> Working {
        self.0.reach.work()
    }

    pub(crate) fn token(&self) -> Option<&HeaderValue> {
        self.0.access.token()
    }

    pub(crate) fn get(&self, names: &[&str]) -> Ask<'_> {
        Ask::new(self, Method::GET, names)
    }

    pub(crate) fn post(&self, names: &[&str]) -> Ask<'_> {
        Ask::new(self, Method::POST, names)
    }

    pub(crate) fn delete(&self, names: &[&str]) -> Ask<'_> {
        Ask::new(self, Method::DELETE, names)
    }

    /// Brings so many bytes of a file, under their SHA-256.
    pub(crate) async fn upload(&self, sha256: &str, (path, bytes): (&Path, u64)) -> Result<(), Error> {
        Ask::new(self, Method::PUT, &["payloads", sha256]).file(path, bytes).within(Some(LONG)).done().await
    }

    /// Who one is there, and which version the server is.
    pub async fn whoami(&self) -> Result<WhoAmI, Error> {
        self.get(&["whoami"]).read().await
    }

    /// Sends a request and reads its response.
    pub async fn ask<O: Operation>(&self, request: &O) -> Result<O::Response, Error> {
        let parts = wire::split(&O::ROUTE, wire::fields(request));
        let names: Vec<_> = parts.path.iter().map(String::as_str).collect();
        let ask = match parts.body {
            None => self.get(&names).query(parts.query),
            Some(body) => self.post(&names).body(&body)?,
        };
        ask.read().await
    }

    /// Requests all items of a list, page by page.
    pub async fn ask_all<L: List>(&self, request: L) -> Result<Vec<L::Item>, Error> {
        let (mut items, mut next) = (Vec::new(), Some(request.in_long_pages()));
        while let Some(request) = next {
            let page = self.ask(&request).await?;
            next = request.after(&page);
            items.extend(page.items);
        }
        Ok(items)
    }

    /// The answer to a request, whole.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, ask: &Ask<'_>) -> Result<T, Error> {
        let call = || async {
            let answer = match self.once(ask).await? {
                Ok(answer) => answer,
                Err(error) => return Ok(Err(error)),
            };
            let version = self.version_of(&answer);
            match whole(answer, ANSWER_BYTES_MAX).await {
                Ok(Some(body)) => Ok(Ok((body, version))),
                Ok(None) => Ok(Err(self.endless())),
                // It ended too soon: under the same key it is given again.
                Err(error) => Err(self.unreached(&error)),
            }
        };
        let (body, version) = self.0.reach.call(&|| None, call).await??;
        read(&body).map_err(|error| self.unreadable(&error, version))
    }

    /// The answer to a request, as soon as it begins.
    pub(crate) async fn reached(&self, ask: &Ask<'_>) -> Result<Response, Error> {
        self.0.reach.call(&|| None, || self.once(ask)).await?
    }

    /// Asks once. It is an error of the outer kind if it is worth another try.
    async fn once(&self, ask: &Ask<'_>) -> Result<Result<Response, Error>, StoreError> {
        let answer = match ask.send(&self.0.http).await {
            Ok(answer) => answer,
            Err(error) => {
                let place = &self.0.place;
                if let Some(why) = NotOwn::find(&error) {
                    return Ok(Err(self.said("not_own", format!("{place}: {why}"))));
                }
                return match complaint(&error) {
                    Some(why) => Ok(Err(self.said("tls", format!("{place}: {why}")))),
                    None => Err(self.unreached(&error)),
                };
            }
        };
        match self.version_of(&answer) {
            Some(version) if self.0.own.understands(version) => {}
            Some(version) => return Ok(Err(self.other_version(version))),
            // Something between says that the server is away.
            None if matches!(answer.status().as_u16(), 502..=504) => {
                let why = format!("what is before it answers with {}", answer.status());
                return Err(StoreError::Unavailable { place: self.0.place.clone(), why });
            }
            None => return Ok(Err(self.stranger(&answer))),
        }
        if answer.status().is_success() {
            return Ok(Ok(answer));
        }
        let (status, kind) = (answer.status(), self.stranger(&answer));
        match told(answer).await.map(|told| told.mistake(&self.0.place, status.as_u16())) {
            Some(Mistake::Final(error)) => Ok(Err(error)),
            Some(Mistake::Passing(error)) => Err(error),
            None => Ok(Err(kind)),
        }
    }

    fn version_of(&self, answer: &Response) -> Option<Version> {
        answer.headers().get(VERSION_HEADER)?.to_str().ok()?.parse().ok()
    }

    /// It did not answer: it is away, or the way to it is.
    fn unreached(&self, error: &reqwest::Error) -> StoreError {
        let mut cause: &(dyn std::error::Error + 'static) = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let why = match error.is_timeout() {
            true => "it did not answer in time".to_owned(),
            // The address is named already.
            false if error.source().is_none() => "the connection was lost".to_owned(),
            false => cause.to_string(),
        };
        StoreError::Unavailable { place: self.0.place.clone(), why }
    }

    fn said(&self, code: &str, message: String) -> Error {
        Error::Server { kind: ErrorKind::Failed, code: code.to_owned(), message }
    }

    /// What answers is no server of Redrive.
    fn stranger(&self, answer: &Response) -> Error {
        let place = &self.0.place;
        let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        if let Some(to) = to.and_then(|to| self.address().of(&[]).join(to).ok()).filter(|_| is_redirect(answer)) {
            let message = format!("{place} leads to {}, and is not followed there", origin(&to));
            return self.said("redirected", message);
        }
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("nothing");
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let message = format!("{place} answers with {} and {kind}, not as a redrive server does", answer.status());
        self.said("not_redrive", message)
    }

    /// It says more than a server of Redrive does.
    fn endless(&self) -> Error {
        let message = format!("{} answers with more than {} MiB", self.0.place, ANSWER_BYTES_MAX >> 20);
        self.said("too_long", message)
    }

    fn other_version(&self, version: Version) -> Error {
        let (place, own) = (&self.0.place, self.0.own);
        let message = format!("{place} is redrive {version}, this is {own}: they do not understand each other");
        self.said("other_version", message)
    }

    /// An answer that is something else than was expected, of a version that should be understood.
    fn unreadable(&self, error: &serde_json::Error, version: Option<Version>) -> Error {
        let (place, own) = (&self.0.place, self.0.own);
        let version = version.map_or_else(|| "another version".to_owned(), |version| version.to_string());
        let message = format!("{place} (redrive {version}) said something that redrive {own} does not know: {error}");
        self.said("unreadable", message)
    }
}

/// Reads an answer. A fraction in a part that is flattened into another is only understood if the whole was read as JSON before: text is
/// kept as text otherwise, so that large numbers stay what they are.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(body).or_else(|_| serde_json::from_value(serde_json::from_slice(body)?))
}

fn is_redirect(answer: &Response) -> bool {
    answer.status().is_redirection() && answer.status() != StatusCode::NOT_MODIFIED
}

/// The beginning of an address, up to its path: what follows may be secret.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// What a server says of a mistake, as far as it is not longer than it may be.
async fn told(answer: Response) -> Option<Told> {
    Told::read(&whole(answer, MISTAKE_BYTES_MAX).await.ok()??)
}

/// Reads an answer to its end; nothing if it has more than so many bytes, unpacked.
async fn whole(mut answer: Response, bytes_max: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > bytes_max {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use redrive::api::breakers::ListBreakers;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn answer_that_is_too_long_is_not_read_to_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("accepted");
            let asked = stream.read(&mut [0; 1024]).await.expect("asked");
            assert!(asked > 0);
            let head = format!(
                "HTTP/1.1 200 OK\r\n{VERSION_HEADER}: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                env!("CARGO_PKG_VERSION"),
                2 * ANSWER_BYTES_MAX
            );
            stream.write_all(head.as_bytes()).await.expect("sent");
            let blanks = vec![b' '; 1 << 20];
            for _ in 0..2 * ANSWER_BYTES_MAX / blanks.len() {
                stream.write_all(&blanks).await?;
            }
            Ok::<_, std::io::Error>(())
        });
        let access = Access::new(format!("http://{address}").parse().expect("an address"), None).expect("may be asked");
        let told = Server::new(access).expect("a client").whoami().await.expect_err("it is too long");
        assert!(matches!(&told, Error::Server { code, .. } if code == "too_long"), "{told}");
        assert!(answering.await.expect("no panic").is_err(), "the rest is not read");
    }

    #[tokio::test]
    async fn list_of_several_pages_is_requested_page_by_page() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let row = |target: &str| {
            let at = "2026-11-19T22:00:00Z";
            json!({
                "pipeline": "shop", "target": target, "held": 1, "held_of_replays": 0, "state": "open", "since": at, "open_until": at,
                "attempts": 0, "failures": 0, "blocked": 0, "openings": 1, "probes_ok": 0, "version": "v",
            })
        };
        let pages = [json!({ "items": [row("a")], "next": "after-a" }), json!({ "items": [row("b")] })];
        let answering = tokio::spawn(async move {
            let mut requests = Vec::new();
            for page in pages {
                let (mut stream, _) = listener.accept().await.expect("accepted");
                let mut request = vec![0; 4_096];
                let read = stream.read(&mut request).await.expect("a request");
                requests.push(String::from_utf8_lossy(&request[..read]).lines().next().map(str::to_owned));
                let (version, body) = (env!("CARGO_PKG_VERSION"), page.to_string());
                let head = format!(
                    "HTTP/1.1 200 OK\r\n{VERSION_HEADER}: {version}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
            }
            requests
        });
        let access = Access::new(format!("http://{address}").parse().expect("an address"), None).expect("may be asked");
        let server = Server::new(access).expect("a client");
        let rows = server.ask_all(ListBreakers::default()).await.expect("listed");
        assert_eq!(rows.iter().map(|row| row.view.target.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let requests: Vec<_> = answering.await.expect("no panic").into_iter().flatten().collect();
        assert_eq!(
            requests,
            ["GET /api/v1/breakers?limit=1000 HTTP/1.1", "GET /api/v1/breakers?limit=1000&cursor=after-a HTTP/1.1"]
        );
    }
}
