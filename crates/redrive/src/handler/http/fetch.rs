//! Sending a request and reading the answer: capped and timed. What came is kept as evidence if it cannot be used.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::payloads::Response;
use redrive_core::secrets::Secrets;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};

use super::request::Filled;
use super::{Transport, fault, redirects};
use crate::handler::{HandlerError, Job, Saved};
use crate::vault::unavailable;

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

    /// The body as text, in the charset that the header, the document's own beginning or the bytes themselves say.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        let charset = self.content_type().and_then(charset_of).or_else(|| declared_charset(&self.body));
        let encoding = charset.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
        match encoding {
            Some(encoding) => encoding.decode(&self.body).0,
            None if std::str::from_utf8(&self.body).is_ok() => encoding_rs::UTF_8.decode(&self.body).0,
            // What is neither declared nor UTF-8 is, on the web, most often this.
            None => encoding_rs::WINDOWS_1252.decode(&self.body).0,
        }
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

fn charset_of(content_type: &str) -> Option<String> {
    let (_, rest) = content_type.split_once("charset=")?;
    Some(rest.split(';').next()?.trim().trim_matches(['"', '\'']).to_owned())
}

/// The charset that a page declares in its first kilobyte.
fn declared_charset(body: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
    let at = head.find("charset=").map(|at| at + 8).or_else(|| head.find("encoding=").map(|at| at + 9))?;
    let value = head[at..].trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | ':')).unwrap_or(value.len());
    (end > 0).then(|| value[..end].to_owned())
}

/// Sends a request, follows redirects, and reads the whole answer.
pub(crate) async fn fetch(
    client: &Client,
    request: Filled,
    transport: &Transport,
    job: &Job,
) -> Result<Answer, HandlerError> {
    let begun = Instant::now();
    let (response, strayed) = send(client, request, transport, begun, job.deadline).await?;
    let (status, headers, url) = (response.status(), response.headers().clone(), response.url().to_string());
    let mut answer = Answer { status, headers, url, body: Vec::new(), elapsed: begun.elapsed(), strayed };
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                answer.elapsed = begun.elapsed();
                let report = FailureReport { http_status: Some(status.as_u16()), ..fault::of_request(&error, "read") };
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
    transport: &Transport,
    begun: Instant,
    deadline: Duration,
) -> Result<(reqwest::Response, bool), FailureReport> {
    let (origin, mut strayed, mut followed) = (request.url.origin(), false, 0);
    loop {
        // A little less than the job has, so that what came until then can still be kept.
        let left = deadline.mul_f64(0.9).saturating_sub(begun.elapsed());
        let sent = prepared(client, &request).timeout(left).send().await;
        let response = sent.map_err(|error| fault::of_request(&error, "connect"))?;
        let status = response.status();
        let Some(location) = redirects::location(status, response.headers()) else { return Ok((response, strayed)) };
        if followed == transport.redirects_max {
            return Err(redirects::too_many(status, &location, transport.redirects_max));
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
        ..fault::report(Reason::MalformedPayload, "body_too_large", message, "read")
    };
    if !job.evidence.is_wanted(true) {
        return report.into();
    }
    let total = answer.header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let response = answer.response(&transport.secrets);
    let capture = async {
        let mut capture = job.evidence.capture()?;
        capture.write(&answer.body).map_err(|error| unavailable(&error))?;
        drop(answer);
        // An end that does not come, or comes as an error, is no reason to lose what did.
        while !capture.is_full()
            && let Some(Ok(chunk)) = stream.next().await
        {
            capture.write(chunk.as_ref()).map_err(|error| unavailable(&error))?;
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
    capture.write(&answer.body).map_err(|error| unavailable(&error))?;
    // A length that was promised and did not come is part of the evidence, unless the body was packed on its way.
    let packed = answer.headers.contains_key(reqwest::header::CONTENT_ENCODING);
    let promised = answer.header(CONTENT_LENGTH).filter(|_| !packed).and_then(|length| length.parse().ok());
    job.evidence.save(capture, answer.response(secrets), promised).await
}
