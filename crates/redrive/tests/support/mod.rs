//! What several test binaries need.

pub mod bench;
pub mod misbehaving;
pub mod servers;
