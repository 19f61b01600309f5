//! Counts reads of payloads, and those that found them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Counts reads of payloads and what they found, on all hosts. Reads that failed because the vault was away say nothing and
/// are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadReads {
    /// Reads that found the payload.
    pub found: u64,
    /// Reads that did not.
    pub missing: u64,
    /// Since when reads are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Payloads that are marked as missing or damaged now.
    pub unreadable: u64,
}

impl fmt::Display for PayloadReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} reads found them", grouped(self.found), grouped(self.found + self.missing))?;
        if let Some(since) = self.since {
            write!(f, " since {since}")?;
        }
        match self.unreadable {
            0 => Ok(()),
            1 => f.write_str("; 1 is missing or damaged"),
            more => write!(f, "; {} are missing or damaged", grouped(more)),
        }
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_told_in_a_line() {
        let since = Some(Timestamp::from_millis(0));
        let reads = PayloadReads { found: 1_204, missing: 6, since, unreadable: 0 };
        assert_eq!(reads.to_string(), "1,204 of 1,210 reads found them since 1970-01-01T00:00:00.000Z");
        let reads = PayloadReads { found: 999, missing: 1, since: None, unreadable: 1_000_000 };
        assert_eq!(reads.to_string(), "999 of 1,000 reads found them; 1,000,000 are missing or damaged");
    }
}
