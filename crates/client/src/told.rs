//! What a server says of mistakes, made into the errors that the engine would have given here.

use redrive::detail::Detail;
use redrive::{Error, ErrorKind, StoreError};
use serde::Deserialize;
use serde_json::Value;

/// The one form of mistakes.
#[derive(Debug, Deserialize)]
struct Envelope {
    error: Told,
}

/// What is told of a mistake.
#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    code: String,
    message: String,
    /// Read apart: a newer server may tell more than is known here.
    #[serde(default)]
    detail: Option<Value>,
}

/// What comes of a mistake.
pub(crate) enum Mistake {
    /// It is what the engine would have said.
    Final(Error),
    /// It may go well a little later.
    Passing(StoreError),
}

impl Told {
    /// Reads what a server said, if that is what it is.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Envelope>(body).ok().map(|envelope| envelope.error)
    }

    /// What it means to who asked.
    pub(crate) fn mistake(self, place: &str, status: u16) -> Mistake {
        let place = place.to_owned();
        match self.code.as_str() {
            "disk_full" => return Mistake::Final(StoreError::DiskFull { place }.into()),
            "queue_full" | "letters_full" | "too_many_pipelines" | "read_only" => {}
            _ if matches!(status, 408 | 429 | 502..=504) => {
                return Mistake::Passing(StoreError::Unavailable { place, why: self.message });
            }
            _ => {}
        }
        let detail = self.detail.and_then(|detail| serde_json::from_value::<Detail>(detail).ok());
        Mistake::Final(
            detail.map_or_else(
                || Error::Server { kind: kind(status), code: self.code, message: self.message },
                Error::from,
            ),
        )
    }
}

const fn kind(status: u16) -> ErrorKind {
    match status {
        400 | 413 | 422 => ErrorKind::Invalid,
        404 => ErrorKind::Missing,
        409 => ErrorKind::Refused,
        _ => ErrorKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> Mistake {
        Told::read(body.as_bytes()).expect("a mistake").mistake("https://a.example", status)
    }

    #[test]
    fn mistakes_are_what_the_engine_would_have_said() {
        let body = r#"{"error":{"code":"not_found","message":"?","detail":{"job":{"no_number":5}},"new":1}}"#;
        let Mistake::Final(error) = said(404, body) else { panic!("it is final") };
        assert_eq!(error.to_string(), "no task has the number 5");
        let newer = r#"{"error":{"code":"refused","message":"it is too warm","detail":{"weather":{"warm":1}}}}"#;
        let Mistake::Final(error) = said(409, newer) else { panic!("it is final") };
        assert_eq!((error.to_string().as_str(), error.kind()), ("it is too warm", ErrorKind::Refused));
    }

    #[test]
    fn what_passes_is_waited_for() {
        let body = r#"{"error":{"code":"store_unavailable","message":"the store does not answer"}}"#;
        assert!(matches!(said(503, body), Mistake::Passing(StoreError::Unavailable { .. })));
        let full = r#"{"error":{"code":"queue_full","message":"full","detail":{"queue_full":{"pipeline":"p","queued":5,"max":5}}}}"#;
        assert!(matches!(said(429, full), Mistake::Final(Error::Store(StoreError::QueueFull { .. }))));
        assert!(Told::read(b"<html>").is_none());
    }
}
