//! The file that `redrive init` writes. Lines that begin with `#: ` are settings that can be taken as they are.

/// A commented `redrive.toml`.
pub const TEMPLATE: &str = include_str!("template.toml");
