//! The routes: one folder per noun.

pub mod activity;
pub mod alerts;
pub mod causes;
pub mod events;
pub mod jobs;
pub mod leases;
pub mod letters;
pub mod metrics;
pub mod outcomes;
pub mod payloads;
pub mod pipelines;
pub mod replays;
pub mod reports;
pub mod results;
pub mod rounds;
pub mod status;
pub mod tokens;
pub mod tries;
pub mod workers;
