//! `http`: fetch a page, extract a record by rules, check it, give it back.
//!
//! - `request`: the request, made from a job's input by templates; `sent`: which secrets it carries
//! - `line`: the way out: proxies in turn, and `turns`: who may go when, per target; `strangers`: what jobs that others wrote may not
//! - `fetch`: sending it and reading the answer, with caps and time-outs; `redirects`: what goes along to where
//! - `resolver`: keeps connections to where the pipeline may go
//! - `certificates`: authorities of one's own, and what was wrong with a certificate
//! - `charset`: from bytes to text
//! - `fault`: from what the network said to a failure
//! - `document`, `extract`, `validate`: from the answer to a record

mod authority;
mod certificates;
mod charset;
pub mod document;
pub mod extract;
pub(crate) mod fault;
pub(super) mod fetch;
pub(super) mod line;
mod redirects;
pub mod request;
mod resolver;
mod sent;
mod strangers;
mod turns;
pub mod validate;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use redrive_core::egress::Egress;
use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::proxies::ProxyPolicy;
use redrive_core::rules::Pattern;
use redrive_core::secrets::{SecretHosts, Secrets};
use redrive_core::traffic::Coverage;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use redrive_core::jobs::Input;

pub use self::certificates::{Authorities, complaint};
use self::document::{Document, Format};
use self::extract::Extractor;
use self::fetch::Answer;
use self::line::Line;
use self::request::Request;
use self::validate::Validator;
use super::{Handler, HandlerError, Job, Success};
use crate::export::HttpRequest;

/// How requests are sent.
#[derive(Clone, Debug)]
pub struct Transport {
    /// How long it may take to connect.
    pub connect_timeout: Duration,
    /// How long nothing may come.
    pub read_timeout: Duration,
    /// The longest body that is worked on, in bytes.
    pub body_bytes_max: usize,
    /// Redirects that are followed.
    pub redirects_max: usize,
    /// Whether cookies are kept from one request to the next.
    pub cookies: bool,
    /// Proxies, taken in turn; none means a direct connection.
    pub proxies: Vec<Proxy>,
    /// How many of them a job that is blocked, or cannot connect, goes through.
    pub proxies_max: usize,
    /// Which addresses may be connected to.
    pub egress: Egress,
    /// Certificate authorities that are trusted beside the system's.
    pub authorities: Authorities,
    /// Requests to one target at once.
    pub per_target_max: Option<usize>,
    /// Requests to one target per second.
    pub per_second_max: Option<f64>,
    /// What must not get out.
    pub secrets: Secrets,
    /// Hosts to which configured secrets go with jobs that came over the network, or whose inputs were changed, besides those that the
    /// requests name.
    pub secret_hosts: SecretHosts,
}

/// How pages are fetched and read.
#[derive(Debug)]
pub struct HttpConfig {
    /// How requests are sent.
    pub transport: Transport,
    /// The request.
    pub request: Request,
    /// Signs, in the body, of a page that is not the one that was asked for.
    pub challenges: Vec<Pattern>,
    /// What is taken from the body; nothing means the body itself.
    pub extractor: Option<Extractor>,
    /// What the record must look like.
    pub validator: Option<Validator>,
}

/// A proxy: its label is recorded, its address never.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// What it is called.
    pub label: String,
    /// Where it is, with credentials if need be.
    pub url: String,
}

/// What is left of an attempt's time, if possible, when a page is given up, so that it can still be kept.
const KEEPING: Duration = Duration::from_secs(1);

/// The handler that fetches pages.
#[derive(Debug)]
pub struct Http(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: HttpConfig,
    line: Line,
}

impl Http {
    /// A handler; says what is wrong if it cannot be set up.
    pub fn new(config: HttpConfig) -> Result<Self, String> {
        let line = Line::new(config.transport.clone(), &[&config.request])?;
        Ok(Self(Arc::new(Inner { config, line })))
    }

    async fn attempt(&self, job: &Job) -> Result<Value, HandlerError> {
        let inner = &self.0;
        let begun = Instant::now();
        let (answer, proxy) = match &job.saved {
            Some(saved) => (Answer::saved(saved, inner.config.transport.body_bytes_max).await?, None),
            None => {
                let request = inner.line.fill(&inner.config.request, &job.input, job)?;
                let target = job.target.clone().unwrap_or_else(|| request.host());
                match inner.line.ask(inner.line.way(job), request, &target, job).await {
                    Err(HandlerError::Failed(report)) if fault::is_cut_short(&report) => {
                        return Err(cut_short(*report, job).await?.into());
                    }
                    other => other?,
                }
            }
        };
        let answer = Arc::new(answer);
        let saved_first = job.saved.is_none() && job.evidence.is_saved_first();
        if saved_first {
            inner.line.keep(&answer, job).await?;
        }
        let left = job.deadline.saturating_sub(begun.elapsed());
        let most = left.saturating_sub(KEEPING).max(left / 2);
        let Reading { coverage, record } = inner.clone().read_aside(Arc::clone(&answer), most).await;
        coverage.into_iter().for_each(|coverage| job.notes.coverage(coverage));
        let status = Some(answer.status.as_u16());
        let read = record.map_err(|report| FailureReport { proxy, http_status: status, ..report });
        if job.saved.is_none() && !saved_first && job.evidence.is_wanted(read.is_err()) {
            inner.line.keep(&answer, job).await?;
        }
        Ok(read?)
    }
}

