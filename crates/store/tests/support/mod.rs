//! What tests of stores share.
#![allow(dead_code, reason = "scripts/soak builds a part of the tests")]

pub mod older;
pub mod pooler;
pub mod proxy;
pub mod schemas;
pub mod server;
