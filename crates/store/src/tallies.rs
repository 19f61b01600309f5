//! What a transaction has to add to counters that many operations share: minutes, traffic, causes, replays. Each row is
//! written once, at the end, as the backend likes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use redrive_core::counts::{Death, Delta, Event};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::facets;
use redrive_core::failures::{Failure, Reason};
use redrive_core::good::GoodPage;
use redrive_core::outcomes::{FieldCount, OutcomeCount};
use redrive_core::settlements::{Destination, Settlement};
use redrive_core::time::Timestamp;
use redrive_core::traffic::Facts;

/// The changes to a key of a cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyChange {
    pub(crate) total: i64,
    pub(crate) refailed: i64,
    pub(crate) dead: i64,
    pub(crate) recovered: i64,
    pub(crate) discarded: i64,
    /// When it was seen first and last, if it was.
    pub(crate) seen: Option<(Timestamp, Timestamp)>,
}

impl KeyChange {
    /// One more letter is dead of it.
    pub(crate) fn add(&mut self, death: Death, at: Timestamp) {
        *self.deaths(death) += 1;
        self.dead += 1;
        self.seen = Some(self.seen.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
    }

    /// A letter that was dead of it belongs to another key.
    pub(crate) fn take_away(&mut self, death: Death) {
        *self.deaths(death) -= 1;
        self.dead -= 1;
    }

    fn deaths(&mut self, death: Death) -> &mut i64 {
        match death {
            Death::First => &mut self.total,
            Death::Again => &mut self.refailed,
        }
    }
}

/// The changes to a replay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplayCounts {
    pub(crate) recovered: i64,
    pub(crate) failed: i64,
    pub(crate) same_cause: i64,
    pub(crate) gone: i64,
    /// Of those: letters that the step has counted before, when they were processed.
    pub(crate) processed: i64,
    /// When the last of them came to its end.
    pub(crate) ended_at: i64,
}

/// An event's place: pipeline and minute.
pub(crate) type Minute = (i64, i64, Delta);

/// An attempt's place in the traffic: pipeline, hour, target, proxy, and why it failed if it did.
pub(crate) type Way = (i64, i64, String, String, Option<Reason>);

/// All of it.
#[derive(Default)]
pub(crate) struct Tallies {
    pub(crate) minutes: HashMap<Minute, i64>,
    /// Attempts, and the jobs among them that came to their end.
    pub(crate) traffic: HashMap<Way, (i64, i64)>,
    pub(crate) coverage: HashMap<(i64, String, i64, String), (i64, i64)>,
    pub(crate) tracked: HashMap<(i64, String, String), (i64, i64, i64)>,
    pub(crate) keys: HashMap<i64, KeyChange>,
    /// Jobs that died, and those among them that were imported.
    pub(crate) key_hours: HashMap<(i64, i64), (i64, i64)>,
    pub(crate) key_targets: HashMap<(i64, String), (i64, i64)>,
    /// Jobs that died of a key, by kind and value.
    pub(crate) key_facets: HashMap<(i64, String, String), i64>,
    /// Jobs of a pipeline that were done in an hour, by kind and value.
    pub(crate) done_facets: HashMap<(i64, i64, String, String), i64>,
    /// Pages that worked.
    pub(crate) good: Vec<(i64, GoodPage)>,
    /// The page of a pipeline, target and shape that each key holds on to, if there is one and the key has none.
    pub(crate) pins: HashMap<i64, (i64, String, String)>,
    pub(crate) replays: HashMap<i64, ReplayCounts>,
    /// Results that are kept, by pipeline and time.
    pub(crate) results: BTreeMap<(i64, i64), Vec<Arc<str>>>,
}

impl Tallies {
    /// Counts an event in its minute.
    pub(crate) fn count(&mut self, pipeline: i64, now: Timestamp, delta: Delta) {
        *self.minutes.entry((pipeline, now.minute(), delta)).or_default() += 1;
    }

    /// Counts an attempt that ended, for the reason it failed if it did, and whether its job came to its end by it.
    pub(crate) fn attempt(
        &mut self,
        pipeline: i64,
        (target, proxy): (Option<&str>, Option<&str>),
        (reason, is_end): (Option<Reason>, bool),
        now: Timestamp,
    ) {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let (attempts, ended) =
            self.traffic.entry((pipeline, now.hour(), text(target), text(proxy), reason)).or_default();
        *attempts += 1;
        *ended += i64::from(is_end);
    }

    /// Counts which fields of a record were found.
    pub(crate) fn cover(&mut self, pipeline: i64, facts: &Facts, now: Timestamp) {
        for (field, found) in facts.coverage.iter().flat_map(|coverage| &coverage.fields) {
            let version = facts.coverage.as_ref().map(|coverage| coverage.version.clone()).unwrap_or_default();
            let (with, without) = self.coverage.entry((pipeline, version, now.hour(), field.clone())).or_default();
            *(if *found { with } else { without }) += 1;
        }
    }

    /// Counts a job that came to its end, by the fields its pipeline keeps count of.
    pub(crate) fn track(&mut self, pipeline: i64, facts: &Facts, done: bool, now: Timestamp) {
        for (field, value) in &facts.tracked {
            let (ok, failed, last) = self.tracked.entry((pipeline, field.clone(), value.clone())).or_default();
            *(if done { ok } else { failed }) += 1;
            *last = now.as_millis();
        }
    }