/// Gives a job whose answer was cut short one retry in each run: what is cut twice at the same place is served so.
async fn cut_short(report: FailureReport, job: &Job) -> Result<FailureReport, HandlerError> {
    let cut = json!({ "cut_in_replay": job.replays });
    let disposition = if job.progress.value() == Some(&cut) { Disposition::Dead } else { Disposition::Retry };
    job.progress.note(Some(cut)).await?;
    Ok(FailureReport { disposition: Some(disposition), ..report })
}

/// What came of reading an answer.
struct Reading {
    coverage: Option<Coverage>,
    record: Result<Value, FailureReport>,
}

impl Reading {
    fn failed(report: FailureReport) -> Self {
        Self { coverage: None, record: Err(report) }
    }
}

impl Inner {
    /// Reads an answer on a thread of its own, for so long at most.
    ///
    /// Neither a deadline, nor a worker that is to stop, nor the end of a runtime waits for a page that keeps a parser
    /// busy. The thread is told when nobody waits for it any more and then ends by itself: at once while it parses, and
    /// else with the selector that it is at.
    async fn read_aside(self: Arc<Self>, answer: Arc<Answer>, most: Duration) -> Reading {
        let (told, reading) = oneshot::channel();
        let stop = CancellationToken::new();
        let _stops_it = stop.clone().drop_guard();
        let read = move || {
            let mut coverage = None;
            let record = self.record(&answer, &mut coverage, &stop);
            let _ = told.send(Reading { coverage, record });
        };
        if let Err(error) = std::thread::Builder::new().name("redrive-page".into()).spawn(read) {
            return Reading::failed(FailureReport::message(format!("no thread to read the page: {error}")));
        }
        match tokio::time::timeout(most, reading).await {
            Ok(Ok(reading)) => reading,
            Ok(Err(_)) => Reading::failed(FailureReport::message("the page could not be read: its reader panicked")),
            Err(_) => {
                let message = "the attempt's time was over before the page was read";
                Reading::failed(fault::report(Reason::Timeout, "deadline", message.into(), "extract"))
            }
        }
    }

    /// Makes a record of an answer, and says which of its fields were found.
    fn record(
        &self,
        answer: &Answer,
        coverage: &mut Option<Coverage>,
        stop: &CancellationToken,
    ) -> Result<Value, FailureReport> {
        let text = answer.text();
        if let Some(sign) = self.config.challenges.iter().find_map(|sign| sign.find(head(&text))) {
            let message = format!("the page is a challenge, not what was asked for: {sign:?}");
            return Err(fault::report(Reason::Blocked, "challenge", message, "fetch"));
        }
        if !answer.status.is_success() {
            return Err(fault::of_status(answer, head(&text)));
        }
        let Some(extractor) = &self.config.extractor else { return self.whole(answer, &text) };
        let format = extractor.format(answer.content_type());
        let document = Document::parse_until(format, &text, stop).map_err(|error| fault::of_malformed(&error))?;
        let extracted = extractor.extract_until(&document, stop);
        *coverage = extractor.coverage(&extracted);
        let record =
            Value::Object(extracted.map_err(|partial| fault::of_misses(&partial.misses.masked(self.line.secrets())))?);
        self.check(&record)?;
        Ok(record)
    }

    /// The body itself is the result.
    fn whole(&self, answer: &Answer, text: &str) -> Result<Value, FailureReport> {
        // Only JSON can fit a schema, whatever the answer calls itself.
        if self.config.validator.is_none()
            && answer.content_type().and_then(Format::of_content_type) != Some(Format::Json)
        {
            let url = self.line.secrets().mask(&answer.url);
            return Ok(json!({"status": answer.status.as_u16(), "url": url, "body": text}));
        }
        match Document::parse(Format::Json, text).map_err(|error| fault::of_malformed(&error))? {
            Document::Json(value) => self.check(&value).map(|()| value),
            Document::Page(_) | Document::Text(_) => Ok(text.into()),
        }
    }

    fn check(&self, record: &Value) -> Result<(), FailureReport> {
        match &self.config.validator {
            Some(validator) => validator
                .validate(record)
                .map_err(|violation| fault::of_violation(&violation, &validator.violations(record))),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Handler for Http {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        self.attempt(&job).await.map(Success::from).map_err(|error| error.masked(self.0.line.secrets()))
    }

    async fn turn(&self, target: &str) -> Option<Box<dyn Any + Send>> {
        self.0.line.turn(target).await
    }

    fn secrets(&self) -> Option<&Secrets> {
        Some(self.0.line.secrets())
    }

    fn request(&self, input: &Input, _task: Option<&str>) -> Option<HttpRequest> {
        Some(self.0.config.request.fill(input).ok()?.masked(self.0.line.secrets()))
    }

    fn proxies(&self) -> ProxyPolicy {
        self.0.line.proxies().clone()
    }

    fn works_from_saved(&self, edited: bool) -> bool {
        // A saved page is that of the input as it was.
        !edited
    }
}

/// A body as text, in the charset that it has.
pub(crate) fn decoded<'a>(body: &'a [u8], content_type: Option<&str>) -> std::borrow::Cow<'a, str> {
    charset::decode(body, content_type)
}

/// The beginning of a page, where signs are looked for.
fn head(text: &str) -> &str {
    let mut end = text.len().min(64 * 1024);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
