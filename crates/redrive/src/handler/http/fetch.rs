//! Sending a request and reading the answer: capped and timed. What came is kept as evidence if it cannot be used.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::payloads::Response;
use redrive_core::proxies::CONNECT_STAGE;
use redrive_core::secrets::Secrets;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};

use super::request::Filled;
use super::{Transport, charset, fault, redirects, resolver};
use crate::handler::{HandlerError, Job, Saved};
use crate::vault::unkept;

/// An answer that was read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
    pub(crate) elapsed: Duration,
    /// Whether a redirect led to another origin, where nothing configured was sent.
    pub(crate) strayed: bool,
}

impl Answer {
    /// An answer that came before and was saved.
    pub(crate) async fn saved(saved: &Saved, bytes_max: usize) -> Result<Self, HandlerError> {
        let body = saved.bytes(bytes_max).await?;
        let response = &saved.payload.response;
        let mut headers = HeaderMap::new();
        for (name, value) in &response.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        Ok(Self {
            status: response.status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::OK),
            headers,
            url: response.url.clone().unwrap_or_default(),
            body,
            elapsed: Duration::ZERO,
            strayed: false,
        })
    }

    pub(crate) fn header(&self, name: impl reqwest::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.header(CONTENT_TYPE)
    }

    /// The body as text.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        charset::decode(&self.body, self.content_type())
    }

    fn response(&self, secrets: &Secrets) -> Response {
        let headers = self.headers.iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        let mut response = Response {
            status: Some(self.status.as_u16()),
            headers: headers.collect(),
            url: Some(self.url.clone()),
            elapsed_ms: u64::try_from(self.elapsed.as_millis()).ok(),
        };
        secrets.mask_response(&mut response);
        response
    }
}

/// Sends a request, follows redirects, and reads the whole answer. Hosts that are exempt are reached wherever they are.
pub(crate) async fn fetch(
    client: &Client,
    request: Filled,
    (transport, exempt): (&Transport, Option<&BTreeSet<String>>),
    job: &Job,
) -> Result<Answer, HandlerError> {
    let begun = Instant::now();
    let (response, strayed) = send(client, request, (transport, exempt), begun, job.deadline).await?;
    let (status, headers, url) = (response.status(), response.headers().clone(), response.url().to_string());
    let mut answer = Answer { status, headers, url, body: Vec::new(), elapsed: begun.elapsed(), strayed };
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                answer.elapsed = begun.elapsed();
                let report = FailureReport {
                    http_status: Some(status.as_u16()),
                    ..fault::of_request(&error, fault::READ_STAGE)
                };
                return Err(broken_off(&answer, report, transport, job).await);
            }
        };
        answer.body.extend_from_slice(&chunk);
        if answer.body.len() > transport.body_bytes_max {
            answer.elapsed = begun.elapsed();
            return Err(too_long(answer, stream, transport, job).await);
        }
    }
    answer.elapsed = begun.elapsed();
    Ok(answer)
}

/// Sends a request until an answer is no redirect; says also whether it came to another origin on its way.
async fn send(
    client: &Client,
    mut request: Filled,
    (transport, exempt): (&Transport, Option<&BTreeSet<String>>),
    begun: Instant,
    deadline: Duration,
) -> Result<(reqwest::Response, bool), FailureReport> {
    let (origin, mut strayed, mut followed) = (request.url.origin(), false, 0);
    loop {
        resolver::check(&request.url, &transport.egress, exempt)?;
        // A little less than the job has, so that what came until then can still be kept.
        let left = deadline.mul_f64(0.9).saturating_sub(begun.elapsed());
        let sent = prepared(client, &request).timeout(left).send().await;
        let response = sent.map_err(|error| fault::of_request(&error, unanswered(&error)))?;
        let status = response.status();
        let Some(location) = redirects::location(status, response.headers()) else { return Ok((response, strayed)) };
        if followed == transport.redirects_max {
            return Err(redirects::too_many(status, &location, transport.redirects_max, &transport.secrets));
        }
        request = redirects::follow(request, status, &location, &transport.secrets)?;
        strayed |= request.url.origin() != origin;
        followed += 1;
    }
}

fn prepared(client: &Client, request: &Filled) -> reqwest::RequestBuilder {
    let mut builder = client.request(request.method.clone(), request.url.clone());
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    match (&request.form, &request.body) {
        (Some(form), _) => builder.form(form),
        (None, Some(body)) => builder.body(body.clone()),
        (None, None) => builder,
    }
}

/// The stage at which a request failed that got no answer.
fn unanswered(error: &reqwest::Error) -> &'static str {
    if error.is_connect() { CONNECT_STAGE } else { "fetch" }
}

/// Keeps what came of an answer that broke off.
async fn broken_off(answer: &Answer, report: FailureReport, transport: &Transport, job: &Job) -> HandlerError {
    if !answer.body.is_empty()
        && job.evidence.is_wanted(true)
        && let Err(error) = keep(answer, &transport.secrets, job).await
    {
        return error;
    }
    report.into()
}

/// Keeps an answer that is too long to be worked on, as far as the vault's cap goes, without holding it in memory.
async fn too_long<S, B>(answer: Answer, mut stream: S, transport: &Transport, job: &Job) -> HandlerError
where
    S: futures_util::Stream<Item = reqwest::Result<B>> + Unpin,
    B: AsRef<[u8]>,
{
    let message = format!("the body is longer than {} bytes", transport.body_bytes_max);
    let report = FailureReport {
        http_status: Some(answer.status.as_u16()),
        ..fault::report(Reason::MalformedPayload, "body_too_large", message, fault::READ_STAGE)
    };
    if !job.evidence.is_wanted(true) {
        return report.into();
    }
    let total = answer.header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let response = answer.response(&transport.secrets);
    let capture = async {
        let mut capture = job.evidence.capture()?;
        capture.write(&answer.body).map_err(|error| unkept(&error))?;
        drop(answer);
        // An end that does not come, or comes as an error, is no reason to lose what did.
        while !capture.is_full()
            && let Some(Ok(chunk)) = stream.next().await
        {
            capture.write(chunk.as_ref()).map_err(|error| unkept(&error))?;
        }
        job.evidence.save(capture, response, total).await
    };
    match capture.await {
        Ok(()) => report.into(),
        Err(error) => error,
    }
}

/// Keeps an answer as evidence.
pub(crate) async fn keep(answer: &Answer, secrets: &Secrets, job: &Job) -> Result<(), HandlerError> {
    let mut capture = job.evidence.capture()?;
    capture.write(&answer.body).map_err(|error| unkept(&error))?;
    // A length that was promised and did not come is part of the evidence, unless the body was packed on its way.
    let packed = answer.headers.contains_key(reqwest::header::CONTENT_ENCODING);
    let promised = answer.header(CONTENT_LENGTH).filter(|_| !packed).and_then(|length| length.parse().ok());
    job.evidence.save(capture, answer.response(secrets), promised).await
}
