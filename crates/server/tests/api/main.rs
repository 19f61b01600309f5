//! The API as a black box: a real server on a real socket, over a real store in a folder of its own.

mod access;
mod breakers;
mod browsing;
mod causes;
mod described;
mod document;
mod events;
mod examples;
mod guard;
mod hostile;
mod jobs;
mod leases;
mod letters;
mod limits;
mod login;
mod metrics;
mod once;
mod pages;
mod payloads;
mod pipelines;
mod reading;
mod replays;
mod running;
mod tls;
mod tokens;
mod tries;
