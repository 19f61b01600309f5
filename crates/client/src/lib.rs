//! What can be asked of Redrive, whoever does it: the engine over a store of this machine, or a server over HTTP. Who asks holds a
//! [`Desk`] and cannot tell the two apart: the answers, and the errors, are of the same types.
//!
//! - [`desk`]: [`Desk`], the handle
//! - [`address`]: where a server is, and what may be sent there; [`access`]: by what one is let in
//! - `owner`: whose the server is that is sent what is in a token file
//! - [`server`]: asking a server, waiting for it, understanding its answers; `ask`: one request; `told`: what it says of mistakes
//! - [`status`]: where everything stands, and hearing of changes; `page`: lists that come in pieces
//! - [`worker`]: working here on jobs that a server has
//! - one file per noun: what can be asked about it
//!
//! Nothing is decided here: a server decides by the same engine, and this crate never opens a store.

pub mod access;
mod activity;
pub mod address;
mod alerts;
mod ask;
mod breakers;
mod causes;
mod dead;
pub mod desk;
mod died;
mod import;
mod jobs;
mod owner;
mod page;
mod payloads;
mod pipelines;
mod replays;
mod reports;
mod results;
mod rounds;
pub mod server;
pub mod status;
mod tasks;
mod tokens;
mod told;
pub mod worker;

pub use access::Access;
pub use address::{AddressError, ServerAddress};
pub use desk::Desk;
pub use server::Server;
