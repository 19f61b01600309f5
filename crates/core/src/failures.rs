//! What went wrong in an attempt: what the handler reports, the failure kept of it, and the closed list of reasons.

mod told;
pub mod uncaught;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dead::Gate;
use crate::definitions::DefinitionVersion;
use crate::ids::WorkerId;
use crate::payloads::Payload;
use crate::time::Timestamp;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal: $disposition:ident, $gate:ident;)*) => {
        /// Why an attempt failed. The list is closed: whatever happens is one of these.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Reason {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name in JSON, columns and on the screen.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What happens to a job that failed for this reason, and whether it may be replayed once dead.
            pub const fn defaults(self) -> (Disposition, Gate) {
                match self { $(Self::$name => (Disposition::$disposition, Gate::$gate),)* }
            }
        }
    };
}

reasons! {
    /// It took longer than it may.
    Timeout = "timeout": Retry, Auto;
    /// The connection could not be made or broke off.
    Network = "network": Retry, Auto;
    /// The host has no address.
    Dns = "dns": Retry, Auto;
    /// The encrypted connection could not be trusted.
    Tls = "tls": Retry, Review;
    /// The target asks for fewer requests.
    RateLimited = "rate_limited": Retry, Auto;
    /// The target refuses us: forbidden, or a challenge.
    Blocked = "blocked": Dead, Review;
    /// The target failed.
    ServerError = "server_error": Retry, Auto;
    /// What was asked for is not there.
    NotFound = "not_found": Dead, Review;
    /// The answer is not what it should be: a field is missing or wrong.
    SchemaValidation = "schema_validation": Dead, Review;
    /// The answer cannot be read at all.
    MalformedPayload = "malformed_payload": Dead, Review;
    /// The provider has no room for us now.
    NoCapacity = "no_capacity": Retry, Auto;
    /// The input cannot be worked on.
    RejectedInput = "rejected_input": Dead, Review;
    /// The provider tried and gave up.
    Unsolvable = "unsolvable": Retry, Review;
    /// The pipeline itself is set up wrongly.
    Misconfigured = "misconfigured": Dead, Review;
    /// The job takes its process down.
    PoisonPill = "poison_pill": Dead, Review;
    /// The payload to work on is gone.
    PayloadExpired = "payload_expired": Dead, Never;
    /// The handler failed and did not say why.
    HandlerError = "handler_error": Retry, Review;
}

impl Reason {
    /// Whether the reason is about the target rather than the job, so that the target's breaker counts it.
    pub const fn is_about_target(self) -> bool {
        matches!(
            self,
            Self::Timeout
                | Self::Network
                | Self::Dns
                | Self::Tls
                | Self::RateLimited
                | Self::Blocked
                | Self::ServerError
                | Self::NoCapacity
        )
    }
}

impl Reason {
    /// Whether the reason is about what came, so that other rules may make something of the same payload.
    pub const fn is_about_content(self) -> bool {
        matches!(self, Self::SchemaValidation | Self::MalformedPayload | Self::HandlerError | Self::PoisonPill)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        let found = Self::ALL.iter().find(|reason| reason.as_str() == text);
        found.copied().ok_or_else(|| UnknownReason { text: text.to_owned() })
    }
}

/// A word that is no reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a reason: expected one of {}", names())]
pub struct UnknownReason {
    text: String,
}

fn names() -> String {
    Reason::ALL.iter().map(|reason| reason.as_str()).collect::<Vec<_>>().join(", ")
}

/// What to do with a job that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Try again later, while attempts are left.
    Retry,
    /// Bury it at once.
    Dead,
    /// Open the breaker of its target and give the attempt back.
    Hold,
    /// Take the failure for a result.
    Done,
    /// Discard it, with a record of why.
    Discard,
}

/// What a handler says about an attempt that failed. Everything is optional: rules fill in what it leaves open.
/// Scripts print it as JSON, so the names they are likely to use are understood too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureReport {
    /// Why, if the handler knows.
    pub reason: Option<Reason>,
    /// What to do, if the handler insists.
    pub disposition: Option<Disposition>,
    /// Whether it may be replayed, if the handler insists.
    pub gate: Option<Gate>,
    /// A short stable code: `ERROR_NO_SLOT_AVAILABLE`, `exit_1`, `SIGKILL`.
    pub code: Option<String>,
    /// What happened, in words.
    #[serde(alias = "error")]
    pub message: String,
    /// What the answer lacks, one by one, if that is what is wrong.
    pub misses: Vec<Miss>,
    /// The type of the error: `requests.exceptions.Timeout`.
    #[serde(alias = "type")]
    pub error_type: Option<String>,
    /// The stack trace.
    #[serde(alias = "traceback")]
    pub stack: Option<String>,
    /// The step that failed: `fetch`, `extract`, `poll`.
    pub stage: Option<String>,
    /// The status of the HTTP response.
    #[serde(alias = "status")]
    pub http_status: Option<u16>,
    /// The host or provider, where it is not the job's own target.
    pub target: Option<String>,
    /// The label of the proxy that was used; never its address or credentials.
    pub proxy: Option<String>,
    /// The provider's task, if one was submitted.
    pub task_id: Option<String>,
    /// Seconds the target asked us to wait.
    #[serde(alias = "retry_after")]
    pub retry_after_secs: Option<f64>,
    /// Whether the target's other jobs are to wait from now on, whatever becomes of this one: it is the target, or our
    /// account with it, that needs a person.
    pub hold: bool,
    /// The beginning of the response body, for rules that look for a marker in it; not kept.
    #[serde(skip_serializing)]
    pub body: Option<String>,
    /// The end of what the handler wrote to its error stream.
    pub stderr: Option<String>,
}

