//! What a transaction has to add to counters that many operations share: minutes, traffic, causes, replays. Each row is
//! written once, at the end.

use std::collections::HashMap;

use redrive_core::counts::{Death, Delta};
use redrive_core::failures::Reason;
use redrive_core::time::Timestamp;
use redrive_core::traffic::Facts;
use rusqlite::{CachedStatement, Connection, params};

use super::fault::Fault;

/// The changes to a key of a cause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyChange {
    pub(super) total: i64,
    pub(super) refailed: i64,
    pub(super) dead: i64,
    pub(super) recovered: i64,
    pub(super) discarded: i64,
    /// When it was seen first and last, if it was.
    pub(super) seen: Option<(Timestamp, Timestamp)>,
}

impl KeyChange {
    /// One more letter is dead of it.
    pub(super) fn add(&mut self, death: Death, at: Timestamp) {
        *self.deaths(death) += 1;
        self.dead += 1;
        self.seen = Some(self.seen.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
    }

    /// A letter that was dead of it belongs to another key.
    pub(super) fn take_away(&mut self, death: Death) {
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
pub(super) struct ReplayCounts {
    pub(super) recovered: i64,
    pub(super) failed: i64,
    pub(super) same_cause: i64,
    pub(super) gone: i64,
}

/// An event's place: pipeline and minute.
type Minute = (i64, i64, Delta);

/// An attempt's place in the traffic: pipeline, hour, target, proxy, and why it failed if it did.
type Way = (i64, i64, String, String, Option<Reason>);

/// All of it.
#[derive(Default)]
pub(super) struct Tallies {
    minutes: HashMap<Minute, i64>,
    /// Attempts, and the jobs among them that came to their end.
    traffic: HashMap<Way, (i64, i64)>,
    coverage: HashMap<(i64, String, i64, String), (i64, i64)>,
    tracked: HashMap<(i64, String, String), (i64, i64, i64)>,
    keys: HashMap<i64, KeyChange>,
    /// Jobs that died, and those among them that were imported.
    key_hours: HashMap<(i64, i64), (i64, i64)>,
    key_targets: HashMap<(i64, String), (i64, i64)>,
    replays: HashMap<i64, ReplayCounts>,
}

impl Tallies {
    /// Counts an event in its minute.
    pub(super) fn count(&mut self, pipeline: i64, now: Timestamp, delta: Delta) {
        *self.minutes.entry((pipeline, now.minute(), delta)).or_default() += 1;
    }

    /// Counts an attempt that ended, for the reason it failed if it did, and whether its job came to its end by it.
    pub(super) fn attempt(
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
    pub(super) fn cover(&mut self, pipeline: i64, facts: &Facts, now: Timestamp) {
        for (field, found) in facts.coverage.iter().flat_map(|coverage| &coverage.fields) {
            let version = facts.coverage.as_ref().map(|coverage| coverage.version.clone()).unwrap_or_default();
            let (with, without) = self.coverage.entry((pipeline, version, now.hour(), field.clone())).or_default();
            *(if *found { with } else { without }) += 1;
        }
    }

    /// Counts a job that came to its end, by the fields its pipeline keeps count of.
    pub(super) fn track(&mut self, pipeline: i64, facts: &Facts, done: bool, now: Timestamp) {
        for (field, value) in &facts.tracked {
            let (ok, failed, last) = self.tracked.entry((pipeline, field.clone(), value.clone())).or_default();
            *(if done { ok } else { failed }) += 1;
            *last = now.as_millis();
        }
    }

    /// The change to a key of a cause, so far.
    pub(super) fn key(&mut self, key: i64) -> &mut KeyChange {
        self.keys.entry(key).or_default()
    }

    /// Counts a job that died of a key.
    pub(super) fn killed(&mut self, key: i64, target: Option<&str>, (death, at): (Death, Timestamp)) {
        self.key(key).add(death, at);
        if death == Death::First {
            self.key_hours.entry((key, at.hour())).or_default().0 += 1;
        }
        if let Some(target) = target {
            let (count, last) = self.key_targets.entry((key, target.to_owned())).or_insert((0, i64::MIN));
            *count += 1;
            *last = at.as_millis().max(*last);
        }
    }

    /// Counts one of those who died of a key as imported: it did not die here.
    pub(super) fn imported(&mut self, key: i64, died_at: Timestamp) {
        self.key_hours.entry((key, died_at.hour())).or_default().1 += 1;
    }

    /// The change to a replay, so far.
    pub(super) fn replay(&mut self, replay: i64) -> &mut ReplayCounts {
        self.replays.entry(replay).or_default()
    }

    /// Whether any replay got on.
    pub(super) fn has_replays(&self) -> bool {
        !self.replays.is_empty()
    }

    /// Writes all of it.
    pub(super) fn write(self, conn: &Connection) -> Result<(), Fault> {
        let statement = |sql: &str| -> Result<CachedStatement<'_>, Fault> { Ok(conn.prepare_cached(sql)?) };
        let mut upsert = statement(
            "INSERT INTO minutely (pipeline, minute, event, reason, count) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET count = count + excluded.count",
        )?;
        for ((pipeline, minute, Delta { event, reason }), count) in &self.minutes {
            upsert.execute(params![pipeline, minute, event.as_str(), reason.map_or("", Reason::as_str), count])?;
        }
        let mut upsert = statement(
            "INSERT INTO traffic (pipeline, hour, target, proxy, reason, count, ended) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO UPDATE SET count = count + excluded.count, ended = ended + excluded.ended",
        )?;
        for ((pipeline, hour, target, proxy, reason), (count, ended)) in &self.traffic {
            upsert.execute(params![pipeline, hour, target, proxy, reason.map_or("", Reason::as_str), count, ended])?;
        }
        self.write_fields(conn)?;
        self.write_causes(conn)?;
        self.write_replays(conn)
    }

    fn write_fields(&self, conn: &Connection) -> Result<(), Fault> {
        let mut upsert = conn.prepare_cached(
            "INSERT INTO coverage (pipeline, version, hour, field, found, missing) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET found = found + excluded.found, missing = missing + excluded.missing",
        )?;
        for ((pipeline, version, hour, field), (found, missing)) in &self.coverage {
            upsert.execute(params![pipeline, version, hour, field, found, missing])?;
        }
        let mut upsert = conn.prepare_cached(
            // What a job is taken out of may be forgotten by now: no count is below zero.
            "INSERT INTO tracked (pipeline, field, value, ok, failed, last_at)
             VALUES (?1, ?2, ?3, max(?4, 0), max(?5, 0), ?6)
             ON CONFLICT DO UPDATE SET ok = max(ok + ?4, 0), failed = max(failed + ?5, 0),
                                       last_at = max(last_at, excluded.last_at)",
        )?;
        for ((pipeline, field, value), (ok, failed, last)) in &self.tracked {
            upsert.execute(params![pipeline, field, value, ok, failed, last])?;
        }
        Ok(())
    }

    fn write_causes(&self, conn: &Connection) -> Result<(), Fault> {
        let mut update = conn.prepare_cached(
            "UPDATE cause_key SET total = total + ?2, dead = dead + ?3, recovered = recovered + ?4,
                                  discarded = discarded + ?5, refailed = refailed + ?8,
                                  first_seen = ifnull(iif(total + refailed = 0, ?6, min(first_seen, ?6)), first_seen),
                                  last_seen = ifnull(iif(total + refailed = 0, ?7, max(last_seen, ?7)), last_seen)
             WHERE id = ?1",
        )?;
        for (key, change) in &self.keys {
            let KeyChange { total, refailed, dead, recovered, discarded, seen } = change;
            let (first, last) = seen.map(|(first, last)| (first.as_millis(), last.as_millis())).unzip();
            update.execute(params![key, total, dead, recovered, discarded, first, last, refailed])?;
        }
        let mut upsert = conn.prepare_cached(
            "INSERT INTO cause_hour (key, hour, count, imported) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET count = count + excluded.count, imported = imported + excluded.imported",
        )?;
        for ((key, hour), (count, imported)) in &self.key_hours {
            upsert.execute(params![key, hour, count, imported])?;
        }
        let mut upsert = conn.prepare_cached(
            "INSERT INTO cause_target (key, target, count, last_seen) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET count = count + excluded.count, last_seen = max(last_seen, excluded.last_seen)",
        )?;
        for ((key, target), (count, last)) in &self.key_targets {
            upsert.execute(params![key, target, count, last])?;
        }
        Ok(())
    }

    fn write_replays(&self, conn: &Connection) -> Result<(), Fault> {
        let mut update = conn.prepare_cached(
            "UPDATE replay SET running = running - ?2, recovered = recovered + ?3, failed = failed + ?4,
                    same_cause = same_cause + ?5, gone = gone + ?6, step_settled = step_settled + ?2,
                    step_failed = step_failed + ?4
             WHERE id = ?1",
        )?;
        for (replay, change) in &self.replays {
            let ReplayCounts { recovered, failed, same_cause, gone } = change;
            update.execute(params![replay, recovered + failed + gone, recovered, failed, same_cause, gone])?;
        }
        Ok(())
    }
}
