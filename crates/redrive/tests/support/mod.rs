//! What several tests of the engine need.

pub mod bench;
pub mod in_memory;
pub mod misbehaving;
pub mod s3;
pub mod servers;
pub mod strict;
