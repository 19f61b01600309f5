//! Dead letters: jobs that are no longer tried, with everything needed to understand them and do them later.
//!
//! - [`LetterSort`]: in which order; [`import`]: taking in those of another store; [`foreign`]: reading those of other programs

pub mod foreign;
pub mod import;
mod sort;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::sort::LetterSort;

use crate::causes::CauseId;
use crate::definitions::DefinitionVersion;
use crate::failures::{Failure, Reason};
use crate::ids::{JobId, PipelineName, RoundName};
use crate::jobs::{Input, Origin};
use crate::payloads::{Payload, PayloadHash, PayloadPlace, Unreadable};
use crate::time::Timestamp;

/// Whether a dead letter may be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// By itself, if the pipeline asks for it.
    Auto,
    /// A person decides.
    Review,
    /// Not without force: its attempts are used up, or its payload is gone.
    Never,
}

impl Gate {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Review, Self::Never];

    /// The name in JSON, columns and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Review => "review",
            Self::Never => "never",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|gate| gate.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not a gate: expected auto, review or never"))
    }
}

/// A job that is no longer tried. Its JSON form is what lists, `show` and exports print.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The id it has had since it was accepted.
    pub id: JobId,
    /// Its short number, for people: no other job of the store ever has it. A letter that is taken in gets one of this store.
    #[serde(default)]
    pub number: Option<i64>,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// The round it belongs to, if there are rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundName>,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// The input, as it was accepted or as a replay changed it.
    pub input: Input,
    /// The host or provider.
    pub target: Option<String>,
    /// Why the last attempt failed.
    pub reason: Reason,
    /// The last failure's code.
    pub code: Option<String>,
    /// The last failure's message.
    pub message: String,
    /// Attempts over all replays.
    pub attempts: u32,
    /// Of those, the ones of retries by name, which do not count towards the cap over all replays.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u32,
    /// Times it took its process down.
    pub crashes: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// Whether it may be replayed.
    pub gate: Gate,
    /// What is to be said of it, if it was tried for the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The cause it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseId>,
    /// The task that was left at a provider: a replay asks for it before it submits, and pays, again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The input as it was accepted, if a replay changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Input>,
    /// Where it came from, if another system handed it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The version of its pipeline's definition that it was last tried with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionVersion>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it died (last).
    pub died_at: Timestamp,
    /// The last failure's HTTP status.
    pub http_status: Option<u16>,
    /// The last failure's proxy label.
    pub proxy: Option<String>,
    /// The address of the newest payload that was kept of any attempt.
    #[serde(default)]
    pub payload: Option<PayloadHash>,
    /// Where that payload lies in the vault.
    #[serde(skip)]
    pub payload_place: Option<PayloadPlace>,
    /// The full address of that payload, such as `s3://bucket/prefix/…` or a path: of the vault that is configured, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_address: Option<String>,
    /// Whether that payload's bytes were never here: the letter was imported without them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_missing: bool,
    /// Why the vault does not give that payload back, as the last read of it found: it is missing there, or damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_unreadable: Option<Unreadable>,
    /// Whether only the beginning of that payload was kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_cut: bool,
    /// Every failure, oldest first; only where the whole letter was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Vec<Failure>>,
}

const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A payload that a letter could be worked on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPayload {
    /// Its address.
    pub hash: PayloadHash,
    /// Whether only its beginning was kept.
    pub truncated: bool,
}

impl KeptPayload {
    /// The payload of a letter: what its last attempt brought, else the newest that any attempt brought, else the one that it was
    /// worked on from.
    pub fn of_letter(last: Option<Self>, newest: Option<Self>, worked_from: Option<PayloadHash>) -> Option<Self> {
        last.or(newest).or(worked_from.map(|hash| Self { hash, truncated: false }))
    }
}

impl DeadLetter {
    /// Whether a payload was kept that it can be worked on from: the whole of it, which was here and was not found to be gone.
    pub const fn is_saved(&self) -> bool {
        self.payload.is_some() && !self.payload_missing && !self.payload_cut && self.payload_unreadable.is_none()
    }

    /// Its newest payload with the response it came in, where the whole letter was asked for.
    pub fn saved_payload(&self) -> Option<&Payload> {
        let kept = self.failures.iter().flatten().filter_map(|failure| failure.payload.as_ref());
        kept.rev().find(|payload| Some(payload.hash) == self.payload && payload.lost.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_keeps_the_newest_payload_that_there_is() {
        let hash = |n| PayloadHash::from_bytes([n; 32]);
        let kept = |n, truncated| Some(KeptPayload { hash: hash(n), truncated });
        assert_eq!(KeptPayload::of_letter(kept(1, true), kept(2, false), Some(hash(3))), kept(1, true));
        assert_eq!(KeptPayload::of_letter(None, kept(2, true), Some(hash(3))), kept(2, true));
        assert_eq!(KeptPayload::of_letter(None, None, Some(hash(3))), kept(3, false));
        assert_eq!(KeptPayload::of_letter(None, None, None), None);
    }
}
