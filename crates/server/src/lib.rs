//! The HTTP API and the dashboard of Redrive. They speak, the engine does: a route reads what was asked, calls an operation of the engine and answers.
//!
//! - `router`: the list of routes; [`routes`]: one folder per noun, one file per verb or a few that are alike
//! - `route`: what a route is: its path, who may ask, what it takes and gives
//! - [`app`]: what all routes share
//! - `access`: who asks, and what they may; `local`: who is let in while the store has no token; `guard`: what is refused of whomever it
//!   comes from
//! - `held`: places and memory that a request holds until it is answered
//! - `places`: how many connections there are, and which of them ends when there are too many
//! - `measured`: how long requests take, and the log of them
//! - `answer`: entity tags; `once`: a request that is sent again with its key is answered as the first time
//! - `prefix`: the path below which browsers reach the server, where it is not at its root
//! - `shown`: what came of a form and stands nowhere else, for a moment
//! - `asked`: reading queries, bodies and names in paths; `page`: lists with a cursor
//! - `runs`: pipelines as a worker that lives elsewhere has them
//! - `read_on`: what is left of a body that was refused
//! - [`error`]: the one form in which mistakes are told
//! - `pages`: the dashboard, one folder or file per page; [`look`]: how things look on all of them, and in the report
//! - [`openapi`]: the document, made of the routes; `shapes`: how names and ids are written, for it
//! - `check`: asking a server whether it is ready
//! - [`serve`]: the socket, and what goes on besides answering; `tls`: its certificate; `impatient`: who reads too slowly is dropped

mod access;
mod answer;
pub mod app;
mod asked;
mod check;
mod counted;
pub mod error;
mod guard;
mod held;
mod impatient;
mod local;
pub mod look;
mod measured;
mod once;
pub mod openapi;
mod page;
mod pages;
mod places;
mod prefix;
mod read_on;
mod route;
mod router;
pub mod routes;
mod runs;
pub mod serve;
mod shapes;
mod shown;
mod tls;
mod trying;

pub use app::{App, Options, Patience};
pub use check::check;
pub use route::Route;
pub use router::{all as all_routes, router};
pub use routes::metrics::FAMILIES;
pub use serve::{ServeError, Server};
pub use tls::TlsFiles;