impl FailureReport {
    /// A failure with a reason and a message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason: Some(reason), message: message.into(), ..Self::default() }
    }

    /// A failure of which only the message is known.
    pub fn message(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The same with a code.
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// How long the target asked us to wait, if it did; at most a day.
    pub fn retry_after(&self) -> Option<Duration> {
        let secs = self.retry_after_secs.filter(|secs| secs.is_finite() && *secs > 0.0)?;
        Some(Duration::from_secs_f64(secs.min(86_400.0)))
    }
}

impl<E: std::error::Error> From<E> for FailureReport {
    /// Any error becomes a failure whose message is the error and its sources.
    fn from(error: E) -> Self {
        let message = with_sources(&error);
        Self { error_type: Some(std::any::type_name::<E>().to_owned()), message, ..Self::default() }
    }
}

/// What an error says, followed by what its sources say.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    message
}

/// A field that an answer does not have as it should.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Miss {
    /// The field, with its path: `offers[2].price`, or a JSON pointer into a record.
    pub field: String,
    /// What asked for it: a selector, a pointer, a keyword of a schema.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// What is amiss: `SelectorNotFound`, `WrongType`.
    pub code: String,
    /// Why what is there will not do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What is there instead, or its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// The most misses that are kept of a failure.
pub const MISSES_MAX: usize = 33;

/// The most of each text of a miss that is kept, in characters.
const MISS_CHARS_MAX: usize = 300;

impl Miss {
    /// All that it says, to be changed.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let said = [&mut self.field, &mut self.rule, &mut self.code];
        said.into_iter().chain([&mut self.why, &mut self.found].into_iter().flatten())
    }
}

/// Misses as they are kept: not too many, and none too long.
pub(crate) fn capped(mut misses: Vec<Miss>) -> Vec<Miss> {
    misses.truncate(MISSES_MAX);
    for text in misses.iter_mut().flat_map(Miss::texts_mut) {
        if let Some((end, _)) = text.char_indices().nth(MISS_CHARS_MAX) {
            text.truncate(end);
            text.push('…');
        }
    }
    misses
}

/// What is kept of an attempt that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// When the attempt ended.
    pub at: Timestamp,
    /// Which attempt it was, counted over all replays from 1.
    pub attempt: u32,
    /// The replay it was part of; 0 before the first.
    pub replay: u32,
    /// Why.
    pub reason: Reason,
    /// Whether the attempt took its process down; such attempts are counted as crashes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crash: bool,
    /// Whether the attempt went to see if its target is better, and it was not: it is given back. Of several in a row the newest is
    /// kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
    /// A short stable code.
    pub code: Option<String>,
    /// What happened, in words.
    pub message: String,
    /// What the answer lacked, one by one, if that is what was wrong. The first gave the failure its code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
    /// The type of the error.
    pub error_type: Option<String>,
    /// The stack trace.
    pub stack: Option<String>,
    /// The step that failed.
    pub stage: Option<String>,
    /// The status of the HTTP response.
    pub http_status: Option<u16>,
    /// The host or provider.
    pub target: Option<String>,
    /// The label of the proxy that was used.
    pub proxy: Option<String>,
    /// The provider's task, if one was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Seconds the target asked us to wait.
    pub retry_after_secs: Option<f64>,
    /// The end of what the handler wrote to its error stream.
    pub stderr: Option<String>,
    /// The worker that ran it.
    pub worker: Option<WorkerId>,
    /// How long it ran.
    pub duration_ms: Option<u64>,
    /// The raw response that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// The version of the pipeline's definition that the attempt was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionVersion>,
}

impl Failure {
    /// The raw response, if it was kept and is not lost.
    pub fn kept_payload(&self) -> Option<&Payload> {
        self.payload.as_ref().filter(|payload| payload.lost.is_none())
    }

    /// Whether it takes the place of the failure before it: a target that is down for days is probed again and again.
    pub fn replaces(&self, last: &Self) -> bool {
        self.probe && last.probe && self.replay == last.replay
    }

    /// Takes away what was found on the page, for who may not read pages.
    pub fn forget_page(&mut self) {
        self.misses.iter_mut().for_each(|miss| miss.found = None);
    }

    /// Whether there was a raw response, and it is lost.
    pub fn lost_payload(&self) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.lost.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_survive_text_and_json() {
        for reason in Reason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
            let json = serde_json::to_string(reason).expect("a reason is a string");
            assert_eq!(json, format!("\"{}\"", reason.as_str()));
        }
        assert_eq!(Reason::ALL.len(), 17);
    }

    #[test]
    fn misses_are_kept_within_bounds() {
        let long = Miss { field: "é".repeat(1_000), found: Some("x".repeat(1_000)), ..Miss::default() };
        let kept = capped(vec![long; 100]);
        assert_eq!(kept.len(), MISSES_MAX);
        let lengths = kept[0].clone().texts_mut().map(|text| text.chars().count()).max();
        assert_eq!(lengths, Some(MISS_CHARS_MAX + 1));
        let short = vec![Miss { code: "WrongType".into(), ..Miss::default() }];
        assert_eq!(capped(short.clone()), short);
    }

    #[test]
    fn only_whole_waits_count() {
        let asked = |secs| FailureReport { retry_after_secs: Some(secs), ..FailureReport::default() };
        assert_eq!(asked(2.5).retry_after(), Some(Duration::from_millis(2_500)));
        for nonsense in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(asked(nonsense).retry_after(), None);
        }
        assert_eq!(asked(1e300).retry_after(), Some(Duration::from_secs(86_400)));
    }
}
