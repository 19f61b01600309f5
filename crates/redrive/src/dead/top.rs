//! Dead letters by whatever they have in common, with the denominator where there is one.

use std::collections::HashMap;

use redrive_core::failures::Reason;
use redrive_core::time::Timestamp;
use redrive_store::contract::{CountDead, CountTraffic, DeadBy, DeadCount, DeadFilter, ListTracked, TrafficBy};
use serde::{Deserialize, Serialize};

use crate::engine::Redrive;
use crate::error::Error;

/// Dead letters by what they have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Top {
    /// Most first, or hour by hour.
    #[serde(alias = "items")]
    pub lines: Vec<TopLine>,
    /// Letters with other values.
    pub others: i64,
}

/// Letters that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopLine {
    /// What they have in common.
    pub value: Option<String>,
    /// The reason, where it is counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Dead letters.
    pub dead: i64,
    /// Their share of all that were counted.
    pub share: f64,
    /// How it went with everything that has this in common, dead or not, where that is known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TopOutcome>,
}

/// What went well and what not: attempts by proxy; jobs, each once, by target, hour and fields that are kept count of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopOutcome {
    /// What went well.
    pub ok: i64,
    /// What did not: for the reason of the line, if it has one.
    pub failed: i64,
    /// All of it.
    pub of: i64,
}

/// All that has one value in common: what went well, and what did not by reason where that is known.
#[derive(Debug, Default)]
struct Ends {
    ok: i64,
    failed: HashMap<Option<Reason>, i64>,
}

impl Ends {
    fn add(&mut self, reason: Option<Reason>, count: i64) {
        match reason {
            None => self.ok += count,
            reason => *self.failed.entry(reason).or_default() += count,
        }
    }

    /// What a line for a reason, or for all, says of it; nothing if nothing was counted.
    fn outcome(&self, reason: Option<Reason>) -> Option<TopOutcome> {
        let all: i64 = self.failed.values().sum();
        let failed = if reason.is_some() { self.failed.get(&reason).copied().unwrap_or_default() } else { all };
        (self.ok + all > 0).then_some(TopOutcome { ok: self.ok, failed, of: self.ok + all })
    }
}

impl Redrive {
    /// Counts the dead letters that a filter finds by something they have in common; hours are never left out.
    pub async fn top_dead(&self, filter: DeadFilter, by: DeadBy, limit: u32) -> Result<Top, Error> {
        let limit = if by == DeadBy::Hour { u32::MAX } else { limit };
        let params = CountDead { filter: filter.clone(), by: by.clone(), limit };
        let counts = self.store.count_dead(params).await?;
        let outcomes = self.top_outcomes(&by, &filter).await?;
        let (shown, all) =
            (counts.iter().map(|count| count.count).sum::<i64>(), counts.first().map_or(0, |count| count.of));
        let line = |count: DeadCount| TopLine {
            outcome: count.value.as_ref().and_then(|value| outcomes.get(value)?.outcome(count.reason)),
            share: share(count.count, count.of),
            value: count.value,
            reason: count.reason,
            dead: count.count,
        };
        Ok(Top { lines: counts.into_iter().map(line).collect(), others: all - shown })
    }

    /// How it went with everything, by the same thing, where that is counted.
    async fn top_outcomes(&self, by: &DeadBy, filter: &DeadFilter) -> Result<HashMap<String, Ends>, Error> {
        let mut outcomes: HashMap<String, Ends> = HashMap::new();
        if filter.round.is_some() {
            // What is counted of everything is not counted by round.
            return Ok(outcomes);
        }
        if let DeadBy::Input(field) = by {
            let params = ListTracked { pipeline: filter.pipeline.clone(), field: field.clone(), limit: u32::MAX };
            for tracked in self.store.tracked(params).await? {
                let ends = outcomes.entry(tracked.value).or_default();
                ends.ok += tracked.ok;
                *ends.failed.entry(None).or_default() += tracked.failed;
            }
            return Ok(outcomes);
        }
        let by = match by {
            DeadBy::Target => TrafficBy::Target,
            DeadBy::Proxy => TrafficBy::Proxy,
            DeadBy::Hour => TrafficBy::Hour,
            _ => return Ok(outcomes),
        };
        let since = filter.since.unwrap_or(Timestamp::from_millis(0));
        let params = CountTraffic { pipeline: filter.pipeline.clone(), since, by };
        for attempts in self.store.traffic(params).await? {
            let count = if by == TrafficBy::Proxy { attempts.count } else { attempts.ended };
            outcomes.entry(attempts.value).or_default().add(attempts.reason, count);
        }
        Ok(outcomes)
    }
}

/// A part of a whole, between nothing and all.
fn share(part: i64, of: i64) -> f64 {
    if of <= 0 { 0.0 } else { (part as f64 / of as f64).clamp(0.0, 1.0) }
}
