//! From what the network, the page or the rules said to a failure.

use std::error::Error;

use redrive_core::failures::{FailureReport, Reason};
use redrive_core::retry::retry_after;
use reqwest::header::RETRY_AFTER;

use super::certificates;
use super::document::Malformed;
use super::extract::{Miss, Misses};
use super::fetch::Answer;
use super::resolver::NotAllowed;
use super::validate::Violation;
use crate::clock::{Clock, SystemClock};

/// The stage at which the head of an answer has come, and its body is read.
pub(super) const READ_STAGE: &str = "read";

/// A failure of a stage.
pub(crate) fn report(reason: Reason, code: &str, message: String, stage: &str) -> FailureReport {
    FailureReport { stage: Some(stage.to_owned()), ..FailureReport::new(reason, message).with_code(code) }
}

/// An error with its sources, without saying anything twice.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

/// A request that got no whole answer.
pub(crate) fn of_request(error: &reqwest::Error, stage: &str) -> FailureReport {
    if let Some(refused) = NotAllowed::among(error) {
        return refused.report();
    }
    if let Some(complaint) = certificates::complaint(error) {
        return report(Reason::Tls, "tls", format!("{complaint}: {}", chain(error)), stage);
    }
    let text = chain(error);
    // The address is not what went wrong, whatever words it has.
    let lower = error.url().map_or_else(|| text.clone(), |url| text.replace(url.as_str(), "")).to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["proxy authorization required"]) {
        let report = report(Reason::Blocked, "http_407", format!("the proxy wants other credentials: {text}"), stage);
        return FailureReport { http_status: Some(407), ..report };
    }
    let (reason, code) = if error.is_timeout() {
        (Reason::Timeout, "timeout")
    } else if says(&["dns error", "failed to lookup address", "name or service not known"]) {
        (Reason::Dns, "dns")
    } else if stage != READ_STAGE && says(&["certificate", "tls", "ssl", "handshake"]) {
        (Reason::Tls, "tls")
    } else if error.is_builder() {
        (Reason::RejectedInput, "bad_request")
    } else if says(&["refused"]) {
        (Reason::Network, "connection_refused")
    } else if says(&["reset", "broken pipe"]) {
        (Reason::Network, "connection_reset")
    } else if says(&["incomplete", "unexpected eof", "before message completed", "end of file", "close_notify"]) {
        (Reason::Network, "broken_off")
    } else if error.is_decode() || says(&["invalid gzip", "invalid deflate", "corrupt", "decompress", "invalid brotli"])
    {
        (Reason::MalformedPayload, "bad_encoding")
    } else {
        (Reason::Network, "network")
    };
    report(reason, code, text, stage)
}

/// Returns whether the connection cut a body short: bytes that were promised did not come, or what came cannot be unpacked.
pub(super) fn is_cut_short(report: &FailureReport) -> bool {
    report.stage.as_deref() == Some(READ_STAGE)
        && (report.reason == Some(Reason::Network) || report.code.as_deref() == Some("bad_encoding"))
}

/// An answer whose status says that it is not what was asked for. The rules find its reason.
pub(crate) fn of_status(answer: &Answer, head: &str) -> FailureReport {
    let wait = answer.header(RETRY_AFTER).and_then(|header| retry_after(header, SystemClock.now()));
    FailureReport {
        reason: super::redirects::is_redirect(answer.status).then_some(Reason::ServerError),
        http_status: Some(answer.status.as_u16()),
        code: Some(format!("http_{}", answer.status.as_u16())),
        message: format!("the answer was {}{}", answer.status, about_redirects(answer)),
        stage: Some("fetch".into()),
        retry_after_secs: wait.map(|wait| wait.as_secs_f64()),
        body: Some(head.to_owned()),
        ..FailureReport::default()
    }
}

/// What redirects have to do with an answer that is no success.
fn about_redirects(answer: &Answer) -> &'static str {
    match answer.status.as_u16() {
        _ if super::redirects::is_redirect(answer.status) => ", without a Location to follow",
        401 | 403 if answer.strayed => {
            " after a redirect to another origin, to which nothing configured is sent: if it is the right one, put it in \
             `url`"
        }
        _ => "",
    }
}

/// A body that cannot be read.
pub(crate) fn of_malformed(error: &Malformed) -> FailureReport {
    FailureReport {
        error_type: Some(error.code().to_owned()),
        ..report(Reason::MalformedPayload, error.code(), error.to_string(), "parse")
    }
}

/// Fields that are not where they should be. The first gives the failure its code.
pub(crate) fn of_misses(misses: &Misses) -> FailureReport {
    let code = misses.first.code();
    FailureReport {
        error_type: Some(code.to_owned()),
        misses: misses.iter().map(Miss::kept).collect(),
        ..report(Reason::SchemaValidation, code, misses.to_string(), "extract")
    }
}

/// A record that is not what it should be. The first violation gives the failure its message.
pub(crate) fn of_violation(violation: &Violation, all: &[Violation]) -> FailureReport {
    FailureReport {
        misses: all.iter().map(Violation::kept).collect(),
        ..report(Reason::SchemaValidation, violation.code(), violation.to_string(), "validate")
    }
}
