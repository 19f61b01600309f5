//! Rounds: repetitions of the same tasks. A task is known within its round.

use crate::ids::RoundName;
use crate::time::Timestamp;

/// The name of a round that begins now: the day (in UTC) and `again`, with a number if that is taken. The day alone is left to who
/// runs everything once a day and names rounds so.
pub fn next_name(now: Timestamp, is_taken: impl Fn(&RoundName) -> bool) -> RoundName {
    let day: String = now.to_string().chars().take(10).collect();
    let first = format!("{day}-again");
    let numbered = (2..).map(|n: u32| format!("{day}-again-{n}"));
    std::iter::once(first)
        .chain(numbered)
        .map(|name| name.parse::<RoundName>().expect("a day is a name"))
        .find(|name| !is_taken(name))
        .expect("there are more numbers than rounds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_called_by_its_day_and_the_next_by_its_number() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let mut taken: Vec<RoundName> = Vec::new();
        for expected in ["2023-11-14-again", "2023-11-14-again-2", "2023-11-14-again-3"] {
            let name = next_name(now, |name| taken.contains(name));
            assert_eq!(name.as_str(), expected);
            taken.push(name);
        }
    }
}
