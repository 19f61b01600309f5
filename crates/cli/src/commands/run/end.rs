//! How a run ended: what was done, what died and of what, what is left.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use redrive::Waited;
use redrive::dead::{CauseDied, Died};
use redrive::tasks::{Fed, Feed};
use redrive_client::Desk;
use redrive_core::ids::{PipelineName, RoundName};
use redrive_core::ledger::Ledger;
use redrive_core::retrying::RetryingView;
use redrive_core::time::Timestamp;
use serde_json::{Value, json};

use super::super::feed;
use super::retry_dead::Retried;
use super::work::Worked;
use crate::exit::Exit;

/// How things were before a run.
pub struct Before {
    pub at: Timestamp,
    pub ledger: Ledger,
    buried: i64,
}

impl Before {
    /// How they are now.
    pub async fn now(redrive: &Desk, name: &PipelineName) -> Result<Self> {
        let at = redrive.now();
        Ok(Self { at, ledger: redrive.ledger(name).await?, buried: redrive.count_died(name, at).await? })
    }
}

/// What other processes did to the jobs of a run's pipeline.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByOthers {
    pub done: i64,
    pub died: i64,
}

/// A run that has ended.
pub struct RunEnd {
    pub name: PipelineName,
    pub round: Option<RoundName>,
    pub begun_at: Timestamp,
    pub took: Duration,
    /// Jobs that this run did itself; others may work on the same pipeline.
    pub done: i64,
    /// Of the done: those without a result.
    pub without_result: u64,
    /// Jobs that died in this run.
    pub died: i64,
    /// Jobs that rules discarded in this run.
    pub discarded: u64,
    /// Of the dead: jobs that had waited too long for a target that stays away.
    pub gave_up: u64,
    /// What died, by cause.
    pub of: Died,
    /// What other processes did to the pipeline's jobs meanwhile.
    pub by_others: ByOthers,
    pub left: i64,
    /// Jobs that a replay has.
    pub replaying: i64,
    pub fed: Fed,
    pub retried: Option<Retried>,
    pub waited: Option<Box<Waited>>,
    /// Last failures of the jobs that are left, if a target is on hold.
    pub retrying: Option<RetryingView>,
    pub handed_on: BTreeMap<PipelineName, u64>,
    pub interrupted: bool,
}

impl RunEnd {
    /// How a run ended that began so.
    pub async fn of(redrive: &Desk, feed: &Feed, before: &Before, worked: Worked) -> Result<Self> {
        let (name, round) = (feed.pipeline.clone(), feed.naming.round.clone());
        let end = redrive.ledger(&name).await?;
        let Worked { fed, waited, own, .. } = worked;
        let (done, died, left) = (to_count(own.done), to_count(own.died), end.open_by_itself());
        let by_all = (end.done - before.ledger.done, redrive.count_died(&name, before.at).await? - before.buried);
        let mut of = if died > 0 { redrive.died_of(&name, before.at, &own.letters).await? } else { Died::default() };
        of.is_cut |= to_count(own.letters.len() as u64) < died;
        Ok(Self {
            name,
            round,
            begun_at: before.at,
            took: Duration::ZERO,
            done,
            without_result: 0,
            died,
            discarded: own.discarded,
            gave_up: own.gave_up,
            of,
            by_others: ByOthers { done: (by_all.0 - done).max(0), died: (by_all.1 - died).max(0) },
            left,
            replaying: end.replaying,
            fed,
            retried: None,
            waited,
            retrying: if left > 0 { redrive.retrying(Some(&feed.pipeline)).await?.pop() } else { None },
            handed_on: own.handed_on,
            interrupted: false,
        })
    }

    /// Adds what is known besides.
    pub fn finish(&mut self, took: Duration, without_result: u64, retried: Option<Retried>, signalled: bool) {
        let is_open = retried.is_some_and(|retried| retried.is_open);
        self.interrupted = signalled && (self.left > 0 || !self.fed.complete || is_open);
        let own = retried.map_or(0, |retried| to_count(retried.own));
        self.done += own;
        self.by_others.done = (self.by_others.done - own).max(0);
        (self.took, self.without_result, self.retried) = (took, without_result, retried);
    }

    /// Dead letters of before that are still dead.
    pub fn dead_before(&self) -> u64 {
        self.fed.known_dead.saturating_sub(self.retried.map_or(0, |retried| retried.recovered))
    }

    /// The share of what ended in this run that died.
    pub fn died_share(&self) -> f64 {
        self.died as f64 / (self.done + self.died).max(1) as f64
    }

    /// How the program ends. With a share that may die, only what ended in this run counts.
    pub fn exit(&self, fail_over: Option<f64>) -> Exit {
        let too_many_died = match fail_over {
            Some(share) => self.died_share() > share,
            None => self.died > 0 || self.dead_before() > 0,
        };
        if self.interrupted {
            Exit::Interrupted
        } else if self.waited.is_some() {
            Exit::Waited
        } else if too_many_died {
            Exit::Dead
        } else if feed::lines_refused(&self.fed) {
            Exit::LinesRefused
        } else if self.replaying > 0 && (self.fed.known_open > 0 || self.retried.is_some()) {
            Exit::Paused
        } else {
            Exit::Ok
        }
    }

    /// All of it, for programs.
    pub fn document(&self, exit: Exit) -> Value {
        let fed = &self.fed;
        let cause = |died: &CauseDied| {
            let CauseDied { cause, title, reason, count, example } = died;
            json!({
                "cause": cause, "title": title, "reason": reason, "count": count,
                "example": {"id": example.id, "number": example.number, "key": example.key, "input": example.input,
                            "code": example.code, "message": example.message, "attempts": example.attempts},
            })
        };
        let waited = |waited: &Waited| {
            let targets = waited.targets.iter().map(|target| {
                json!({"target": target.target, "held": target.held, "why": target.breaker.last.as_ref().map(ToString::to_string), "next_try": target.breaker.open_until})
            });
            json!({"since": waited.since, "next_due": waited.next_due, "targets": targets.collect::<Vec<_>>()})
        };
        let retried = |retried: &Retried| json!({"letters": retried.letters, "tried": retried.tried, "is_open": retried.is_open, "recovered": retried.recovered, "left_out": retried.left_out});
        json!({
            "pipeline": self.name,
            "round": self.round,
            "begun_at": self.begun_at,
            "seconds": (self.took.as_secs_f64() * 1_000.0).round() / 1_000.0,
            "new": fed.accepted,
            "done": self.done,
            "without_result": self.without_result,
            "died": self.died,
            "discarded": self.discarded,
            "died_share": self.died_share(),
            "by_others": {"done": self.by_others.done, "died": self.by_others.died},
            "causes": self.of.causes.iter().map(cause).collect::<Vec<_>>(),
            "causes_cut": self.of.is_cut,
            "known": {"done": fed.known_done, "dead": fed.known_dead, "discarded": fed.known_discarded, "open": fed.known_open},
            "retried": self.retried.as_ref().map(retried),
            "broken": fed.broken,
            "unfinished": fed.unfinished,
            "limited": fed.limited,
            "not_taken": fed.not_taken.unwrap_or(0),
            "left": self.left,
            "replaying": self.replaying,
            "retrying": self.retrying,
            "handed_on": self.handed_on,
            "waited": self.waited.as_deref().map(waited),
            "interrupted": self.interrupted,
            "exit": exit.code(),
        })
    }
}

fn to_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
