//! The Redrive engine: hand it jobs and a handler, and every job is done, or kept as a dead letter with everything
//! needed to understand it.
//!
//! ```
//! use redrive::{FailureReport, Pipeline, Reason, Redrive, json};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), redrive::Error> {
//! let redrive = Redrive::open("memory:").await?;
//! let greet = Pipeline::new("greet", |job: redrive::Job| async move {
//!     match job.input["name"].as_str() {
//!         Some(name) => Ok(json!({"greeting": format!("hello, {name}")})),
//!         None => Err(FailureReport::new(Reason::RejectedInput, "nobody to greet")),
//!     }
//! })?;
//! redrive.enqueue(&greet, [json!({"name": "Ada"}), json!({"name": null})]).await?;
//! let ledger = redrive.drain(greet).await?;
//! assert_eq!((ledger.done, ledger.dead), (1, 1));
//! # Ok(()) }
//! ```
//!
//! - [`engine`]: [`Redrive`], the handle that users hold
//! - [`pipeline`]: [`Pipeline`], a name, a handler and a policy
//! - [`handler`]: what does the work: a closure, or any command
//! - `run`: [`Run`], and the list of all [`operations`]; [`access`]: the only check of who may run them
//! - `activity`: what people did
//! - [`alerts`]: what is watched, and who is told
//! - [`breakers`]: leasing past them, folding in what attempts say of their targets, and turning them by hand
//! - [`causes`]: the rules by which failures find their cause
//! - [`compare`]: a page that broke beside the last one that worked, and what is different about those who died
//! - [`tasks`]: files of tasks, and bringing them into a pipeline
//! - `rounds`: repetitions of the same tasks; `retrying`: failures of jobs that wait for another attempt
//! - [`replays`]: sending dead letters through again, and what would recover
//! - [`overview`]: what to look at first
//! - [`report`]: what fails, where, when, since when
//! - [`pipelines`]: which there are, pausing them
//! - [`jobs`], [`payloads`], [`status`], [`doctor`]: looking at what is there, and what can be done with it
//! - [`dead`]: what can be done with dead letters; [`export`]: the formats of other tools
//! - [`sink`]: where results go, before their jobs are settled
//! - [`vault`]: raw responses, kept as evidence
//! - [`leases`]: jobs for workers that live elsewhere
//! - [`worker`]: leasing, running, settling; heartbeat, reaper and chores
//! - [`tokens`]: who may ask a server for what; [`sessions`]: people who signed in with one; `answers`: what it answered, kept for a while;
//!   `uploads`: payloads that came before their letters; [`outcomes`]: what programs count of jobs that they run themselves
//! - [`copies`]: a whole store, brought to another
//! - `compact`: giving unused space of the store back
//! - [`reach`]: whether the store answers, and waiting for it; [`times`]: how long that takes; [`numbers`]: all that monitoring reads
//! - [`config`]: `redrive.toml`, and what it makes: store, vault, pipelines
//! - [`tls`]: which cryptography connections use, and what was wrong with a certificate
//! - [`clock`] and [`chance`]: time and randomness, passed in
//! - [`events`]: what happens, for who listens
//! - [`error`]: what can go wrong; [`detail`]: the same as a server tells it

pub mod access;
mod activity;
pub mod alerts;
pub mod answers;
pub mod backup;
pub mod breakers;
pub mod causes;
pub mod chance;
pub mod clock;
mod compact;
pub mod compare;
pub mod config;
pub mod copies;
pub mod dead;
pub mod detail;
pub mod doctor;
pub mod engine;
pub mod error;
pub mod events;
pub mod export;
pub mod good;
pub mod handler;
pub mod jobs;
pub mod leases;
mod lines;
pub mod numbers;
pub mod outcomes;
pub mod overview;
pub mod payloads;
pub mod pipeline;
pub mod pipelines;
pub mod reach;
pub mod replays;
pub mod report;
mod retrying;
mod rounds;
mod run;
pub mod sessions;
pub mod sink;
pub mod status;
pub mod tasks;
pub mod times;
pub mod tls;
pub mod tokens;
mod uploads;
pub mod vault;
pub mod worker;

pub use answers::ANSWERS_KEPT;
pub use engine::{Purpose, Redrive};
pub use error::{Error, ErrorKind, Waited};
pub use handler::{HandedOn, Handler, HandlerError, HandsOn, Job, Success};
pub use pipeline::Pipeline;
pub use redrive_api as api;
pub use redrive_core::failures::{Disposition, FailureReport, Reason};
pub use redrive_core::ids::PipelineName;
pub use redrive_core::policy::Policy;
pub use redrive_store::{Location, StoreError, contract};
pub use run::{Entry, Listed, Run, operations};
pub use serde_json::json;
pub use tokio_util::sync::CancellationToken;
