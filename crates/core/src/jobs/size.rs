//! How large inputs and requests may be.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::Input;
use crate::ids::PipelineName;

/// The longest input that is accepted unless a pipeline says otherwise, in bytes of JSON.
pub const INPUT_BYTES_MAX: u64 = 1024 * 1024;

/// JSON values that a request of any size may have.
const VALUES_MIN: u64 = 150_000;

/// A request may have one more value for so many bytes. A value takes up to 550 bytes in memory.
const BYTES_PER_VALUE: u64 = 80;

/// An input that is longer than its pipeline accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its input has {bytes} bytes as JSON: input_max allows {max}")]
pub struct InputTooLarge {
    /// Its length in bytes.
    pub bytes: u64,
    /// The longest that is accepted.
    pub max: u64,
}

/// Refuses an input that is longer than `max` bytes of JSON.
pub fn check_input(input: &Input, max: u64) -> Result<(), InputTooLarge> {
    match json_bytes(input) {
        bytes if bytes > max => Err(InputTooLarge { bytes, max }),
        _ => Ok(()),
    }
}

/// The longest input of each pipeline.
#[derive(Clone, Debug, Default)]
pub struct InputLimits(BTreeMap<PipelineName, u64>);

impl InputLimits {
    /// The limits of the pipelines that have one of their own.
    pub fn new(own: impl IntoIterator<Item = (PipelineName, u64)>) -> Self {
        Self(own.into_iter().collect())
    }

    /// Refuses an input that its pipeline does not accept.
    pub fn check(&self, pipeline: &PipelineName, input: &Input) -> Result<(), InputTooLarge> {
        check_input(input, self.0.get(pipeline).copied().unwrap_or(INPUT_BYTES_MAX))
    }
}

/// Returns the length of a value as JSON, without making the text.
pub fn json_bytes(value: &impl Serialize) -> u64 {
    let mut counted = Counted(0);
    // Nothing is written, so that only a value that is no JSON could fail.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns how many values JSON text has, about: an empty list or object counts twice.
pub fn count_values(json: &[u8]) -> u64 {
    let (mut values, mut in_string, mut escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

/// The most values that a request of so many bytes may have, so that it takes no more than ten times the longest request in memory.
pub const fn values_max(bytes: usize) -> u64 {
    VALUES_MIN + bytes as u64 / BYTES_PER_VALUE
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        for (text, values) in [("1", 1), ("[1,2]", 3), (r#"{"a":{"b":[]},"c":"x,[{"}"#, 5), (r#"["\\","\"[,"]"#, 3)] {
            assert_eq!(count_values(text.as_bytes()), values, "{text}");
        }
        assert!(count_values("[1,".repeat(100_000).as_bytes()) > values_max(300_000) / 2);
        assert!(count_values(&b"1,".repeat(500_000)) > values_max(1_000_000), "a megabyte of digits");
    }

    #[test]
    fn input_is_as_long_as_its_json() {
        let input: Input = json!({"a": [1, "é"], "b": null}).as_object().cloned().expect("an object");
        let bytes = serde_json::to_string(&input).expect("JSON").len() as u64;
        assert_eq!(check_input(&input, bytes), Ok(()));
        assert_eq!(check_input(&input, bytes - 1), Err(InputTooLarge { bytes, max: bytes - 1 }));
        let limits = InputLimits::new([("small".parse().expect("a name"), 3)]);
        assert!(limits.check(&"small".parse().expect("a name"), &input).is_err());
        assert_eq!(limits.check(&"shop".parse().expect("a name"), &input), Ok(()));
    }
}
