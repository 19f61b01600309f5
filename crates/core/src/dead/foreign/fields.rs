//! What letters of other programs may tell of a failure, and under which names they usually do.

use std::fmt;
use std::str::FromStr;

/// What an object may tell of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// What went wrong, in words.
    Message,
    /// When it failed.
    Time,
    /// How often it was tried.
    Attempts,
    /// A short code.
    Code,
    /// The HTTP status.
    Status,
    /// The stack trace.
    Stack,
    /// The proxy that was used.
    Proxy,
    /// The type of the error.
    ErrorType,
    /// The input, where it is not everything else.
    Input,
    /// By what the job is known.
    Key,
    /// The host or provider.
    Target,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Message,
        Self::Time,
        Self::Attempts,
        Self::Code,
        Self::Status,
        Self::Stack,
        Self::Proxy,
        Self::ErrorType,
        Self::Input,
        Self::Key,
        Self::Target,
    ];

    /// What it is called where a field is named for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Time => "time",
            Self::Attempts => "attempts",
            Self::Code => "code",
            Self::Status => "status",
            Self::Stack => "stack",
            Self::Proxy => "proxy",
            Self::ErrorType => "error_type",
            Self::Input => "input",
            Self::Key => "key",
            Self::Target => "target",
        }
    }

    /// The names under which it is usually found. What a job is known by, and its target, are the input's own.
    pub(super) const fn usual(self) -> &'static [&'static str] {
        match self {
            Self::Message => &["message", "error", "error_message", "exception"],
            Self::Time => &["failed_at", "timestamp", "died_at"],
            Self::Attempts => &["attempts", "tries"],
            Self::Code => &["code", "error_code"],
            Self::Status => &["status", "status_code", "http_status"],
            Self::Stack => &["stack", "stack_trace", "traceback"],
            Self::Proxy => &["proxy"],
            Self::ErrorType => &["error_type", "exception_type"],
            Self::Input => &["input"],
            Self::Key | Self::Target => &[],
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|field| field.as_str() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.map(Self::as_str).to_vec();
            format!("{text:?} is nothing that a field can be named for: expected {}", known.join(", "))
        })
    }
}
