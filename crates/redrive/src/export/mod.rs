//! Dead letters in the formats of other tools.
//!
//! - [`Warc`]: letters and their payloads as a web archive, streamed
//! - [`har()`]: the attempts of one letter as a browser's network log
//! - [`curl()`]: a request as a command line
//! - [`HttpRequest`]: the request that all of them are about
//!
//! Secrets are masked before anything gets here. Everything else is hostile: no header, address or body may break out
//! of the format it is written in.

mod curl;
#[cfg(test)]
mod fixture;
mod har;
mod head;
mod request;
mod warc;

pub use curl::curl;
pub use har::har;
pub use request::HttpRequest;
pub use warc::{RecordId, Warc};
