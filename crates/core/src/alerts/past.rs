//! How often rules would have fired in the time that is past, had they been what they are now: so that a threshold can be chosen by
//! more than guessing. What is known of that time is how many jobs died in each hour, so each hour is judged as if it were the window:
//! a burst that was over within minutes is weaker in it than it was.

use std::collections::BTreeMap;
use std::time::Duration;

use super::facts::{Facts, PipelineFacts};
use super::judge::{Alerts, judge};
use super::{Condition, RuleBook, Share};
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// How many jobs died, by the hour, oldest first.
pub type Hours = BTreeMap<PipelineName, Vec<(Timestamp, Share)>>;

const HOUR: Duration = Duration::from_secs(3_600);

/// How often each rule about shares would have fired since a time, by pipeline; those that never would are there too. The hours go
/// further back than that, so that it is known what was usual.
pub fn would_have_fired(
    rules: &RuleBook,
    hours: &Hours,
    since: Timestamp,
    now: Timestamp,
) -> BTreeMap<(PipelineName, Condition), u32> {
    let mut times = BTreeMap::new();
    for (name, hours) in hours.iter().filter(|(name, _)| rules.judges(name)) {
        let watched =
            [(Condition::Rate, rules.of(name).rate.is_some()), (Condition::Jump, rules.of(name).jump.is_some())];
        times.extend(watched.into_iter().filter(|(_, is)| *is).map(|(condition, _)| ((name.clone(), condition), 0)));
        let mut alerts = Alerts::new();
        for (at, share) in hours.iter().filter(|(at, _)| *at + HOUR > since && *at <= now) {
            // At the end of the hour, all of it is in both windows, and nothing of it is what was usual before.
            let then = *at + HOUR;
            let usual = hours.iter().filter(|(earlier, _)| earlier <= at).copied().collect();
            let pipeline = PipelineFacts { minutes: vec![(then, *share)], hours: usual, ..PipelineFacts::default() };
            let facts = Facts { pipelines: [(name.clone(), pipeline)].into(), ..Facts::default() };
            for alert in judge(rules, &facts, &alerts, then) {
                let fires_anew = alert.is_firing() && alerts.get(&alert.key).is_none_or(|before| !before.is_firing());
                if let Some(times) = times.get_mut(&(name.clone(), alert.condition)).filter(|_| fires_anew) {
                    *times += 1;
                }
                alerts.insert(alert.key.clone(), alert);
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::Rules;

    #[test]
    fn each_time_that_it_began_counts_once() {
        let name: PipelineName = "shop".parse().expect("a name");
        let at = |hour: u64| Timestamp::from_millis(0) + HOUR * u32::try_from(hour).expect("small");
        // Quiet for two days, then bad for two hours, well again, and bad once more.
        let died = |hour| if matches!(hour, 50 | 51 | 60) { 50 } else { 0 };
        let hours: Hours =
            [(name.clone(), (0..72).map(|hour| (at(hour), Share::new(died(hour), 100))).collect())].into();
        let rules = RuleBook { all: Rules { rate: Some(0.1), ..Rules::default() }, ..RuleBook::default() };
        let fired = |rules: &RuleBook, since| {
            let times = would_have_fired(rules, &hours, at(since), at(72));
            times.into_iter().map(|((_, condition), times)| (condition, times)).collect::<Vec<_>>()
        };
        assert_eq!(fired(&rules, 48), [(Condition::Rate, 2), (Condition::Jump, 2)]);
        assert_eq!(fired(&rules, 55), [(Condition::Rate, 1), (Condition::Jump, 1)], "what was before is no matter");
        let lax = RuleBook { all: Rules { rate: Some(0.6), jump: None, ..Rules::default() }, ..RuleBook::default() };
        assert_eq!(fired(&lax, 48), [(Condition::Rate, 0)]);
        let others = RuleBook { judged: Some(Default::default()), ..rules };
        assert_eq!(fired(&others, 48), [], "they are judged by who knows them");
    }
}
