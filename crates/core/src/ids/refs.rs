//! What people call a thing instead of its whole id: a short number, or the end of the id. Ids begin with the time, so that those
//! of one hour begin alike; their ends are random.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{InvalidName, JobId};

/// The shortest end of an id that may mean one, in digits.
const ENDING_MIN: usize = 4;

/// The digits of a whole id.
const ID_DIGITS: usize = 32;

/// The longest number that is taken for one, in digits.
const NUMBER_DIGITS_MAX: usize = 18;

/// The end of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdEnding {
    value: u128,
    digits: usize,
}

impl IdEnding {
    /// The end of an id that is long enough to mean one, and not a whole one.
    pub fn new(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let fits = (ENDING_MIN..ID_DIGITS).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_hexdigit());
        let value = if fits { u128::from_str_radix(&digits, 16).ok() } else { None };
        value.map(|value| Self { value, digits: digits.len() })
    }

    /// The whole bytes that an id which ends so ends with; half a byte more may be meant.
    pub fn bytes(self) -> Vec<u8> {
        self.value.to_be_bytes()[(ID_DIGITS - self.digits).div_ceil(2)..].to_vec()
    }

    /// Whether an id of these bytes ends so.
    pub fn ends(self, id: &[u8; 16]) -> bool {
        u128::from_be_bytes(*id) & ((1 << (4 * self.digits)) - 1) == self.value
    }
}

impl Serialize for IdEnding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IdEnding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not the end of an id")))
    }
}

impl fmt::Display for IdEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0digits$x}", self.value, digits = self.digits)
    }
}

/// How people name a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRef {
    /// By its number, which no other job of the store ever has.
    Number(i64),
    /// By its id.
    Id(JobId),
    /// By the end of its id.
    Ending(IdEnding),
}

impl JobRef {
    /// The end of an id that it may be meant as: digits may be a number and the end of an id.
    pub fn as_ending(&self) -> Option<IdEnding> {
        match self {
            Self::Number(number) => IdEnding::new(&number.to_string()),
            Self::Id(_) => None,
            Self::Ending(ending) => Some(*ending),
        }
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Id(id) => id.fmt(f),
            Self::Ending(ending) => write!(f, "…{ending}"),
        }
    }
}

impl From<JobId> for JobRef {
    fn from(id: JobId) -> Self {
        Self::Id(id)
    }
}

impl FromStr for JobRef {
    type Err = InvalidName;

    /// What is made of digits alone is a number, unless it is a whole id or begins as no number does.
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let is_number = text.len() <= NUMBER_DIGITS_MAX && text.chars().all(|c| c.is_ascii_digit());
        let is_number = is_number && (text == "0" || !text.starts_with('0'));
        let number = if is_number { text.parse().ok().map(Self::Number) } else { None };
        number.or_else(|| IdEnding::new(text).map(Self::Ending)).ok_or_else(|| {
            let want = "a number such as 1234, an id, or the last 4 digits of one or more";
            InvalidName::new("task", text, want)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn a_job_is_named_by_its_number_its_id_or_the_end_of_it() {
        let id = JobId::new(Timestamp::from_millis(1_000), 0xabcd_ef12);
        assert_eq!(id.to_string().parse(), Ok(JobRef::Id(id)));
        assert_eq!("1234".parse(), Ok(JobRef::Number(1_234)));
        assert_eq!("000012".parse(), Ok(JobRef::Ending(IdEnding::new("000012").expect("an ending"))));
        assert_eq!(JobRef::Number(1_234).as_ending(), IdEnding::new("1234"));
        assert_eq!(JobRef::Number(123).as_ending(), None, "too short");
        let Ok(JobRef::Ending(ending)) = "abcd-EF12".parse::<JobRef>() else { panic!("an ending") };
        assert!(ending.ends(id.as_bytes()));
        assert!(!ending.ends(JobId::new(Timestamp::from_millis(1_000), 0xabcd_ef13).as_bytes()));
        assert_eq!(ending.to_string(), "abcdef12");
        assert_eq!(IdEnding::new("00-0a").map(|ending| ending.to_string()).as_deref(), Some("000a"));
        let bytes = |text: &str| IdEnding::new(text).map(IdEnding::bytes);
        assert_eq!((bytes("0a1f"), bytes("50a1f")), (Some(vec![0x0a, 0x1f]), Some(vec![0x0a, 0x1f])));
        let long = "1".repeat(20);
        assert!(matches!(long.parse(), Ok(JobRef::Ending(_))), "no number is so long");
        for wrong in ["", "abc", "007", "-5", "zzzz", "12 34", "0x12", &"a".repeat(33)] {
            assert!(wrong.parse::<JobRef>().is_err(), "{wrong:?}");
        }
    }
}
