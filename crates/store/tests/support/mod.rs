//! Helpers that the tests of stores share.
#![allow(dead_code, reason = "tests/soak.rs uses some of them")]

pub mod older;
pub mod pooler;
pub mod proxy;
pub mod schemas;
pub mod server;
