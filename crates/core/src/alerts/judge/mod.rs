//! Judges all conditions by what is known now, and says which alerts are others than before.

mod causes;
mod coverage;
mod rates;
mod store;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::facts::{BreakerFacts, Facts};
use super::rules::RuleBook;
use super::{Alert, AlertKey, Condition, Finding, Seen, Verdict, next};
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// The most of a stranger's text that stands in a line.
const FOREIGN_MAX: usize = 120;

/// Alerts by their key.
pub type Alerts = BTreeMap<AlertKey, Alert>;

/// The alerts that change by what is known now: those that fire, still hold, or are over.
pub fn judge(rules: &RuleBook, facts: &Facts, before: &Alerts, now: Timestamp) -> Vec<Alert> {
    let looking = Looking { rules, facts, before, now };
    let mut seen = Vec::new();
    for (name, pipeline) in facts.pipelines.iter().filter(|(name, _)| looking.is_judged(Some(name))) {
        seen.extend(rates::rate(&looking, name, pipeline));
        seen.extend(rates::jump(&looking, name, pipeline));
        seen.extend(waiting::stalled(&looking, name, pipeline));
        seen.extend(store::expiry(&looking, name, pipeline));
        seen.extend(store::letters(name, pipeline));
    }
    seen.extend(facts.causes.iter().filter_map(|cause| causes::cause(&looking, cause)));
    let mut breakers = BTreeMap::<&PipelineName, Vec<&BreakerFacts>>::new();
    facts.breakers.iter().for_each(|breaker| breakers.entry(&breaker.pipeline).or_default().push(breaker));
    seen.extend(breakers.iter().filter_map(|(name, breakers)| waiting::breakers(&looking, name, breakers)));
    seen.extend(facts.replays.iter().filter_map(|replay| waiting::replay(&looking, replay)));
    seen.extend(facts.untaken.iter().filter_map(|replay| waiting::untaken(&looking, replay)));
    seen.extend(facts.fields.iter().filter_map(|field| coverage::coverage(&looking, field)));
    seen.extend(store::disk(&looking));
    // What another file knows, with its own thresholds, is judged by who has that file: else two would contradict each other.
    seen.retain(|seen| looking.is_judged(seen.pipeline.as_ref()));
    seen.extend(looking.absent(&seen));
    seen.iter().filter_map(|seen| next(before.get(&seen.key), seen, &rules.file, now)).collect()
}

/// What a condition is judged by.
struct Looking<'a> {
    rules: &'a RuleBook,
    facts: &'a Facts,
    before: &'a Alerts,
    now: Timestamp,
}

impl Looking<'_> {
    /// The alert of a key, if it fires.
    fn firing(&self, key: &AlertKey) -> Option<&Alert> {
        self.before.get(key).filter(|alert| alert.is_firing())
    }

    /// What is to be said of alerts that fire and that nothing was seen of.
    fn absent(&self, seen: &[Seen]) -> Vec<Seen> {
        let known: BTreeSet<&AlertKey> = seen.iter().map(|seen| &seen.key).collect();
        let missing = self.before.values().filter(|alert| {
            alert.is_firing() && !known.contains(&alert.key) && self.is_judged(alert.pipeline.as_ref())
        });
        let seen = |alert: &Alert| Seen {
            condition: alert.condition,
            pipeline: alert.pipeline.clone(),
            key: alert.key.clone(),
            verdict: self.verdict_of_absent(alert),
            baseline: None,
        };
        missing.map(seen).collect()
    }

    fn verdict_of_absent(&self, alert: &Alert) -> Verdict {
        let rules = alert.pipeline.as_ref().map_or(&self.rules.all, |pipeline| self.rules.of(pipeline));
        if !rules.watch(alert.condition) {
            return Verdict::Clear("it is no longer watched".to_owned());
        }
        match alert.condition {
            Condition::Breaker => Verdict::Clear("no task waits for a failing target any more".to_owned()),
            Condition::Replay => Verdict::Clear("the replay is no longer paused".to_owned()),
            Condition::Cause => Verdict::Clear("no task died of it in this hour and the one before".to_owned()),
            Condition::Stalled if alert.finding.numbers.contains_key("replay") => {
                Verdict::Clear("no letter of the replay waits for a worker any more".to_owned())
            }
            Condition::Expiry => Verdict::Clear("no letter of an unresolved cause is about to expire".to_owned()),
            Condition::Letters => Verdict::Clear("its number of dead letters is not limited".to_owned()),
            Condition::Rate | Condition::Jump | Condition::Stalled | Condition::Coverage | Condition::Disk => {
                Verdict::Unknown
            }
        }
    }

    /// Whether alerts of a pipeline, or of none, are judged here.
    fn is_judged(&self, pipeline: Option<&PipelineName>) -> bool {
        pipeline.is_none_or(|pipeline| self.rules.judges(pipeline) || self.facts.undefined.contains(pipeline))
    }
}

/// A condition of a pipeline, or of a part of it, that was looked at.
fn of_pipeline(condition: Condition, pipeline: &PipelineName, part: Option<&str>, verdict: Verdict) -> Seen {
    let key = AlertKey::new(condition, Some(pipeline), part);
    Seen { condition, pipeline: Some(pipeline.clone()), key, verdict, baseline: None }
}

/// What was found, as numbers by name.
fn numbers<const N: usize>(numbers: [(&str, Value); N]) -> Map<String, Value> {
    numbers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A finding whose level is exact.
fn exactly(level: f64, summary: String, look: String, numbers: Map<String, Value>) -> Verdict {
    Verdict::Fires(Finding { level, surely: level, summary, look, numbers })
}
