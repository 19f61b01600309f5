//! From a document to a record: rules as data, compiled once, used from any thread.
//!
//! - `field`: the rules as they stand in `redrive.toml`
//! - `compile`: what is wrong with them, said when the configuration is read
//! - `css`, `pointer`: reading pages and JSON; `convert`, `number`: from text to a type
//! - `miss`: what a document lacks
//!
//! A required field that is missing or empty is an error, never a null.

mod compile;
mod convert;
mod css;
mod extractor;
mod field;
mod miss;
mod number;
mod pointer;

pub use compile::{Problem, RuleError};
pub use extractor::Extractor;
pub use field::{Field, Fields, Rules};
pub use miss::{Miss, MissKind};
pub use number::Readings;
