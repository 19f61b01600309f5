//! Stores: the conformance suite on each backend, and what only one of them must hold to.

mod copies;
mod faults;
mod faulty;
mod older_store;
mod older_worker;
mod postgres;
mod postgres_pages;
mod postgres_server;
mod sqlite;
#[path = "../support/mod.rs"]
mod support;
