//! Where Redrive keeps its jobs.
//!
//! A store applies decisions that are handed to it as data; it never makes one. Every verb takes a batch and the time, is
//! answered after its effect is durable, and keeps the ledger in the same transaction.
//!
//! - [`contract`]: the verbs, one file per noun
//! - [`sqlite`]: the embedded backend, on a file or in memory
//! - [`postgres`]: the backend that workers on many machines share
//! - [`location`]: where a store is, as text, and the table of backends: `sqlite:PATH`, `memory:`,
//!   `postgres://USER@HOST/DATABASE`
//! - [`decorated`]: stores around a store, through which every verb passes
//! - [`error`]: what can go wrong, as far as a caller can act on it
//! - `conformance`: the suite that every backend runs unchanged (feature `conformance`)

mod answers;
mod audit;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod contract;
mod copies;
pub mod decorated;
mod erased;
pub mod error;
mod host;
mod lanes;
mod lists;
pub mod location;
pub mod postgres;
mod results;
mod rounds;
mod rows;
pub mod sqlite;
mod tallies;

pub use contract::Store;
pub use error::{Result, StoreError};
pub use host::host;
pub use location::{Location, Options, open, payloads_beside};
