//! What the engine holds to, from running a job to replaying a million.

#[path = "../../../store/tests/support/server.rs"]
mod server;
#[path = "../support/mod.rs"]
mod support;

mod activity;
mod alert_conditions;
mod alert_files;
mod alert_sinks;
mod alerts;
mod breakers;
mod causes;
mod clock;
mod clocks_apart;
mod compare;
mod config;
mod copies;
mod dead;
mod doctor;
mod egress;
mod events;
mod extraction;
mod good;
mod hand_on;
mod http;
mod jobs;
mod leases;
mod operations;
mod outages;
mod panics;
mod patience;
mod pipelines;
mod poison;
mod real_servers;
mod redirects;
mod reload;
mod replay_drivers;
mod replays;
mod results;
mod retrying;
mod running;
mod strangers;
mod tasks;
mod tries;
mod vault;
mod workers;
