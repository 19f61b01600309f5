//! What several test binaries need.

pub mod misbehaving;
