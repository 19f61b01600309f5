//! An address that is sent JSON. Redirects are not followed: what is told goes to where the file says, and nowhere else.

use std::sync::OnceLock;
use std::time::Duration;

use redrive_core::alerts::Notice;
use redrive_core::retry::retry_after;
use redrive_core::secrets::Secrets;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use url::Url;

use super::Refusal;
use super::shapes::{Shape, body};
use crate::clock::{Clock, SystemClock};
use crate::handler::http::fault::chain;

/// The header by which who gets a notice twice sees that it is the same.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The most that is read, and shown, of why something is refused, and how long that may take.
const SAID_BYTES_MAX: usize = 2_048;
const SAID_CHARS_MAX: usize = 120;
const SAID_WITHIN: Duration = Duration::from_secs(1);

pub(super) struct Webhook {
    /// Made when it is needed first: most commands tell nobody anything.
    client: OnceLock<Client>,
    url: Url,
    headers: HeaderMap,
    shape: Shape,
}

impl Webhook {
    pub(super) fn new(
        url: &str,
        headers: &[(String, String)],
        shape: Shape,
        secrets: &mut Secrets,
    ) -> Result<Self, String> {
        secrets.add_value(url);
        headers.iter().for_each(|(_, value)| secrets.add_credentials(value));
        let url = Url::parse(url).map_err(|error| format!("its url is not one: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("its url is not one of http or https".to_owned());
        }
        hide_parts(&url, secrets);
        Ok(Self { client: OnceLock::new(), url, headers: header_map(headers)?, shape })
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        crate::tls::ensure_provider();
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("redrive/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .build()
            .map_err(|error| format!("the HTTP client cannot be set up: {}", chain(&error)))?;
        Ok(self.client.get_or_init(|| client))
    }

    pub(super) async fn send(&self, notice: &Notice, link: Option<&str>, secrets: &Secrets) -> Result<(), Refusal> {
        let request = self
            .client()?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(IDEMPOTENCY_KEY, format!("{}-{}", notice.dedup_key, notice.number))
            .body(body(&self.shape, notice, link).to_string());
        let answer = request.send().await.map_err(|error| chain(&error.without_url()))?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            code @ 300..=399 => Err(format!("it redirects (HTTP {code}), which is not followed").into()),
            code => {
                let asked = answer.headers().get(RETRY_AFTER).and_then(|header| header.to_str().ok());
                let retry_after = asked.and_then(|text| retry_after(text, SystemClock.now()));
                let said = tokio::time::timeout(SAID_WITHIN, said(answer, secrets)).await.ok().flatten();
                let said = said.map(|said| format!(": {said}")).unwrap_or_default();
                Err(Refusal { why: format!("it answered with HTTP {code}{said}"), retry_after })
            }
        }
    }
}

/// The first line of what an answer says, unless it is a page. Secrets are masked before it is cut: half of one would not be found.
async fn said(mut answer: Response, secrets: &Secrets) -> Option<String> {
    let mut bytes = Vec::new();
    while bytes.len() < SAID_BYTES_MAX
        && let Ok(Some(piece)) = answer.chunk().await
    {
        bytes.extend_from_slice(&piece[..piece.len().min(SAID_BYTES_MAX - bytes.len())]);
    }
    let text = secrets.mask(&String::from_utf8_lossy(&bytes));
    let line = text.trim().lines().next().filter(|line| !line.starts_with('<'))?;
    Some(line.chars().take(SAID_CHARS_MAX).collect())
}

/// The parts of an address that are secret by themselves: all but where it is.
pub(super) fn hide_parts(url: &Url, secrets: &mut Secrets) {
    secrets.add_value(url.as_str());
    secrets.add_user(url.username(), url.password().unwrap_or_default());
    if url.path().len() > 1 {
        secrets.add_value(url.path());
    }
    url.query_pairs().for_each(|(_, value)| secrets.add_value(&value));
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || format!("the header {name:?} cannot be sent");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}