    /// Counts what a program counted of jobs that it ran itself.
    pub(crate) fn outcome(&mut self, pipeline: i64, count: &OutcomeCount, now: Timestamp) {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (done, failed, at) = (signed(count.done), signed(count.failed), count.at(now));
        // Of which reason the failed attempts were is not told.
        let unknown = Reason::HandlerError;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        for (reason, event, attempts, ended) in [
            (None, Delta::of(Event::Done), done, done),
            (Some(unknown), Delta::because(Event::Retried, unknown), failed, 0),
        ] {
            if attempts > 0 {
                let late = event.late(at, now).map(|late| (now, late));
                for (at, event) in std::iter::once((at, event)).chain(late) {
                    *self.minutes.entry((pipeline, at.minute(), event)).or_default() += attempts;
                }
                let way = (pipeline, at.hour(), text(&count.target), text(&count.proxy), reason);
                let (all, ends) = self.traffic.entry(way).or_default();
                (*all, *ends) = (*all + attempts, *ends + ended);
            }
        }
        for (field, FieldCount { found, missing }) in &count.fields {
            let place = (pipeline, text(&count.version), at.hour(), field.clone());
            let (with, without) = self.coverage.entry(place).or_default();
            (*with, *without) = (*with + signed(*found), *without + signed(*missing));
        }
        if done > 0 {
            let tracked: Vec<_> = count.tracked.iter().map(|(field, value)| (field.clone(), value.clone())).collect();
            self.done(pipeline, count.version.as_deref(), &tracked, (done, at));
        }
        for (field, value) in count.tracked.iter().filter(|_| done > 0) {
            let (ok, _, last) = self.tracked.entry((pipeline, field.clone(), value.clone())).or_default();
            (*ok, *last) = (*ok + done, now.as_millis());
        }
    }

    /// The change to a key of a cause, so far.
    pub(crate) fn key(&mut self, key: i64) -> &mut KeyChange {
        self.keys.entry(key).or_default()
    }

    /// Counts a job that died of a key.
    pub(crate) fn killed(
        &mut self,
        key: i64,
        (target, failure): (Option<&str>, &Failure),
        (death, at): (Death, Timestamp),
    ) {
        self.key(key).add(death, at);
        if death == Death::First {
            self.key_hours.entry((key, at.hour())).or_default().0 += 1;
            for (kind, value) in facets::of_death(target, failure) {
                *self.key_facets.entry((key, kind.to_owned(), value)).or_default() += 1;
            }
        }
        if let Some(target) = target {
            let (count, last) = self.key_targets.entry((key, target.to_owned())).or_insert((0, i64::MIN));
            *count += 1;
            *last = at.as_millis().max(*last);
        }
    }

    /// Notes what else is known of a job that died of a key here: the fields that its pipeline tracks, and the page that it is about.
    pub(crate) fn died_here(&mut self, key: i64, pipeline: i64, settlement: &Settlement) {
        if settlement.decision.death() == Death::First {
            for (field, value) in &settlement.decision.facts.tracked {
                *self.key_facets.entry((key, facets::kinds::input(field), facets::value(value))).or_default() += 1;
            }
        }
        if let Some(shape) = &settlement.shape {
            let target = settlement.target.clone().unwrap_or_default();
            self.pins.entry(key).or_insert_with(|| (pipeline, target, shape.clone()));
        }
    }

    /// Counts a job that is done for the first time, by what is not counted with its traffic, and takes its page.
    pub(crate) fn succeeded(&mut self, pipeline: i64, settlement: &Settlement, now: Timestamp) {
        let Settlement { decision, definition, good, .. } = settlement;
        if decision.destination != Destination::Done {
            return;
        }
        if let Some(line) = &settlement.result {
            self.results.entry((pipeline, now.as_millis())).or_default().push(Arc::clone(line));
        }
        if let Some(good) = good {
            self.good.push((pipeline, (**good).clone()));
        }
        if decision.is_first_end() {
            let rules = definition.as_ref().map(DefinitionVersion::as_str);
            self.done(pipeline, rules, &decision.facts.tracked, (1, now));
        }
    }

    fn done(
        &mut self,
        pipeline: i64,
        rules: Option<&str>,
        tracked: &[(String, String)],
        (count, at): (i64, Timestamp),
    ) {
        let hour = at.hour();
        let mut add = |kind: String, value: String| {
            *self.done_facets.entry((pipeline, hour, kind, value)).or_default() += count;
        };
        if let Some(rules) = rules {
            add(facets::kinds::RULES.to_owned(), rules.to_owned());
        }
        for (field, value) in tracked {
            add(facets::kinds::input(field), facets::value(value));
        }
    }

    /// Counts one of those who died of a key as imported: it did not die here.
    pub(crate) fn imported(&mut self, key: i64, died_at: Timestamp) {
        self.key_hours.entry((key, died_at.hour())).or_default().1 += 1;
    }

    /// The change to a replay, so far.
    pub(crate) fn replay(&mut self, replay: i64) -> &mut ReplayCounts {
        self.replays.entry(replay).or_default()
    }

    /// Whether any replay got on.
    pub(crate) fn has_replays(&self) -> bool {
        !self.replays.is_empty()
    }
}
