//! The fingerprint of a failure: which failures have the same cause.
//!
//! Each failure alone decides its key; there is no clustering and no setting, so the same failure has the same key
//! everywhere and always. Texts are read once, from left to right, and only their beginning; nothing in here may panic
//! or take more than linear time, whatever a target put into an error message.
//!
//! - `sections`: which parts of a message say what happened
//! - `message`: the walk over those parts
//! - `chunks`: where words and addresses end
//! - `words` and `numbers`: what varies, by its shape
//! - `values`: what varies, by where it stands
//! - `quotes` and `markup`: what stands in quotes and angle brackets
//! - `vocabulary`: the words that the rules know
//! - `template`: what remains, with lists folded
//! - `validation`: lists of errors that validators report
//! - `frames`: where in our own code it happened
//! - `domain`: who owns the target, by the table in `suffixes`
//! - `similarity`: how alike two templates are, to suggest a merge

mod chunks;
mod domain;
mod frames;
mod markup;
mod message;
mod numbers;
mod quotes;
mod sections;
mod similarity;
mod suffixes;
mod template;
mod validation;
mod values;
mod vocabulary;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use frames::{own_frames, own_place};
pub use similarity::similarity;

use crate::failures::Failure;
use crate::ids::PipelineName;

/// The version of the rules; part of every key.
pub const VERSION: u32 = 1;

/// How many bytes of a message are looked at.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// What is known of a failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// The pipeline; empty if unknown.
    pub pipeline: &'a str,
    /// Why it failed.
    pub reason: Option<&'a str>,
    /// Whether that reason is about the target, so that other targets are other causes.
    pub about_target: bool,
    /// The host or provider.
    pub target: Option<&'a str>,
    /// The status of the HTTP response.
    pub http_status: Option<u16>,
    /// A short stable code.
    pub code: Option<&'a str>,
    /// The type of the error.
    pub error_type: Option<&'a str>,
    /// What happened, in words.
    pub message: &'a str,
    /// The stack trace.
    pub stack: Option<&'a str>,
}

/// Which cause a failure belongs to, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fingerprint {
    /// The version and a hash of the parts.
    pub key: String,
    /// The keys that former versions of the rules made of the same failure: its cause may be known by one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<String>,
    /// The message without what varies.
    pub template: String,
    /// Everything that went into the key, in order.
    pub parts: Vec<Part>,
    /// What was left out of the message, the first of it.
    pub masked: Vec<Masked>,
}

/// One thing that went into a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it is: `pipeline`, `reason`, `domain`, `status`, `code`, `error_type`, `template` or `frame`.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: String,
}

/// Something that was left out of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Masked {
    /// What it was taken for: `number`, `url`, `path`, …
    pub kind: &'static str,
    /// The text itself, cut when long.
    pub text: String,
}

/// The fingerprint of a failure, with its explanation.
pub fn fingerprint(subject: &Subject<'_>) -> Fingerprint {
    let message = beginning(subject.message, MESSAGE_BYTES_MAX);
    let (template, masked) = validation::read(message).unwrap_or_else(|| message::read(message));
    let parts = parts(subject, &template);
    Fingerprint { key: key(&parts), former: Vec::new(), template, parts, masked }
}

/// The fingerprint of a failure of a job with that target.
pub fn of_failure(pipeline: &PipelineName, target: Option<&str>, failure: &Failure) -> Fingerprint {
    fingerprint(&Subject {
        pipeline: pipeline.as_str(),
        reason: Some(failure.reason.as_str()),
        about_target: failure.reason.is_about_target(),
        target: failure.target.as_deref().or(target),
        http_status: failure.http_status,
        code: failure.code.as_deref(),
        error_type: failure.error_type.as_deref(),
        message: &failure.message,
        stack: failure.stack.as_deref(),
    })
}

fn parts(subject: &Subject<'_>, template: &str) -> Vec<Part> {
    let domain = subject.target.filter(|_| subject.about_target).map(domain::of_target);
    let parts = [
        ("pipeline", Some(subject.pipeline.to_owned())),
        ("reason", subject.reason.map(str::to_owned)),
        ("domain", domain),
        ("status", subject.http_status.map(|status| status.to_string())),
        ("code", subject.code.map(str::to_owned)),
        ("error_type", subject.error_type.map(str::to_owned)),
        ("template", Some(template.to_owned())),
        ("frame", subject.stack.and_then(frames::top_in_app)),
    ];
    let known = parts.into_iter().filter_map(|(name, value)| Some(Part { name: name.into(), value: value? }));
    known.filter(|part| !part.value.is_empty()).collect()
}

/// Lengths are hashed too, so that no two lists of parts read the same.
fn key(parts: &[Part]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part.name.as_bytes());
        hasher.update(&(part.value.len() as u64).to_le_bytes());
        hasher.update(part.value.as_bytes());
    }
    let hex = hasher.finalize().to_hex();
    format!("{VERSION}-{}", &hex[..20])
}

/// The first `max` bytes of a text, less if that would cut a character.
fn beginning(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}
