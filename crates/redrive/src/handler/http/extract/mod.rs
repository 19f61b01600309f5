//! From a document to a record: rules as data, compiled once, used from any thread.
//!
//! - `field`: the rules as they stand in `redrive.toml`
//! - `compile`: what is wrong with them, said when the configuration is read; `mistakes`: wrong selectors
//! - `css`, `pointer`: reading pages and JSON; `text`, `convert`, `number`: from an element to a type
//! - `record`, `miss`: what a document gives, and what it lacks; `inspect`: looking at both, field by field
//!
//! A required field that is missing or empty is an error, never a null.

mod compile;
mod convert;
mod css;
mod extractor;
mod field;
mod inspect;
mod miss;
mod mistakes;
mod number;
mod pointer;
mod record;
mod text;

pub use compile::{Problem, RuleError};
pub use extractor::Extractor;
pub use field::{Field, Fields, Rules};
pub use inspect::{CANDIDATES_MAX, Candidate, Help, MATCHES_MAX, Reading};
pub use miss::{Miss, MissKind, Misses};
pub use number::Readings;
pub use record::Partial;
