//! JSON for programs that a person may look at: hidden characters in its texts are escapes, so that it is the same JSON and
//! harmless on a terminal.

use std::io::{self, Write};

use redrive_core::hidden::escape_json;
use serde::Serialize;

use super::print::out;

/// Prints a value on one line.
pub fn line(value: &impl Serialize) -> io::Result<()> {
    out!("{}", escape_json(&serde_json::to_string(value)?))
}

/// Prints a value over several lines.
pub fn document(value: &impl Serialize) -> io::Result<()> {
    out!("{}", pretty(value)?)
}

/// A value over several lines.
pub fn pretty(value: &impl Serialize) -> io::Result<String> {
    Ok(escape_json(&serde_json::to_string_pretty(value)?).into_owned())
}

/// Writes a value and the end of its line.
pub fn write(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(escape_json(&serde_json::to_string(value)?).as_bytes())?;
    out.write_all(b"\n")
}
