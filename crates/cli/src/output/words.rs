//! The words that people read where types, JSON and columns have those of the glossary: a job is a task, leased is running, dead
//! is died. The documents map the two.

use redrive_core::state::JobState;

/// Digits of an id's end that tables show.
const ENDING: usize = 8;

/// A state, in the words of people.
pub const fn state(state: JobState) -> &'static str {
    state.said()
}

/// Reads a state, in whichever words.
pub fn read_state(text: &str) -> Option<JobState> {
    JobState::ALL.into_iter().find(|known| known.as_str() == text || state(*known) == text)
}

/// What a job is called in a table: its number, or the end of its id if it ended before numbers were given.
pub fn job(number: Option<i64>, id: impl std::fmt::Display) -> String {
    number.map_or_else(|| ending(id), |number| number.to_string())
}

/// The end of an id: enough to name it by, and never a number alone, which would mean another.
pub fn ending(id: impl std::fmt::Display) -> String {
    let digits = id.to_string().replace('-', "");
    let ends = (ENDING..digits.len()).filter_map(|length| digits.get(digits.len() - length..));
    let mut told_apart = ends.filter(|end| end.contains(|c: char| c.is_ascii_alphabetic()));
    told_apart.next().unwrap_or(&digits).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::ids::{JobId, JobRef};
    use redrive_core::time::Timestamp;

    #[test]
    fn what_tables_show_can_be_typed() {
        for random in [0xabcd_ef12_u128, 0xa_1234_5678, 0x1234_5678] {
            let id = JobId::new(Timestamp::from_millis(1_763_215_320_042), random);
            match job(None, id).parse() {
                Ok(JobRef::Ending(ending)) => assert!(ending.ends(id.as_bytes())),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(job(Some(7), JobId::new(Timestamp::from_millis(0), 1)), "7");
        assert_eq!(read_state("running"), read_state("leased"));
        assert_eq!(read_state("died"), Some(JobState::Dead));
    }
}
